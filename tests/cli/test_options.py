"""Commands take what ``@lmc.jit(…)`` says in the file, and options that say otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmc.driver import Options
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.usage import Usage

PROGRAM = """
import lmc


@lmc.jit(target="toy", seed=5, profile="own.json", order_sections=True)
def greet(s, name: str):
    s += lmc.user(lmc.section(f"Hello {name}. ") + lmc.section("Be brief. ", movable=True))
    return s.gen("word", max_tokens=16, temperature=1.0)
"""


def profile(length: int) -> str:
    usage = Usage(4, 0, 2 * length, 2)
    return Profile("greet", {"greet/word": OpProfile(usage, 1.0, length, (("length", 2),), ((length, 2),))}).to_json()


@pytest.fixture(autouse=True)
def folder(program: str, tmp_path: Path) -> Path:
    (tmp_path / "given.py").write_text(PROGRAM)
    (tmp_path / "own.json").write_text(profile(6))
    (tmp_path / "other.json").write_text(profile(9))
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"name": "{name}"}}\n' for name in ("Ann", "Bob")))
    return tmp_path


def texts(said) -> list[str]:
    assert said.code == 0, said.err
    return sorted(said.out.splitlines())


def test_a_compilation_takes_the_options_of_the_file(lmc):
    own, other = (lmc("compile", "given.py", "--remarks", *more) for more in ((), ("--model", "builtin")))
    assert "target:      toy, -O2\n" in own.out
    assert "target:      builtin, -O2\n" in other.out
    assert "expected_tokens of 'greet/word' is 6" in own.out
    used = lmc("compile", "given.py", "--remarks", "--profile-use", "other.json")
    assert "expected_tokens of 'greet/word' is 9" in used.out
    for name in ("apply-profile", "kv-liveness"):
        assert f"{name}:" not in lmc("compile", "given.py", "--remarks", "--disable-pass", name).out
    unknown = lmc("compile", "given.py", "--disable-pass", "cse", "--disable-pass", "hoist")
    assert unknown.code == 1, unknown.err
    assert "did you mean hoist-prefixes?" in unknown.err
    ir = [lmc("compile", "given.py", "--emit", "ir", *more).out for more in ((), ("--no-order-sections",))]
    assert ir[0].index("Be brief") < ir[0].index("Hello")
    assert ir[1].index("Hello") < ir[1].index("Be brief")


def test_a_run_takes_the_options_of_the_file_and_the_command_line_wins(lmc, asked: list[Options]):
    rows = ("run", "given.py", "--input", "rows.jsonl", "--json")
    own = texts(lmc(*rows))
    assert own == texts(lmc(*rows, "--model", "toy", "--seed", "5", "--order-sections"))
    assert own == texts(lmc(*rows, "--profile-use", "other.json", "--profile-generate", "other.json"))
    assert own != texts(lmc(*rows, "--seed", "0"))
    assert own != texts(lmc(*rows, "--no-order-sections"))
    profiles = [options.profile for options in asked if options.profile is not None]
    outputs = [profile.ops["greet/word"].usage.generated_tokens for profile in profiles]
    assert outputs == [12, 12, 18, 12, 12]
    assert Profile.from_json(Path("other.json").read_text()).ops["greet/word"].usage.calls == 2  # read, then replaced


def test_a_schedule_foresees_what_the_profile_says(lmc):
    found = []
    for more in ((), ("--profile-use", "other.json"), ("--no-order-sections",)):
        said = lmc("schedule", "given.py", "--input", "rows.jsonl", *more)
        assert said.code == 0, said.err
        [stage] = json.loads(said.out.partition("\n")[0])["stages"]
        found.append((stage["output"], [piece for piece in stage["pieces"] if isinstance(piece, str)]))
    assert [output for output, _ in found] == [6, 9, 6]
    first, _, unordered = ("".join(pieces) for _, pieces in found)
    assert first.index("Be brief") < first.index("Hello")
    assert unordered.index("Hello") < unordered.index("Be brief")


def test_a_profile_that_the_file_names_and_that_is_not_there_is_an_error_at_its_line(lmc, folder: Path):
    (folder / "own.json").unlink()
    said = lmc("run", "given.py", "name=Ann")
    assert said.code == 1
    assert "given.py:5: error: given.py can't be imported: own.json can't be read" in said.err
