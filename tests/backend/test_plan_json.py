import dataclasses
import functools
import hashlib
import json
import random
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmc.backend.json import instructions_json, plan_json
from lmc.backend.json.attributes_json import load_type
from lmc.backend.json.plan_json import VERSION, dump_plan, load_plan
from lmc.backend.lower import lower
from lmc.backend.plan import Argument, Body, Condition, Fields, Frozen, Items, JsonClass, Leaf, NodeRef, Plan, PlanError
from lmc.ir.core import Op, op_class, op_names
from lmc.ir.engine.target import Target
from lmc.ir.module import Module
from lmc.ir.verify.verifier import MAX_REGION_DEPTH
from tests.backend.programs import FLOW, JUDGE, TOOLS, plan_of
from tests.equality import structurally_equal
from tests.module_strategies import modules

PROGRAMS = pytest.mark.parametrize("text", [JUDGE, TOOLS, FLOW], ids=["judge", "tools", "flow"])


def same(left: Plan, right: Plan) -> bool:
    return structurally_equal(left.module, right.module) and follows(left.body) == follows(right.body)


def follows(body: Body) -> list[Any]:
    """Return what follows from the ops of a body."""
    return [(entry.depends, entry.wave, list(map(follows, entry.bodies))) for entry in body.instructions]


@PROGRAMS
def test_what_is_dumped_loads_as_the_same_plan(text: str):
    plan = plan_of(text)
    loaded = load_plan(dump_plan(plan))
    assert same(loaded, plan)
    assert (loaded.name, loaded.parameters, loaded.slots) == (plan.name, plan.parameters, plan.slots)
    assert dump_plan(loaded) == dump_plan(plan)


@given(modules())
def test_any_plan_is_kept(module: Module):
    plan = lower(module, Target.parse("toy"))
    text = dump_plan(plan)
    assume("\\ud83d\\ude00" not in text)  # two surrogates, which JSON can't tell from one character
    assert same(load_plan(text), plan)


def test_one_instruction_stands_on_one_line():
    plan = plan_of(JUDGE)
    lines = dump_plan(plan).splitlines()
    assert len(lines) == len(plan.instructions) + 2
    assert json.loads(lines[1].rstrip(","))["op"] == "lm.context"


def changed(*path: str | int, to: object, text: str = JUDGE) -> str:
    data = json.loads(dump_plan(plan_of(text)))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return json.dumps(data)


