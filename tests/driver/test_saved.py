import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import lmc
from lmc.backend.lower import lower
from lmc.driver.options import Options
from lmc.driver.programs import UsageError
from lmc.driver.saved.artifacts import module_text, plan_text
from lmc.driver.saved.saved import SavedRunner, is_saved
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import InputError
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from tests.driver import programs
from tests.runtime.engines import LateEngine

TOY = Options("toy", seed=4)


@lmc.jit
def noting(s: lmc.State, item: dict[str, str], times: int) -> list[object]:
    s += item["title"] * times
    first = s.gen("first", max_tokens=4, temperature=1.0)
    return [first, programs.note(first)]


@lmc.jit
def other(s: lmc.State) -> str:
    return programs.note("x")


ARGUMENTS = {"item": {"title": "tree "}, "times": 2}
INPUTS = {"item.title": "tree ", "times": 2}


def save(folder: Path, program: lmc.Program, arguments: Mapping[str, object] | None = None, *, ir: bool = False) -> str:
    compiled = program.on("toy").compile(**(arguments or {}))
    path = folder / ("saved.lmir" if ir else "saved.json")
    path.write_text(module_text(compiled.module) if ir else plan_text(compiled.plan))
    return str(path)


@pytest.mark.parametrize("ir", [False, True])
def test_a_saved_plan_gives_what_its_program_gives(tmp_path: Path, ir: bool, late: LateEngine):
    path = save(tmp_path, programs.judge, ir=ir)
    runner = SavedRunner.load(path, TOY, None)
    essays = ["ants", "birds", "ants again"]
    found = dict(runner.run_rows([[(number, ((), {"essay": essay})) for number, essay in enumerate(essays)]]))
    expected = programs.judge.on("toy", seed=4).batch([{"essay": essay} for essay in essays])
    for number, result in enumerate(expected):
        assert (found[number].value, found[number].text) == (result.value, result.text)


def test_its_functions_come_from_the_program_given_with_it(tmp_path: Path):
    runner = SavedRunner.load(save(tmp_path, noting, ARGUMENTS), TOY, other)
    assert runner.signature.needed == ("item.title", "times")
    assert runner.signature.types == {"item.title": str, "times": int}
    [(_, result)] = runner.run_rows([[(0, ((), INPUTS))]])
    assert [result.value[0]] == programs.SIDE_EFFECTS
    assert result.value == noting.on("toy", seed=4)(**cast("Any", ARGUMENTS))


def test_a_failure_is_its_instances(tmp_path: Path):
    runner = SavedRunner.load(save(tmp_path, programs.judge), TOY, None)
    found = dict(runner.run_rows([[(0, ((), {"essay": "x"})), (1, ((), {"text": "x"}))]]))
    assert found[0].error is None
    assert isinstance(found[1].error, InputError)


def test_functions_that_are_not_there(tmp_path: Path):
    path = save(tmp_path, noting, ARGUMENTS)
    with pytest.raises(UsageError, match=r"the plan calls tests\.driver\.programs:note") as caught:
        SavedRunner.load(path, TOY, None)
    assert caught.value.remedy is not None
    assert "--program" in caught.value.remedy
    with pytest.raises(InputError, match=r"programs:note is not called by judge") as caught:
        SavedRunner.load(path, TOY, programs.judge)
    assert caught.value.remedy


def test_a_function_that_has_changed_is_not_called(tmp_path: Path):
    path = Path(save(tmp_path, noting, ARGUMENTS))
    head, _, rest = path.read_text().partition("\n")
    data = json.loads(head + "]}")
    data["hosts"][0][2] = "0" * 64
    path.write_text(json.dumps(data)[:-2] + "\n" + rest)
    with pytest.raises(InputError, match="has changed since the plan was compiled") as caught:
        SavedRunner.load(str(path), TOY, other)
    assert caught.value.remedy == "compile the plan again, or run the program itself"


def test_a_plan_can_not_name_a_function_that_the_program_does_not_call(tmp_path: Path):
    path = Path(save(tmp_path, noting, ARGUMENTS))
    path.write_text(path.read_text().replace("tests.driver.programs:note", "os:system"))
    with pytest.raises(InputError, match="os:system is not called by other"):
        SavedRunner.load(str(path), TOY, other)
    assert programs.SIDE_EFFECTS == []


def saying(word: str) -> Callable[[str], str]:
    @lmc.tool(effect="reads")
    def say(text: str) -> str:
        return word + text

    return say


ONE, TWO = saying("one "), saying("two ")
SUBJECTS = [re.compile("a+"), re.compile("b+")]


@lmc.jit
def alike(s: lmc.State, first: bool) -> list[str]:
    s += "x"
    text = s.gen("a", max_tokens=4) + "ab"
    found = [SUBJECTS[0].sub("X", text)] if first else []
    return [ONE(text), *found, SUBJECTS[1].sub("Y", text), TWO(text)]


