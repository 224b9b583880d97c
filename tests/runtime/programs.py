"""Random straight-line programs with generations, choices, host calls and expressions that may raise."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lmc.ir.builder import Builder
from lmc.ir.core import Effect, HostFunction, Value
from lmc.ir.dialects.core_ops import (
    ConcatOp,
    ContextOp,
    ExtendOp,
    GenOp,
    HostCallOp,
    PrefillOp,
    PyCallOp,
    ReturnOp,
    SampleOp,
    SelectOp,
)
from lmc.ir.errors import Location
from lmc.ir.module import Function, Module
from lmc.ir.types import ANY, CTX, INT, TEXT, list_of
from tests.compiled_constraints import SYMBOLS, constrained_sampling

HOSTS = tuple(
    HostFunction(name, f"tests:{name}", "0" * 64, effect)
    for name, effect in (("log", Effect.WRITES), ("look", Effect.READS), ("pure", Effect.PURE))
)


@dataclass
class _Maker:
    """Adds one op at a time; ``texts`` and ``contexts`` are the values there are."""

    builder: Builder
    texts: list[Value]
    contexts: list[Value]
    others: list[Value] = field(default_factory=list)
    count: int = 0

    def add(self, draw: st.DrawFn) -> None:
        self.count += 1
        kinds = ("extend", "gen", "gen", "sample", "select", "host", "host", "concat", "int", "prefill")
        kind = draw(st.sampled_from(kinds))
        getattr(self, kind)(draw, Location("random.py", self.count))

    def context(self, draw: st.DrawFn) -> Value:
        return draw(st.sampled_from(self.contexts))

    def parts(self, draw: st.DrawFn) -> tuple[str | Value, ...]:
        return tuple(draw(st.lists(st.sampled_from(["a", "1 ", *self.texts]), min_size=1, max_size=3)))

    def extend(self, draw: st.DrawFn, location: Location) -> None:
        parts = self.parts(draw)
        self.contexts += self.builder.emit(ExtendOp, [CTX], context=self.context(draw), text=parts, location=location)

    def prefill(self, draw: st.DrawFn, location: Location) -> None:
        scope = draw(st.sampled_from(["instance", "batch"]))
        self.contexts += self.builder.emit(PrefillOp, [CTX], context=self.context(draw), scope=scope, location=location)

    def gen(self, draw: st.DrawFn, location: Location) -> None:
        temperature = draw(st.sampled_from([0.0, 1.0]))
        kind, constrained = draw(constrained_sampling())
        fields: dict[str, Any] = {"max_tokens": draw(st.integers(1, 4)), "temperature": temperature, **constrained}
        if draw(st.integers(0, 3)) == 0:
            fields["max_tokens"] = 3  # what may be too few for the constraint: an error
        context, value = self.builder.emit(
            GenOp, [CTX, kind], context=self.context(draw), id=f"random/g{self.count}", location=location, **fields
        )
        self.contexts.append(context)
        (self.texts if kind == TEXT else self.others).append(value)

    def sample(self, draw: st.DrawFn, location: Location) -> None:
        kind, constrained = draw(constrained_sampling())
        fields: dict[str, Any] = {"max_tokens": 2, "temperature": 1.0, **constrained}
        (values,) = self.builder.emit(
            SampleOp,
            [list_of(kind)],
            context=self.context(draw),
            id=f"random/s{self.count}",
            n=draw(st.integers(1, 3)),
            location=location,
            **fields,
        )
        self.others.append(values)

    def select(self, draw: st.DrawFn, location: Location) -> None:
        method = draw(st.sampled_from(["token_length_normalized", "unconditional_likelihood_normalized"]))
        choices = draw(st.lists(st.sampled_from(["yes", "no", *self.texts]), min_size=1, max_size=3))
        context, text, _ = self.builder.emit(
            SelectOp,
            [CTX, TEXT, ANY],
            context=self.context(draw),
            choices=tuple(choices),
            method=method,
            id=f"random/c{self.count}",
            location=location,
        )
        self.contexts.append(context)
        self.texts.append(text)

    def host(self, draw: st.DrawFn, location: Location) -> None:
        host = draw(st.sampled_from(HOSTS))
        self.others += self.builder.emit(
            HostCallOp,
            [ANY],
            host=host.name,
            declared=host.effect.value,
            id=f"random/@{self.count}",
            arguments=(self.count, draw(st.sampled_from(self.texts))),
            location=location,
        )

    def concat(self, draw: st.DrawFn, location: Location) -> None:
        parts = self.parts(draw)
        self.texts += self.builder.emit(ConcatOp, [TEXT], text=parts, location=location)

    def int(self, draw: st.DrawFn, location: Location) -> None:
        """Raises where the text is no number."""
        text = draw(st.sampled_from(self.texts))
        self.others += self.builder.emit(PyCallOp, [INT], function="int", arguments=(text,), location=location)


@st.composite
def programs(draw: st.DrawFn) -> Module:
    """A program with the parameters ``x`` (text) and ``number`` (text that is a number)."""
    parameters = [Value("x", TEXT), Value("number", TEXT)]
    builder = Builder(parameters)
    (context,) = builder.emit(ContextOp, [CTX])
    maker = _Maker(builder, list(parameters), [context])
    for _ in range(draw(st.integers(1, 16))):
        maker.add(draw)
    returned = (*maker.texts[-3:], *maker.others[-3:])
    leaves = ",".join(f'{{"leaf":{index}}}' for index in range(len(returned)))
    builder.emit(ReturnOp, context=maker.contexts[-1], values=returned, structure=f'{{"list":[{leaves}]}}')
    return Module("random", (Function("random", builder.block()),), SYMBOLS, HOSTS)
