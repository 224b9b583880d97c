"""Setup of all tests: settings of the environment, counts of generated cases, and the marks `slow` and `gpu`.

`LMC_TEST_FULL=1` (make test-full) raises the counts. Fixtures and strategies of one package live in its own folder.
"""

import gc
import importlib
import os
from pathlib import Path

# Before torch is imported anywhere: see the Makefile for the first; two test processes share the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A test that would reach for the network fails instead.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
# Tests state their target themselves.
os.environ.pop("LMC_TARGET", None)
# Triton's kernels run in its interpreter where there is no GPU. It is asked when Triton is imported, by whomever.
if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"
# They leave no token indexes in the user's cache.
os.environ["LMC_GRAMMAR_CACHE"] = "off"
# Nor what servers can do: another test's server may have the same port.
os.environ["LMC_PROBE_CACHE"] = "off"
# Nor how fast this machine is: predictions of tests depend on no machine.
os.environ["LMC_CALIBRATIONS"] = "off"

import hypothesis
import pytest

# Tests that put sys.modules back would forget what is imported on first use.
importlib.import_module("lmc.frontend.capture")

# Wall-clock deadlines say more about the machine than about the code. The quick profile is derandomized: the same
# commit gives the same verdict; the full one draws new cases every time and prints how to repeat a failure.
hypothesis.settings.register_profile(
    "quick", max_examples=10, stateful_step_count=25, deadline=None, derandomize=True, database=None
)
hypothesis.settings.register_profile(
    "full", max_examples=500, stateful_step_count=60, deadline=None, print_blob=True, database=None
)
hypothesis.settings.load_profile("full" if os.environ.get("LMC_TEST_FULL") == "1" else "quick")


def _cuda_is_available() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


# Tests are many objects that live to the end: looking through them again and again takes a third of the collection.
gc.disable()


def pytest_collection_finish() -> None:
    """Begin to collect garbage, but none of what is there by now."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow-in", action="append", metavar="FILE", help="leave out slow tests, but for those of FILE")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked `slow` that --slow-in asks to, and those marked `gpu` where there is no CUDA device.

    Torch is asked only if there are such tests.
    """
    wanted: list[str] | None = config.getoption("--slow-in")
    if wanted is not None:
        slow = [item for item in items if item.get_closest_marker("slow")]
        left = {item for item in slow if item.path.relative_to(config.rootpath).as_posix() not in wanted}
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needs_gpu or _cuda_is_available():
        return
    for item in needs_gpu:
        item.add_marker(pytest.mark.skipif(True, reason="needs a CUDA device"))
