"""Options of ``@lmc.jit(…)`` hold for a command, which may say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmc
from lmc.driver import Given, Options, Wish
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


def expected(given: Given) -> str:
    """The remark that says how long the output of ``GREET`` is taken to be."""
    remarks = map(str, given.runner(GREET).compile(None).remarks)
    return next(line for line in remarks if "apply-profile" in line).partition(" is ")[2].partition(" ")[0]


def test_what_the_command_line_does_not_say_the_decorator_does():
    options = Given().runner(GREET).options
    assert options == GREET.options
    assert (options.wish, options.seed, options.priority) == (Wish("toy", kv_tokens=4000), 3, 2)
    assert options.profile is PROFILE
    assert Given().runner(GREET).compile(None).target.spec == "toy"
    assert expected(Given()) == "6"


def test_what_the_command_line_says_wins(other: str):
    given = Given(Wish(kv_tokens=500), 0, timeout=5.0, profile=other, order_sections=False)
    options = given.runner(GREET).options
    assert options == Options(Wish("toy", kv_tokens=500), 0, "O2", 5.0, None, OTHER, order_sections=False, priority=2)
    assert GREET.options.seed == 3
    assert expected(given) == "9"
    assert Given(level="O1").runner(GREET).compile(None).level == "O1"


def test_settings_of_a_target_stay_with_it():
    assert Given(Wish("builtin", dtype="bfloat16")).runner(GREET).options.wish == Wish("builtin", dtype="bfloat16")
    assert Given(Wish("toy")).runner(GREET).options.wish == Wish("toy", kv_tokens=4000)
    assert Given(Wish("toy")).runner(lmc.jit(kv_tokens=9)(function)).options.wish == Wish("toy", kv_tokens=9)


def test_a_program_without_options_has_the_usual_ones():
    assert Given().runner(JittedFunction(function)).options == Options()
    assert Given(Wish("toy"), 4).for_saved("plan.json") == Options(Wish("toy"), 4)
