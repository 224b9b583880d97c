"""The file of output rows at every moment at which a run may be killed, and when there is no room."""

import errno
import fcntl
import json
import os
import random
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lmc.cli.results.rows_file import RowsFile, is_stream
from lmc.driver import LmcError, RunRecord, UsageError

RECORD = RunRecord("judge", {"judge": "1"}, "toy", "2", {"seed": 0}, {"strict": "4"}, "rows.jsonl", "3")
OTHER = replace(RECORD, program="other")
OLD_ROWS = '{"index": 0, "error": null}\n{"index": 1, "error": null}\n'
CALLS = ("open", "write", "ftruncate", "fsync", "replace", "unlink", "fchmod")


class Killed(BaseException):
    """The process is gone."""


@dataclass
class System:
    """Calls of the operating system, of which the one numbered ``at`` fails: it kills, or it finds no room."""

    at: int
    error: Callable[[], BaseException]
    lasting: bool
    calls: int = 0
    opened: set[int] = field(default_factory=set)

    def call(self, name: str, real: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        self.calls += 1
        if self.calls == self.at or (self.lasting and self.calls > self.at):
            if name == "write" and self.calls == self.at:
                file, data = arguments
                real(file, data[: len(data) // 2])
            if not (name == "ftruncate" and not self.lasting):  # making a file smaller needs no room
                raise self.error()
        if name == "fsync":  # nothing here cuts the power
            return None
        result = real(*arguments, **more)
        if name == "open":
            self.opened.add(result)
        return result


@contextmanager
def failing(at: int, error: Callable[[], BaseException], *, lasting: bool) -> Generator[System]:
    """In the block, the call numbered ``at`` fails, and all after it where that is ``lasting``."""
    system = System(at, error, lasting)
    mine = threading.get_ident()

    def patched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if threading.get_ident() != mine:
                return real(*arguments, **more)
            return system.call(name, real, *arguments, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, patched(name, getattr(os, name)))
        try:
            yield system
        finally:
            patch.undo()
            for file in system.opened:  # as the system closes those of a process that is gone
                try:
                    os.close(file)
                except OSError:
                    continue


def line(number: int, *, failed: bool = False) -> str:
    row = {"index": number, "value": "é" * (number % 5), "error": "no" if failed else None}
    return json.dumps(row, ensure_ascii=False) + "\n"


def run(
    path: Path,
    rows: list[tuple[int, bool]],
    *,
    record: RunRecord = RECORD,
    resume: bool = False,
    ordered: bool = False,
) -> str | None:
    """Write those of ``rows`` (number, failed) that are not there; return the note of the file."""
    with RowsFile(str(path), ordered=ordered) as file:
        done = file.resume(record) if resume else file.start(record)
        for number, failed in rows:
            if number not in done:
                file.write(number, line(number, failed=failed), succeeded=not failed)
    return file.note


def parsed(path: Path) -> list[int]:
    return [json.loads(entry)["index"] for entry in path.read_text().splitlines()]


def record_of(path: Path) -> str | None:
    place = path.with_name(path.name + ".meta.json")
    return json.loads(place.read_text())["program"] if place.exists() else None


def check_killed(path: Path, *, had_rows: bool) -> None:
    """What a killed run may leave."""
    record = record_of(path)
    if not path.exists():
        assert not had_rows
        assert record is None
        return
    text = path.read_text(errors="replace")
    if text == OLD_ROWS:
        assert record in ("other", None)
        return
    whole = text[: text.rfind("\n") + 1]
    assert whole
    assert all("value" in json.loads(entry) for entry in whole.splitlines())
    assert record in ("judge", None)


@pytest.mark.parametrize("had_rows", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_run_killed_at_any_call_leaves_old_or_new_rows_and_is_resumed(tmp_path: Path, had_rows: bool, ordered: bool):
    draw = random.Random(f"{had_rows}{ordered}")
    at, was_killed = 0, True
    while was_killed:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        path = folder / "out.jsonl"
        rows = [(number, draw.random() < 0.4) for number in draw.sample(range(6), 6)]
        if had_rows:
            run(path, [(0, False)], record=OTHER)
            path.write_text(OLD_ROWS)
        was_killed = killed(path, rows, at, ordered=ordered)
        if was_killed:
            check_killed(path, had_rows=had_rows)
        resumed = 0
        while was_killed and record_of(path) == "judge" and resumed < 3:
            resumed += 1
            killed(path, rows, draw.randrange(1, 12), ordered=ordered, resume=True)
            check_killed(path, had_rows=True)
            with pytest.raises(UsageError, match="was 'judge'"):
                run(path, rows, record=OTHER, resume=True)
        if was_killed and path.exists() and record_of(path) is None:
            with pytest.raises(UsageError, match="is not beside it"):
                run(path, rows, resume=True)
        run(path, rows, resume=record_of(path) == "judge", ordered=ordered)
        if all(failed for _, failed in rows) and had_rows:
            continue
        assert sorted(parsed(path)) == list(range(6))
        if ordered:
            assert parsed(path) == list(range(6))
    assert at > 10


def killed(path: Path, rows: list[tuple[int, bool]], at: int, *, ordered: bool = False, resume: bool = False) -> bool:
    """Whether a run was killed at the call numbered ``at``: it may have ended before."""
    try:
        with failing(at, Killed, lasting=True):
            run(path, rows, ordered=ordered, resume=resume)
    except Killed:
        return True
    return False


@pytest.mark.parametrize("had_rows", [False, True])
def test_a_disk_that_is_full_at_any_call_keeps_whole_rows_and_says_how_many(tmp_path: Path, had_rows: bool):
    at, calls = 0, 1
    while at < calls:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        path = folder / "out.jsonl"
        if had_rows:
            path.write_text(OLD_ROWS)
        error, calls = full_at(path, at)
        assert not list(folder.glob(".*partial"))
        if error is None:  # of a call that may fail
            assert parsed(path) == [0, 1, 2, 3]
            continue
        assert "No space left on device" in error.cause
        assert "make room" in str(error.remedy)
        if "is as it was" in error.cause:
            assert path.exists() == had_rows
            assert not had_rows or path.read_text() == OLD_ROWS
            assert record_of(path) is None
        elif "can't be put in input order" in error.cause:
            assert parsed(path) == [2, 0, 1, 3]
            run(path, [], ordered=True, resume=True)
            assert parsed(path) == [0, 1, 2, 3]
        else:
            assert f"; {len(parsed(path))} rows are kept" in error.cause
    assert at > 20


def full_at(path: Path, at: int) -> tuple[LmcError | None, int]:
    """A run whose call numbered ``at`` finds no room: its error, and how many calls it made."""
    with failing(at, lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), lasting=False) as system:
        try:
            run(path, [(2, True), (0, False), (1, False), (3, False)], ordered=True)
        except LmcError as error:
            return error, system.calls
        return None, system.calls


def test_rows_that_fail_wait_for_one_that_succeeds(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    path.write_text(OLD_ROWS)
    with RowsFile(str(path)) as file:
        file.start(RECORD)
        file.write(0, line(0, failed=True), succeeded=False)
        assert path.read_text() == OLD_ROWS
        file.write(1, line(1), succeeded=True)
        assert parsed(path) == [0, 1]
        file.write(2, line(2, failed=True), succeeded=False)
        assert parsed(path) == [0, 1, 2]


def test_where_every_row_fails_the_rows_of_an_earlier_run_stay(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    rows = [(0, True), (1, True)]
    assert run(path, rows) is None
    assert parsed(path) == [0, 1]
    path.write_text(OLD_ROWS)
    note = run(path, rows)
    assert note is not None
    assert f"the failed rows are in {path}.failed" in note
    assert path.read_text() == OLD_ROWS
    assert parsed(tmp_path / "out.jsonl.failed") == [0, 1]
    assert not list(tmp_path.glob(".*"))


def test_an_error_before_a_row_succeeds_leaves_everything_as_it_was(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    path.write_text(OLD_ROWS)

    def fail() -> None:
        with RowsFile(str(path)) as file:
            file.start(RECORD)
            file.write(0, line(0, failed=True), succeeded=False)
            raise LmcError("no engine")

    with pytest.raises(LmcError, match="no engine"):
        fail()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.jsonl"]
    assert path.read_text() == OLD_ROWS


def test_mode_and_symbolic_links_are_kept(tmp_path: Path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "rows.jsonl", tmp_path / "out.jsonl"
    link.symlink_to(real)
    run(link, [(0, False)])
    assert parsed(real) == [0]
    real.chmod(0o640)
    run(link, [(0, False), (1, False)])
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "real" / "rows.jsonl.meta.json").stat().st_mode) == 0o640
    run(real, [(2, False)], resume=True)
    assert parsed(link) == [0, 1, 2]


@pytest.mark.parametrize(
    ("torn", "kept"),
    [
        (b'{"index": 2, "val', 2),
        (b'{"index": 2, "value": "\xc3', 2),
        (b"\0" * 50, 2),
        (b'{"index": 2, "value": 1, "error": null}', 3),
        (b"\n\n", 2),
    ],
)
def test_a_torn_last_line_is_repaired(tmp_path: Path, torn: bytes, kept: int):
    path = tmp_path / "out.jsonl"
    run(path, [(0, False), (1, False)])
    with path.open("ab") as file:
        file.write(torn)
    before = path.read_bytes()
    with RowsFile(str(path)) as file:
        assert len(file.resume(RECORD)) == kept
        assert path.read_bytes() == before
        file.write(7, line(7), succeeded=True)
    assert parsed(path) == [*range(kept), 7]


def test_a_line_that_is_no_row_is_refused_with_its_number(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    run(path, [(0, False)])
    for text in ("[]", '{"index": true}', '{"index": -1}', "{"):
        path.write_text(f"{line(0)}{text}\n{line(1)}")
        with pytest.raises(UsageError, match=r"out\.jsonl:2 is no output row"):
            run(path, [(2, False)], resume=True)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"program": "b"}, "the program is 'judge', and was 'b'"),
        ({"sources": {"judge": "1", "helpers": "2"}}, "the source of helpers has changed"),
        ({"model_name": "builtin", "model": "9"}, "the model is toy, and it was builtin"),
        ({"model": "9"}, "the model is toy, and its files have changed"),
        ({"options": {"seed": 1}}, "seed is 0, and was 1"),
        ({"arguments": {}}, "the argument strict has changed"),
        ({"rows": "9"}, "the input rows of rows.jsonl are not those of the earlier run"),
    ],
)
def test_a_run_that_differs_is_not_resumed(tmp_path: Path, changed: dict[str, Any], cause: str):
    path = tmp_path / "out.jsonl"
    run(path, [(0, False)], record=replace(RECORD, **changed))
    before = path.read_bytes()
    with pytest.raises(UsageError) as caught:
        run(path, [(1, False)], resume=True)
    assert caught.value.cause == f"{path} can't be resumed: {cause}"
    assert path.read_bytes() == before


def test_rows_of_a_pipe_are_not_resumed(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    piped = replace(RECORD, rows=None, rows_name="-")
    run(path, [(0, False)], record=piped, resume=True)
    with pytest.raises(UsageError, match="can't compare the rows of -"):
        run(path, [(1, False)], record=piped, resume=True)


@pytest.mark.parametrize(
    "text", ["", "[]", "1", "{}", '{"format": "x", "version": 1, "lmc": ""}', "[" * 5000, "\0", '{"format": "lmc-run"}']
)
def test_a_file_that_is_no_record_is_not_replaced(tmp_path: Path, text: str):
    record = tmp_path / "out.jsonl.meta.json"
    record.write_text(text)
    for resume in (False, True):
        with pytest.raises(UsageError, match="is no record of a run"):
            run(tmp_path / "out.jsonl", [(0, False)], resume=resume)
    assert record.read_text() == text
    assert not (tmp_path / "out.jsonl").exists()


def test_records_are_checked_field_by_field():
    data = json.loads(RECORD.to_json())
    assert RunRecord.from_json(RECORD.to_json().encode(), "meta") == RECORD
    for name in data:
        for wrong in (None, 7, [1], {"a": 1}):
            if (
                name == "lmc"
                or (name in ("rows", "rows_name") and wrong is None)
                or (name, wrong) == ("options", {"a": 1})
            ):
                continue
            with pytest.raises(UsageError, match=r"is no record of a run|has version"):
                RunRecord.from_json(json.dumps({**data, name: wrong}).encode(), "meta")
    with pytest.raises(UsageError, match="has version 2, and this lmc reads version 1"):
        RunRecord.from_json(json.dumps({**data, "version": 2}).encode(), "meta")
    with pytest.raises(UsageError, match="is no record of a run"):
        RunRecord.from_json(b" " * 2**24 + RECORD.to_json().encode(), "meta")


def test_two_runs_do_not_write_one_file(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    with RowsFile(str(path)) as first:
        first.start(RECORD)
        first.write(0, line(0), succeeded=True)
        for resume in (False, True):
            with pytest.raises(UsageError, match="another run is writing"):
                run(path, [(1, False)], resume=resume)
        first.write(1, line(1), succeeded=True)
    assert parsed(path) == [0, 1]
    with RowsFile(str(path)) as first, RowsFile(str(path)) as second:
        first.start(RECORD)
        second.start(RECORD)
        first.write(2, line(2), succeeded=True)
        with pytest.raises(UsageError, match="another run is writing"):
            second.write(3, line(3), succeeded=True)
    assert parsed(path) == [2]
    run(path, [(4, False)])
    assert parsed(path) == [4]


def test_a_file_system_without_locks_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def flock(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    run(tmp_path / "out.jsonl", [(0, False)])
    run(tmp_path / "out.jsonl", [(1, False)], resume=True)
    assert parsed(tmp_path / "out.jsonl") == [0, 1]


def test_places_that_can_not_be_written_are_found_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "out.jsonl").write_text(OLD_ROWS)
    for name, cause in (("none/out.jsonl", "No such file"), (".", "Is a directory"), ("loop", "symbolic links")):
        with pytest.raises(UsageError, match=cause):
            RowsFile(str(tmp_path / name))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="Permission denied"):
        RowsFile(str(tmp_path / "out.jsonl"))


def test_standard_output_pipes_and_devices_are_streams(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "out.jsonl").write_text("")
    assert all(map(is_stream, ("-", "/dev/null", "/dev/stdout", "/dev/fd/1", str(tmp_path / "pipe"))))
    assert not any(is_stream(str(tmp_path / name)) for name in ("out.jsonl", "none.jsonl", "."))
