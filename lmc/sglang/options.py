"""Sampling arguments of ``gen`` and ``run``: each is mapped to an option of lmc's, or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lmc.frontend.language import sampling
from lmc.frontend.language.refusals import bad, described

# What the value of a dtype looks like: the text is kept, as in sglang, so that it can be appended to other text.
_DTYPES = {
    "int": r"[+-]?[0-9]+",
    "float": r"[+-]?([0-9]*\.)?[0-9]+",
    "bool": r"True|False",
    "str": r'"[\w\s]*"',
}
_DTYPES_BY_CLASS: dict[Any, str] = {int: "int", float: "float", bool: "bool", str: "str"}
# These go to lmc as they are.
_SAME = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty")
_LOGPROBS = ("logprob_start_len", "top_logprobs_num", "return_text_in_logprobs")


@dataclass(frozen=True)
class Sampling:
    """The defaults of a run's generations; the defaults of the fields are sglang's."""

    max_new_tokens: int = 128
    stop: Any = ()
    stop_token_ids: Any = ()
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    ignore_eos: bool = False
    return_logprob: bool | None = None
    logprob_start_len: int | None = None
    top_logprobs_num: int | None = None
    return_text_in_logprobs: bool | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Sampling:
        """Return the defaults with ``given`` ones. Raises ``CaptureError`` at the user's line for an invalid value."""
        hashable: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        made = cls(**hashable)
        sampling.options(resolve(made, {}).options)
        return made

    @property
    def options(self) -> dict[str, Any]:
        """The values that are not None, by the names of ``gen``."""
        found = {name: getattr(self, name) for name in SAMPLING}
        found["max_tokens"] = found.pop("max_new_tokens")
        return {name: value for name, value in found.items() if value is not None}


SAMPLING = tuple(field.name for field in fields(Sampling))


@dataclass(frozen=True, slots=True)
class Resolved:
    """One generation: ``options`` of ``lmc.State.gen``; ``count`` is n where that is more than one.

    ``texts`` says whether its meta data shows the texts of tokens.
    """

    options: dict[str, Any]
    count: int | None
    texts: bool


def resolve(defaults: Sampling, given: Mapping[str, Any]) -> Resolved:
    """The options of one generation. Raises ``CaptureError`` at the user's line for what lmc can't do."""
    asked = {**defaults.options, **{name: copied(value) for name, value in given.items()}}
    options = {name: asked[name] for name in _SAME}
    options["max_tokens"] = asked["max_tokens"]
    options["top_k"] = _top_k(asked["top_k"])
    if "min_tokens" in asked:
        options["min_tokens"] = asked["min_tokens"]
    if "stop_regex" in asked:
        raise bad(
            f"stop_regex is {described(asked['stop_regex'])}: a generation stops at texts and token ids",
            "name the texts, stop=[…]; or say with regex=… what the whole output may be",
        )
    for name in ("stop", "stop_token_ids"):
        found = asked[name]
        options[name] = list(found) if type(found) is tuple else found
    options.update(_constraint(asked))
    if _flag("ignore_eos", asked):
        options["min_tokens"] = _min_tokens_without_eos(asked, options)
    options["logprobs"] = _logprobs(asked)
    options["n"] = None if asked.get("n", 1) == 1 else asked["n"]
    kept = {name: value for name, value in options.items() if value is not None and value != []}
    return Resolved(kept, options["n"], _flag("return_text_in_logprobs", asked))


def copied(value: Any) -> Any:
    """Return ``value``; of a list or tuple a copy, as a list."""
    return list(value) if type(value) in (list, tuple) else value


def _top_k(value: Any) -> Any:
    if value == 0:
        raise bad("top_k is 0", "give -1 for the whole vocabulary, or how many tokens may be drawn")
    return 0 if value == -1 else value


def _flag(name: str, asked: Mapping[str, Any]) -> bool:
    value = asked.get(name, False)
    if type(value) is not bool:
        raise bad(f"{name} is {described(value)}", "give True or False")
    return value


def _min_tokens_without_eos(asked: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Without the end token a generation has ``max_tokens`` tokens: it may not end before."""
    others = [name for name in ("stop", "stop_token_ids", "regex", "schema") if options.get(name)]
    if others:
        raise bad(
            f"ignore_eos and {' and '.join(others)}: one says that the generation goes on, the other that it ends",
            "leave one of them out",
        )
    return asked["max_tokens"]


def _constraint(asked: Mapping[str, Any]) -> dict[str, Any]:
    kinds = [name for name in ("dtype", "regex", "json_schema") if name in asked]
    if len(kinds) > 1:
        raise bad(f"gen has {' and '.join(kinds)}", "give one of dtype, regex and json_schema")
    if not kinds:
        return {}
    value = asked[kinds[0]]
    if kinds[0] == "regex":
        return {"regex": value}
    if kinds[0] == "json_schema":
        return {"schema": _schema(value), "parse": False}
    name = value if isinstance(value, str) else _DTYPES_BY_CLASS.get(value) if isinstance(value, type) else None
    if name not in _DTYPES:
        raise bad(f"dtype is {described(value)}", f"give one of {', '.join(_DTYPES)}")
    return {"regex": _DTYPES[name]}


def _schema(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    try:
        found = json.loads(value)
    except (TypeError, ValueError) as error:
        raise bad(
            f"json_schema is {described(value)}: {error}", "give the schema as JSON text: json.dumps(…)"
        ) from error
    if not isinstance(found, dict):
        raise bad(f"json_schema is {described(value)}, which is no object", "give a JSON schema")
    return found


def _logprobs(asked: Mapping[str, Any]) -> Any:
    """Return the number of likeliest tokens with log-probabilities; None for no log-probabilities at all."""
    if not _flag("return_logprob", asked):
        for name in _LOGPROBS:
            if asked.get(name):
                raise bad(f"{name} is {asked[name]!r}, but return_logprob is not set", "give return_logprob=True too")
        return None
    if asked.get("logprob_start_len", -1) != -1:
        raise bad(
            f"logprob_start_len is {asked['logprob_start_len']!r}: there are log-probabilities of what is generated, "
            "not of the prompt",
            "leave it out; sgl.select gives those of a text that is given",
        )
    return asked.get("top_logprobs_num", 0)
