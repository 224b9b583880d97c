"""Answers of a simulated model: functions from a request to a text, an end and the reasoning before it."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, cast

from hypothesis import find, settings, strategies

from tests.runtime.remote.providers.hosted_models import HostedModel, pieces

Api = Literal["chat", "responses", "messages"]
End = Literal[
    "stop", "length", "content_filter", "refusal", "pause_turn", "tool_calls", "no_choices", "context_window", "failed"
]
_FOR_REASONING = 40
"""Tokens of an answer that leave some for reasoning."""
_WORDS = ("amber", "brisk", "cedar", "delta", "ember", "fjord", "grove", "haze", "iris", "jade", "krill", "lumen")


@dataclass(frozen=True)
class Turn:
    """A message, as text."""

    role: str
    text: str


@dataclass(frozen=True)
class Asked:
    """A request, as any of the APIs asks it.

    ``draw`` counts the equal requests before this one. ``cache_ends`` are the lengths of the prompt, in characters, at
    which the request wants it cached.
    """

    api: Api
    model: HostedModel
    turns: tuple[Turn, ...]
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    stream: bool = False
    cache_ends: tuple[int, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    draw: int = 0

    @property
    def prompt(self) -> str:
        """The text of the whole prompt."""
        return "".join(f"<{turn.role}>{turn.text}\n" for turn in self.turns)

    @property
    def planned_tokens(self) -> int:
        """What the request counts against a limit of tokens when it arrives."""
        return len(pieces(self.prompt)) + (self.max_tokens or 16)

    @property
    def last(self) -> str:
        """The text of the last turn."""
        return self.turns[-1].text


@dataclass(frozen=True)
class Reply:
    """An answer before its limits: stops and the largest number of tokens still cut it.

    ``reasoning_tokens`` come before the text and are of the same allowance.
    """

    text: str = ""
    end: End = "stop"
    reasoning_tokens: int = 0
    stop_text: str | None = None

    def within(self, asked: Asked) -> Reply:
        """Return the answer cut by the limits of the request."""
        reply = self
        places = [(self.text.find(stop), stop) for stop in asked.stops if stop in self.text]
        if places:
            place, stop = min(places)
            reply = replace(reply, text=self.text[:place], end="stop", stop_text=stop)
        if asked.max_tokens is None:
            return reply
        room = max(asked.max_tokens - reply.reasoning_tokens, 0)
        tokens = pieces(reply.text)
        if len(tokens) <= room and reply.reasoning_tokens <= asked.max_tokens:
            return reply
        reasoning = min(reply.reasoning_tokens, asked.max_tokens)
        return Reply("".join(tokens[:room]), "length", reasoning)

    @property
    def output_tokens(self) -> int:
        """Reasoning included, as all providers count."""
        return len(pieces(self.text)) + self.reasoning_tokens


Answering = Callable[[Asked], Reply | str]


def hashed(asked: Asked) -> str:
    """Answer with words that depend on the messages and the schema alone: equal requests have equal answers."""
    return _words(asked, 0)


def drawn(asked: Asked) -> str:
    """Answer as ``hashed``, but differently each time."""
    return _words(asked, asked.draw)


def obedient(asked: Asked) -> Reply:
    """Answer as ``hashed`` with texts that patterns of a schema allow; models that reason do so for a few tokens."""
    if asked.schema is not None:
        asked = replace(asked, schema=_without_patterns(asked.schema))
    reasons = asked.model.reasons and (asked.max_tokens or _FOR_REASONING) >= _FOR_REASONING
    return Reply(_words(asked, 0), reasoning_tokens=5 if reasons else 0)


def _without_patterns(schema: Any) -> Any:
    """Return a schema in which each text with a pattern is a constant that it allows."""
    if isinstance(schema, list):
        return [_without_patterns(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast("dict[str, Any]", schema)
    if isinstance(found.get("pattern"), str):
        return {"const": _matching(found["pattern"])}
    return {name: _without_patterns(each) for name, each in found.items()}


@lru_cache
def _matching(pattern: str) -> str:
    """Return a text that a pattern matches as a whole."""
    allowed = strategies.from_regex(pattern, fullmatch=True)
    return find(allowed, lambda _: True, settings=settings(database=None, derandomize=True))


def _words(asked: Asked, draw: int) -> str:
    turns = [(turn.role, turn.text) for turn in asked.turns]
    key = json.dumps([turns, asked.schema, draw], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()
    rng = random.Random(digest)
    if asked.schema is not None:
        return json.dumps(_value(asked.schema, asked.schema, rng))
    return " ".join((*rng.sample(_WORDS, 4), digest[:8]))


def _value(schema: Mapping[str, Any], root: Mapping[str, Any], rng: random.Random) -> Any:
    """Return a value that a schema of the providers' subset allows. A pattern is left to the test's own answers."""
    if "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return _value(found, root, rng)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return _value(rng.choice(schema["anyOf"]), root, rng)
    kind = schema.get("type", "string")
    if not isinstance(kind, str):
        kind = rng.choice(kind)
    if kind == "object":
        return {name: _value(each, root, rng) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [_value(schema["items"], root, rng) for _ in range(max(schema.get("minItems", 1), 1))]
    return {
        "string": rng.choice(_WORDS),
        "integer": schema.get("minimum", 0) + rng.randrange(3),
        "number": schema.get("minimum", 0) + 0.5,
        "boolean": rng.random() < 0.5,
        "null": None,
    }[kind]


def deltas(text: str) -> Sequence[str]:
    """Return the texts of the events of a stream."""
    tokens = pieces(text)
    return ["".join(tokens[start : start + 2]) for start in range(0, len(tokens), 2)]
