from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from lmc.runtime.local import LocalEngine, load_local_engine
from tests.runtime.local.checkpoints import ARCHITECTURES, make_model, save_checkpoint

OpenEngine = Callable[..., LocalEngine]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny matrices and other busy processes: more threads only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def models() -> dict[str, Any]:
    """A tiny random model of each supported architecture, for the reference side."""
    return {name: make_model(name) for name in ARCHITECTURES}


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory, models: dict[str, Any]) -> dict[str, Path]:
    """A folder with each of `models`."""
    transformers.utils.logging.disable_progress_bar()
    root = tmp_path_factory.mktemp("checkpoints")
    return {name: save_checkpoint(root / name, model) for name, model in models.items()}


@pytest.fixture
def open_engine(checkpoints: dict[str, Path]) -> Iterator[OpenEngine]:
    """Opens engines on the tiny checkpoints that check cache and pages after every step, and closes them at the end."""
    engines: list[LocalEngine] = []

    def open_one(
        architecture: str = "llama", *, device: str = "cpu", kv_tokens: int = 4000, **settings: Any
    ) -> LocalEngine:
        engine = load_local_engine(checkpoints[architecture], device=device, kv_tokens=kv_tokens, **settings)
        worker = engine._worker
        step = worker._step

        def checked_step() -> None:
            step()
            worker._scheduler.memory.check_invariants(worker._scheduler.running)

        worker._step = checked_step
        engines.append(engine)
        return engine

    yield open_one
    for engine in engines:
        engine.close()
        scheduler = engine._worker._scheduler
        scheduler.memory.check_invariants(scheduler.running)
