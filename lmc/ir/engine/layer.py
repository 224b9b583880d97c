"""Engines on top of other engines, and the requests that pass through them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from lmc.ir.engine.observing import Observable
from lmc.ir.engine.protocol import (
    CacheFlushing,
    Engine,
    EngineInfo,
    EngineStatistics,
    Handle,
    Planned,
    PrefixCaching,
)
from lmc.ir.errors import RequestCancelledError
from lmc.ir.tokens.tokenizer import Tokenizer

T = TypeVar("T")
_CAPABILITIES = (PrefixCaching, Planned, Observable, CacheFlushing)


class EngineLayer:
    """The base of an engine on top of another one, which is ``below``: a subclass has its own ``submit`` and ``score``.

    Tokenizer, limits, statistics and optional capabilities are those of the engine below. ``Queueing`` is not among
    them: its requests would not pass the layer.
    """

    def __init__(self, below: Engine) -> None:
        self.below = below
        for capability in _CAPABILITIES:
            if isinstance(below, capability):
                for name in vars(capability):
                    if not name.startswith("_"):
                        setattr(self, name, getattr(below, name))

    @property
    def tokenizer(self) -> Tokenizer:
        return self.below.tokenizer

    @property
    def info(self) -> EngineInfo:
        return self.below.info

    @property
    def statistics(self) -> EngineStatistics:
        return self.below.statistics

    def close(self) -> None:
        """Nothing: the engine below belongs to others."""


@dataclass(eq=False)
class LayerHandle(Generic[T]):
    """A request in a layer: it waits there, or is in the engine ``below``. A layer ends it with ``end``, once."""

    future: Future[T] = field(default_factory=Future)
    below: Handle[T] | None = None
    is_cancelled: bool = False

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # whoever stops waiting cancels the request, and that ends it

    def cancel(self) -> None:
        """Cancel it in the engine below, or before it gets there."""
        self.is_cancelled = True
        if self.below is not None:
            self.below.cancel()

    def pass_on(self, submit: Callable[[], Handle[T]], ended: Callable[[Any], object]) -> None:
        """Submit it to the engine below; ``ended`` gets its result or its error. Raises nothing."""
        if self.is_cancelled:
            ended(cancelled_request())
            return
        try:
            self.below = submit()
        except BaseException as error:  # an engine should answer through its handle; one that does not fails alone
            ended(error)
            return
        if self.is_cancelled:  # meanwhile
            self.below.cancel()
        self.below.future.add_done_callback(lambda done: ended(outcome_of(done)))

    def end(self, result: Any) -> None:
        """Hand on a result or an error."""
        if isinstance(result, BaseException):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


def cancelled_request() -> RequestCancelledError:
    """Return the error of a request that was cancelled."""
    return RequestCancelledError("the request was cancelled")


def outcome_of(done: Future[Any]) -> Any:
    """Return the result of a request that is done, or its error."""
    if done.cancelled():
        return cancelled_request()
    error = done.exception()
    return done.result() if error is None else error
