"""Random programs with control flow in which things go wrong: conversions, lists that differ, loops without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from lmc.ir.dialects.core_ops import PrefillOp, PyCallOp
from lmc.ir.types import CTX, INT
from tests.flow_strategies import FlowAuthor
from tests.program_strategies import Program


@st.composite
def failing_flows(draw: st.DrawFn) -> Program:
    """As ``flow_programs``, but what is in it may raise, and prefixes are computed ahead."""
    author = _Author(draw, depth=2, may_leave=True)
    for _ in range(draw(st.integers(1, 8))):
        draw(st.sampled_from(author.steps))()
    return author.program()


class _Author(FlowAuthor):
    @property
    def steps(self) -> list[Callable[[], None]]:
        return [*super().steps, self.convert, self.prefill, self.prefill]

    def convert(self) -> None:
        """Raises where the text is no number."""
        text = self.draw(st.sampled_from(["1", "", *(value for value in self.values if value.type.name == "text")]))
        self.emit(PyCallOp, INT, function="int", arguments=(text,))

    def prefill(self) -> None:
        before = self.context()
        scope = self.draw(st.sampled_from(["instance", "batch"]))
        (context,) = self.emit(PrefillOp, CTX, context=before, scope=scope)
        self.modes[context] = self.modes[before]

    def limit(self) -> int | None:
        return self.draw(st.sampled_from([None, 1, 2]))

    def is_strict(self, lists: Any) -> bool:
        return self.draw(st.booleans())
