import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmc.driver.targets.openmp import SLEEPING_THREADS, THREAD_SETTINGS

REPOSITORY = Path(__file__).parents[2]
# Every script that measures torch on CPU threads.
SCRIPTS = (
    "benchmarks/engine_cuda.py",
    "benchmarks/engine_overhead.py",
    "benchmarks/peers/run_lmc.py",
    "benchmarks/peers/run_roofline.py",
    "benchmarks/peers/run_transformers.py",
)


@pytest.mark.parametrize("set_by_the_user", [True, False])
@pytest.mark.parametrize("torch_first", [True, False])
def test_threads_are_told_to_sleep_before_torch_loads(set_by_the_user: bool, torch_first: bool):
    code = """
import os, sys, types, warnings
if {torch_first}:
    sys.modules["torch"] = types.ModuleType("torch")
from lmc.driver.targets.openmp import let_threads_sleep
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    let_threads_sleep()
    let_threads_sleep()
print(os.environ["OMP_WAIT_POLICY"], os.environ.get("GOMP_SPINCOUNT"), [entry.category.__name__ for entry in said])
"""
    environment = {name: value for name, value in os.environ.items() if name not in THREAD_SETTINGS}
    if set_by_the_user:
        environment["OMP_WAIT_POLICY"] = "ACTIVE"
    command = [sys.executable, "-c", code.format(torch_first=torch_first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    settings = "ACTIVE None" if set_by_the_user else "PASSIVE 1000"
    warned = ["RuntimeWarning"] if torch_first and not set_by_the_user else []
    assert done.stdout == f"{settings} {warned}\n"


@pytest.mark.parametrize("script", SCRIPTS)
def test_benchmarks_measure_with_the_same_settings(script: str):
    code = f"""
import importlib.abc, os, runpy, sys

def say():
    print(dict((name, os.environ.get(name)) for name in {THREAD_SETTINGS}), flush=True)
    os._exit(0)

class Torch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            say()

sys.meta_path.insert(0, Torch())
runpy.run_path({script!r})
say()
"""
    environment = {name: value for name, value in os.environ.items() if name not in THREAD_SETTINGS}
    expected = {**dict.fromkeys(THREAD_SETTINGS), **SLEEPING_THREADS}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout == f"{expected}\n", done.stderr