def test_functions_that_look_alike_are_told_apart(tmp_path: Path):
    runner = SavedRunner.load(save(tmp_path, alike), TOY, alike)
    for first in (True, False):
        [(_, result)] = runner.run_rows([[(0, ((), {"first": first}))]])
        assert result.value == alike.on("toy", seed=4)(first)


def test_functions_that_can_not_be_told_apart_are_not_called(tmp_path: Path):
    path = save(tmp_path, alike, {"first": False})  # one pattern; the program has two
    with pytest.raises(InputError, match=r"re:Pattern\(\) is one of several alike in alike") as caught:
        SavedRunner.load(path, TOY, alike)
    assert caught.value.remedy == "compile the plan again, or run the program itself"


BUILTIN = r"""
module @f {
  host @py.len = "lmc.ir.builtins.builtins:len" sha256 "DIGEST" reads
  func @f(%text: !text) {
    %c = lm.context : !ctx
    %n = host.call @py.len (%text) {declared = "reads", id = "f/@py.len"} : !int
    lm.return %c (%n) {structure = "{\"leaf\":0}"}
  }
}
"""


def test_a_builtin_needs_no_program(tmp_path: Path):
    path = tmp_path / "f.lmir"
    path.write_text(BUILTIN.replace("DIGEST", "0" * 64))
    [(_, result)] = SavedRunner.load(str(path), TOY, None).run_rows([[(0, ((), {"text": "abc"}))]])
    assert result.value == 3


def test_a_plan_that_ends_in_a_break(tmp_path: Path):
    with pytest.raises(InputError, match="the plan ends where capture of the program ended") as caught:
        SavedRunner.load(save(tmp_path, programs.breaks), TOY, programs.breaks)
    assert caught.value.location is not None
    assert caught.value.remedy is not None
    assert "run the program itself" in caught.value.remedy


BREAKS_SOMETIMES = r"""
module @f {
  func @f(%flag: !bool, %dims: !list<!text>) {
    %c = lm.context : !ctx
    %ts = cf.map (%dims) : !list<!text> ^body(%i: !int, %dim: !text) {
      %d = lm.extend %c [%dim] : !ctx
      %e, %t = lm.gen %d (%i) {id = "f/view$", max_tokens = 3, temperature = 1.0} : !ctx, !text
      cf.yield (%t)
    }
    cf.cond %flag ^then() {
      lm.break {cause = "eval() is called", record = "{\"cells\":[],\"frames\":[{\"begin\":true}]}"} loc("f.py":7)
    } ^otherwise() {
      cf.yield {}
    }
    lm.return %c (%ts) {structure = "{\"leaf\":0}"}
  }
}
"""


@pytest.mark.parametrize("suffix", ["lmir", "json"])
def test_of_a_plan_that_may_break_the_instances_fail_that_come_there(tmp_path: Path, suffix: str, late: LateEngine):
    module = parse_verified(BREAKS_SOMETIMES)
    path = tmp_path / f"saved.{suffix}"
    path.write_text(BREAKS_SOMETIMES if suffix == "lmir" else plan_text(lower(module, Target("toy"))))
    rows = [(number, ((), {"flag": bool(number), "dims": ["a", "b"]})) for number in range(2)]
    found = dict(SavedRunner.load(str(path), TOY, None).run_rows([rows]))
    expected = interpret(module, {"flag": False, "dims": ["a", "b"]}, ToyEngine(), run_seed=4)
    assert found[0].value == expected.value
    error = found[1].error
    assert isinstance(error, InputError)
    assert str(error).startswith("f.py:7: the plan ends where capture of the program ended: eval() is called")
    assert found[1].usage.calls == 2


def test_files_that_can_not_be_read(tmp_path: Path):
    with pytest.raises(UsageError, match=r"none\.json can't be read"):
        SavedRunner.load(str(tmp_path / "none.json"), TOY, None)
    with pytest.raises(UsageError, match=r"none\.lmir can't be read"):
        SavedRunner.load(str(tmp_path / "none.lmir"), TOY, None)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"binary\.json is no text"):
        SavedRunner.load(str(binary), TOY, None)


def test_closing_the_iterator_cancels(tmp_path: Path, late: LateEngine):
    late.stuck = {"judge/verdict"}
    runner = SavedRunner.load(save(tmp_path, programs.judge), TOY, None)
    found = iter(runner.run_rows([[(0, ((), {"essay": "x"})), (1, ((), {}))]]))
    assert next(found)[0] == 1
    found.close()
    end = time.monotonic() + 5
    while late.pinned:
        assert time.monotonic() < end
        time.sleep(0.002)


def test_what_counts_as_saved():
    assert is_saved("x.json")
    assert is_saved("a/x.lmir")
    assert not is_saved("x.py")
    assert not is_saved("x.py:json")