DEEP = functools.reduce(lambda inner, _: [inner], range(80), "x")
GEN = 7


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "not a plan: "),
        ("[" * 100_000, "not a plan: "),
        ("[1, 2]", "not a plan"),
        ('{"format": "other"}', "not a plan"),
        ('{"format": "lmc.plan", "version": NaN}', "NaN is no JSON number"),
        (changed("version", to=99), "plan version 99, this lmc reads 16"),
        (changed("extra", to=1), "a plan can't have 'extra'"),
        (changed("name", to=3), "text is needed, not 3"),
        (changed("parameters", to={}), "parameters: a list is needed"),
        (changed("parameters", to=[["essay"]]), "a list of 2 is needed"),
        (changed("parameters", 0, 1, to=99), "there is no slot 99"),
        (changed("parameters", 0, 1, to=1), "slots are not defined once each"),
        (changed("parameters", to=[["essay", 0], ["essay", 1]]), "slots are not defined once each"),
        (changed("slots", 0, to="bytes"), "not a type: 'bytes'"),
        (changed("slots", 0, to={"list": DEEP}), "not a type"),
        (changed("constraints", to=[["c", "regex", 1, "compact", None]]), "text is needed, not 1"),
        (changed("constraints", to=[["c", "regex", "a", "compact", 1]]), "text is needed, not 1"),
        (changed("constraints", to=[["c", "regex", "a"]]), "a list of 5 is needed"),
        (changed("hosts", to=[["h", "m:f", "00", "explodes", False]]), "unknown effect 'explodes'"),
        (changed("hosts", to=[["h", "m:f", "00", "reads", 1]]), "not a truth value: 1"),
        (changed("hosts", to=[["h", "m:f", "00", "writes", True]]), "may be called early, but writes"),
        (changed("instructions", to=[]), "between 1 and"),
        (changed("instructions", 0, to=None), "instruction 0 is an object, not None"),
        (changed("instructions", 0, "op", to="lm.exec"), "unknown op 'lm.exec'"),
        (changed("instructions", 0, "op", to=["lm.gen"]), "text is needed"),
        (changed("instructions", 0, "results", to=[40]), "there is no slot 40"),
        (changed("instructions", 0, "results", to=[True]), "there is no slot True"),
        (changed("instructions", 0, "results", to=[]), "slots are not defined once each"),
        (changed("instructions", 0, "fields", to={"text": []}), "lm.context's fields can't have 'text'"),
        (changed("instructions", 1, "fields", "context", to=-1), "there is no slot -1"),
        (changed("instructions", 1, "fields", "context", to=9), "is used before it is defined"),
        (changed("instructions", 1, "fields", "text", to=[3]), "text parts are texts and slots"),
        (changed("instructions", 1, "fields", "text", to="text"), "a list is needed"),
        (changed("instructions", 1, "fields", "role", to="root"), "breaks a rule"),
        (changed("instructions", 1, "fields", "role", to=DEEP), "nested deeper than"),
        (changed("instructions", 1, "location", to=["judge.py"]), "location: a list of 2"),
        (changed("instructions", 1, "location", to=["judge.py", "7"]), "not a line: '7'"),
        (changed("instructions", GEN, "fields", "max_tokens", to="many"), "breaks a rule"),
        (changed("instructions", GEN, "fields", "max_tokens", to={"int": "0xzz"}), "not an integer"),
        (changed("instructions", GEN, "fields", "max_tokens", to={"int": "1" * 5000}), "not a literal"),
        (changed("instructions", GEN, "fields", "temperature", to={"float": "1"}), "not a literal"),
        (changed("instructions", GEN, "fields", "stop", to={"slot": 0}), "not a literal"),
        (changed("instructions", GEN, "depends", to=[]), "instruction 7: depends and wave don't follow"),
        (changed("instructions", GEN, "wave", to=False), "instruction 7: depends and wave don't follow"),
        (changed("instructions", 12, "fields", "variable_names", to=["x"]), "breaks a rule"),
    ],
)
def test_what_is_no_plan_is_refused(text: str, cause: str):
    with pytest.raises(PlanError, match=cause) as caught:
        load_plan(text)
    assert caught.value.remedy
    assert len(str(caught.value)) < 1000


BODY = ("instructions", 5, "fields", "body")  # of the map
INNER = (*BODY, "instructions")
EMPTY = {"parameters": [], "instructions": []}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (changed(*BODY, to=3, text=FLOW), "cf.map's body is an object, not 3"),
        (changed(*BODY, "more", to=3, text=FLOW), "cf.map's body can't have 'more'"),
        (changed(*BODY, to=EMPTY, text=FLOW), "slots are not defined once each"),
        (changed(*BODY, "parameters", to=["7"], text=FLOW), "there is no slot '7'"),
        (changed(*BODY, "parameters", 0, to=1, text=FLOW), "slots are not defined once each"),
        (changed(*INNER, to={}, text=FLOW), "instructions: a list is needed"),
        (changed(*INNER, 1, to=None, text=FLOW), "instruction 5.body.1 is an object, not None"),
        (changed(*INNER, 1, "op", to="lm.exec", text=FLOW), "unknown op 'lm.exec'"),
        (changed(*INNER, 1, "fields", "context", to=999, text=FLOW), "there is no slot 999"),
        (changed(*INNER, 2, "depends", to=[], text=FLOW), "instruction 5.body.2: depends and wave don't follow"),
        (changed(*INNER, 2, "wave", to=1, text=FLOW), "instruction 5.body.2: depends and wave don't follow"),
        (changed("instructions", 5, "depends", to=[], text=FLOW), "instruction 5: depends and wave don't follow"),
        (changed(*INNER, 6, "fields", "values", to=[], text=FLOW), "what body yields are ()"),
    ],
)
def test_regions_that_are_none_are_refused(text: str, cause: str):
    with pytest.raises(PlanError, match=re.escape(cause)) as caught:
        load_plan(text)
    assert caught.value.remedy


