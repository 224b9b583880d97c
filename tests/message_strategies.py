"""Random modules for targets that take messages: they ask for nothing that a hosted model lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import BeginOp, ContextOp, ExtendOp, GenOp, SampleOp, SelectOp
from lmc.ir.types import ANY, BOOL, CTX, INT, TEXT, Type, list_of
from tests.flow_strategies import FlowAuthor
from tests.program_strategies import Program

_CONSTRAINTS: tuple[tuple[str, Type], ...] = (("words", TEXT), ("whole", INT), ("truth", BOOL))


@st.composite
def message_programs(draw: st.DrawFn, *, max_ops: int = 8, depth: int = 1) -> Program:
    """A module of random ops, regions up to ``depth`` in each other, on contexts that begin with a message."""
    author = MessageAuthor(draw, depth=depth)
    for _ in range(draw(st.integers(1, max_ops))):
        draw(st.sampled_from(author.steps))()
    return author.program()


@dataclass
class MessageAuthor(FlowAuthor):
    """Writes turns of the assistant, and whole messages of all roles. Text and outputs may continue a turn."""

    @property
    def steps(self) -> list[Callable[[], None]]:
        # Which branches of a race are asked before it ends is chance.
        return [step for step in super().steps if step != self.race]

    def new_context(self) -> None:
        (empty,) = self.emit(ContextOp, CTX)
        (context,) = self.emit(ExtendOp, CTX, context=empty, role="user", text=self.text())
        self.modes[context] = "chat"

    def begin(self) -> None:
        before = self.context()
        if self.modes[before] == "chat":
            (context,) = self.emit(BeginOp, CTX, context=before, role="assistant")
            self.modes[context] = "chat"

    def sampling(self) -> dict[str, Any]:
        return {
            "max_tokens": self.draw(st.integers(1, 12)),
            "stop": self.draw(st.sampled_from([(), ("e",), (" ", "d ")])),
        }

    def constrained(self) -> tuple[Type, dict[str, Any]]:
        if self.draw(st.integers(0, 2)):
            return TEXT, self.sampling()
        name, kind = self.draw(st.sampled_from(_CONSTRAINTS))
        return kind, {"constraint": name, "max_tokens": 60}

    def generate(self) -> None:
        before = self.context()
        kind, sampling = self.constrained()
        context, _ = self.emit(GenOp, CTX, kind, context=before, **self.id(), **sampling)
        self.modes[context] = self.modes[before]

    def sample(self) -> None:
        kind, sampling = self.constrained()
        n = self.draw(st.integers(1, 2))
        self.emit(SampleOp, list_of(kind), context=self.context(), n=n, **self.id(), **sampling)

    def select(self) -> None:
        choices = self.draw(st.sampled_from([("yes", "no"), ("a", "ab", "b"), (Value("dims", list_of(TEXT)),)]))
        before = self.context()
        context, _, _ = self.emit(SelectOp, CTX, TEXT, ANY, context=before, choices=choices, **self.id())
        self.modes[context] = self.modes[before]
