import ctypes
import os
import shutil
from pathlib import Path

import pytest

from lmc.runtime.kernels.native import build

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def one_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Builds a single function instead of the kernels, which take seconds."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "answer.c").write_text("int answer(void) { return 42; }\n")
    monkeypatch.setattr(build, "_FOLDER", source)
    monkeypatch.setattr(build, "_SOURCES", ("answer.c",))
    monkeypatch.setattr(build, "_HEADERS", ())
    return source


def answer(library: ctypes.CDLL) -> int:
    return library.answer()


@needs_compiler
def test_a_library_is_built_once_and_found_again(one_source: Path, tmp_path: Path, monkeypatch) -> None:
    cache = tmp_path / "cache"
    assert answer(build.load_library(cache)) == 42
    (first,) = cache.glob("*.so")
    monkeypatch.setattr(build, "_build", lambda *_: pytest.fail("built again"))
    build.load_library(cache)
    assert cache.stat().st_mode & 0o077 == 0
    assert first.with_suffix(".sha256").exists()


@needs_compiler
def test_other_sources_get_another_library(one_source: Path, tmp_path: Path) -> None:
    build.load_library(tmp_path / "cache")
    (one_source / "answer.c").write_text("int answer(void) { return 43; }\n")
    assert answer(build.load_library(tmp_path / "cache")) == 43
    assert len(list((tmp_path / "cache").glob("*.so"))) == 2


@needs_compiler
def test_a_library_that_was_changed_is_not_loaded(one_source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    key = build._key(build._run([build._compiler(), "--version"]).stdout.splitlines()[0], build._TUNING[0])
    cache.mkdir(mode=0o700)
    (cache / f"{key}.so").write_bytes(b"not what was built")
    (cache / f"{key}.sha256").write_text("0" * 64)
    assert answer(build.load_library(cache)) == 42
    assert (cache / f"{key}.so").read_bytes() != b"not what was built"


@needs_compiler
def test_sources_that_do_not_compile_are_reported(one_source: Path, tmp_path: Path) -> None:
    (one_source / "answer.c").write_text("this is no C\n")
    with pytest.raises(build.NativeBuildError, match="does not compile"):
        build.load_library(tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_without_a_compiler_the_reason_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(build.NativeBuildError, match="no C compiler"):
        build.load_library(tmp_path / "cache")


@needs_compiler
def test_a_folder_that_others_may_write_to_is_refused(one_source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(build.NativeBuildError, match="others may write"):
        build.load_library(cache)


@needs_compiler
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_a_folder_of_somebody_else_is_refused(one_source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    os.chown(cache, 12345, 12345)
    with pytest.raises(build.NativeBuildError, match="belongs to somebody else"):
        build.load_library(cache)


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.default_cache() == tmp_path / "lmc" / "native"
