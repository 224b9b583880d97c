"""Ctrl-C and SIGTERM while the command starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.{before})
def hook(event, arguments):
    if event == "import" and arguments[0] == {module!r}:
        os.kill(os.getpid(), signal.{name})
from lmc.cli import main
sys.addaudithook(hook)
sys.argv = ["lmc", *{arguments!r}]
main()
"""
PROGRAM = """
import os, signal, time, lmc
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""
SHORT = """
import lmc

@lmc.jit
def short(s):
    s += "a"
    s.gen("b", max_tokens=1)
"""


def lmc(*arguments: str, module: str, name: str = "SIGINT", before: str = "default_int_handler"):
    code = INTERRUPTING.format(module=module, name=name, before=before, arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("module", ["lmc.cli.app", "lmc.cli.results.sink"])
def test_ctrl_c_while_the_command_is_imported(module: str):
    done = lmc("--help", module=module)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_sigterm_while_the_command_is_imported():
    done = lmc("--help", module="typer", name="SIGTERM")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")


def test_ctrl_c_that_the_process_was_started_to_ignore_stays_ignored():
    done = lmc("--version", module="typer", before="SIG_IGN")
    assert done.returncode == 0
    assert done.stdout.startswith("lmc ")


@pytest.mark.parametrize("command", ["compile", "run"])
def test_ctrl_c_while_the_program_is_imported(start, tmp_path: Path, command: str):
    (tmp_path / "long.py").write_text(PROGRAM)
    process = start(command, "long.py", "--model", "toy")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert "KeyboardInterrupt" not in err


def test_ctrl_c_while_the_engine_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.py").write_text(SHORT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    done = lmc("run", "short.py", "-o", "out.jsonl", module="torch._C")
    assert done.returncode == 130
    assert done.stderr.startswith("interrupted: the run was not finished; prompt tokens 0 (0 cached), generated 0, ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out.jsonl").exists()
