from pathlib import Path

import pytest

from tests.runtime.local.checkpoints import ARCHITECTURES, make_model, save_checkpoint


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One tiny checkpoint folder for each supported architecture."""
    root = tmp_path_factory.mktemp("checkpoints")
    return {name: save_checkpoint(root / name, make_model(name)) for name in ARCHITECTURES}


@pytest.fixture(scope="session")
def llama(checkpoints: dict[str, Path]) -> Path:
    return checkpoints["llama"]
