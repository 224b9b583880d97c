"""Options of ``@lmc.jit(…)`` hold for a command, which may say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmc
from lmc.driver import GivenOptions, Options, options_for_saved, runner_for
from lmc.frontend.program.function import JittedFunction
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.usage import Usage

PROFILE = Profile("greet", {"greet/word": OpProfile(Usage(4, 0, 12, 2), 1.0, 7, (("length", 2),), ((6, 2),))})
OTHER = Profile("greet", {"greet/word": OpProfile(Usage(4, 0, 18, 2), 1.0, 9, (("length", 2),), ((9, 2),))})


def function(s: lmc.State, name: str) -> str:
    s += f"Hello {name}"
    return s.gen("word", max_tokens=16)


function.__name__ = function.__qualname__ = "greet"
GREET = lmc.jit(target="toy", kv_tokens=4000, seed=3, timeout=60.0, profile=PROFILE, order_sections=True, priority=2)(
    function
)


@pytest.fixture
def other(tmp_path: Path) -> str:
    """A file with another profile than that of the decorator."""
    (tmp_path / "p.json").write_text(OTHER.to_json())
    return str(tmp_path / "p.json")


def expected(given: GivenOptions) -> str:
    """The remark that says how long the output of ``GREET`` is taken to be."""
    remarks = map(str, runner_for(GREET, given).compile(None).remarks)
    return next(line for line in remarks if "apply-profile" in line).partition(" is ")[2].partition(" ")[0]


def test_what_the_command_line_does_not_say_the_decorator_does():
    options = runner_for(GREET, {}).options
    assert options == GREET.options
    assert (options.target, options.kv_tokens, options.seed, options.priority) == ("toy", 4000, 3, 2)
    assert options.profile is PROFILE
    assert runner_for(GREET, {}).compile(None).target.spec == "toy"
    assert expected({}) == "6"


def test_what_the_command_line_says_wins(other: str):
    given = {"kv_tokens": 500, "seed": 0, "timeout": 5.0, "profile": other, "order_sections": False}
    options = runner_for(GREET, given).options
    assert options == Options("toy", kv_tokens=500, timeout=5.0, profile=OTHER, priority=2)
    assert GREET.options.seed == 3
    assert expected(given) == "9"
    assert runner_for(GREET, {"level": "O1"}).compile(None).level == "O1"


def test_settings_of_a_target_stay_with_it():
    given = {"target": "builtin", "dtype": "bfloat16"}
    assert runner_for(GREET, given).options.engine == given
    toy = {"target": "toy"}
    assert runner_for(GREET, toy).options.engine == {"target": "toy", "kv_tokens": 4000}
    assert runner_for(lmc.jit(kv_tokens=9)(function), toy).options.engine == {"target": "toy", "kv_tokens": 9}


def test_a_program_without_options_has_the_usual_ones():
    assert runner_for(JittedFunction(function), {}).options == Options()
    assert options_for_saved("plan.json", {"target": "toy", "seed": 4}) == Options("toy", seed=4)
