from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given

from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.core_ops import AssumeOp, GenOp, HostCallOp
from lmc.ir.module import Module
from lmc.ir.op_schema import exact_key, is_attribute, layout_of
from lmc.ir.text.parser import parse
from lmc.ir.types import INT
from tests.equality import op_key, structurally_equal
from tests.ir.region_ops import BothOp, MapOp, YieldOp, make
from tests.ir.test_printer import EVERY_OP
from tests.module_strategies import modules
from tests.strategies import literals


@given(modules())
def test_a_module_equals_itself_and_a_copy(module: Module):
    bodies = {function.name: Block(function.body.parameters, function.body.ops) for function in module.functions}
    assert structurally_equal(module, module.with_bodies(bodies))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("module @judge", "module @broken"),
        ("func @broken", "func @borken"),
        ("constraint @c0 = choices", "constraint @c0 = regex"),
        ('host @lookup = "program', 'host @lookup = "other'),
        ("%essay: !text, %dims", "%essay: !any, %dims"),
        ("scope = ", 'scope = "instance"} : !ctx\n    %z = lm.prefill %4 {scope = '),
        ("lm.begin %2, user", "lm.begin %2, system"),
        ("%12 = text.concat [%11", "%12 = text.concat [%7"),
        ("n = 3", "n = 4"),
        ("[1, none, true]", "[true, none, true]"),
        ("[1, none, true]", "[1.0, none, true]"),
        ("%11 = lm.transcript %9 : !text", '%11 = lm.transcript %9 : !text loc("a.py":1)'),
        ("%14 = host.call", "%99 = host.call"),
        ("lm.transcript %9", "lm.transcript %6"),
    ],
)
def test_modules_that_differ_anywhere_are_not_equal(old: str, new: str):
    assert old in EVERY_OP
    changed = EVERY_OP.replace(old, new)
    if new.startswith("%99"):
        changed = changed.replace("%14", "%99")
    assert not structurally_equal(parse(EVERY_OP), parse(changed))


def test_the_contents_of_regions_count():
    def module(kind: type[Op], **values: str) -> Module:
        regions = {name: Block((), (make(YieldOp, values=(Value(value, INT),)),)) for name, value in values.items()}
        return parse(EVERY_OP).with_main(Block((), (make(kind, **regions),)))

    assert structurally_equal(module(BothOp, body="a", otherwise="b"), module(BothOp, body="a", otherwise="b"))
    assert not structurally_equal(module(BothOp, body="a", otherwise="b"), module(BothOp, body="a", otherwise="c"))
    assert not structurally_equal(module(BothOp, body="a", otherwise="b"), module(MapOp, body="a"))


def test_keys_of_ops_leave_out_results_and_location():
    first = make(AssumeOp, value=Value("x", INT), expected=1)
    assert op_key(first) == op_key(dataclasses.replace(first, location=None, results=(Value("r", INT),)))
    for other in (True, 1.0, "1", (1,)):
        assert op_key(first) != op_key(make(AssumeOp, value=Value("x", INT), expected=other))
    assert hash(op_key(make(HostCallOp, host="h", id="i", arguments=(1, Value("x", INT), (2.0,)))))


def test_exact_keys():
    assert exact_key(math.nan) == exact_key(float("nan"))
    assert exact_key(0.0) != exact_key(-0.0)
    assert exact_key(1) != exact_key(True)
    assert exact_key((1, ("a", None))) == exact_key((1, ("a", None)))


@given(literals)
def test_every_literal_is_an_attribute_with_a_key(literal):
    assert is_attribute(literal)
    assert exact_key(literal) == exact_key(literal)
    assert not is_attribute([literal])
    assert not is_attribute((literal, {}))


def test_layouts_follow_the_declarations():
    layout = layout_of(HostCallOp)
    assert [field.name for field in layout.positional] == ["host", "arguments"]
    assert [field.name for field in layout.attributes] == ["declared", "early", "host", "id", "keywords"]
    assert layout.has_id
    assert [field.name for field in layout_of(BothOp).regions] == ["body", "otherwise"]
    types = {field.name: str(field.type) for field in layout_of(GenOp).attributes}
    assert types["stop"] == "tuple of str"
    assert types["seed"] == "int or none"
    assert str(next(field.type for field in layout_of(AssumeOp).attributes)) == "any literal"
