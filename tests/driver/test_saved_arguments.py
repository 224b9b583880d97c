import dataclasses
import enum
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmc
from lmc.backend.json.plan_json import dump_plan, load_plan
from lmc.driver.saved.artifacts import frozen_lines, saved_plan
from lmc.driver.saved.saved_arguments import signature_of
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.variants import inputs_of
from lmc.ir.errors import InputError


class Mode(enum.Enum):
    FAST = "fast"


@dataclasses.dataclass
class Options:
    k: int
    ratio: float = 0.5
    mode: Mode | None = Mode.FAST


@lmc.jit
def main(s: lmc.State, opts: Options, pair: tuple[int, bool], free: Any = len, *, name: str = "x", **more: str) -> None:
    s += f"{opts.k} {opts.ratio} {pair[0]} {name} {more}"


GIVEN = ((Options(3), (1, True)), {"tone": "dry"})
COMPILED = main.on("toy").compile(*GIVEN[0], **GIVEN[1])
PLAN = load_plan(dump_plan(saved_plan(COMPILED, GIVEN)))
SIGNATURE = signature_of(PLAN)
ROW = {"opts": {"k": 3}, "pair": [1, True], "tone": "dry"}


def arrange(row: dict[str, Any]) -> dict[str, Any]:
    assert SIGNATURE.arrange is not None
    return dict(SIGNATURE.arrange(row))


def test_a_row_becomes_the_inputs_that_the_program_has_for_it():
    assert arrange(ROW) == inputs_of(COMPILED.captured, bind(main, *GIVEN))
    assert frozen_lines(PLAN) == ['opts.mode = "fast"', "pair.1 = true", f"free = {len!r}"]


def test_names_are_those_of_the_program_and_paths_of_parts():
    assert set(SIGNATURE.names) == {
        "opts",
        "pair",
        "free",
        "name",
        "tone",
        "opts.k",
        "opts.ratio",
        "pair.0",
        "more.tone",
    }
    assert "name" in SIGNATURE.optional


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"free": 3}, "argument free is 3, a number, but the plan is for <built-in function len> only"),
        ({"opts": {"k": 3, "mode": "slow"}}, 'argument opts.mode is "slow", a string, but the plan is for "fast" only'),
        ({"pair": [1, 1]}, "argument pair.1 is 1, a number, but the plan is for true only"),
        ({"pair": [1]}, "but the plan is for a list of 2"),
        ({"pair": None}, "argument pair is null, but the plan is for a list of 2"),
        ({"pair.0": 1}, "argument 'pair' and its part 'pair.0' are both given"),
    ],
)
def test_what_the_plan_does_not_hold_for_is_refused(changes: dict[str, Any], cause: str):
    with pytest.raises(InputError) as caught:
        arrange({**ROW, **changes})
    assert cause in caught.value.cause
    assert caught.value.remedy


def test_keys_that_json_can_not_tell_apart():
    @lmc.jit
    def keyed(s: lmc.State, found: dict[Any, int]) -> None:
        s += f"{found[1]}"

    given = (({1: 2, "1": 3},), {})
    with pytest.raises(InputError, match="keys that JSON can't tell apart") as caught:
        saved_plan(keyed.on("toy").compile(*given[0]), given)
    assert caught.value.remedy


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["k", "mode", "ratio", "q"]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(SIGNATURE.names), JSON))
def test_any_row_gives_every_input_or_an_error(row: dict[str, Any]):
    try:
        found = arrange(row)
    except InputError:
        return
    assert set(found) == {entry.name for entry in PLAN.parameters}
    json.dumps(found)
