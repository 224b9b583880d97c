"""Random modules that run on the toy engine, for tests that compare ways of running the same program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lmc.ir.builder import Builder
from lmc.ir.core import Effect, HostFunction, Op, Value
from lmc.ir.dialects.core_ops import (
    SELECT_METHODS,
    AssumeOp,
    BeginOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    GenOp,
    HostCallOp,
    LocalCallOp,
    MessagesOp,
    PyCallOp,
    ReturnOp,
    SampleOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.errors import Location
from lmc.ir.module import Function, Module
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.types import ANY, BOOL, CTX, INT, NONE, TEXT, Type, holds_context, list_of
from tests.compiled_constraints import SYMBOLS, constrained_sampling, toy_constraints

MESSAGE_ROLES = ("system", "user", "assistant")
# Few and short, so that equal prefixes and equal ops are likely; the last are what must stay plain text.
short_texts = st.sampled_from(["a", "b", "Essay:\n", "yes", " ", "no.", "<|im_end|>", "é", "\ufdd0"])


@dataclass(frozen=True)
class Program:
    """A module and what it needs to run."""

    module: Module
    inputs: Mapping[str, Any]
    hosts: Mapping[str, Callable[..., Any]]

    @property
    def constraints(self) -> Constraints:
        """Return what its generations may say, in the toy's tokens."""
        return toy_constraints(self.module)


@st.composite
def programs(draw: st.DrawFn, *, max_ops: int = 14) -> Program:
    """A module of up to ``max_ops`` random ops that runs on ``ToyEngine`` without an error, with inputs and hosts.

    Host functions only look at their arguments. Every value may be returned, so nothing a pass drops goes unseen.
    """
    author = Author(draw)
    for _ in range(draw(st.integers(1, max_ops))):
        draw(st.sampled_from(author.steps))()
    return author.program()


