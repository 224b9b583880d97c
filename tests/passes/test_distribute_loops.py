"""Rounds that run at the same time: the same answers, ids and calls; only rounds that need each other stay in order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.ir.core import walk
from lmc.ir.dialects.region_ops import LoopOp, MapOp
from lmc.ir.engine.protocol import DoneHandle, Request
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError
from lmc.ir.module import Module
from lmc.ir.semantics.interpreter import interpret
from lmc.passes import PassManager, parse_pipeline
from tests.passes.modules import module_of

# What a round makes, of what it carries: each line with the slots (parameter, type, first value) that it adds.
PIECES: dict[str, tuple[str, list[tuple[str, str, str, str]]]] = {
    "collects": (
        "%one = py.call list (%a) : !list<!text>\n %w2 = py.call add (%w, %one) : !list<!text>",
        [("%w", "!list<!text>", "%none", "%w2")],
    ),
    "collects_twice": (
        "%m1 = py.call list (%a) : !list<!text>\n %m2 = py.call add (%m, %m1) : !list<!text>\n"
        " %m3 = py.call list (%item) : !list<!text>\n %m4 = py.call add (%m2, %m3) : !list<!text>",
        [("%m", "!list<!text>", "%l", "%m4")],
    ),
    "joins": ("%t2 = text.concat [%t, %a] : !text", [("%t", "!text", '""', "%t2")]),
    "keeps_the_last": ("%u = text.concat [%item, %a] : !text", [("%last", "!text", "%x", "%u")]),
    "counts_ids": (
        '%c1, %b = lm.gen %0 (%o) {id = "f/b*", temperature = 1.0} : !ctx, !text\n'
        " %o1 = py.call add (%o, 1) : !int\n"
        ' %c2, %b2 = lm.gen %0 (%o1) {id = "f/b*", temperature = 1.0} : !ctx, !text\n'
        " %o2 = py.call add (%o1, 1) : !int",
        [("%o", "!int", "%n", "%o2")],
    ),
    "filters": (
        '%g = py.call gt (%a, "h") : !bool\n'
        " %k3 = cf.cond %g : !list<!text> ^then() {\n %k1 = py.call list (%a) : !list<!text>\n"
        " %k2 = py.call add (%k, %k1) : !list<!text>\n cf.yield (%k2)\n} ^otherwise() {\n cf.yield (%k)\n}",
        [("%k", "!list<!text>", "%none", "%k3")],
    ),
    "reads": (
        '%r = host.call @read (%item) {declared = "reads", id = "f/@read"} : !text\n'
        " %v2 = text.concat [%v, %r] : !text",
        [("%v", "!text", '"-"', "%v2")],
    ),
    "converts": (
        "%ok, %error, %num = cf.try (-1) : !bool, !any, !int ^body() {\n %num1 = py.call int (%item) : !int\n"
        " cf.yield (%num1)\n}\n %q2 = py.call add (%q, %num) : !int",
        [("%q", "!int", "0", "%q2")],
    ),
    "catches": (
        "%ok1, %error1, %z2 = cf.try (%a) : !bool, !any, !text ^body() {\n %z1 = py.call getitem (%z, 1) : !text\n"
        " cf.yield (%z1)\n}",
        [("%z", "!text", '"abc"', "%z2")],
    ),
    "goes_on": (
        '%d1 = lm.extend %d [%a] : !ctx\n %d2, %e = lm.gen %d1 (%j) {id = "f/$/e"} : !ctx, !text',
        [("%d", "!ctx", "%0", "%d2")],
    ),
}


GUARDED = """
%done, %raised, {results} = cf.try ({begun}) : !bool, !any, {kinds} ^body() {{
  {loop}
  cf.yield ({inner})
}}
%said = py.call repr (%raised) : !text
"""


def looping(pieces: list[str], *, guarded: bool = False) -> Module:
    """A loop over ``%l`` whose rounds ask a model and do what ``pieces`` say; in a ``cf.try`` where ``guarded``."""
    slots = [("%j", "!int", "0", "%next"), *(slot for piece in pieces for slot in PIECES[piece][1])]
    results = ", ".join(f"%r{index}" for index in range(len(slots)))
    kinds = ", ".join(kind for _, kind, _, _ in slots)
    carried = ", ".join(f"%p{index}: {kind}" for index, (_, kind, _, _) in enumerate(slots))
    passed = ", ".join(f"%p{index}" for index in range(len(slots)))
    parameters = ", ".join(f"{name}: {kind}" for name, kind, _, _ in slots)
    begun = ", ".join(first for _, _, first, _ in slots)
    ends = ", ".join(last for _, _, _, last in slots)
    returned = ", ".join(f"%r{index}" for index, slot in enumerate(slots) if index and slot[1] != "!ctx")
    end = next((f"%r{index}" for index, slot in enumerate(slots) if slot[1] == "!ctx"), "%0")
    body = "\n".join(PIECES[piece][0] for piece in pieces)
    inner = results.replace("%r", "%i")
    loop = f"""
    {inner if guarded else results} = cf.loop (%any, {begun}) : {kinds} ^condition(%f: !bool, {carried}) {{
      cf.condition %f ({passed})
    }} ^body({parameters}) {{
      %item = py.call getitem (%l, %j) : !text
      %1 = lm.extend %0 [%item] : !ctx
      %2, %a = lm.gen %1 (%j) {{id = "f/$/a"}} : !ctx, !text
      {body}
      %next = py.call add (%j, 1) : !int
      %go = py.call lt (%next, %count) : !bool
      cf.yield (%go, {ends})
    }}
    """
    if guarded:
        loop = GUARDED.format(results=results, begun=begun, kinds=kinds, loop=loop, inner=inner)
        returned = ", ".join(filter(None, (returned, "%said")))
    leaves = ",".join(f'{{"leaf":{index}}}' for index in range(returned.count("%")))
    return module_of(
        f"""
        %0 = lm.context : !ctx
        %none = py.call list : !list<!text>
        %count = py.call len (%l) : !int
        %any = py.call lt (0, %count) : !bool
        {loop}
        lm.return {end} ({returned}) {{structure = "{{\\"list\\":[{leaves.replace('"', chr(92) + '"')}]}}"}}
        """
    )


class Failing(ToyEngine):
    """Fails where the id of a request is in ``failing``."""

    def __init__(self, failing: Collection[str]) -> None:
        super().__init__()
        self.failing = failing

    def submit(self, request: Request, on_delta: Any = None) -> Any:
        if request.op_id in self.failing:
            return DoneHandle[Any].failed(EngineError(f"{request.op_id} failed"))
        return super().submit(request, on_delta)


@settings(max_examples=max(30, settings.default.max_examples // 2))  # type: ignore[union-attr]
@given(
    pieces=st.lists(st.sampled_from(list(PIECES)), unique=True).map(
        lambda drawn: list(dict.fromkeys(["goes_on", *drawn]))
    ),
    items=st.lists(st.sampled_from(["a", "b", "hello", ""]), min_size=2, max_size=4),
    failing=st.sets(st.sampled_from(["f/0/e", "f/1/a", "f/1/e"]), min_size=1),
)
def test_in_a_protected_region_the_same_call_fails(pieces: list[str], items: list[str], failing: set[str]):
    module = looping(pieces, guarded=True)
    inputs = {"x": "first", "n": 3, "l": items}
    found = [
        interpret(one, {**inputs, "l": list(items)}, Failing(failing), hosts={"read": str.upper})
        for one in (module, distributed(module))
    ]
    assert (found[0].value, found[0].text) == (found[1].value, found[1].text)


def outcome_of(module: Module, items: list[str]) -> tuple[object, ...]:
    reads: list[str] = []

    def read(item: str) -> str:
        reads.append(item)
        return item.upper()

    hosts = {"read": read}
    found = interpret(module, {"x": "first", "n": 3, "l": list(items)}, ToyEngine(), hosts=hosts)
    return found.value, found.text, sorted(found.profile.ops), found.usage.calls, reads


def distributed(module: Module, then: str = "") -> Module:
    return PassManager(parse_pipeline(f"distribute-loops{then}")).run(module).module


@settings(max_examples=max(20, settings.default.max_examples // 2))  # type: ignore[union-attr]
@given(
    pieces=st.lists(st.sampled_from(list(PIECES)), unique=True),
    items=st.lists(st.sampled_from(["a", "b", "hello", ""]), max_size=4),
)
def test_a_loop_in_two_parts_does_what_it_did(pieces: list[str], items: list[str]):
    module = looping(pieces)
    after = distributed(module)
    assert any(isinstance(op, MapOp) for op in walk([after.main.body]))
    assert outcome_of(after, items) == outcome_of(module, items)


@pytest.mark.parametrize("piece", [name for name in PIECES if name != "goes_on"])
def test_no_round_asks_a_model_in_order_that_need_not(piece: str):
    after = distributed(looping([piece]), ",dce")
    loops = [op for op in walk([after.main.body]) if isinstance(op, LoopOp)]
    assert not any(op.billable for op in loops)
    assert bool(loops) is (piece not in ("collects",))


def test_what_goes_on_from_the_round_before_stays_in_order():
    after = distributed(looping(["goes_on"]))
    (loop,) = (op for op in walk([after.main.body]) if isinstance(op, LoopOp))
    assert [getattr(op, "id", None) for op in walk([loop.body]) if op.billable] == ["f/$/e"]


COLLECTING = """
    %0 = lm.context : !ctx
    %none = py.call list : !list<!text>
    %count = py.call len (%l) : !int
    BEFORE
    %any = py.call lt (0, %count) : !bool
    %k, %all, %last = cf.loop (%any, 0, BEGUN, "") : !int, !list<!text>, !text
      ^condition(%f: !bool, %i: !int, %c: !list<!text>, %s: !text) {
      cf.condition %f (%i, %c, %s)
    } ^body(%j: !int, %d: !list<!text>, %t: !text) {
      %item = py.call getitem (%l, %j) : !text
      %1 = lm.extend %0 [%item] : !ctx
      %2, %a = lm.gen %1 (%j) {id = "f/$/a"} : !ctx, !text
      INSIDE
      %one = py.call list (%a) : !list<!text>
      %e = py.call add (%d, %one) : !list<!text>
      %next = py.call add (%j, 1) : !int
      %go = py.call lt (%next, %count) : !bool
      cf.yield (%go, %next, %e, %a)
    }
    AFTER
    lm.return %0 (%all, %l) {structure = "{\\"tuple\\":[{\\"leaf\\":0},{\\"leaf\\":1}]}"}
