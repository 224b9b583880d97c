from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any

import pytest
from hypothesis import given

from lmc.ir.builder import Builder
from lmc.ir.core import Block, Constraint, Effect, HostFunction, Op, Value, op_class, op_names
from lmc.ir.dialects.core_ops import AssumeOp, ConcatOp, ContextOp, EndOp, ExtendOp, GenOp, PyCallOp, ReturnOp
from lmc.ir.errors import Location, VerifyError
from lmc.ir.module import Function, Module, print_module
from lmc.ir.text.parser import parse
from lmc.ir.types import ANY, CTX, INT, TEXT, ListType, Type, json_of, list_of
from lmc.ir.verify.verifier import MAX_REGION_DEPTH, MAX_TYPE_DEPTH, verify
from tests.ir.region_ops import BothOp, MapOp, YieldOp, make
from tests.module_strategies import modules

CONTEXT = Value("c", CTX)


def module_of(*ops: Op, parameters: tuple[Value, ...] = ()) -> Module:
    """A module whose only function makes ``%c``, runs ``ops`` and returns."""
    body = Block(parameters, (make(ContextOp, CONTEXT), *ops, make(ReturnOp, context=CONTEXT)))
    return Module("m", (Function("m", body),))


def error_of(module: Module) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        verify(module)
    return caught.value


@given(modules())
def test_random_modules_verify(module: Module):
    verify(module)


MODULES: list[tuple[str, str]] = [
    ("module @m { func @n() { %c = lm.context : !ctx lm.return %c } }", "module @m has no function @m"),
    (
        "module @m { FUNC FUNC }",
        "two functions are called @m",
    ),
    ('module @m { constraint @a = regex "a" constraint @a = regex "b" FUNC }', "two symbols are called @a"),
    ('module @m { constraint @a = regex "a" host @a = "a:b" sha256 "" pure FUNC }', "two symbols are called @a"),
    ('module @m { constraint @a = glob "x" FUNC }', "constraint @a is of unknown kind 'glob'"),
    ('module @m { constraint @a = schema "{}" {whitespace = "x"} FUNC }', "constraint @a: unknown whitespace 'x'"),
    (
        'module @m { constraint @a = regex "a" {whitespace = "flexible"} FUNC }',
        "constraint @a: only a schema has whitespace",
    ),
    ('module @m { constraint @a = regex "a" {digest = ""} FUNC }', "constraint @a has an empty digest"),
    ('module @m { constraint @a = dtype "complex" FUNC }', "constraint @a: unknown type 'complex'"),
    ('module @m { constraint @a = schema "{" FUNC }', "constraint @a is not JSON"),
    (f'module @m {{ constraint @a = schema "{"[" * 100_000}" FUNC }}', "constraint @a is not JSON"),
    ('module @m { constraint @a = schema "[]" FUNC }', "constraint @a is no JSON schema"),
    ('module @m { constraint @a = choices "{}" FUNC }', "constraint @a is no list of choices"),
    ('module @m { constraint @a = choices "[]" FUNC }', "constraint @a is no list of choices"),
    ('module @m { constraint @a = choices "[1]" FUNC }', "constraint @a is no list of choices"),
    ('module @m { host @h = "a:b" sha256 "" samples FUNC }', "host @h can't have the effect samples"),
    ("module @m { func @m() {} }", "func @m: a function is empty"),
    ("module @m { func @m() { %c = lm.context : !ctx } }", "lm.context: ends a block, but is no terminator"),
    (
        "module @m { func @m() { %c = lm.context : !ctx lm.return %c lm.return %c } }",
        "lm.return: stands before the end of its block",
    ),
    (
        'module @m { func @m() { %c = lm.context : !ctx %d, %t = lm.gen %c {id = "a", constraint = @x} : !ctx, !text '
        "lm.return %d } }",
        "lm.gen: no constraint is called @x",
    ),
    (
        'module @m { func @m() { %c = lm.context : !ctx %v = host.call @h {id = "a"} : !any lm.return %c } }',
        "host.call: no host function is called @h",
    ),
    (
        "module @m { func @m() { lm.break "
        r'{record = "{\"cells\":[{\"host\":\"h\"}],\"frames\":[{}]}"} } }',
        "lm.break: no host function is called @h",
    ),
    (
        'module @m { host @h = "a:b" sha256 "" reads func @m() { %c = lm.context : !ctx '
        '%v = host.call @h {id = "a"} : !any lm.return %c } }',
        "host.call: its effect is writes, but @h is declared reads",
    ),
    (
        'module @m { func @m() { %c = lm.context : !ctx %d, %t = lm.gen %c {id = "a"} : !ctx, !text '
        '%e, %u = lm.gen %d {id = "a"} : !ctx, !text lm.return %e } }',
        "lm.gen: two ops have the id 'a'",
    ),
    (
        "module @m { func @m(%x: !text) { %c = lm.context : !ctx test.both {} ^body() { %i = lm.end %c : !ctx "
        "test.yield {} } ^otherwise() { %j = lm.end %i : !ctx test.yield {} } lm.return %c } }",
        "lm.end: %i is not visible here",
    ),
    (
        "module @m { func @m() { test.map {} ^body(%i: !ctx) { test.yield {} } lm.return %i } }",
        "lm.return: %i is not visible here",
    ),
]


