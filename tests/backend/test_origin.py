import re

import pytest

from lmc.backend.json.plan_json import dump_plan, load_plan
from lmc.backend.schedule.fingerprints import inputs_digest, plan_digest
from tests.backend.programs import JUDGE, plan_of


def test_a_plan_is_known_by_what_it_does():
    digest = plan_digest(plan_of(JUDGE))
    assert digest == plan_digest(load_plan(dump_plan(plan_of(JUDGE))))
    moved = re.sub(r'loc\("([^"]*)":\d+\)', r'loc("folder/\1":99)', JUDGE)
    assert moved != JUDGE
    assert plan_digest(plan_of(moved)) == plan_digest(plan_of(re.sub(r'loc\("[^"]*":\d+\)', "", JUDGE))) == digest


@pytest.mark.parametrize(
    ("before", "after"), [("grade essays", "grade texts"), ("%essay", "%text"), ("@judge", "@other"), ("= 12", "= 13")]
)
def test_another_plan_has_another_digest(before: str, after: str):
    assert plan_digest(plan_of(JUDGE.replace(before, after))) != plan_digest(plan_of(JUDGE))


def test_text_that_looks_like_a_place_is_a_part_of_the_plan():
    one, other = (JUDGE.replace("You grade essays.", rf"x loc(\"f.py\":{line})") for line in (1, 2))
    assert one != other
    assert plan_digest(plan_of(one)) != plan_digest(plan_of(other))


def test_inputs_are_known_by_their_values_in_order():
    rows = [{"a": "x", "n": 1}, {"a": "y", "n": 2}]
    digest = inputs_digest(rows)
    assert digest == inputs_digest([{"n": 1, "a": "x"}, {"n": 2, "a": "y"}])
    others = [
        rows[::-1],
        rows[:1],
        [],
        [*rows, {}],
        [{"a": "x", "n": 1}, {"a": "y", "n": 2.0}],
        [{"a": "x", "n": 1}, {"a": "y", "n": "2"}],
        [{"a": "x", "n": True}, {"a": "y", "n": 2}],
        [{"a": ["x"], "n": 1}, {"a": "y", "n": 2}],
    ]
    digests = [inputs_digest(each) for each in others]
    assert len({digest, *digests}) == len(others) + 1


def test_values_that_json_has_no_form_for_have_a_digest_too():
    assert inputs_digest([{"a": 1j, "b": "\ud800", "c": float("nan")}]) == inputs_digest(
        [{"a": 1j, "b": "\ud800", "c": float("nan")}]
    )
    assert inputs_digest([{"a": 1j}]) != inputs_digest([{"a": 2j}])
