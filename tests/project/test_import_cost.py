"""What an import loads, asked of a fresh interpreter."""

import json
import subprocess
import sys

import pytest

from tests.project.layers import REPOSITORY, TORCH_PARTS, sources, within

CALL_MAIN = """
import sys
from lmc.cli import main
sys.argv = ["lmc", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""

PROGRAM_FILE = """
import lmc

@lmc.tool(effect="reads")
def search(query: str) -> str:
    return query

@lmc.jit(target="toy")
def answer(s, question: str):
    s += lmc.user(question)
    return s.gen("answer")
"""

HEAVY = ["torch", "transformers", "safetensors", "triton", "flashinfer"]


def loaded_after(code: str) -> list[str]:
    """The heavy packages in `sys.modules` after running `code` in an interpreter of its own."""
    report = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", report], cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def modules_of(code: str) -> set[str]:
    """The modules that `code` loads in a fresh interpreter, beyond those that the interpreter starts with."""
    report = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", report], cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_import_lmc_loads_no_module_of_lmc_but_itself():
    loaded = modules_of("import lmc")
    assert {name for name in loaded if within(name, "lmc")} == {"lmc"}
    assert len(loaded) <= 40


def test_a_file_of_programs_loads_no_pass_and_no_engine():
    loaded = modules_of(PROGRAM_FILE)
    unused = ("lmc.passes", "lmc.backend", "lmc.runtime", "lmc.cache", "lmc.cli", "lark", "networkx", "rich", "typer")
    assert {name for name in loaded for part in unused if within(name, part)} == set()


def test_help_loads_no_stage_and_nothing_that_prints():
    call = CALL_MAIN.format(arguments=["--help"])
    loaded = modules_of(f"import io, sys\nsys.stdout = io.StringIO()\n{call}\nsys.stdout = sys.__stdout__")
    unused = (
        "lmc.driver.run",
        "lmc.frontend",
        "lmc.ir.core",
        "lmc.passes",
        "lmc.grammar",
        "numpy",
        "pydantic",
        "rich",
    )
    assert {name for name in loaded for part in unused if within(name, part)} == set()


@pytest.mark.parametrize("module", ["lmc", "lmc.cli", "lmc.driver"])
def test_import_loads_no_torch(module: str):
    assert loaded_after(f"import {module}") == []


def test_no_module_outside_the_torch_parts_loads_torch():
    light = [name for name in sources() if not any(within(name, part) for part in TORCH_PARTS)]
    light = [name for name in light if not name.endswith("__main__")]
    assert "lmc" in light
    assert loaded_after(f"import importlib\nfor name in {light!r}: importlib.import_module(name)") == []


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["compile", "examples/judge.py", "--emit", "ir"], ["opt", "--list-passes"]],
    ids=lambda arguments: arguments[0],
)
def test_command_loads_no_torch(arguments: list[str]):
    assert loaded_after(CALL_MAIN.format(arguments=arguments)) == []


@pytest.mark.parametrize(
    "code",
    [
        "import lmc, lmc.driver, lmc.cost.prices",
        CALL_MAIN.format(arguments=["compile", "examples/judge.py", "--model", "openai:gpt-5.6", "--emit", "ir"]),
    ],
    ids=["import", "compile"],
)
def test_prices_are_loaded_only_when_they_are_needed(code: str):
    asked = f"{code}\nimport sys\nprint('genai_prices' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1:] == ["False"], done.stderr


def test_a_loaded_package_is_reported():
    assert loaded_after("import sys, types\nsys.modules['torch'] = types.ModuleType('torch')") == ["torch"]
