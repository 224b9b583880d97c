import ctypes
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from lmc import toolchain
from lmc.toolchain import NativeBuildError, Sources, find_compiler, load_library

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def answers(tmp_path: Path) -> Sources:
    """A single function."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "answer.c").write_text("int answer(void) { return 42; }\n")
    return Sources("the answer", source, ("answer.c",), (), ("-shared", "-fPIC"))


def answer(library: ctypes.CDLL) -> int:
    return library.answer()


@needs_compiler
def test_a_library_is_built_once_and_found_again(answers: Sources, tmp_path: Path, monkeypatch) -> None:
    cache = tmp_path / "cache"
    assert answer(load_library(answers, cache)) == 42
    (first,) = cache.glob("*.so")
    monkeypatch.setattr(toolchain, "_build", lambda *_: pytest.fail("built again"))
    load_library(answers, cache)
    assert cache.stat().st_mode & 0o077 == 0
    assert first.with_suffix(".sha256").exists()


@needs_compiler
def test_other_sources_get_another_library(answers: Sources, tmp_path: Path) -> None:
    load_library(answers, tmp_path / "cache")
    (answers.folder / "answer.c").write_text("int answer(void) { return 43; }\n")
    assert answer(load_library(answers, tmp_path / "cache")) == 43
    assert len(list((tmp_path / "cache").glob("*.so"))) == 2


@needs_compiler
def test_a_library_that_was_changed_is_not_loaded(answers: Sources, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    key = toolchain.library_key(answers, find_compiler(), toolchain.TUNING[0])
    cache.mkdir(mode=0o700)
    (cache / f"{key}.so").write_bytes(b"not what was built")
    (cache / f"{key}.sha256").write_text("0" * 64)
    assert answer(load_library(answers, cache)) == 42
    assert (cache / f"{key}.so").read_bytes() != b"not what was built"


@needs_compiler
def test_sources_that_do_not_compile_are_reported(answers: Sources, tmp_path: Path) -> None:
    (answers.folder / "answer.c").write_text("this is no C\n")
    with pytest.raises(NativeBuildError, match=r"does not compile the answer: .*answer.c:1.* error"):
        load_library(answers, tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_without_a_compiler_the_reason_is_given(
    answers: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(NativeBuildError, match="no C compiler"):
        load_library(answers, tmp_path / "cache")


def write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_compiler_that_fails_is_reported(answers: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_command(tmp_path / "cc", "echo 'error: no developer tools' >&2; exit 1")
    write_command(tmp_path / "gcc", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "cc")
    with pytest.raises(NativeBuildError, match=r"cc does not work: error: no developer tools"):
        load_library(answers, tmp_path / "cache")
    monkeypatch.delenv("CC")
    with pytest.raises(NativeBuildError, match=r"gcc does not work: it says nothing"):
        load_library(answers, tmp_path / "cache")


@needs_compiler
def test_a_command_that_is_no_compiler_is_passed_over(
    answers: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = shutil.which("cc")
    write_command(tmp_path / "cc", "exit 1")
    write_command(tmp_path / "gcc", f'exec {real} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CC", raising=False)
    assert find_compiler().command == (str(tmp_path / "gcc"),)
    assert answer(load_library(answers, tmp_path / "cache")) == 42


@needs_compiler
def test_cc_may_have_options(answers: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (answers.folder / "answer.c").write_text("int answer(void) { return ANSWER; }\n")
    for number in (43, 44):
        monkeypatch.setenv("CC", f"cc -DANSWER={number}")
        assert answer(load_library(answers, tmp_path / "cache")) == number


@pytest.mark.parametrize(
    ("asked", "message"), [("no-such-compiler -O2", "no program no-such-compiler"), ("cc '", "cannot be read")]
)
def test_a_cc_that_is_none_is_reported(
    answers: Sources, asked: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", asked)
    with pytest.raises(NativeBuildError, match=message):
        load_library(answers, tmp_path / "cache")


def test_a_compiler_that_cannot_be_run_is_reported(
    answers: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cc").write_bytes(b"\x7fELF, but not really")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    with pytest.raises(NativeBuildError, match="cannot be run"):
        load_library(answers, tmp_path / "cache")


@needs_compiler
def test_where_nothing_can_be_kept_a_temporary_folder_does(
    answers: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "file").touch()
    assert answer(load_library(answers, tmp_path / "file" / "cache")) == 42
    assert not list(temporary.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(NativeBuildError, match=r"not in the cache .*Not a directory.* temporary .*nowhere"):
        load_library(answers, tmp_path / "file" / "cache")


@needs_compiler
def test_a_user_without_a_home_builds_in_a_temporary_folder(answers: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert answer(load_library(answers)) == 42


@needs_compiler
def test_a_cache_that_cannot_be_written_to_is_still_read(
    answers: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    load_library(answers, cache)
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    assert answer(load_library(answers, cache)) == 42
    (answers.folder / "answer.c").write_text("int answer(void) { return 43; }\n")
    with pytest.raises(NativeBuildError, match=r"not in the cache .*Permission denied"):
        load_library(answers, cache)


@needs_compiler
def test_a_folder_that_others_may_write_to_is_refused(answers: Sources, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(NativeBuildError, match="others may write"):
        load_library(answers, cache)


@needs_compiler
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_a_folder_of_somebody_else_is_refused(answers: Sources, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    os.chown(cache, 12345, 12345)
    with pytest.raises(NativeBuildError, match="belongs to somebody else"):
        load_library(answers, cache)


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert toolchain.user_cache() == tmp_path / "lmc"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert toolchain.user_cache() == Path.home() / ".cache" / "lmc"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A pipe is there in place of a device such as /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Invalid argument"):
        toolchain.replace_own_file(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()
