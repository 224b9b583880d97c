"""The eager continuation of a program that was captured in part.

The transformed function runs again, on the real arguments. What the captured part asked of the model or of the user's
functions was done already when the graph ran: those answers are taken from ``memo``, so that effects happen once. From
the break on, everything is done as it comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmc.frontend.arguments import Bound
from lmc.frontend.conversions import Conversion
from lmc.frontend.eager import EagerSession
from lmc.frontend.eager_runs import EagerFrame, activate, eager_outcome, run_eager
from lmc.frontend.failures import name_line, too_deep
from lmc.frontend.hosts import plain_name
from lmc.frontend.operators import Operators
from lmc.frontend.transform import Transformed
from lmc.frontend.variants import Captured
from lmc.ir.constraints import Constraints
from lmc.ir.context import Context
from lmc.ir.errors import LmcError
from lmc.ir.ids import round_id
from lmc.ir.interpreter import Outcome
from lmc.ir.ops import SamplingOp, SelectOp

Memo = Mapping[str, tuple[Any, ...]]


def resume(captured: Captured, bound: Bound, memo: Memo, session: EagerSession) -> Outcome:
    """Run the rest of ``captured``, which broke. ``memo`` holds the results of its ops by id.

    Raises what the user's function raises. ``session`` is fresh; its profile then counts what ran after the break.
    """
    function = bound.program
    transformed = function.transformed
    if captured.replay.nothing or not isinstance(transformed, Transformed):
        return run_eager(function, bound, session)
    replay = _ReplaySession(captured, memo, session)
    replay.path = function.name
    operators = Operators(replay, function, function.name)
    state = function.new_state(replay, function.name)
    try:
        with activate(EagerFrame(replay, function.name)):
            value = transformed.function(operators, state, *bound.args, **bound.kwargs)
    except RecursionError as error:
        raise too_deep(error) from None
    except LmcError as error:
        name_line(error, function.codes)
        raise
    return eager_outcome(function, state, value, replay)


class _ReplaySession(EagerSession):
    """An eager session that looks answers up before it asks for them."""

    def __init__(self, captured: Captured, memo: Memo, session: EagerSession) -> None:
        super().__init__(
            session.engine,
            run_seed=session.run_seed,
            instance=session.instance,
            on_text=session.on_text,
            timeout=session.timeout,
            compile=session.compile,
            order_sections=session.order_sections,
        )
        self.profile = session.profile
        self.served = dict(captured.replay.served)
        self.constructs = dict(captured.replay.constructs)
        self.entered = captured.replay.entered
        self._captured = captured
        self._memo = memo

    def answer(self, op_id: str) -> Any:
        return self._known(round_id(op_id, self.rounds))[0]

    def earlier(self, kind: str, owner: Any, name: str, value: Any) -> Any:
        return self._captured.reads.earlier(kind, owner, name, value) if self._in_captured_part else value

    def run_sampling(self, op: SamplingOp, context: Context, constraints: Constraints) -> tuple[Any, ...]:
        return self._known(op.id) if self._was_run(op.id) else super().run_sampling(op, context, constraints)

    def run_conversion(self, conversion: Conversion, text: Any, op_id: str) -> Any:
        made_by = self.allocate_host(op_id, plain_name(conversion))
        return self.answer(made_by) if self._was_run(made_by) else super().run_conversion(conversion, text, op_id)

    def run_select(self, op: SelectOp, context: Context) -> tuple[Any, ...]:
        return self._known(op.id) if self._was_run(op.id) else super().run_select(op, context)

    @property
    def _in_captured_part(self) -> bool:
        return self.ticks < self._captured.replay.until

    def _was_run(self, op_id: str) -> bool:
        if op_id in self._memo:
            return True
        if self._in_captured_part:
            self._known(op_id)
        return False

    def _known(self, op_id: str) -> tuple[Any, ...]:
        if op_id not in self._memo:
            raise LmcError(
                f"{self._captured.function.name}() took another way when it went on eagerly than when it was captured: "
                f"{op_id} has no result",
                remedy="run it with .eager(), and report this",
                location=self._captured.function.location,
            )
        return self._memo[op_id]