@pytest.mark.parametrize(("text", "cause"), MODULES)
def test_rules_of_modules(text, cause):
    error = error_of(parse(text.replace("FUNC", "func @m() { %c = lm.context : !ctx lm.return %c }")))
    assert error.cause.startswith(cause)
    assert error.remedy


def test_errors_name_the_line_of_the_program():
    text = 'module @m { func @m(%x: !text) { %c = lm.end %x : !ctx loc("judge.py":7) lm.return %c } }'
    error = error_of(parse(text))
    assert error.location == Location("judge.py", 7)
    assert str(error).startswith("judge.py:7: lm.end: ")


# What no text can say, because the parser refuses it already or the types of Python forbid it.

_DEEP_TUPLE = functools.reduce(lambda inner, _: (inner,), range(5_000), ())
_DEEP_TYPE: Type = functools.reduce(lambda inner, _: ListType("list", inner), range(5_000), TEXT)


class _Strange(Type):
    pass


@pytest.mark.parametrize(
    ("op", "cause"),
    [
        (make(EndOp, Value("d", CTX), context=Value("e", CTX)), "lm.end: %e is used before it is defined"),
        (make(EndOp, Value("d", CTX), context=Value("d", CTX)), "lm.end: %d is used before it is defined"),
        (make(EndOp, CONTEXT, context=CONTEXT), "lm.end: %c is defined twice"),
        (
            make(ConcatOp, Value("x", TEXT), text=(Value("c", TEXT),)),
            "text.concat: %c is used as !text, but defined as",
        ),
        (make(EndOp, Value("d", CTX), context="c"), "lm.end: context does not hold a value"),
        (make(ConcatOp, Value("x", TEXT), text=(1,)), "text.concat: text does not hold a tuple of strings and values"),
        (make(ConcatOp, Value("x", TEXT), text=["a"]), "text.concat: text does not hold"),
        (make(PyCallOp, Value("x", TEXT), function="str", arguments=([],)), "arguments does not hold a tuple of lit"),
        (make(PyCallOp, Value("x", TEXT), function="str", arguments=(_DEEP_TUPLE,)), "arguments does not hold"),
        (make(PyCallOp, Value("x", TEXT), function="str", arguments=(1 << 5000,)), "arguments does not hold"),
        (make(ReturnOp, context=CONTEXT, values=(1,)), "values does not hold a tuple of values"),
        (make(BothOp, body=1, otherwise=Block()), "test.both: body does not hold a block"),
        (dataclasses.replace(make(ConcatOp), results=[]), "text.concat: results are a tuple of values"),
        (dataclasses.replace(make(ConcatOp), results=("a",)), "text.concat: results are a tuple of values"),
        (make(AssumeOp, value=CONTEXT, expected=[1]), "py.assume: expected is any literal, not list"),
        (make(AssumeOp, value=CONTEXT, expected=_DEEP_TUPLE), "py.assume: expected is any literal, not tuple"),
        (make(AssumeOp, value=CONTEXT, expected=(1 << 5000,)), "py.assume: expected holds a number of more than 4096"),
        (make(EndOp, Value("d", Type("ctxt")), context=CONTEXT), "lm.end: the type of %d is unknown"),
        (make(EndOp, Value("d", _Strange("ctx")), context=CONTEXT), "lm.end: the type of %d is unknown"),
        (make(EndOp, Value("d", _DEEP_TYPE), context=CONTEXT), "lm.end: the type of %d is nested deeper than 32"),
        (make(EndOp, Value("d", CTX), context=Value("c", _DEEP_TYPE)), "lm.end: the type of %c is nested deeper than"),
    ],
)
def test_rules_of_fields_names_and_types(op, cause):
    module = module_of(op)
    if op.IS_TERMINATOR:
        module = module.with_main(Block((), module.main.body.ops[:-1]))
    assert cause in error_of(module).cause


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", None),
        ("id", 1),
        ("name", 1),
        ("max_tokens", 1.0),
        ("max_tokens", True),
        ("stop", ["a"]),
        ("stop", (1,)),
        ("temperature", 1),
        ("top_p", None),
        ("seed", 1.5),
    ],
)
def test_attributes_are_of_their_declared_types(field, value):
    fields: dict[str, Any] = {"id": "a", "context": CONTEXT, field: value}
    error = error_of(module_of(make(GenOp, Value("d", CTX), Value("t", TEXT), **fields)))
    assert error.cause.startswith(f"lm.gen: {field} is ")


def test_parameters_are_named_once_and_well_typed():
    assert "func @m: %x is defined twice" in error_of(module_of(parameters=(Value("x", TEXT), Value("x", INT)))).cause
    assert "func @m: the type of %x is unknown" in error_of(module_of(parameters=(Value("x", Type("?")),))).cause


