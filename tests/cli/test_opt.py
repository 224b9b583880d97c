from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import processes

Opt = Callable[..., processes.Done]
MODULE = """module @f {
  func @f(%x: !text) {
    %0 = lm.context : !ctx                                                                           loc("f.py":1)
    %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text                                                    loc("f.py":2)
    %2, %b = lm.gen %0 {id = "f/b"} : !ctx, !text                                                    loc("f.py":3)
    lm.return %1 (%b) {structure = "{\\"leaf\\":0}"}                                                   loc("f.py":4)
  }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.lmir"
    path.write_text(MODULE, encoding="utf-8")
    return path


@pytest.fixture
def opt(tmp_path: Path) -> Opt:
    def run(*arguments: str | Path, text: str = "") -> processes.Done:
        (tmp_path / "stdin").write_text(text, encoding="utf-8")
        return processes.run(["lmc", "opt", *map(str, arguments)], tmp_path, stdin=str(tmp_path / "stdin"))

    return run


def test_passes_over_a_file_and_over_standard_input_give_the_same(file: Path, opt: Opt):
    from_file = opt("--passes=cse,dce", file)
    from_input = opt("--passes=cse,dce", "-", text=MODULE)
    assert (from_file.code, from_file.err) == (0, "")
    assert from_file.out == from_input.out
    assert from_file.out.count("lm.gen") == 1
    assert opt("-", text=from_file.out).out == from_file.out


def test_remarks_and_times_go_beside_the_module(file: Path, tmp_path: Path, opt: Opt):
    output = tmp_path / "out.lmir"
    done = opt("-O2", file, "--remarks", "--timing", "-o", output)
    assert done.out == ""
    assert output.read_text(encoding="utf-8").startswith("module @f {")
    assert "f.py:3: cse: 'f/b' equals 'f/a' and takes its result (saves 1 call)\n" in done.err
    assert [line.split()[0] for line in done.err.splitlines()[-2:]] == ["plan-fork-join", "kv-liveness"]


def test_only_checking_prints_nothing(file: Path, opt: Opt):
    done = opt("--verify-only", file)
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "text", "code", "told"),
    [
        (["-"], "module", 1, "<stdin>:1:7: error: the text ends too early"),
        (["-"], MODULE.replace("%0 {id", "%9 {id", 1), 1, "%9 is not defined"),
        (["--passes=cs", "-"], MODULE, 2, "error: unknown pass 'cs'\n  remedy: did you mean cse?"),
        (["--passes=cse", "-O1", "-"], MODULE, 2, "--passes and -O1 both say which passes to run"),
        (["--verify-only", "-O1", "-"], MODULE, 2, "--verify-only runs no pass and writes nothing"),
        (["-O5", "-"], MODULE, 2, "'5' is not one of"),
        (["gone.lmir"], None, 2, "gone.lmir can't be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_told_with_its_exit_code(
    arguments: list[str], text: str | None, code: int, told: str, opt: Opt
):
    done = opt(*arguments, text=text or "")
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_torch_is_not_loaded(file: Path):
    code = (
        "import sys\nfrom lmc.cli import main\ntry: main()\n"
        "finally: print('torch' in sys.modules or 'transformers' in sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "opt", "-O2", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "False"


def test_a_model_is_whose_tokens_passes_know(file: Path, opt: Opt):
    text = MODULE.replace("module @f {", 'module @f {\n  constraint @c = choices "[\\"p\\"]"').replace(
        '{id = "f/a"}', '{id = "f/a", constraint = @c}'
    )
    file.write_text(text, encoding="utf-8")
    assert "forced" not in opt("--passes=compile-constraints", file).out
    found = opt("--passes=compile-constraints", "--model", "toy", file)
    assert (found.code, found.err) == (0, "")
    assert "forced = [79]" in found.out
    wrong = opt("--passes=compile-constraints", "--model", "tyo", file)
    assert wrong.code == 1
    assert "there is no model folder" in wrong.err
