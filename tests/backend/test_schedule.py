import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.plan import PlanError
from lmc.backend.schedule import Entry, Schedule, dump_schedule, load_schedule, schedule_batch
from tests.backend.programs import JUDGE, TOOLS, plan_of

TWO_TEXTS = r"""
module @f {
  func @f(%late: !text, %early: !text, %n: !int) {
    %0 = lm.context : !ctx
    %u = py.call str.upper (%early) : !text
    %j = text.concat ["<", %u, ">"] : !text
    %1 = lm.begin %0, user : !ctx
    %2 = lm.extend %1 ["First ", %j] : !ctx
    %3 = lm.prefill %2 : !ctx
    %4 = lm.extend %3 [" then ", %late] : !ctx
    %5, %t = lm.gen %4 {id = "f/t"} : !ctx, !text
    %6 = lm.extend %5 [%t] : !ctx
    lm.return %6 (%t) {structure = "{\"leaf\":0}"}
  }
}
"""


def test_instances_that_share_a_prefix_run_side_by_side():
    essays = ["birds fly", "ants dig", "birds sing", "ants work", "birds fly"]
    found = schedule_batch(plan_of(JUDGE), [{"essay": essay} for essay in essays])
    assert found.order == (1, 3, 0, 4, 2)
    head = len("You grade essays.Essay:\n")
    tail = len("Judge its tone.") + len("Judge its logic.")
    assert [entry.shared_characters for entry in found.entries] == [
        0,
        head + len("ants "),
        head,
        head + len("birds fly") + tail,
        head + len("birds "),
    ]


def test_texts_count_in_the_order_in_which_contexts_use_them():
    rows = [("z", "b"), ("a", "b"), ("m", "a")]
    inputs = [{"late": late, "early": early, "n": 1} for late, early in rows]
    assert schedule_batch(plan_of(TWO_TEXTS), inputs).order == (2, 1, 0)


def test_what_does_not_fit_is_left_to_the_run():
    inputs = [{"early": "b", "late": "", "n": 1}, {}, {"early": 7, "late": "x"}, {"early": "a", "late": None}]
    found = schedule_batch(plan_of(TWO_TEXTS), inputs)
    assert sorted(found.order) == [0, 1, 2, 3]
    assert found.order[:2] == (1, 2)
    assert schedule_batch(plan_of(TWO_TEXTS), []).entries == ()


@given(st.lists(st.text("ab", max_size=6), max_size=12))
def test_order_is_depth_first(essays: list[str]):
    """Whatever two instances share, every instance between them shares too."""
    found = schedule_batch(plan_of(JUDGE), [{"essay": essay} for essay in essays])
    ordered = [essays[index] for index in found.order]
    assert ordered == sorted(essays)
    for length in range(7):
        prefixes = [essay[:length] for essay in ordered if len(essay) >= length]
        blocks = [prefix for place, prefix in enumerate(prefixes) if not place or prefix != prefixes[place - 1]]
        assert len(blocks) == len(set(blocks))


IN_REGIONS = r"""
module @f {
  func @f(%first: !text, %dims: !list<!text>, %last: !text, %flag: !bool) {
    %0 = lm.context : !ctx
    %1 = cf.loop (%0, 0, %first) : !ctx ^condition(%c: !ctx, %n: !int, %a: !text) {
      %go = py.call lt (%n, 2) : !bool
      %d = lm.extend %c ["Round of ", %a] : !ctx
      cf.condition %go (%d)
    } ^body(%e: !ctx) {
      %g = lm.extend %e ["!"] : !ctx
      %h, %t = lm.gen %g {id = "f/t"} : !ctx, !text
      cf.yield (%h, 1, %t)
    }
    %ts = cf.map (%dims) : !list<!text> ^body(%i: !int, %dim: !text) {
      %u = py.call str.upper (%dim) : !text
      %j = lm.extend %0 ["Judge ", %u] : !ctx
      %k = cf.cond %flag : !ctx ^then() {
        %l = lm.extend %j [%last] : !ctx
        cf.yield (%l)
      } ^otherwise() { cf.yield (%j) }
      %m, %v = lm.gen %k (%i) {id = "f/v$"} : !ctx, !text
      cf.yield (%v)
    }
    lm.return %1 (%ts) {structure = "{\"leaf\":0}"}
  }
}
"""