def nested(depth: int) -> str:
    """A plan with conditions in each other."""
    data = json.loads(dump_plan(plan_of("module @f { func @f(%x: !bool) { %c = lm.context : !ctx lm.return %c } }")))
    row = {"results": [], "depends": [], "wave": 0, "location": None}
    end = {**row, "op": "cf.yield", "fields": {"values": []}}
    inner: list[Any] = []
    for _ in range(depth):
        arms = [{"parameters": [], "instructions": [*found, end]} for found in (inner, [])]
        fields = {"id": None, "flag": 0, "probability": None, "then": arms[0], "otherwise": arms[1]}
        inner = [{**row, "op": "cf.cond", "fields": fields}]
    data["instructions"][1:1] = inner
    data["instructions"][-1]["depends"] = [0]
    return json.dumps(data)


def test_regions_may_be_nested_as_deep_as_in_the_ir_and_no_deeper():
    plan = load_plan(nested(MAX_REGION_DEPTH))
    assert same(load_plan(dump_plan(plan)), plan)
    for depth in (MAX_REGION_DEPTH + 1, 150):
        with pytest.raises(PlanError, match=f"nested deeper than {MAX_REGION_DEPTH}"):
            load_plan(nested(depth))
    with pytest.raises(PlanError):
        load_plan("[" * 10**6)


SHAPE = {"parameter": "essay", "fixed": None, "default": None, "length": None}


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (3, "arguments: a list is needed"),
        ([["essay", SHAPE]], "arguments: a list of 3 is needed"),
        ([["essay", {**SHAPE, "parameter": "other"}, None]], "arguments don't give every parameter once"),
        ([["essay", SHAPE, None]] * 2, "arguments don't give every parameter once"),
        ([], "arguments don't give every parameter once"),
        ([["essay", SHAPE, "{"]], "not a value: "),
        ([["essay", SHAPE, json.dumps(DEEP)]], "a value is nested deeper than 64"),
        ([["essay", {**SHAPE, "length": -1}, None]], "not a length: -1"),
        ([["essay", {**SHAPE, "x": 1}, None]], "an argument can't have 'x'"),
        ([["essay", {"json": "NaN"}, None]], "not a value: "),
        ([["essay", {"json": "1", "repr": "1"}, None]], "not an argument"),
        ([["essay", {"fields": [["a", SHAPE], ["a", {"json": "1"}]]}, None]], "two fields of an argument"),
        ([["essay", functools.reduce(lambda inner, _: {"items": [inner]}, range(80), SHAPE), None]], "nested deeper"),
    ],
)
def test_arguments_that_are_none_are_refused(data: object, cause: str):
    with pytest.raises(PlanError, match=cause) as caught:
        load_plan(changed("arguments", to=data))
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        ([[[], 1]], "a condition is empty"),
        ([[[["", ["other"], []]], 1]], "a condition is about what is no parameter"),
        ([[[["", [1], []]], 1]], "a condition is about what is no parameter"),
        ([[[["os.system", ["x"], []]], 1]], "a condition can't call 'os.system'"),
        ([[[["len", ["x"], ["a", "b"]]], 1]], "a condition can't call 'len'"),
        ([[[["len", [{"node": 0}], []]], 1]], "there is no earlier node 0"),
        ([[[["", ["essay"], []]], {"x": 1}]], "not a literal"),
    ],
)
def test_conditions_that_are_none_are_refused(data: object, cause: str):
    with pytest.raises(PlanError, match=cause) as caught:
        load_plan(changed("conditions", to=data))
    assert caught.value.remedy


def test_conditions_are_kept():
    condition = Condition((("", ("essay",), ()), ("len", (NodeRef(0),), ())), 3)
    plan = dataclasses.replace(plan_of(JUDGE), conditions=(condition,))
    assert load_plan(dump_plan(plan)).conditions == plan.conditions


def test_classes_are_kept():
    plan = dataclasses.replace(plan_of(JUDGE), classes=(JsonClass("V", "m:V", "00", needed=True),))
    assert load_plan(dump_plan(plan)).classes == plan.classes


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        ([["V", "m:V", "00"]], "classes: a list of 4 is needed"),
        ([["V", 3, "00", True]], "text is needed, not 3"),
        ([["V", "m:V", "00", 1]], "not a truth value: 1"),
    ],
)
def test_classes_that_are_none_are_refused(data: object, cause: str):
    with pytest.raises(PlanError, match=cause) as caught:
        load_plan(changed("classes", to=data))
    assert caught.value.remedy