"""


def end_of(module: Module, items: list[str]) -> tuple[object, ...]:
    """What the program gives, or what it raises; and the calls that it makes."""
    engine = ToyEngine()
    hosts = {"write": lambda listed: listed.append("more"), "pure": lambda listed: listed}
    try:
        found = interpret(module, {"x": "first", "n": 3, "l": list(items)}, engine, hosts=hosts)
    except Exception as error:
        return type(error), str(error)
    return found.value, engine.statistics.requests


WRITE = '%h = host.call @write (LIST) {id = "f/@write"} : !any'
COLLECTED = {
    "a_list_grows_after_it_was_counted": {"BEFORE": WRITE.replace("LIST", "%l")},
    "where_no_round_begins_two_names_have_one_list": {"BEGUN": "%l", "AFTER": WRITE.replace("LIST", "%all")},
    "a_race_of_the_rest_raises": {
        "INSIDE": "%w = cf.race (%none) : !bool ^body(%r: !int, %y: !text) {\n"
        "%z = py.call eq (%t, %y) : !bool cf.yield (%z)\n}\n%m = py.call int (%item) : !int"
    },
    "a_loop_of_the_rest_raises": {
        "INSIDE": "%w = cf.loop (true, %t) {limit = 1} : !text ^condition(%v: !bool, %r: !text) {\n"
        "cf.condition %v (%r)\n} ^body(%y: !text) {\ncf.yield (true, %y)\n}\n%m = py.call int (%item) : !int"
    },
}


@pytest.mark.parametrize("case", COLLECTED)
@pytest.mark.parametrize("items", [[], ["1"], ["1", "b"]], ids=len)
def test_nothing_tells_that_rounds_ran_at_the_same_time(case: str, items: list[str]):
    text = COLLECTING
    for place in ("BEFORE", "BEGUN", "INSIDE", "AFTER"):
        text = text.replace(place, COLLECTED[case].get(place, "%none" if place == "BEGUN" else ""))
    module = module_of(text)
    assert end_of(distributed(module), items) == end_of(module, items)
