from __future__ import annotations

import math

import pytest
from hypothesis import given

from lmc.ir.builder import Builder
from lmc.ir.core import Block, Value, op_names
from lmc.ir.dialects.core_ops import AssumeOp, ContextOp, ExtendOp, HostCallOp, PyCallOp, ReturnOp
from lmc.ir.errors import Location
from lmc.ir.module import Function, Module, print_module
from lmc.ir.printer import is_word, print_attribute, print_op, print_string, print_type, print_value
from lmc.ir.text.parser import parse
from lmc.ir.types import CTX, INT, TEXT, json_of, list_of
from lmc.ir.verify.verifier import verify
from tests.equality import structurally_equal
from tests.ir.region_ops import BothOp, YieldOp, make
from tests.module_strategies import modules
from tests.project.layers import REPOSITORY
from tests.strategies import literals, value_types

# A new op adds its line to the file, which is printed text: the reference of ops takes its examples from there.
EVERY_OP = (REPOSITORY / "docs" / "ops.lmir").read_text(encoding="utf-8")


def test_every_op_has_its_text_and_is_read_back_from_it():
    module = parse(EVERY_OP)
    verify(module)
    assert print_module(module) == EVERY_OP
    shown = {name for name in op_names() if not name.startswith("test.")}
    assert shown == {name for name in shown if f"{name} " in EVERY_OP}


@given(modules())
def test_every_module_is_read_back_from_its_text(module: Module):
    verify(module)
    text = print_module(module)
    again = parse(text)
    verify(again)
    assert structurally_equal(again, module)
    assert print_module(again) == text


@given(literals)
def test_every_literal_is_read_back_from_its_text(literal):
    op = make(AssumeOp, value=Value("x", INT), expected=literal)
    module = Module("m", (Function("m", Block((op.value,), (op, *_return()))),))
    assert structurally_equal(parse(print_module(module)), module)


@given(value_types)
def test_every_type_is_read_back_from_its_text(kind):
    parameter = Value("x", kind)
    module = Module("m", (Function("m", Block((parameter,), _return())),))
    assert parse(print_module(module)).main.parameters == (parameter,)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("plain", '"plain"'),
        ('"\\', r'"\"\\"'),
        ("\n\r\t", r'"\n\r\t"'),
        ("\x00\x1b\u2028", r'"\u0000\u001b\u2028"'),
        ("é日😀", '"é日😀"'),
        ("\ud83d\ude00", r'"\U0000d83d\U0000de00"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_strings_escape_only_what_does_not_print(text, printed):
    assert print_string(text) == printed


@pytest.mark.parametrize(
    ("literal", "printed"),
    [
        (None, "none"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e-05, "1e-05"),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (("a", (1, ())), '["a", [1, []]]'),
    ],
)
def test_literals(literal, printed):
    assert print_attribute(literal) == printed


@pytest.mark.parametrize(
    ("name", "printed"),
    [("0", "%0"), ("item.title", "%item.title"), ("a b", '%"a b"'), ("", '%""'), ("a.", '%"a."'), ("é", '%"é"')],
)
def test_names_are_quoted_where_needed(name, printed):
    assert print_value(Value(name, TEXT)) == printed


def test_types():
    assert print_type(list_of(list_of(json_of("Verdict")))) == "!list<!list<!json<Verdict>>>"
    assert print_type(json_of("a>b")) == '!json<"a>b">'


def test_words_are_what_the_parser_takes_bare():
    assert is_word("str.join")
    assert not is_word("none")
    assert not is_word("two words")
    assert not is_word("0a")


def test_a_keyword_that_is_no_word_is_printed_as_an_attribute():
    op = make(ExtendOp, Value("1", CTX), context=Value("0", CTX), role="not a role")
    assert print_op(op) == '%1 = lm.extend %0 {role = "not a role"} : !ctx'


def test_attributes_that_equal_their_default_in_type_and_sign_are_left_out():
    call = make(HostCallOp, Value("r", INT), host="h", id="i", declared="writes")
    assert print_op(call) == '%r = host.call @h {id = "i"} : !int'
    assert print_op(make(AssumeOp, value=Value("x", INT), expected=True)) == "py.assume %x {expected = true}"


def test_empty_lists_are_written_only_before_others():
    value, context = Value("v", TEXT), Value("c", CTX)
    assert print_op(make(ReturnOp, context=context, variables=(value,), variable_names=("v",))) == (
        'lm.return %c () (%v) {variable_names = ["v"]}'
    )
    assert print_op(make(PyCallOp, value, function="list")) == "%v = py.call list : !text"


def test_an_op_with_nothing_to_say_ends_with_braces():
    assert print_op(YieldOp()) == "test.yield {}"


def test_locations_stand_in_one_column_and_after_the_regions():
    builder = Builder()
    builder.emit(ContextOp, [CTX], location=Location("a b.py", 3))
    inner = Builder([Value("i", INT)])
    inner.emit(YieldOp)
    builder.emit(BothOp, body=inner.block(), otherwise=inner.block(), location=Location("a b.py", 4))
    builder.ops.extend(_return("0")[-1:])
    module = Module("m", (Function("m", builder.block()),))
    lines = print_module(module).splitlines()
    assert lines[2] == f'{"    %0 = lm.context : !ctx":<100} loc("a b.py":3)'
    assert lines[3:8] == [
        "    test.both {} ^body(%i: !int) {",
        "      test.yield {}",
        "    } ^otherwise(%i: !int) {",
        "      test.yield {}",
        f'{"    }":<100} loc("a b.py":4)',
    ]


def _return(name: str = "end") -> tuple[ContextOp, ReturnOp]:
    context = Value(name, CTX)
    return make(ContextOp, context), make(ReturnOp, context=context)
