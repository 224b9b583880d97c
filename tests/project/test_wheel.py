"""The wheel holds the package with its data, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.project.layers import REPOSITORY


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True, timeout=120)
    [wheel] = folder.glob("lmc_compiler-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_package_is_in_it(wheel_files: set[str]):
    package = REPOSITORY / "lmc"
    present = {path.relative_to(REPOSITORY).as_posix() for path in package.rglob("*") if path.is_file()}
    present = {name for name in present if "__pycache__" not in name and not name.endswith(".so")}
    assert present - wheel_files == set()


def test_the_built_in_model_and_the_typing_marker_are_in_it(wheel_files: set[str]):
    assert "lmc/py.typed" in wheel_files
    suffixes = {Path(name).suffix for name in wheel_files if name.startswith("lmc/builtin_model/")}
    assert {".safetensors", ".json"} <= suffixes


def test_nothing_but_the_package_is_in_it(wheel_files: set[str]):
    roots = {name.split("/")[0] for name in wheel_files}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"lmc"}
    assert [name for name in wheel_files if name.endswith("/licenses/LICENSE")] != []
