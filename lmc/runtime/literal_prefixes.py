"""What an engine is told of the calls that an instance has not come to: the literal text that their prompts begin with.

Other instances have computed that text already, and an engine that is not told would take it for dead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lmc.ir import semantics
from lmc.ir.context import Context
from lmc.ir.core import Op, Value
from lmc.ir.engine import Engine
from lmc.ir.errors import LmcError
from lmc.ir.ops import BeginOp, EndOp, ExtendOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.planned import Place, Planned
from lmc.runtime.prepared import PreparedBody

if TYPE_CHECKING:
    from lmc.runtime.frames import Frame

Prefixes = Mapping[int, tuple[int, ...]]
_SHORTEST = 16
"""Tokens; what is shorter is computed again as fast."""


def literal_prefixes(body: PreparedBody, values: Mapping[Value, Any], is_held: Callable[[Value], bool]) -> Prefixes:
    """For the calls of ``body``, by index, the tokens that their prompts begin with in every instance of a batch.

    ``values`` are those that all instances share. Calls that go on from what a call has left are not among them
    (``lm.keep`` says that), nor calls whose prefix ``is_held``. Time is linear in the body.
    """
    first: dict[Value, Op | None] = {}  # by context, what was done first to one that all instances share
    prefixes: dict[tuple[Value, Value | None], tuple[int, ...]] = {}
    bases: dict[Value, Value] = {}
    found: dict[int, tuple[int, ...]] = {}
    for index, op in enumerate(body.ops):
        for value in op.results:
            if isinstance(values.get(value), Context):
                bases[value], first[value] = value, None
        if isinstance(op, ExtendOp | BeginOp | EndOp | PrefillOp) and op.context in bases:
            [result] = op.results
            if result not in bases:
                before = first[op.context]
                bases[result], first[result] = bases[op.context], op if before is None else before
        elif isinstance(op, SamplingOp | SelectOp) and op.context in bases and not semantics.is_local(op):
            base, after = bases[op.context], first[op.context]
            key = base, None if after is None else after.results[0]
            if key not in prefixes:
                prefixes[key] = _tokens(values[base], after, is_held=is_held(base))
            if len(prefixes[key]) >= _SHORTEST:
                found[index] = prefixes[key]
    return found


def _tokens(context: Context, op: Op | None, *, is_held: bool) -> tuple[int, ...]:
    """The prefix of ``context`` and of the literal text that ``op`` appends first."""
    text = ""
    if isinstance(op, ExtendOp):
        context = context if op.role is None else context.begin(op.role)
        text = op.text[0] if op.text and isinstance(op.text[0], str) else ""
    if is_held and not text:
        return ()
    try:
        return context.text(text).stable_prefix if text else context.stable_prefix
    except LmcError:  # the call that needs this prompt says so, with its own line
        return ()


class CallsToCome:
    """The expectations of one run of a plan for the calls of its body, by index, that have ``prefixes``.

    Each is withdrawn once its call has begun, those that are left when the run ends. ``place_at`` gives the place of a
    stage of the instance.
    """

    def __init__(
        self, engine: Engine, body: PreparedBody, prefixes: Prefixes, place_at: Callable[[int], Place]
    ) -> None:
        self._engine = engine if isinstance(engine, Planned) else None
        self._body = body
        self._prefixes = prefixes
        self._place_at = place_at
        self._keys: dict[int, int] = {}

    def expect(self) -> None:
        """The run begins."""
        if self._engine is None:
            return
        for index, prefix in self._prefixes.items():
            self._keys[index] = self._engine.expect(prefix, self._place_at(self._body.stages[index]))

    def begun(self, frame: Frame, index: int) -> None:
        """The requests of a call are in the queue."""
        if frame.owner is None:
            self._withdraw(index)

    def withdraw_all(self) -> None:
        """The run is over."""
        for index in list(self._keys):
            self._withdraw(index)

    def _withdraw(self, index: int) -> None:
        key = self._keys.pop(index, None)
        if key is not None and self._engine is not None:
            self._engine.withdraw(key)