def test_arguments_are_kept():
    shape = Fields(
        (("a", Leaf("essay", "1", "2", 3)), ("b", Items((Frozen("1", is_json=True), Frozen("f", is_json=False)))))
    )
    plan = dataclasses.replace(plan_of(JUDGE), arguments=(Argument("essay", shape, "[]"),))
    assert load_plan(dump_plan(plan)).arguments == plan.arguments


def test_fields_that_differ_are_named_and_nothing_else():
    data = json.loads(dump_plan(plan_of(JUDGE)))
    fields = data["instructions"][GEN]["fields"]
    del fields["max_tokens"]
    fields.update({f"new_{number}": 0 for number in range(9)})
    with pytest.raises(PlanError) as caught:
        load_plan(json.dumps(data))
    shown = ", ".join(f"'new_{number}'" for number in range(6))
    assert caught.value.cause == f"lm.gen's fields lacks 'max_tokens' and can't have {shown} and 3 more"


def test_ops_and_version_change_together():
    fields = (
        f"{name}: {', '.join(f'{field} {kind}' for field, kind in found.FIELDS)}" for name, found in _op_classes()
    )
    digest = hashlib.sha256("\n".join(fields).encode()).hexdigest()
    pinned = (16, "f2fc7da4b8cd993484a055347f2bd2338235c2757bd5e1a79ac166d2fafa670e")
    assert (VERSION, digest) == pinned, "ops have changed: bump VERSION in plan_json.py and update the digest here"


def _op_classes() -> list[tuple[str, type[Op]]]:
    found = [(name, op_class(name)) for name in op_names()]
    return [(name, kind) for name, kind in found if kind is not None and not kind.__module__.startswith("tests")]


def test_two_parameters_of_one_name_are_refused():
    data = json.loads(dump_plan(plan_of(TOOLS)))
    data["parameters"][1][0] = data["parameters"][0][0]
    with pytest.raises(PlanError, match="two parameters have one name"):
        load_plan(json.dumps(data))


def test_a_type_may_not_be_nested_without_end():
    data: object = "text"
    for _ in range(70):
        data = {"list": data}
    with pytest.raises(PlanError, match="a type is nested deeper than 64"):
        load_type(data)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch):
    text = dump_plan(plan_of(JUDGE))
    monkeypatch.setattr(plan_json, "MAX_CHARACTERS", len(text) - 1)
    with pytest.raises(PlanError, match="is too large"):
        load_plan(text)
    monkeypatch.undo()
    monkeypatch.setattr(instructions_json, "MAX_INSTRUCTIONS", 3)
    with pytest.raises(PlanError, match="between 1 and 3 instructions, not 13"):
        load_plan(text)
    flow = dump_plan(plan_of(FLOW))
    outer = len(plan_of(FLOW).instructions)
    monkeypatch.setattr(instructions_json, "MAX_INSTRUCTIONS", outer + 5)
    with pytest.raises(PlanError, match=f"between 1 and {outer + 5} instructions, not {outer + 7}"):
        load_plan(flow)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.data())
def test_a_damaged_plan_loads_as_a_plan_or_not_at_all(data: st.DataObject):
    """Replaces, drops or swaps entries anywhere in a plan: nothing but a PlanError may come of it."""
    plan = json.loads(dump_plan(plan_of(data.draw(st.sampled_from([JUDGE, TOOLS, FLOW])))))
    frozen = {"items": [{"json": "[1]"}, {"fields": [["f", {"repr": "f"}]]}]}
    plan["conditions"] = [[[["", [plan["parameters"][0][0]], []], ["len", [{"node": 0}], []]], 3]]
    plan["arguments"] = [["frozen", frozen, None]]
    plan["arguments"] += [[name, {**SHAPE, "parameter": name}, '"x"'] for name, _ in plan["parameters"]]
    drawn = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(1, 3))):
        inner = plan
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = drawn.choice(keys)
            if isinstance(inner[key], list | dict) and inner[key] and drawn.random() < 0.85:
                inner = inner[key]
                continue
            if drawn.random() < 0.3:
                del inner[key]
            else:
                inner[key] = data.draw(JSON)
            break
    try:
        loaded = load_plan(json.dumps(plan))
    except PlanError:
        return
    assert same(load_plan(dump_plan(loaded)), loaded)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")) | JSON.map(json.dumps))
def test_any_text_is_refused_as_a_plan(text: str):
    with pytest.raises(PlanError):
        load_plan(text)
