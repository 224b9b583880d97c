from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


def _opt(*arguments: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from lmc.cli import main; main()", "opt", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", timeout=60)


def test_passes_over_a_file_and_over_standard_input_give_the_same(file: Path):
    from_file = _opt("--passes=cse,dce", file)
    from_input = _opt("--passes=cse,dce", "-", text=MODULE)
    assert (from_file.returncode, from_file.stderr) == (0, "")
    assert from_file.stdout == from_input.stdout
    assert from_file.stdout.count("lm.gen") == 1
    assert _opt("-", text=from_file.stdout).stdout == from_file.stdout


def test_remarks_and_times_go_beside_the_module(file: Path, tmp_path: Path):
    output = tmp_path / "out.lmir"
    done = _opt("-O2", file, "--remarks", "--timing", "-o", output)
    assert done.stdout == ""
    assert output.read_text(encoding="utf-8").startswith("module @f {")
    assert "f.py:3: cse: 'f/b' equals 'f/a' and takes its result (saves 1 call)\n" in done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines()[-2:]] == ["plan-fork-join", "kv-liveness"]


def test_only_checking_prints_nothing(file: Path):
    done = _opt("--verify-only", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


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
def test_what_is_wrong_is_told_with_its_exit_code(arguments: list[str], text: str | None, code: int, told: str):
    done = _opt(*arguments, text=text)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_torch_is_not_loaded(file: Path):
    code = (
        "import sys\nfrom lmc.cli import main\ntry: main()\n"
        "finally: print('torch' in sys.modules or 'transformers' in sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "opt", "-O2", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "False"


def test_a_model_is_whose_tokens_passes_know(file: Path):
    text = MODULE.replace("module @f {", 'module @f {\n  constraint @c = choices "[\\"p\\"]"').replace(
        '{id = "f/a"}', '{id = "f/a", constraint = @c}'
    )
    file.write_text(text, encoding="utf-8")
    assert "forced" not in _opt("--passes=compile-constraints", file).stdout
    found = _opt("--passes=compile-constraints", "--model", "toy", file)
    assert (found.returncode, found.stderr) == (0, "")
    assert "forced = [79]" in found.stdout
    wrong = _opt("--passes=compile-constraints", "--model", "tyo", file)
    assert wrong.returncode == 1
    assert "there is no model folder" in wrong.stderr
