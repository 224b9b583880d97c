from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmc.driver.commands.opt import choose_passes, list_passes, optimize
from lmc.driver.programs import UsageError
from lmc.driver.saved.artifacts import read_module
from lmc.ir.errors import InputError, ParseError
from lmc.ir.module import print_module

TEXT = """module @f {
  func @f() {
    %0 = lm.context : !ctx
    %1 = lm.context : !ctx
    lm.return %1
  }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.lmir"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_module_from_a_file(file: Path):
    assert print_module(read_module(str(file))) == TEXT


def test_a_module_from_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TEXT.encode())))
    assert print_module(read_module("-")) == TEXT


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match=r"gone\.lmir can't be read: No such file or directory"):
        read_module(str(tmp_path / "gone.lmir"))


def test_a_file_that_is_not_utf8(file: Path):
    file.write_bytes(b"module\n\xff")
    with pytest.raises(InputError, match=r"is not UTF-8 text: byte 7 \(line 2\)"):
        read_module(str(file))


def test_a_broken_rule_is_shown_where_it_stands(file: Path):
    file.write_text(TEXT.replace("lm.return %1", "lm.return %1 {wave = 1}"), encoding="utf-8")
    with pytest.raises(ParseError, match=r"f\.lmir:5:\d+: error: "):
        read_module(str(file))


def test_without_passes_nothing_is_run():
    assert choose_passes(None, None).passes == ()
    assert [each.NAME for each in choose_passes("cse,dce", None).passes] == ["cse", "dce"]
    assert choose_passes(None, "O2").passes


@pytest.mark.parametrize(
    ("passes", "level", "print_after", "cause"),
    [
        ("cse", "O2", None, "--passes and -O2 both say which passes to run"),
        ("csee", None, None, "unknown pass 'csee'"),
        ("cse", None, "dce", "--print-after=dce: no such pass is run"),
        (None, None, "dce", "--print-after=dce: no such pass is run"),
    ],
)
def test_what_can_not_be_run_is_told(passes: str | None, level: str | None, print_after: str | None, cause: str):
    with pytest.raises(UsageError) as caught:
        choose_passes(passes, level, print_after=print_after)
    assert caught.value.cause == cause
    assert caught.value.remedy


def test_the_module_after_each_pass(file: Path):
    seen: list[str] = []
    passes = choose_passes("dce,cse", None, print_after="all")
    text, result = optimize(read_module(str(file)), passes, print_after="all", on_text=seen.append)
    assert [entry.splitlines()[0] for entry in seen] == ["// after dce", "// after cse"]
    assert text == print_module(result.module)
    assert seen[-1] == f"// after cse\n{text}".rstrip()


def test_the_list_of_passes_holds_summaries_and_options():
    lines = list(list_passes())
    assert "dce                  Drop ops with unused results." in lines
    assert "                     options: width=none" in lines
