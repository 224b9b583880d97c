"""The common parts of the APIs of the simulator: an answer with its usage, a refusal, the form of an API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.runtime.remote.providers.hosted_models import HostedModel, Provider, pieces
from tests.runtime.remote.providers.limits import Window
from tests.runtime.remote.providers.replies import Asked, Reply


class RefusedError(Exception):
    """A request that a provider answers with an error."""

    def __init__(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Answered:
    """A request and its reply within the request's limits. ``cached`` and ``written`` are tokens of the prompt."""

    asked: Asked
    reply: Reply
    number: int
    created: int
    cached: int = 0
    written: int = 0

    @property
    def prompt_tokens(self) -> int:
        return len(pieces(self.asked.prompt))

    @property
    def served(self) -> str:
        """The name of the model in the answer."""
        return self.asked.model.served or self.asked.model.name


class Api(Protocol):
    """One endpoint of a provider."""

    provider: Provider

    def asked(self, body: Mapping[str, Any], models: Mapping[str, HostedModel]) -> Asked:
        """Read a request. Raises ``RefusedError`` as the provider does."""
        ...

    def whole(self, answered: Answered) -> Mapping[str, Any]:
        """Return the answer in one piece. Raises ``RefusedError`` where the generation failed."""
        ...

    def events(self, answered: Answered) -> Iterable[bytes]:
        """Return the answer as server-sent events. One that holds text is an event of its own."""
        ...


class ProviderForm(Protocol):
    """The errors and headers of a provider."""

    def key_of(self, headers: Mapping[str, str]) -> str | None: ...

    def wrong_key(self, key: str | None) -> RefusedError: ...

    def rate_limited(self, model: str, unit: str, window: Window, amount: int, seconds: float) -> RefusedError:
        """Return the error of a request that is over a limit of ``unit`` (``requests``, ``tokens``)."""
        ...

    def out_of_quota(self) -> RefusedError: ...

    def overloaded(self) -> RefusedError: ...

    def failed(self) -> RefusedError: ...

    def not_json(self) -> RefusedError: ...

    def no_page(self, path: str) -> RefusedError: ...

    def limit_headers(self, unit: str, window: Window, now: float, time: float) -> Mapping[str, str]:
        """Return the state of a limit; ``now`` is on the clock of ``window``, ``time`` since the epoch."""
        ...


def counted(value: Any) -> bool:
    """Return True for a whole number, which a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def text_of(content: Any, kinds: Iterable[str] = ("text",)) -> str:
    """Return the text of a message's content: a string or blocks of text."""
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content or () if block["type"] in kinds)
