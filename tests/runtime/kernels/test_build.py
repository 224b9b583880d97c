import ctypes
import os
import shutil
import tempfile
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
    key = build._key(build.find_compiler(), build._TUNING[0])
    cache.mkdir(mode=0o700)
    (cache / f"{key}.so").write_bytes(b"not what was built")
    (cache / f"{key}.sha256").write_text("0" * 64)
    assert answer(build.load_library(cache)) == 42
    assert (cache / f"{key}.so").read_bytes() != b"not what was built"


@needs_compiler
def test_sources_that_do_not_compile_are_reported(one_source: Path, tmp_path: Path) -> None:
    (one_source / "answer.c").write_text("this is no C\n")
    with pytest.raises(build.NativeBuildError, match=r"does not compile the kernels: .*answer.c:1.* error"):
        build.load_library(tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_without_a_compiler_the_reason_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(build.NativeBuildError, match="no C compiler"):
        build.load_library(tmp_path / "cache")


def write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_compiler_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_command(tmp_path / "cc", "echo 'error: no developer tools' >&2; exit 1")
    write_command(tmp_path / "gcc", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "cc")
    with pytest.raises(build.NativeBuildError, match=r"cc does not work: error: no developer tools"):
        build.load_library(tmp_path / "cache")
    monkeypatch.delenv("CC")
    with pytest.raises(build.NativeBuildError, match=r"gcc does not work: it says nothing"):
        build.load_library(tmp_path / "cache")


@needs_compiler
def test_a_command_that_is_no_compiler_is_passed_over(
    one_source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = shutil.which("cc")
    write_command(tmp_path / "cc", "exit 1")
    write_command(tmp_path / "gcc", f'exec {real} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CC", raising=False)
    assert build.find_compiler().command == (str(tmp_path / "gcc"),)
    assert answer(build.load_library(tmp_path / "cache")) == 42


@needs_compiler
def test_cc_may_have_options(one_source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (one_source / "answer.c").write_text("int answer(void) { return ANSWER; }\n")
    for number in (43, 44):
        monkeypatch.setenv("CC", f"cc -DANSWER={number}")
        assert answer(build.load_library(tmp_path / "cache")) == number


@pytest.mark.parametrize(
    ("asked", "message"), [("no-such-compiler -O2", "no program no-such-compiler"), ("cc '", "cannot be read")]
)
def test_a_cc_that_is_none_is_reported(
    asked: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", asked)
    with pytest.raises(build.NativeBuildError, match=message):
        build.load_library(tmp_path / "cache")


def test_a_compiler_that_cannot_be_run_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cc").write_bytes(b"\x7fELF, but not really")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    with pytest.raises(build.NativeBuildError, match="cannot be run"):
        build.load_library(tmp_path / "cache")


@needs_compiler
def test_where_nothing_can_be_kept_a_temporary_folder_does(
    one_source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "file").touch()
    assert answer(build.load_library(tmp_path / "file" / "cache")) == 42
    assert not list(temporary.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(build.NativeBuildError, match=r"not in the cache .*Not a directory.* temporary .*nowhere"):
        build.load_library(tmp_path / "file" / "cache")


@needs_compiler
def test_a_user_without_a_home_builds_in_a_temporary_folder(one_source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert answer(build.load_library()) == 42


@needs_compiler
def test_a_cache_that_cannot_be_written_to_is_still_read(
    one_source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    build.load_library(cache)
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    assert answer(build.load_library(cache)) == 42
    (one_source / "answer.c").write_text("int answer(void) { return 43; }\n")
    with pytest.raises(build.NativeBuildError, match=r"not in the cache .*Permission denied"):
        build.load_library(cache)


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
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert build.default_cache() == Path.home() / ".cache" / "lmc" / "native"