def test_host_effects_must_agree():
    call = parse(
        'module @m { host @h = "a:b" sha256 "" reads func @m() { %c = lm.context : !ctx '
        '%v = host.call @h {id = "a", declared = "reads"} : !any lm.return %c } }'
    )
    verify(call)
    changed = dataclasses.replace(call, hosts=(HostFunction("h", "a:b", "", Effect.PURE),))
    assert "its effect is reads, but @h is declared pure" in error_of(changed).cause


def test_only_what_may_start_early_and_does_not_write_does():
    text = (
        'module @m {{ host @h = "a:b" sha256 "" {declared} func @m() {{ %c = lm.context : !ctx '
        '%v = host.call @h {{id = "a", declared = "{effect}", early = true}} : !any lm.return %c }} }}'
    )
    verify(parse(text.format(declared="reads {early = true}", effect="reads")))
    assert "starts early, but @h may not" in error_of(parse(text.format(declared="reads", effect="reads"))).cause
    writes = text.format(declared="writes", effect="writes")
    assert "starts early, but writes" in error_of(parse(writes)).cause
    writes = text.format(declared="writes {early = true}", effect="writes")
    assert "host @h may be called early, but writes" in error_of(parse(writes)).cause


def test_constraints_of_every_kind_verify():
    constraints = (
        Constraint("r", "regex", "[a-z]+"),
        Constraint("c", "choices", '["a"]'),
        Constraint("s", "schema", "{}"),
        Constraint("d", "dtype", "int"),
        Constraint("g", "grammar", 'start: "a"', digest="ab"),
        Constraint("f", "schema", "{}", "flexible"),
    )
    verify(dataclasses.replace(module_of(), constraints=constraints))


def test_values_of_a_region_are_gone_after_it_and_those_around_it_visible_in_it():
    inner = make(EndOp, Value("d", CTX), context=CONTEXT)
    region = Block((Value("i", INT),), (inner, make(YieldOp, values=(Value("i", INT),))))
    verify(module_of(make(MapOp, Value("r", ANY), body=region)))
    after = make(EndOp, Value("e", CTX), context=Value("d", CTX))
    assert "%d is not visible here" in error_of(module_of(make(MapOp, body=region), after)).cause
    in_itself = make(MapOp, Value("r", INT), body=Block((), (make(YieldOp, values=(Value("r", INT),)),)))
    assert "%r is used before it is defined" in error_of(module_of(in_itself)).cause


@pytest.mark.parametrize("depth", [MAX_REGION_DEPTH, MAX_REGION_DEPTH + 1, 5_000])
def test_regions_are_bounded_in_depth(depth):
    op: Op = make(YieldOp)
    for _ in range(depth):
        op = make(MapOp, body=Block((), (op, make(YieldOp)) if isinstance(op, MapOp) else (op,)))
    module = module_of(op)
    if depth <= MAX_REGION_DEPTH:
        verify(module)
    else:
        assert "regions are nested deeper than 64" in error_of(module).cause


def test_types_are_bounded_in_depth():
    kind: Type = json_of("x")
    for _ in range(MAX_TYPE_DEPTH - 1):
        kind = list_of(kind)
    verify(module_of(parameters=(Value("x", kind),)))
    assert "is nested deeper" in error_of(module_of(parameters=(Value("x", list_of(kind)),))).cause


def test_what_verifies_at_the_bounds_can_be_read_back():
    kind: Type = TEXT
    literal: Any = 0
    for _ in range(MAX_TYPE_DEPTH - 1):
        kind, literal = list_of(kind), (literal,)
    op: Op = make(AssumeOp, value=Value("x", kind), expected=literal)
    for _ in range(MAX_REGION_DEPTH):
        op = make(MapOp, body=Block((), (op, make(YieldOp))))
    module = module_of(op, parameters=(Value("x", kind),))
    verify(module)
    verify(parse(print_module(module)))


def test_ten_thousand_ops_are_verified_in_linear_time():
    builder = Builder()
    (context,) = builder.emit(ContextOp, [CTX])
    for _ in range(10_000):
        (context,) = builder.emit(ExtendOp, [CTX], context=context, text=("a",))
    builder.emit(ReturnOp, context=context)
    start = time.process_time()
    verify(Module("m", (Function("m", builder.block()),)))
    assert time.process_time() - start < 3


def test_ops_that_were_verified_before_are_still_held_to_what_is_around_them():
    end = make(EndOp, Value("d", CTX), context=CONTEXT)
    module, verified = module_of(end), set[Op]()
    verify(module, verified=verified)
    assert verified == set(module.main.body.ops)
    again = Block((), (*module.main.body.ops[:-1], end, module.main.body.ops[-1]))
    with pytest.raises(VerifyError, match="%d is defined twice"):
        verify(module.with_main(again), verified=verified)
    with pytest.raises(VerifyError, match="%c is used before it is defined"):
        verify(module.with_main(Block((), module.main.body.ops[1:])), verified=verified)


def test_every_op_has_rules_of_its_own():
    kinds = [op_class(name) for name in op_names() if not name.startswith("test.")]
    assert [kind for kind in kinds if kind is None or kind.verify is Op.verify] == []
