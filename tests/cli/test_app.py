import subprocess
import sys
from importlib.metadata import version

import pytest


def lmc(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


def test_version():
    done = lmc("--version")
    assert (done.returncode, done.stdout) == (0, f"lmc {version('lmc-compiler')}\n")


def test_help_lists_the_commands():
    done = lmc("--help")
    assert done.returncode == 0
    assert all(f"\n  {command} " in done.stdout for command in ("compile", "run", "opt"))


@pytest.mark.parametrize(
    "arguments", [["fly"], ["run", "--fast", "x.py"], ["compile", "x.py", "-O7"], ["run", "none.py"]]
)
def test_wrong_usage_is_2(arguments: list[str]):
    done = lmc(*arguments)
    assert done.returncode == 2
    assert "rror" in done.stderr
    assert "Traceback" not in done.stderr