@dataclass
class Author:
    """Writes one program op by op. ``modes`` says of each context whether it is empty, raw text or a chat."""

    draw: st.DrawFn
    builder: Builder = field(init=False)
    inputs: dict[str, Any] = field(init=False)
    modes: dict[Value, str] = field(default_factory=dict)
    ids: int = 0
    objects: dict[Value, str] = field(default_factory=dict[Value, str])
    hosts: Sequence[tuple[str, str]] = (("look", "reads"), ("tell", "writes"), ("shout", "pure"))

    def __post_init__(self) -> None:
        self.inputs = {
            "essay": self.draw(short_texts),
            "count": self.draw(st.integers(0, 3)),
            "dims": self.draw(st.lists(short_texts, min_size=1, max_size=3)),
        }
        self.parameters = (Value("essay", TEXT), Value("count", INT), Value("dims", list_of(TEXT)))
        self.builder = Builder(self.parameters)
        self.values: list[Value] = list(self.parameters)
        self.new_context()

    @property
    def steps(self) -> list[Callable[[], None]]:
        return [
            self.new_context,
            self.extend,
            self.extend,
            self.message,
            self.message,
            self.begin,
            self.end,
            self.generate,
            self.generate,
            self.sample,
            self.select,
            self.transcript,
            self.concat,
            self.py_call,
            self.host_call,
            self.assume,
            *self.on_objects,
        ]

    @property
    def on_objects(self) -> list[Callable[[], None]]:
        """Return what makes and changes objects of the run; nothing where ops may not write."""
        if not any(effect == "writes" for _, effect in self.hosts):
            return []
        changes = [self.new_object, self.messages, self.change_object, self.change_object]
        return [*changes, self.look_at_object, self.alias_of_object]

    def leave(self) -> None:
        """Return some of what was computed."""
        context = self.draw(st.sampled_from(list(self.modes)))
        returned = tuple(value for value in self.values if self.draw(st.booleans()))
        leaves = ",".join(f'{{"leaf":{index}}}' for index in range(len(returned)))
        variables = tuple(self.draw(st.lists(st.sampled_from(self.values), unique=True, max_size=3)))
        self.builder.emit(
            ReturnOp,
            context=context,
            values=returned,
            structure=f'{{"list":[{leaves}]}}',
            variables=variables,
            variable_names=tuple(f"v{index}" for index in range(len(variables))),
        )

    def program(self) -> Program:
        """Return what was written, with its end."""
        self.leave()
        declared = (
            HostFunction("look", "program:look", "0" * 64, Effect.READS, early=True),
            HostFunction("tell", "program:tell", "1" * 64, Effect.WRITES),
            HostFunction("shout", "program:shout", "2" * 64, Effect.PURE, early=True),
            HostFunction("refuse", "program:refuse", "3" * 64, Effect.READS, early=True),
        )
        module = Module("main", (Function("main", self.builder.block()),), SYMBOLS, declared)
        hosts = {"look": _look, "tell": _tell, "shout": _shout, "refuse": _refuse}
        return Program(module, self.inputs, hosts)

    def emit(self, kind: type[Op], *types: Type, **fields: Any) -> tuple[Value, ...]:
        location = Location("program.py", len(self.builder.ops) + 1)
        results = self.builder.emit(kind, types, location=location, **fields)
        self.values.extend(value for value in results if not holds_context(value.type))
        return results

    def context(self) -> Value:
        return self.draw(st.sampled_from(list(self.modes)))

    def value(self, *kinds: Type) -> Value:
        return self.draw(st.sampled_from([value for value in self.values if value.type in kinds]))

    def text(self) -> tuple[str | Value, ...]:
        known = st.sampled_from([value for value in self.values if value.type == TEXT])
        return tuple(self.draw(st.lists(st.one_of(short_texts, known), min_size=1, max_size=3)))

    def id(self) -> dict[str, Any]:
        """The fields of an op that has an id."""
        self.ids += 1
        return {"id": f"main/{self.ids}"}

    def new_context(self) -> None:
        (context,) = self.emit(ContextOp, CTX)
        self.modes[context] = "empty"

    def extend(self) -> None:
        before = self.context()
        (context,) = self.emit(ExtendOp, CTX, context=before, text=self.text())
        # A text that is empty at run time leaves the context empty; taking it as raw only forbids more.
        self.modes[context] = "chat" if self.modes[before] == "chat" else "raw"

    def message(self) -> None:
        before = self.context()
        if self.modes[before] == "raw":
            return
        role = self.draw(st.sampled_from(MESSAGE_ROLES))
        (context,) = self.emit(ExtendOp, CTX, context=before, role=role, text=self.text())
        self.modes[context] = "chat"

    def begin(self) -> None:
        before = self.context()
        if self.modes[before] == "raw":
            return
        (context,) = self.emit(BeginOp, CTX, context=before, role=self.draw(st.sampled_from(MESSAGE_ROLES)))
        self.modes[context] = "chat"

    def end(self) -> None:
        before = self.context()
        (context,) = self.emit(EndOp, CTX, context=before)
        self.modes[context] = self.modes[before]

    def sampling(self) -> dict[str, Any]:
        return {
            "max_tokens": self.draw(st.integers(1, 6)),
            "stop": self.draw(st.sampled_from([(), ("e",), ("\n", "t ")])),
            "temperature": self.draw(st.sampled_from([0.0, 0.0, 1.0])),
            "seed": self.draw(st.sampled_from([None, 7])),
            "logprobs": self.draw(st.sampled_from([None, None, 2])),
        }

    def generate(self) -> None:
        before = self.context()
        kind, constrained = self.draw(constrained_sampling())
        sampling = {**self.sampling(), **constrained}
        meta = [] if sampling["logprobs"] is None else [ANY]
        context, *_ = self.emit(GenOp, CTX, kind, *meta, context=before, **self.id(), **sampling)
        self.modes[context] = "chat" if self.modes[before] == "chat" else "raw"

    def sample(self) -> None:
        kind, constrained = self.draw(constrained_sampling())
        sampling = {**self.sampling(), **constrained}
        meta = [] if sampling["logprobs"] is None else [ANY]
        n = self.draw(st.integers(1, 3))
        self.emit(SampleOp, list_of(kind), *meta, context=self.context(), n=n, **self.id(), **sampling)

    def select(self) -> None:
        known = [("yes", "no"), ("a", "ab", "b"), (Value("dims", list_of(TEXT)),)]
        choices: tuple[Any, ...] = self.draw(st.sampled_from([*known, ()]))
        if not choices:  # one that a run makes, and that is not empty
            choices = (*self.emit(PyCallOp, TEXT, function="add", arguments=(self.value(TEXT), "!")), "no")
        before = self.context()
        method = self.draw(st.sampled_from(SELECT_METHODS))
        context, _, _ = self.emit(SelectOp, CTX, TEXT, ANY, context=before, choices=choices, method=method, **self.id())
        self.modes[context] = "chat" if self.modes[before] == "chat" else "raw"

    def transcript(self) -> None:
        self.emit(TranscriptOp, TEXT, context=self.context())

    def messages(self) -> None:
        (made,) = self.emit(MessagesOp, ANY, context=self.context())
        self.objects[made] = "messages"

    def concat(self) -> None:
        self.emit(ConcatOp, TEXT, text=self.text())

    def py_call(self) -> None:
        text = self.value(TEXT)
        calls: list[tuple[str, Type, tuple[Any, ...]]] = [
            ("str.upper", TEXT, (text,)),
            ("str.strip", TEXT, (text,)),
            ("str.split", list_of(TEXT), (text,)),
            ("str.join", TEXT, (", ", self.value(list_of(TEXT)))),
            ("add", TEXT, (text, "!")),
            ("str.format", TEXT, ("<{}>", self.value(INT))),
            ("list_from", list_of(TEXT), (text,)),
            ("reversed", list_of(TEXT), (self.value(TEXT, list_of(TEXT)),)),
            ("str.join", TEXT, (text, self.value(TEXT))),
            ("slice", TEXT, (text, self.draw(st.integers(0, 2)), 9, None)),
            ("choose", TEXT, (self.draw(st.booleans()), text, "other")),
            ("or", TEXT, (text, self.value(TEXT))),
            ("len", INT, (self.value(TEXT, list_of(TEXT)),)),
            ("eq", BOOL, (text, "yes")),
            ("eq", BOOL, (self.value(INT), 2)),
            ("add", INT, (self.value(INT), 1)),
        ]
        function, result, arguments = self.draw(st.sampled_from(calls))
        self.emit(PyCallOp, result, function=function, arguments=arguments)

    def host_call(self) -> None:
        host, declared = self.draw(st.sampled_from(self.hosts))
        arguments = (self.value(TEXT), self.draw(st.integers(0, 2)))
        self.ids += 1
        fields: dict[str, Any] = {"id": f"main/@{self.ids}", "declared": declared, "keywords": ("times",)}
        self.emit(HostCallOp, TEXT, host=host, arguments=arguments, **fields)

    def an_object(self) -> Value:
        """An object of the run that is seen here."""
        known = [value for value in self.values if value in self.objects]
        if not known:
            self.new_object()
            return self.values[-1]
        return self.draw(st.sampled_from(known))

    def new_object(self) -> None:
        kind = self.draw(st.sampled_from(["list", "dict", "deque"]))
        arguments: tuple[Any, ...] = (self.value(TEXT), self.value(TEXT)) if self.draw(st.booleans()) else ()
        if kind == "deque":
            arguments = (None, *arguments)
        (made,) = self.emit(LocalCallOp, ANY, function=kind, arguments=arguments)
        self.objects[made] = kind

    def change_object(self) -> None:
        changed, text = self.an_object(), self.value(TEXT)
        changes = [("append", text), ("extend", text), ("reverse",)]
        if self.objects[changed] == "dict":
            changes = [("setdefault", text, "a"), ("pop", text, "a")]
        name, *arguments = self.draw(st.sampled_from([*changes, ("clear",)]))
        if self.objects[changed] == "dict" and self.draw(st.booleans()):
            self.emit(LocalCallOp, NONE, function="setitem", arguments=(changed, text, "b"))
        else:
            self.emit(LocalCallOp, ANY, function="method", arguments=(name, changed, *arguments))

    def look_at_object(self) -> None:
        looked = self.an_object()
        calls: list[tuple[str, Type, tuple[Any, ...]]] = [
            ("len", INT, ()),
            ("str", TEXT, ()),
            ("bool", BOOL, ()),
            ("contains", BOOL, (self.value(TEXT),)),
        ]
        if self.objects[looked] != "messages":
            calls.append(("list_from", list_of(TEXT), ()))
        function, kind, arguments = self.draw(st.sampled_from(calls))
        self.emit(PyCallOp, kind, function=function, arguments=(looked, *arguments))

    def alias_of_object(self) -> None:
        held = self.an_object()
        (holder,) = self.emit(PyCallOp, list_of(ANY), function="list", arguments=(held,))
        (alias,) = self.emit(PyCallOp, ANY, function="getitem", arguments=(holder, 0))
        self.objects[alias] = self.objects[held]

    def assume(self) -> None:
        self.emit(AssumeOp, value=Value("count", INT), expected=self.inputs["count"])


def _look(text: str, times: int) -> str:
    return f"looked:{text * times}"


def _refuse(text: str) -> str:
    if len(text) % 2:
        raise LookupError(f"no {text}")
    return text


def _tell(text: str, times: int) -> str:
    return f"told:{text}:{times}"


def _shout(text: str, times: int) -> str:
    return text.upper() + "!" * times
