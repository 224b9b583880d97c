"""Requests to a model and its replies, whatever the API is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol
from uuid import uuid4

from lmc.grammar.provider_schema import ProviderForm
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.protocol import Request, Score, ScoreRequest, TokenLogprob
from lmc.ir.engine.target import RemoteSettings
from lmc.ir.tokens.messages import GO_ON, MessagePrompt
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Usage

End = Literal["stop", "length", "eos"]
BYTES_PER_TOKEN = 4
"""Of English text; for estimates."""
LOOP_NAME = "lmc-remote"
"""The name of the threads in which requests are sent."""
OnText = Callable[[str], bool]
"""Takes new text of a reply; False: enough, the rest is not needed."""


@dataclass(frozen=True, slots=True)
class RemoteService:
    """The model that is asked. ``near`` are others with names like its own. ``place``: 0, that of a fallback from 1.

    ``sessions`` begins the names of rows for routers: rows of other processes have others.
    """

    model: str
    settings: RemoteSettings
    capabilities: Capabilities
    api_key: str = field(repr=False)
    tokenizer: Tokenizer
    is_server: bool = False
    near: tuple[str, ...] = ()
    place: int = 0
    sessions: str = field(default_factory=lambda: uuid4().hex)

    @property
    def needs_key(self) -> bool:
        """True if the key is one, and not the placeholder that the SDKs want."""
        return self.settings.api_key_env is not None


def kept_name(answer: str, place: int) -> str:
    """Return the name under which a journal keeps the id of an answer: with the place of the fallback that has it."""
    return f"{answer}@{place}" if place else answer


def place_of(name: str | None) -> int:
    """Return the place of a name of ``kept_name``; 0 for None."""
    digits = (name or "").partition("@")[2]
    return int(digits) if digits.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Asked:
    """One generation as it is sent.

    Attributes:
        request: the request of the program.
        conversation: its prompt as messages; None: the prompt is tokens.
        stops: the stops that the provider honours itself. The other ones are looked for in the reply.
        form: the constraint in the provider's terms.
        max_tokens: tokens of the reply, reasoning included.
        timeout: seconds of this attempt.
    """

    request: Request
    conversation: MessagePrompt | None
    stops: tuple[str, ...]
    form: ProviderForm | None
    max_tokens: int
    timeout: float

    def messages(self, *, keeps_open: bool) -> list[dict[str, Any]]:
        """Return the messages as chat APIs take them. ``keeps_open``: the last one, of the assistant, is continued."""
        assert self.conversation is not None
        found = [{"role": each.role, "content": each.text} for each in self.conversation.messages]
        turn = self.conversation.open
        if turn is not None and turn.text:
            found.append({"role": turn.role, "content": turn.text})
            if not keeps_open:
                found.append({"role": "user", "content": GO_ON.replace("{text}", turn.text)})
        return found

    @property
    def continues(self) -> bool:
        """True if the reply continues a turn."""
        turn = None if self.conversation is None else self.conversation.open
        return turn is not None and bool(turn.text)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a model to one attempt.

    ``token_ids`` are known where contexts are tokens. ``end``: "eos" where the model ended its turn. ``matched_stop``
    is the stop string that the provider names. ``usage`` counts the attempt, each part within its whole; None where the
    provider has not told, because its stream was left at a stop; ``is_whole``: it counts all of the attempt.
    """

    text: str
    end: End
    usage: Usage | None
    token_ids: tuple[int, ...] | None = None
    matched_stop: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    is_whole: bool = True

    def cost(self, asked: Asked) -> Usage:
        """Return the usage; where the provider has not told, an estimate: exact where contexts are tokens."""
        if self.usage is not None:
            return self.usage
        if self.token_ids is not None:
            return Usage(len(asked.request.prompt), 0, len(self.token_ids), 1)
        prompt, output = len(asked.request.prompt), len(self.text.encode())
        return Usage(prompt // BYTES_PER_TOKEN, 0, -(-output // BYTES_PER_TOKEN), 1)


class Fetched(NamedTuple):
    """An answer that a provider keeps: its ``reply`` (None: it has none, or none of use) and its cost, if known."""

    reply: Reply | None = None
    usage: Usage | None = None


class ModelProtocol(Protocol):
    """One API of one service. Used in one event loop."""

    async def generate(self, asked: Asked, on_text: OnText | None) -> Reply:
        """Ask once. With ``on_text`` the reply is read as a stream. Raises ``AttemptError`` (``failures.py``)."""
        ...

    async def fetch(self, stored: str) -> Fetched:
        """Return the answer that the provider keeps under an id since an earlier run."""
        ...

    async def score(self, request: ScoreRequest, timeout: float) -> Score:
        """Score continuations. Raises ``AttemptError``."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
