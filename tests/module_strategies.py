"""``modules()``: any module that verifies. What its programs would do makes no sense."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from lmc.ir.builder import Builder
from lmc.ir.builtins import builtins
from lmc.ir.builtins.checks import DEFINED_KINDS
from lmc.ir.core import Attribute, Constraint, Effect, HostFunction, Value
from lmc.ir.dialects.core_ops import (
    PREFILL_SCOPES,
    ROLES,
    SELECT_METHODS,
    AssumeOp,
    BeginOp,
    BreakOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    GenOp,
    HostCallOp,
    LocalCallOp,
    MessagesOp,
    PrefillOp,
    PyCallOp,
    ReturnOp,
    SampleOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.engine.protocol import JUMP_FORWARD
from lmc.ir.module import Function, Module
from lmc.ir.types import ANY, CTX, INT, TEXT, Type, holds_context, list_of
from tests.region_strategies import RegionBody
from tests.strategies import constraints, digests, generated_types, literals, locations, names, texts, value_types


@st.composite
def modules(draw: st.DrawFn, *, with_regions: bool = True) -> Module:
    """Any module that verifies. ``with_regions`` puts in ops with regions, those of ``tests/ir/region_ops.py`` too."""
    symbols = draw(st.lists(names, unique=True, max_size=4))
    declared = [Constraint(name, *draw(constraints), digest=draw(digests)) for name in symbols[::2]]
    effects = st.sampled_from([Effect.PURE, Effect.READS, Effect.WRITES])
    drawn = [HostFunction(name, draw(texts), draw(texts), draw(effects)) for name in symbols[1::2]]
    hosts = [replace(host, early=host.effect is not Effect.WRITES and draw(st.booleans())) for host in drawn]
    functions = draw(st.lists(names, unique=True, min_size=1, max_size=2))
    bodies = [_Body(draw, declared, hosts).function(name, with_regions) for name in functions]
    return Module(draw(st.sampled_from(functions)), tuple(bodies), tuple(declared), tuple(hosts))


class _Body(RegionBody):
    """Draws one function op by op; ``_values`` are those a use may name at this place."""

    def __init__(self, draw: st.DrawFn, constraints: list[Constraint], hosts: list[HostFunction]) -> None:
        self._draw = draw
        self._constraints = constraints
        self._hosts = hosts
        self._values: list[Value] = []
        self._names: set[str] = set()
        self._ids = 0
        self._may_leave = True
        self._may_change = True

    def function(self, name: str, with_regions: bool) -> Function:
        parameters = [self._value(self._draw(value_types)) for _ in range(self._draw(st.integers(0, 3)))]
        builder = Builder(parameters)
        self._ops(builder, self._draw(st.integers(0, 8)), depth=2 if with_regions else 0)
        self._leave(builder)
        return Function(name, builder.block())

    def _ops(self, builder: Builder, count: int, depth: int) -> None:
        kinds: list[Callable[[Builder], None]] = [
            self._extend,
            self._generate,
            self._sample,
            self._select,
            self._plain_context_op,
            self._concat,
            self._py_call,
            self._local_call,
            self._host_call,
            self._assume,
        ]
        for _ in range(count):
            if depth and self._draw(st.integers(0, 5)) == 0:
                self._region_op(builder, depth)
                continue
            self._draw(st.sampled_from(kinds))(builder)

    def _value(self, kind: Type) -> Value:
        name = self._draw(names)
        while name in self._names:
            name += "'"
        self._names.add(name)
        value = Value(name, kind)
        self._values.append(value)
        return value

    def _emit(self, builder: Builder, kind: type[Any], types: list[Type], **fields: Any) -> None:
        results = tuple(self._value(result) for result in types)
        builder.ops.append(kind(results=results, location=self._draw(locations), **fields))

    def _one_of(self, *kinds: Type) -> Value | None:
        fitting = [value for value in self._values if value.type in kinds]
        return self._draw(st.sampled_from(fitting)) if fitting else None

    def _context(self, builder: Builder) -> Value:
        found = self._one_of(CTX)
        if found is None:
            self._emit(builder, ContextOp, [CTX])
            found = self._values[-1]
        return found

    def _not_contexts(self, limit: int = 3) -> tuple[Value, ...]:
        fitting = [value for value in self._values if not holds_context(value.type)]
        return tuple(self._draw(st.lists(st.sampled_from(fitting), max_size=limit))) if fitting else ()

    def _parts(self) -> tuple[str | Value, ...]:
        fitting = [value for value in self._values if value.type == TEXT]
        entry = st.one_of(texts, st.sampled_from(fitting)) if fitting else texts
        return tuple(self._draw(st.lists(entry, max_size=3)))

    def _arguments(self) -> tuple[Attribute | Value, ...]:
        fitting = [value for value in self._values if not holds_context(value.type)]
        entry = st.one_of(literals, st.sampled_from(fitting)) if fitting else literals
        return tuple(self._draw(st.lists(entry, max_size=3)))

    def _plain_id(self) -> str:
        """An id without numbers in it. What a user writes has no holes: it is escaped."""
        self._ids += 1
        written = self._draw(texts).replace("*", "%2A").replace("$", "%24")
        return f"{written}/{self._ids}"

    def _id(self) -> dict[str, Any]:
        """An id, perhaps with numbers in it."""
        written = self._plain_id()
        numbers = [value for value in self._values if value.type == INT]
        occurrences = self._draw(st.lists(st.sampled_from(numbers), max_size=2)) if numbers else []
        holes = "".join(self._draw(st.sampled_from("*$")) for _ in occurrences)
        return {"id": f"{written}{holes}", "occurrences": tuple(occurrences)}

    def _plan(self) -> dict[str, Any]:
        wave = self._draw(st.one_of(st.none(), st.integers(0, 5)))
        return {"wave": wave, "group": None if wave is None else self._draw(st.sampled_from([None, "g0", "é"]))}

    def _extend(self, builder: Builder) -> None:
        role = self._draw(st.sampled_from([None, *ROLES]))
        self._emit(builder, ExtendOp, [CTX], context=self._context(builder), role=role, text=self._parts())

    def _plain_context_op(self, builder: Builder) -> None:
        context = self._context(builder)
        kinds = [BeginOp, EndOp, PrefillOp, TranscriptOp, *([MessagesOp] if self._may_change else [])]
        kind = self._draw(st.sampled_from(kinds))
        fields: dict[str, Any] = {}
        if kind is BeginOp:
            fields["role"] = self._draw(st.sampled_from(ROLES))
        if kind is PrefillOp:
            fields["scope"] = self._draw(st.sampled_from(PREFILL_SCOPES))
        result = TEXT if kind is TranscriptOp else ANY if kind is MessagesOp else CTX
        self._emit(builder, kind, [result], context=context, **fields)

    def _sampling(self) -> dict[str, Any]:
        draw = self._draw
        fields: dict[str, Any] = {**self._id(), "max_tokens": draw(st.integers(1, 9)), **self._plan()}
        options: dict[str, st.SearchStrategy[Any]] = {
            "name": texts,
            "min_tokens": st.integers(0, fields["max_tokens"]),
            "expected_tokens": st.integers(0, fields["max_tokens"]),
            "stop": st.lists(texts.filter(bool), max_size=2).map(tuple),
            "stop_token_ids": st.lists(st.integers(0, 9), max_size=2).map(tuple),
            "temperature": st.floats(0, 2),
            "top_p": st.floats(0, 1, exclude_min=True),
            "top_k": st.integers(0, 50),
            "min_p": st.floats(0, 1),
            "frequency_penalty": st.floats(-2, 2),
            "presence_penalty": st.floats(-2, 2),
            "repetition_penalty": st.floats(0.1, 2),
            "logit_bias": st.dictionaries(st.integers(0, 300), st.floats(-100, 100), max_size=3).map(
                lambda biases: tuple(sorted(biases.items()))
            ),
            "seed": st.integers(),
            "logprobs": st.integers(0, 3),
        }
        chosen = draw(st.lists(st.sampled_from(sorted(options)), unique=True, max_size=4))
        fields.update({name: draw(options[name]) for name in chosen})
        if self._constraints and draw(st.booleans()):
            fields["constraint"] = draw(st.sampled_from(self._constraints)).name
            fields["jump_forward"] = draw(st.sampled_from(JUMP_FORWARD))
            if fields["wave"] is None and "logprobs" not in fields:
                forced = st.lists(st.integers(0, 300), max_size=fields["max_tokens"]).map(tuple)
                fields["forced"] = draw(st.one_of(st.none(), forced))
        text = self._one_of(TEXT)
        if "constraint" not in fields and text is not None and draw(st.booleans()):
            fields.update(definition=(text,), definition_kind=draw(st.sampled_from(DEFINED_KINDS)))
            fields["jump_forward"] = draw(st.sampled_from(JUMP_FORWARD))
        return fields

    def _generate(self, builder: Builder) -> None:
        context, fields = self._context(builder), self._sampling()
        value = TEXT if "constraint" not in fields else self._draw(generated_types)
        meta = [ANY] if "logprobs" in fields else []
        self._emit(builder, GenOp, [CTX, value, *meta], context=context, **fields)

    def _sample(self, builder: Builder) -> None:
        context, fields = self._context(builder), self._sampling()
        value = TEXT if "constraint" not in fields else self._draw(generated_types)
        meta = [ANY] if "logprobs" in fields else []
        n = self._draw(st.integers(1, 3))
        self._emit(builder, SampleOp, [list_of(value), *meta], context=context, n=n, **fields)

    def _select(self, builder: Builder) -> None:
        listed = self._one_of(list_of(TEXT))
        choices = (listed,) if listed is not None else tuple(self._draw(st.lists(texts.filter(bool), min_size=1)))
        method = self._draw(st.sampled_from(SELECT_METHODS))
        context = self._context(builder)
        self._emit(
            builder,
            SelectOp,
            [CTX, TEXT, ANY],
            context=context,
            choices=choices,
            method=method,
            **self._id(),
            **self._plan(),
        )

    def _concat(self, builder: Builder) -> None:
        self._emit(builder, ConcatOp, [TEXT], text=self._parts())

    def _py_call(self, builder: Builder) -> None:
        arguments = self._arguments()
        keywords = self._draw(st.lists(names, unique=True, max_size=len(arguments))) if arguments else []
        function = self._draw(st.sampled_from(builtins.names()))
        kind = self._draw(value_types)
        self._emit(builder, PyCallOp, [kind], function=function, arguments=arguments, keywords=tuple(keywords))

    def _local_call(self, builder: Builder) -> None:
        if not self._may_change:
            return
        function = self._draw(st.sampled_from(["dict", "list", "method", "next", "setitem"]))
        self._emit(builder, LocalCallOp, [self._draw(value_types)], function=function, arguments=self._arguments())

    def _host_call(self, builder: Builder) -> None:
        if not self._hosts:
            return
        host = self._draw(st.sampled_from(self._hosts))
        self._emit(
            builder,
            HostCallOp,
            [self._draw(value_types)],
            host=host.name,
            arguments=self._arguments(),
            declared=host.effect.value,
            early=host.early and self._draw(st.booleans()),
            id=self._plain_id(),
        )

    def _assume(self, builder: Builder) -> None:
        for value in self._not_contexts(limit=1):
            self._emit(builder, AssumeOp, [], value=value, expected=self._draw(literals))

    def _leave(self, builder: Builder) -> None:
        if self._draw(st.integers(0, 4)) == 0:
            self._break(builder)
            return
        context = self._context(builder)
        values, variables = self._not_contexts(), self._not_contexts()
        structure = f'{{"list":[{",".join(f"""{{"leaf":{index}}}""" for index in range(len(values)))}]}}'
        builder.emit(
            ReturnOp,
            context=context,
            values=values,
            structure=structure,
            variables=variables,
            variable_names=tuple(f"{self._draw(texts)}{index}" for index in range(len(variables))),
        )

    def _break(self, builder: Builder) -> None:
        values = self._not_contexts()
        names = [[self._draw(texts), {"leaf": index}] for index in range(len(values))]
        hosts = [{"host": host.name} for host in self._hosts]
        record = {"cells": [{"list": hosts}], "frames": [{"names": names, "path": [["body", 0]]}], "root": {"cell": 0}}
        text = json.dumps(record, ensure_ascii=False)
        builder.emit(BreakOp, values=values, cause=self._draw(texts), remedy=self._draw(texts), record=text)
