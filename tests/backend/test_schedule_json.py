import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.plan import PlanError
from lmc.backend.schedule.fingerprints import Origin
from lmc.backend.schedule.request_model import RequestModel
from lmc.backend.schedule.schedule import Entry, Schedule, schedule_batch
from lmc.backend.schedule.schedule_json import dump_schedule, is_schedule, load_schedule, load_schedule_lines
from lmc.ir.errors import InputError, Location
from tests.backend.programs import TOOLS, plan_of


def test_what_is_dumped_loads_as_the_same_schedule():
    found = schedule_batch(plan_of(TOOLS), [{"item.title": text, "count": 3, "numbers": []} for text in "cab"])
    assert load_schedule(dump_schedule(found)) == found
    assert found.order == (1, 2, 0)
    lines = dump_schedule(found).splitlines()
    head = json.loads(lines[0])
    assert (head.pop("stages")[0]["id"], head.pop("order"), head.pop("block")) == (found.stages[0].id, "tree", 1)
    assert head.pop("characters") == 4
    assert head == {"format": "lmc.schedule", "version": 5, "plan": "tools", "instances": 3, "origin": None}
    assert json.loads(lines[1]) == [1, 0, [list(length) for length in found.entries[0].values]]


@pytest.mark.parametrize("text", ["a\u2028b", "a\u0085b", "a\ud800b", "a\r\n\x0bb", "ä"])
def test_what_a_program_says_is_no_end_of_a_line(text: str):
    found = Schedule("p", (), (RequestModel("a", None, False, (text,), (), 3),))
    dumped = dump_schedule(found)
    assert dumped.isascii()
    assert load_schedule(dumped) == found


STAGE = '{"id": "a", "base": null, "answered": false, "pieces": ["x", {"value": 0}], "after": [], "output": 3}'
HEAD = (
    '{"format": "lmc.schedule", "version": 5, "plan": "p", "instances": 2, "origin": null, '
    '"order": "tree", "block": 1, "characters": 4, "stages": [' + STAGE + "]}\n"
)
ZERO, ONE = "[0, 0, [[4, 0]]]\n", "[1, 0, []]\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "not a schedule"),
        ("x" * 5000, "not a schedule"),
        ("{\n", "not a schedule: "),
        ("[]\n", "not a schedule"),
        (HEAD.replace("lmc.schedule", "lmc.plan") + ZERO + ONE, "not a schedule"),
        (HEAD.replace('"p"', "3") + ZERO + ONE, "not a schedule"),
        (HEAD.replace('"block": 1', '"block": 0') + ZERO + ONE, "not a schedule"),
        (HEAD.replace('"characters": 4', '"characters": 0') + ZERO + ONE, "a token does not have 0 characters"),
        (HEAD.replace('"characters": 4', '"characters": true') + ZERO + ONE, "a token does not have True characters"),
        (HEAD.replace('"characters": 4', '"characters": 1e999') + ZERO + ONE, "a token does not have inf characters"),
        (HEAD.replace('"tree"', '"random"') + ZERO + ONE, "there is no order 'random'"),
        (HEAD.replace('"tree"', "[]") + ZERO + ONE, "there is no order"),
        (HEAD.replace("5,", '"1",', 1) + ZERO + ONE, "schedule version '1', this lmc reads 5"),
        (HEAD.replace('"origin": null', '"origin": {"plan": "a"}') + ZERO + ONE, "an origin lacks 'inputs'"),
        (HEAD.replace('"origin": null', '"origin": 3') + ZERO + ONE, "an origin is an object, not 3"),
        (HEAD.replace('"origin": null', '"origin": {"plan": "a", "inputs": "b"}') + ZERO + ONE, "not the digests of"),
        (HEAD.replace('"origin": null', '"origin": {"plan": 1, "inputs": "b"}') + ZERO + ONE, "text is needed, not 1"),
        (HEAD.replace('"base": null', '"base": 0') + ZERO + ONE, "a number from 0 to -1 is needed, not 0"),
        (HEAD.replace('{"value": 0}', '{"answer": 0}') + ZERO + ONE, "a number from 0 to -1 is needed"),
        (HEAD.replace('{"value": 0}', '{"other": 0}') + ZERO + ONE, "not a piece of a prompt: an object"),
        (HEAD.replace('"output": 3', '"output": -3') + ZERO + ONE, "is needed, not -3"),
        (HEAD.replace('"after": [], ', "") + ZERO + ONE, "a stage lacks 'after'"),
        (HEAD + ZERO, "the schedule is cut off: 1 of 2"),
        (HEAD + ZERO + ZERO, "names every instance once, and 0 twice"),
        (HEAD + ZERO + "[2, 0, []]\n", "there is no instance 2 of 2"),
        (HEAD + ZERO + "[-1, 0, []]\n", "there is no instance -1 of 2"),
        (HEAD + ZERO + "[true, 0, []]\n", "not an entry of a schedule: a list of 3"),
        (HEAD + ZERO + "[1, -1, []]\n", "not an entry of a schedule"),
        (HEAD + ZERO + "[1, 0, [[3, 4]]]\n", "a number from 0 to 3 is needed, not 4"),
        (HEAD + ZERO + "1\n", "not an entry of a schedule: 1"),
        (HEAD + ZERO + "[1\n", "not a schedule: Expecting ',' delimiter at column 3"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, cause: str):
    with pytest.raises(PlanError, match=cause) as caught:
        load_schedule(text)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (["{"], 1),
        ([HEAD.replace('"tree"', "[]"), ZERO, ONE], 1),
        ([HEAD, "[1", ONE], 2),
        ([HEAD, ZERO, "[1, 0, [[3, 4]]]"], 3),
        ([HEAD, ZERO, ZERO, ONE], 3),
        ([HEAD, ZERO], 2),
    ],
)
def test_the_line_that_is_wrong_is_named(lines: list[str], number: int):
    places = [Location("s.jsonl", place) for place in range(1, len(lines) + 1)]
    with pytest.raises(PlanError) as caught:
        load_schedule_lines(zip(places, lines, strict=True))
    assert caught.value.location == Location("s.jsonl", number)


