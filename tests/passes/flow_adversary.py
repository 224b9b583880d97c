"""Random programs with control flow that also raise, change lists and look at what others have changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import HostCallOp, PrefillOp, PyCallOp
from lmc.ir.dialects.region_ops import LoopOp
from lmc.ir.module import Function, Module
from lmc.ir.types import ANY, BOOL, CTX, INT, TEXT
from tests.compiled_constraints import SYMBOLS
from tests.flow_strategies import FlowAuthor
from tests.passes.adversary import HOSTS, LIST, Case


@st.composite
def flow_cases(draw: st.DrawFn, *, max_ops: int = 8, depth: int = 2) -> Case:
    """A module with regions up to ``depth`` in each other, with inputs. It may raise as those of ``cases`` do."""
    author = _FlowAuthor(
        draw, depth=depth, may_leave=True, hosts=tuple((host.name, host.effect.value) for host in HOSTS)
    )
    for _ in range(draw(st.integers(1, max_ops))):
        draw(st.sampled_from(author.steps))()
    module = author.program().module
    body = module.main.body
    return Case(Module("main", (Function("main", body),), SYMBOLS, HOSTS), dict(author.inputs))


@dataclass
class _FlowAuthor(FlowAuthor):
    @property
    def steps(self) -> list[Callable[[], None]]:
        return [*super().steps, self.risky_call, self.make_list, self.look, self.negate, self.prefill]

    def risky_call(self) -> None:
        """A call that raises for some texts."""
        if self.draw(st.booleans()):
            self.emit(PyCallOp, INT, function="int", arguments=(self.draw(st.sampled_from([self.value(TEXT), "12"])),))
        else:
            place = self.draw(st.integers(0, 3))
            self.emit(PyCallOp, TEXT, function="getitem", arguments=(self.value(TEXT), place))

    def refuse(self) -> None:
        """A function that raises for some texts."""
        self.ids += 1
        fields = {"id": f"main/@{self.ids}", "declared": "pure", "host": "fail"}
        self.emit(HostCallOp, TEXT, arguments=(self.value(TEXT),), **fields)

    def make_list(self) -> None:
        """A list of its own."""
        self.emit(PyCallOp, LIST, function="list", arguments=(self.value(TEXT), "z"))

    def look(self) -> None:
        """Something that depends on what is in a list by now, or on which list it is."""
        items = self.value(LIST)
        calls: list[tuple[str, Any, tuple[Any, ...]]] = [
            ("len", INT, (items,)),
            ("add", LIST, (items, items)),
            ("is", BOOL, (items, self.value(LIST))),
            ("mul", INT, (6, 7)),
            ("eq", BOOL, (self.draw(st.integers(0, 1)), 1)),
            ("choose", ANY, (self.draw(st.booleans()), items, "other")),
        ]
        function, kind, arguments = self.draw(st.sampled_from(calls))
        self.emit(PyCallOp, kind, function=function, arguments=arguments)

    def negate(self) -> None:
        """The opposite of a flag."""
        self.emit(PyCallOp, BOOL, function="not", arguments=(self.flag(),))

    def prefill(self) -> None:
        """A prefix that somebody asked for."""
        before = self.context()
        (context,) = self.emit(PrefillOp, CTX, context=before, scope=self.draw(st.sampled_from(["instance", "batch"])))
        self.modes[context] = self.modes[before]

    def host_call(self) -> None:
        """A call of one of ``adversary.HOSTS`` that is allowed here."""
        text = self.value(TEXT)
        calls: dict[str, tuple[Any, tuple[Value, ...]]] = {
            "peek": (TEXT, (text,)),
            "push": (TEXT, (self.value(LIST), text)),
            "fresh": (LIST, (text,)),
            "fail": (TEXT, (text,)),
        }
        host, declared = self.draw(st.sampled_from(self.hosts))
        kind, arguments = calls[host]
        self.ids += 1
        self.emit(HostCallOp, kind, host=host, id=f"main/@{self.ids}", arguments=arguments, declared=declared)

    def emit(self, kind: type[Any], *types: Any, **fields: Any) -> tuple[Value, ...]:
        if kind is LoopOp and fields["limit"] is not None:
            fields["limit"] = self.draw(st.integers(1, 2))
        return super().emit(kind, *types, **fields)
