import shutil
import subprocess
from pathlib import Path

import pytest

from lmc.grammar.native import library as module
from lmc.grammar.native.library import SOURCES, library


def test_every_source_is_compiled_and_every_header_is_part_of_the_hash() -> None:
    for pattern, listed in (("*.c", SOURCES.files), ("*.h", SOURCES.headers)):
        assert sorted(listed) == sorted(path.name for path in SOURCES.folder.glob(pattern))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_sources_compile_without_a_warning(tmp_path: Path) -> None:
    paths = [str(SOURCES.folder / name) for name in SOURCES.files]
    options = [*SOURCES.options, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", str(tmp_path / "made.so")]
    done = subprocess.run(["cc", *options, *paths], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_every_function_is_there() -> None:
    loaded = library()
    assert loaded is not None
    for name in module._SIGNATURES:
        assert getattr(loaded, name).argtypes is not None


def test_without_a_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert library.__wrapped__() is None