@given(st.text(max_size=80), st.integers(0, 400), st.integers(0, 80))
def test_a_damaged_schedule_loads_as_a_schedule_or_not_at_all(noise: str, place: int, cut: int):
    text = dump_schedule(Schedule("p", (Entry(1, 0, ((3, 0),)), Entry(0, 4)), origin=Origin("0" * 64, "f" * 64)))
    try:
        loaded = load_schedule(text[:place] + noise + text[place + cut :])
    except PlanError:
        return
    assert sorted(loaded.order) == list(range(len(loaded.entries)))


def test_what_a_schedule_is_for_is_kept_in_its_file():
    found = Schedule("p", (), origin=Origin("0" * 64, "f" * 64))
    assert load_schedule(dump_schedule(found)) == found


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("[[4, 0]]", "[[2000000000, 0]]"),
        ('"output": 3', '"output": 2000000000'),
        ('{"value": 0}', '{"unknown": 2000000000}'),
    ],
)
def test_a_schedule_that_foresees_too_much_is_refused(said: str, instead: str):
    """Before memory is asked for: 8 GB that anybody could write into a line."""
    text = (HEAD + ZERO + ONE).replace(said, instead)
    assert instead in text
    loaded = load_schedule(text)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"more than [\d,]+ tokens; those of its first \d"):
            loaded.requests()
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_schedule_is_known_by_its_first_line_however_it_is_spaced():
    compact = json.dumps(json.loads(HEAD.strip()), separators=(",", ":"))
    assert is_schedule(HEAD)
    assert is_schedule(compact)
    assert is_schedule(HEAD[:200])
    assert not is_schedule('{"id": "\\"lmc.schedule\\"", "tokens": [1], "output": 1}')
    assert not is_schedule('{"id": "lmc.schedule", "tokens": [1], "output": 1}')
    assert not is_schedule("")
