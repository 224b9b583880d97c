"""Random modules with what passes trip over: branches that begin alike, lists that change, ops that raise, breaks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lmc.ir.builder import Builder
from lmc.ir.core import Effect, HostFunction, Op, Value
from lmc.ir.dialects.core_ops import (
    AssumeOp,
    BeginOp,
    BreakOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    GenOp,
    HostCallOp,
    PrefillOp,
    PyCallOp,
    ReturnOp,
    SampleOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import Location, LoopLimitError
from lmc.ir.module import Function, Module, print_module
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.types import ANY, CTX, INT, TEXT, Type, list_of
from tests.compiled_constraints import SYMBOLS, constrained_sampling, toy_constraints

LIST = list_of(TEXT)
HOSTS = (
    HostFunction("peek", "program:peek", "0" * 64, Effect.READS, early=True),
    HostFunction("push", "program:push", "1" * 64, Effect.WRITES),
    HostFunction("fresh", "program:fresh", "2" * 64, Effect.PURE),
    HostFunction("fail", "program:fail", "3" * 64, Effect.PURE, early=True),
)
# A few pieces, so that branches share heads of different lengths.
_PIECES = ("Judge the ", "Judge the style of ", "Judge ", "Essay:\n", "x", "", "7", " ok")


@dataclass
class World:
    """What host functions see and change. ``log`` holds what happened, in order."""

    log: list[Any] = field(default_factory=list)

    def hosts(self) -> dict[str, Callable[..., Any]]:
        return {"peek": self.peek, "push": self.push, "fresh": self.fresh, "fail": self.fail}

    def peek(self, _: str) -> str:
        return f"after {len(self.log)} writes"

    def push(self, items: list[str], text: str) -> str:
        self.log.append((list(items), text))
        items.append(text)
        return f"push {len(self.log)}"

    def fresh(self, text: str) -> list[str]:
        return [text]

    def fail(self, text: str) -> str:
        if len(text) % 3 == 2:
            raise LookupError(f"no {text}")
        return text


@dataclass(frozen=True)
class Observed:
    """All that a user could tell one run from another by; ``calls`` only has to be no more than before."""

    result: Any
    writes: tuple[Any, ...]
    calls: int = field(compare=False, default=0)
    outcome: Outcome | None = field(compare=False, default=None, repr=False)


def observe(module: Module, inputs: dict[str, Any], *, run_seed: int = 0, instance: int = 0) -> Observed:
    """Run ``module`` in a new world on its own copy of the inputs."""
    world = World()
    copied = {name: list(value) if isinstance(value, list) else value for name, value in inputs.items()}
    try:
        outcome = interpret(
            module,
            copied,
            ToyEngine(),
            hosts=world.hosts(),
            run_seed=run_seed,
            instance=instance,
            constraints=toy_constraints(module),
        )
    except (ValueError, LookupError, LoopLimitError) as error:
        return Observed((type(error).__name__, str(error)), tuple(world.log))
    result = (repr(outcome.value), outcome.variables, outcome.text, readable(outcome), copied)
    return Observed(result, tuple(world.log), outcome.usage.calls, outcome)


def readable(outcome: Outcome) -> dict[str, list[Any]]:
    """Return what a run hands to the eager continuation, contexts as messages and texts: how they came to be is no part
    of what they are.
    """
    if outcome.live is None:
        return {}
    values = outcome.live.values
    lists = [value for value in values if isinstance(value, list)]
    return {
        outcome.live.record: [
            (value.message_list(), value.transcript()) if isinstance(value, Context) else value for value in values
        ],
        "same objects": [[value is other for other in lists] for value in lists],
    }


@dataclass(frozen=True)
class Case:
    """A module and inputs for it."""

    module: Module
    inputs: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.inputs}\n{print_module(self.module)}"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # what Hypothesis asks first
        printer.text(repr(self))


@st.composite
def cases(draw: st.DrawFn, *, max_ops: int = 24) -> Case:
    """A module of up to ``max_ops`` ops, with inputs. It may raise ``ValueError`` or ``LookupError``."""
    author = _Author(draw)
    for _ in range(draw(st.integers(1, max_ops))):
        draw(st.sampled_from(author.steps))()
    return Case(author.module(), author.inputs)


class _Author:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.inputs: dict[str, Any] = {
            "x": draw(st.sampled_from(["x", "12", ""])),
            "items": draw(st.lists(st.sampled_from(["a", "b"]), max_size=2)),
        }
        parameters = (Value("x", TEXT), Value("items", LIST))
        self.builder = Builder(parameters)
        self.values = list(parameters)
        self.is_chat = draw(st.booleans())
        self.contexts: list[Value] = []
        self.new_context()

    @property
    def steps(self) -> list[Callable[[], None]]:
        common = [
            self.new_context,
            *[self.extend] * 4,
            self.concat,
            *[self.generate] * 4,
            self.sample,
            self.select,
            self.transcript,
            self.prefill,
            self.make_list,
            *[self.py_call] * 2,
            self.risky_call,
            *[self.host_call] * 2,
            self.assume,
            self.end,
        ]
        return [*common, *[self.message] * 5, self.begin] if self.is_chat else common

    def module(self) -> Module:
        if self.draw(st.booleans()):
            self.stop_at_break()
        else:
            values = tuple(self.draw(st.lists(st.sampled_from(self.values), max_size=4)))
            leaves = ",".join(f'{{"leaf":{index}}}' for index in range(len(values)))
            self.builder.emit(
                ReturnOp,
                context=self.context(),
                values=values,
                structure=f'{{"list":[{leaves}]}}',
                variables=values[:1],
                variable_names=("first",)[: len(values)],
            )
        return Module("f", (Function("f", self.builder.block()),), SYMBOLS, HOSTS)

    def stop_at_break(self) -> None:
        """As capture does: the record names what is live, contexts too."""
        live = self.draw(st.lists(st.sampled_from([*self.values, *self.contexts]), max_size=6))
        names = [[f"x{index}", {"leaf": index}] for index in range(len(live))]
        record = json.dumps({"cells": [], "frames": [{"names": names}]})
        self.builder.emit(BreakOp, values=tuple(live), cause="test", record=record)

    def emit(self, kind: type[Op], *types: Type, **fields: Any) -> tuple[Value, ...]:
        location = Location("program.py", len(self.builder.ops) + 1)
        results = self.builder.emit(kind, types, location=location, **fields)
        self.values += [value for value in results if value.type != CTX]
        self.contexts += [value for value in results if value.type == CTX]
        return results

    def context(self) -> Value:
        return self.draw(st.sampled_from(self.contexts))

    def value(self, kind: Type) -> Value:
        return self.draw(st.sampled_from([value for value in self.values if value.type == kind]))

    def text(self) -> tuple[str | Value, ...]:
        texts = st.sampled_from([value for value in self.values if value.type == TEXT][:4])
        return tuple(self.draw(st.lists(st.sampled_from(_PIECES) | texts, max_size=4)))

    def id(self) -> str:
        return f"f/{len(self.builder.ops)}"

    def new_context(self) -> None:
        (context,) = self.emit(ContextOp, CTX)
        if self.is_chat:  # so that bare text never makes it a raw completion
            self.contexts.remove(context)
            self.emit(ExtendOp, CTX, context=context, role="system", text=("You judge. ",))

    def extend(self) -> None:
        self.emit(ExtendOp, CTX, context=self.context(), text=self.text())

    def message(self) -> None:
        role = self.draw(st.sampled_from(["user", "user", "user", "assistant", "system"]))
        self.emit(ExtendOp, CTX, context=self.context(), role=role, text=self.text())

    def begin(self) -> None:
        role = self.draw(st.sampled_from(["user", "assistant"]))
        (context,) = self.emit(BeginOp, CTX, context=self.context(), role=role)
        for _ in range(self.draw(st.integers(0, 2))):
            (context,) = self.emit(ExtendOp, CTX, context=context, text=self.text())
        if self.draw(st.booleans()):
            self.emit(EndOp, CTX, context=context)

    def end(self) -> None:
        self.emit(EndOp, CTX, context=self.context())

    def prefill(self) -> None:
        self.emit(PrefillOp, CTX, context=self.context(), scope=self.draw(st.sampled_from(["instance", "batch"])))

    def sampling(self) -> dict[str, Any]:
        return {
            "max_tokens": self.draw(st.sampled_from([3, 3, 3, 5])),
            "temperature": self.draw(st.sampled_from([0.0, 0.0, 1.0])),
            "seed": self.draw(st.sampled_from([None, 7])),
            "stop": self.draw(st.sampled_from([(), ("e",)])),
        }

    def generate(self) -> None:
        kind, constrained = self.draw(constrained_sampling())
        fields = {**self.sampling(), **constrained}
        self.emit(GenOp, CTX, kind, context=self.context(), id=self.id(), **fields)

    def sample(self) -> None:
        kind, constrained = self.draw(constrained_sampling())
        fields = {**self.sampling(), **constrained}
        self.emit(SampleOp, list_of(kind), context=self.context(), id=self.id(), n=2, **fields)

    def select(self) -> None:
        choices: tuple[Any, ...] = self.draw(st.sampled_from([("yes", "no"), ("only",), ("a", "ab")]))
        self.emit(SelectOp, CTX, TEXT, ANY, context=self.context(), id=self.id(), choices=choices)

    def transcript(self) -> None:
        self.emit(TranscriptOp, TEXT, context=self.context())

    def concat(self) -> None:
        self.emit(ConcatOp, TEXT, text=self.text())

    def make_list(self) -> None:
        items = tuple(self.value(TEXT) for _ in range(self.draw(st.integers(0, 3))))
        self.emit(PyCallOp, LIST, function="list", arguments=(*items, "z"))

    def py_call(self) -> None:
        text, items = self.value(TEXT), self.value(LIST)
        calls: list[tuple[str, Type, tuple[Any, ...]]] = [
            ("str", TEXT, (text,)),
            ("format", TEXT, (text, "")),
            ("add", TEXT, (text, "!")),
            ("add", TEXT, ("7", self.value(TEXT))),
            ("str.join", TEXT, (self.draw(st.sampled_from(["", ", "])), items)),
            ("add", LIST, (items, items)),
            ("len", INT, (items,)),
            ("len", INT, (text,)),
            ("choose", TEXT, (self.draw(st.booleans()), text, "other")),
            ("is", ANY, (items, self.value(LIST))),
            ("str.upper", TEXT, ("abc",)),
            ("mul", INT, (6, 7)),
        ]
        function, result, arguments = self.draw(st.sampled_from(calls))
        self.emit(PyCallOp, result, function=function, arguments=arguments)

    def risky_call(self) -> None:
        function, result = self.draw(st.sampled_from([("int", INT), ("ord", INT), ("float", ANY)]))
        text = self.draw(st.sampled_from([self.value(TEXT), "12", "1.5"]))
        if function == "ord":  # of an empty or longer text it is a TypeError; a lookup fails as IndexError instead
            self.emit(PyCallOp, TEXT, function="getitem", arguments=(text, self.draw(st.integers(0, 3))))
            return
        self.emit(PyCallOp, result, function=function, arguments=(text,))

    def host_call(self) -> None:
        text = self.value(TEXT)
        host, declared, result, arguments = self.draw(
            st.sampled_from(
                [
                    ("peek", "reads", TEXT, (text,)),
                    ("push", "writes", TEXT, (self.value(LIST), text)),
                    ("fresh", "pure", LIST, (text,)),
                    ("fail", "pure", TEXT, (text,)),
                ]
            )
        )
        self.emit(HostCallOp, result, host=host, id=self.id(), arguments=arguments, declared=declared)

    def assume(self) -> None:
        self.emit(AssumeOp, value=self.builder.parameters[0], expected=self.inputs["x"])
