"""The part of a script that a program depends on, and its runs that are resumed after the rest was edited."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from lmc.driver.batch.reached_source import reached_digest
from lmc.ir.errors import InputError

SCRIPT = '''\
"""A script."""

import json
import sys

import lmc
from lmc import user as say

RULES = "Be brief."
CHOICES = ["yes", "no"]
CHOICES[1] = "NO"
WIDTH = 3


def intro(text):
    return f"{RULES} {text}"


class Grade:
    width = WIDTH

    def shown(self, text):
        return intro(text)[: self.width]


def plot(results):
    print(results, sys.argv)


@lmc.jit(target="toy")
def judge(s, essay: str):
    result = Grade().shown(essay)
    s += say(result)
    s.gen("a", max_tokens=4)
    return s.select("b", CHOICES)


rows = [{"essay": f"text {number}"} for number in range(3)]
result = judge.on(journal="j").batch(rows)
if __name__ == "__main__":
    plot(result)
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('judge.on(journal="j")', 'judge.on(journal="j", resume=True)'),
        ('@lmc.jit(target="toy")', '@lmc.jit(target="toy", journal="j", resume=True)'),
        ("rows = [", "rows = [] or ["),
        ("print(results, sys.argv)", "print(results)"),
        ('"""A script."""', '"""Another."""'),
        ("import json\n", ""),
        ("\n\n\ndef plot", "\n# more\n\n\ndef plot"),
        ("result = judge.on", "judge = judge.on(seed=3)\nresult = judge.on"),
        ("plot(result)", "pass"),
    ],
)
def test_what_a_program_does_not_reach_may_change(before: str, after: str):
    changed = SCRIPT.replace(before, after, 1)
    assert changed != SCRIPT
    assert reached_digest(changed, "judge") == reached_digest(SCRIPT, "judge") is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("max_tokens=4", "max_tokens=5"),
        ("Be brief.", "Be polite."),
        ('CHOICES[1] = "NO"', 'CHOICES[1] = "never"'),
        ("WIDTH = 3", "WIDTH = 4"),
        ('return f"{RULES} {text}"', 'return f"{text} {RULES}"'),
        ("from lmc import user as say", "from lmc import system as say"),
        ('@lmc.jit(target="toy")\n', '@lmc.jit(target="toy")\n@traced\n'),
        ("\n\nRULES = ", "\nfrom rules import *\n\nRULES = "),
    ],
)
def test_what_a_program_reaches_may_not(before: str, after: str):
    changed = SCRIPT.replace(before, after, 1)
    assert changed != SCRIPT
    assert reached_digest(changed, "judge") != reached_digest(SCRIPT, "judge")


@pytest.mark.parametrize("text", ["", "judge = 3", "def other(): pass", "def judge(:", "\0", "def judge(): '\ud800'"])
def test_a_text_without_the_definition_has_no_digest(text: str):
    assert reached_digest(text, "judge") is None


def test_a_script_that_is_edited_to_go_on_is_resumed(tmp_path: Path):
    """The options are written where the program is: in the script that a crash has ended."""
    path, journal = tmp_path / "judging.py", str(tmp_path / "j")

    def ran(text: str) -> Any:
        path.write_text(text.replace('"j"', repr(journal)))
        spec = importlib.util.spec_from_file_location("judging", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return [each.value for each in module.result]

    first = ran(SCRIPT)
    again = SCRIPT.replace('journal="j"', 'journal="j", resume=True')
    assert ran(again) == first
    with pytest.raises(InputError, match="the source of judging has changed"):
        ran(again.replace("max_tokens=4", "max_tokens=5"))
