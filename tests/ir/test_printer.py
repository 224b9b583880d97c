from __future__ import annotations

import math

import pytest
from hypothesis import given

from lmc.ir.builder import Builder
from lmc.ir.core import Block, Value, op_names
from lmc.ir.dialects.core_ops import AssumeOp, ContextOp, ExtendOp, HostCallOp, PyCallOp, ReturnOp
from lmc.ir.equality import structurally_equal
from lmc.ir.errors import Location
from lmc.ir.module import Function, Module, print_module
from lmc.ir.printer import is_word, print_attribute, print_op, print_string, print_type, print_value
from lmc.ir.text.parser import parse
from lmc.ir.types import CTX, INT, TEXT, json_of, list_of
from lmc.ir.verify.verifier import verify
from tests.ir.region_ops import BothOp, YieldOp, make
from tests.module_strategies import modules
from tests.strategies import literals, value_types

# Every op, as it is printed. A new op adds its line here.
EVERY_OP = """\
module @judge {
  constraint @c0 = choices "[\\"yes\\",\\"no\\"]"
  constraint @"c 1" = schema "{}" {digest = "ab", whitespace = "flexible"}
  constraint @c2 = grammar "start: \\"a\\"\\n" {digest = "cd"}
  host @lookup = "program:lookup" sha256 "00" reads
  host @recall = "program:recall" sha256 "11" pure {early = true}
  func @judge(%essay: !text, %dims: !list<!text>, %item.title: !json<"a b">) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0, system ["You grade essays."] : !ctx
    %2 = lm.extend %1 ["Essay:\\n", %essay] : !ctx
    %s = lm.sections %2, user ["Be brief.", %essay] {kinds = ["movable", "section"], lengths = [1, 1]} : !ctx
    %3 = lm.begin %2, user : !ctx
    %4 = lm.end %3 : !ctx
    %5 = lm.prefill %4 {scope = "batch"} : !ctx
    %6, %7, %8 = lm.select %5 ["yes", "no"] {group = "g0", id = "judge/on_topic", wave = 0} : !ctx, !text, !any
    %9, %v = lm.gen %6 {constraint = @"c 1", id = "judge/v", name = "v", temperature = 0.5} : !ctx, !json<Verdict>
    %f, %w = lm.gen %9 {constraint = @c2, forced = [64], id = "judge/w", jump_forward = "off"} : !ctx, !text
    %10 = lm.sample %9 {id = "judge/s", logit_bias = [[3, -9.5], [7, 1.0]], n = 3, stop = ["\\n", "."]} : !list<!text>
    lm.keep %9 {next_use = 2}
    lm.keep %9 (%10) {next_use = 3}
    %11 = lm.transcript %9 : !text
    %m = lm.messages %9 : !any
    lm.free %9 (%10, %11)
    lm.free %5 {next_use = 4}
    %12 = text.concat [%11, "."] : !text
    %13 = py.call str.format ("{:.1f}{x}", 0.5, [1, none, true], %12) {keywords = ["x"]} : !text
    %14 = host.call @lookup (%13) {declared = "reads", id = "judge/lookup"} : !any
    %15 = py.local method ("get", %14, 1, %13) : !any
    py.assume %essay {expected = "x"}
    lm.return %9 (%14, %v) (%7) {structure = "{\\"leaf\\":1}", variable_names = ["on_topic"]}
  }
  func @broken(%essay: !text) {
    lm.break (%essay) {cause = "eval(x)", record = "{\\"cells\\":[{\\"list\\":[{\\"leaf\\":0}]}],\\"frames\\":[{}]}"}
  }
  func @flow(%flag: !bool, %start: !ctx, %items: !list<!text>) {
    %n = py.call len (%items) : !int
    %c, %x = cf.cond %flag {id = "flow/@cf.cond"} : !ctx, !any ^then() {
      %c1, %x1 = lm.gen %start {expected_tokens = 7, id = "flow/x"} : !ctx, !text
      cf.yield (%c1, %x1)
    } ^otherwise() {
      cf.yield (%start, %flag)
    }
    %c5, %m = cf.loop (%c, %n) {expected_rounds = 2.5, limit = 3} : !ctx, !int ^condition(%c2: !ctx, %i: !int) {
      %c3, %go, %go.meta = lm.select %c2 ["yes", "no"] (%i) {id = "flow/go*"} : !ctx, !text, !any
      %on = py.call eq (%go, "yes") : !bool
      cf.condition %on (%c3, %i)
    } ^body(%c4: !ctx, %j: !int) {
      %k = py.call add (%j, 1) : !int
      cf.yield (%c4, %k)
    }
    %views = cf.map (%items) {id = "flow/@cf.map", strict = true} : !list<!ctx> ^body(%index: !int, %item: !text) {
      %view, %y = lm.gen %c5 (%index, %m) {id = "flow/view$/y*"} : !ctx, !text
      cf.yield (%view)
    }
    %found, %best = cf.race (%items, %views) : !bool, !text ^body(%at: !int, %said: !text, %in: !ctx) {
      cf.yield (%flag, %said)
    }
    lm.break (%best, %m) {cause = "eval(x)", record = "{\\"cells\\":[],\\"frames\\":[{}]}", remedy = "leave it out"}
  }
  func @caught(%text: !text, %c: !ctx) {
    %ok, %error, %n = cf.try (0) {base = true, id = "caught/@cf.try"} : !bool, !any, !int ^body() {
      %number = py.call int (%text) : !int
      cf.yield (%number)
    }
    lm.return %c (%n) {structure = "{\\"leaf\\":0}"}
  }
  func @early(%flag: !bool, %c: !ctx) {
    %n, %d = cf.cond %flag {probability = 0.5} : !int, !ctx ^then() {
      %known = host.call @recall ("x") {declared = "pure", early = true, id = "early/@recall"} : !any
      cf.yield (1, %c)
    } ^otherwise() {
      lm.return %c
    }
    cf.cond %flag ^then() {
      lm.return %d () (%n) (%flag) {present_names = ["n"], variable_names = ["n"]}
    } ^otherwise() {
      cf.unreachable {}
    }
    cf.unreachable {}
  }
}
"""


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