def test_texts_in_regions_count_as_in_their_first_run():
    rows = [("b", ["x"], "z"), ("a", ["y"], "z"), ("b", ["X"], "y"), ("a", [], "a"), ("b", ["w"], "a")]
    inputs = [{"first": first, "dims": dims, "last": last, "flag": True} for first, dims, last in rows]
    found = schedule_batch(plan_of(IN_REGIONS), inputs)
    assert found.order == (3, 1, 4, 2, 0)
    known = [len("Round of "), len("!Judge ")]
    assert [entry.shared_characters for entry in found.entries] == [
        0,
        known[0] + 1 + known[1],  # no element is known of the one before
        known[0],
        known[0] + 1 + known[1],
        known[0] + 1 + known[1] + 1,
    ]


def test_time_grows_with_the_bytes_of_the_batch():
    plan = plan_of(JUDGE)

    def seconds(count: int) -> float:
        inputs = [{"essay": "x" * 2000 + str(index * 7919 % count)} for index in range(count)]
        start = time.process_time()
        schedule_batch(plan, inputs)
        return time.process_time() - start

    seconds(100)
    assert min(seconds(4000) for _ in range(3)) < 30 * max(min(seconds(400) for _ in range(3)), 1e-4)


def test_what_is_dumped_loads_as_the_same_schedule():
    found = schedule_batch(plan_of(TOOLS), [{"item.title": text, "count": 3, "numbers": []} for text in "cab"])
    assert load_schedule(dump_schedule(found)) == found
    assert found.order == (1, 2, 0)
    lines = dump_schedule(found).splitlines()
    assert json.loads(lines[0]) == {"format": "lmc.schedule", "version": 1, "plan": "tools", "instances": 3}
    assert json.loads(lines[1]) == [1, 0]


HEAD = '{"format": "lmc.schedule", "version": 1, "plan": "p", "instances": 2}\n'


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "not a schedule"),
        ("x" * 5000, "not a schedule"),
        ("{\n", "not a schedule: "),
        ("[]\n", "a schedule is an object, not a list of 0"),
        (HEAD.replace("lmc.schedule", "lmc.plan") + "[0, 0]\n[1, 0]\n", "not a schedule"),
        (HEAD.replace('"p"', "3") + "[0, 0]\n[1, 0]\n", "not a schedule"),
        (HEAD.replace("1,", '"1",') + "[0, 0]\n[1, 0]\n", "schedule version '1', this lmc reads 1"),
        (HEAD + "[0, 0]\n", "the schedule is cut off: 1 of 2"),
        (HEAD + "[0, 0]\n[0, 0]\n", "names every instance once"),
        (HEAD + "[0, 0]\n[true, 0]\n", "not an entry of a schedule: a list of 2"),
        (HEAD + "[0, 0]\n[1, -1]\n", "not an entry of a schedule"),
        (HEAD + "[0, 0]\n1\n", "not an entry of a schedule: 1"),
        (HEAD + "[0, 0]\n[1\n", "not a schedule: "),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, cause: str):
    with pytest.raises(PlanError, match=cause) as caught:
        load_schedule(text)
    assert caught.value.remedy


@given(st.text(max_size=80), st.integers(0, 120), st.integers(0, 20))
def test_a_damaged_schedule_loads_as_a_schedule_or_not_at_all(noise: str, place: int, cut: int):
    text = dump_schedule(Schedule("p", (Entry(1, 0), Entry(0, 4))))
    try:
        loaded = load_schedule(text[:place] + noise + text[place + cut :])
    except PlanError:
        return
    assert sorted(loaded.order) == list(range(len(loaded.entries)))
