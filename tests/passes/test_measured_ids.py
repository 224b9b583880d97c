from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.ids import base_of, fill_holes, matching
from lmc.ir.profile import BranchProfile, OpProfile
from lmc.ir.usage import Usage
from lmc.passes.apply_profile.profile_matching import Places, measured


def cost(number: int) -> OpProfile:
    return OpProfile(Usage(calls=number))


def calls_of(templates: list[str], *op_ids: str) -> tuple[dict[str, int], list[str]]:
    """What each template has, where the profile's ids count 1, 10, 100 and so on."""
    found, unknown = measured(templates, {op_id: cost(10**place) for place, op_id in enumerate(op_ids)})
    return {template: entry.usage.calls for template, entry in found.items()}, unknown


def test_ids_of_runs_belong_to_the_templates_they_were_made_of():
    assert calls_of(["f/a", "f/b*"], "f/a", "f/b", "f/b#1", "f/b#12") == ({"f/a": 1, "f/b*": 1110}, [])
    assert calls_of(["f/fork/$/x*"], "f/fork/0/x", "f/fork/13/x#2") == ({"f/fork/$/x*": 11}, [])
    assert calls_of(["f/v$/x"], "f/v0/x", "f/v10/x") == ({"f/v$/x": 11}, [])
    assert calls_of(["f*/g#1/x*"], "f/g#1/x", "f#2/g#1/x#3") == ({"f*/g#1/x*": 11}, [])


def test_an_id_without_holes_is_that_of_a_run_and_of_no_template():
    assert calls_of(["f/a", "f/a*"], "f/a", "f/a#1") == ({"f/a": 1, "f/a*": 10}, [])


def test_templates_that_fit_the_same_run_share_it():
    assert calls_of(["f/$/a", "f/0/a*"], "f/0/a") == ({"f/$/a": 1, "f/0/a*": 1}, [])


def test_an_op_that_never_ran_takes_what_other_uses_of_its_name_measured():
    assert calls_of(["f/a", "f/a#1", "f/a#2"], "f/a", "f/a#1") == ({"f/a": 1, "f/a#1": 10, "f/a#2": 11}, [])
    assert calls_of(["f/fork/3/a"], "f/fork/0/a", "f/fork#1/1/a") == ({"f/fork/3/a": 11}, [])
    assert calls_of(["f/a"], "f/a#1") == ({"f/a": 1}, [])


def test_names_that_differ_in_digits_are_others():
    assert calls_of(["f/x1", "f/x2*"], "f/x3", "f/x2") == ({"f/x2*": 10}, ["f/x3"])


def test_what_belongs_to_nothing_is_unknown():
    assert calls_of(["f/a"], "f/b", "f/a", "f/a/c") == ({"f/a": 10}, ["f/b", "f/a/c"])
    assert calls_of([], "f/b") == ({}, ["f/b"])


def test_rounds_that_are_captured_one_by_one_are_told_apart_where_they_are_the_same():
    counts = {
        "f/@cf.cond.1": BranchProfile(1),
        "f/@cf.cond.1#1": BranchProfile(2),
        "f/g#_/@cf.cond.1": BranchProfile(4),
    }
    more = Places(counts, ["f/@cf.cond.1", "f/@cf.cond.1#1", "f/@cf.cond.1#2", "f/g/@cf.cond.1"])
    assert [more.find(f"f/@cf.cond.1{end}") for end in ("", "#1", "#2")] == list(map(BranchProfile, (1, 2, 3)))
    assert more.find("f/g/@cf.cond.1") == BranchProfile(4)
    assert more.find("f/@cf.cond.2") is None
    fewer = Places(counts, ["f/@cf.cond.1"])
    assert fewer.find("f/@cf.cond.1") == BranchProfile(3)
    assert fewer.together == {"f/@cf.cond.1": BranchProfile(3), "f/g/@cf.cond.1": BranchProfile(4)}


names = st.text("ab12", min_size=1, max_size=3)
templates = st.lists(st.tuples(names, st.sampled_from(["", "*", "$", "#1"])), min_size=1, max_size=3).map(
    lambda parts: "/".join(name + end for name, end in parts)
)


@given(templates, st.lists(st.integers(0, 30), min_size=3, max_size=3))
def test_every_run_of_a_template_is_found(template: str, numbers: list[int]):
    op_id = fill_holes(template, numbers)
    assert matching(template).fullmatch(op_id)
    assert base_of(op_id) == base_of(base_of(op_id))
    assert measured([template], {op_id: cost(1)}) == ({template: cost(1)}, [])


@given(st.lists(templates, max_size=4, unique=True), st.lists(templates, max_size=4, unique=True))
def test_nothing_is_lost(asked: list[str], found: list[str]):
    op_ids = [fill_holes(template, [1, 2, 3]) for template in found]
    entries = {op_id: cost(1) for op_id in op_ids}
    taken, unknown = measured(asked, entries)
    assert set(taken) <= set(asked)
    assert set(unknown) <= set(entries)
    assert all(entry.usage.calls for entry in taken.values())
    assert measured(asked, entries) == (taken, unknown)
