"""Files of journals: cut, changed, of others, in use, and on a disk that is full."""

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import Generation, Request, SamplingParams
from lmc.ir.errors import InputError, JournalError
from lmc.ir.usage import Usage
from lmc.runtime.journal.engine import JournaledEngine
from lmc.runtime.journal.file import DONE, JournalFile
from lmc.runtime.journal.journal import RunJournal
from lmc.runtime.journal.summary import forget_texts, summarize
from tests.runtime.journal.journals import HEAD, CountingEngine, begun, entries, resumed

FULL = os.environ.get("LMC_TEST_FULL") == "1"
PARTS = 6 if FULL else 1
"""Tests that share the cuts of one file."""
REQUESTS = 12


def request(number: int) -> Request:
    return Request((1, 2, number), SamplingParams(max_tokens=5), op_id=f"a/{number}", instance=number % 3)


def ask(journal: RunJournal, count: int = REQUESTS) -> list[Future[Generation]]:
    engine = JournaledEngine(CountingEngine(), journal)
    return [engine.submit(request(number)).future for number in range(count)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crashed(tmp_path_factory.mktemp("journal"), REQUESTS)


def crashed(folder: Path, requests: int) -> Path:
    """A journal as a crash leaves it: with a -wal file, in which each step is a commit of its own."""
    journal = begun(folder / "j")
    for answer in ask(journal, requests):
        answer.result()
    for number in range(3):
        journal.row(number, f"row {number}", failed=False)
    journal.note("end")
    [last] = ask(journal, 1)
    last.result()
    left = folder / "crashed"
    left.mkdir()
    for name in ("j", "j-wal"):
        shutil.copy(folder / name, left / name)
    journal.close()
    return left / "j"


def opened(path: Path) -> int:
    """The number of entries of a journal that opens; else the one error is an ``InputError``."""
    error = error_of(lambda: RunJournal.open(str(path)).close())
    return len(entries(path)) if error is None else -1


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    ("page", "requests", "step"), [(4096, REQUESTS, 97 if FULL else 331), (512, 3, 1 if FULL else 97)]
)
def test_a_file_that_is_cut_at_any_byte_after_a_crash_has_lost_its_end_alone(
    page: int, requests: int, step: int, part: int, tmp_path: Path
):
    """A full run cuts at every byte where pages are small: of large ones there are too many bytes to do so."""
    database = sqlite3.connect(tmp_path / "j")
    database.execute(f"PRAGMA page_size = {page}")
    database.execute("VACUUM")
    database.close()
    written = crashed(tmp_path, requests)
    wal = written.with_name("j-wal").read_bytes()
    assert int.from_bytes(wal[8:12], "big") == page
    assert opened_copy(written, tmp_path, wal) == requests
    used = len(wal.rstrip(b"\0"))
    assert used < len(wal), "the rest is reserved"
    lengths = [*range(part * step, used, PARTS * step), used, used + 1, len(wal) - 1]
    found = [opened_copy(written, tmp_path, wal[:length]) for length in lengths]
    assert found == sorted(found), "a longer file holds all that a shorter one holds"
    assert set(found) == {-1, *range(requests + 1)} or (found[0] == 0 and set(found) == {*range(requests + 1)})


def opened_copy(written: Path, folder: Path, wal: bytes) -> int:
    path = folder / "copy"
    for name in ("copy", "copy-wal", "copy-shm"):
        (folder / name).unlink(missing_ok=True)
    shutil.copy(written, path)
    path.with_name("copy-wal").write_bytes(wal)
    return opened(path)


def test_a_finished_file_that_is_cut_says_so(tmp_path: Path):
    with begun(tmp_path / "j") as journal:
        ask(journal)[-1].result()
        journal.finish()
    data = (tmp_path / "j").read_bytes()
    for length in (1, 15, 60, 99, 100, 512, 4096, len(data) // 2, len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(InputError, match=r"cut|no journal|damaged"):
            RunJournal.open(str(tmp_path / "cut"))


@given(data=st.data())
def test_a_file_with_any_other_bytes_is_one_error_or_a_journal(data: st.DataObject, written: Path):
    """Whatever a file holds, reading it raises errors with a remedy, and nothing else."""
    plain = written.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "j")
        content = bytearray(plain)
        for _ in range(data.draw(st.integers(1, 8))):
            at = data.draw(st.integers(0, len(content) - 1))
            content[at] = data.draw(st.integers(0, 255))
        if data.draw(st.booleans()):
            Path(folder, "j-wal").write_bytes(written.with_name("j-wal").read_bytes())
        path.write_bytes(data.draw(st.sampled_from([bytes(content), bytes(content[: len(content) // 2])])))
        use(path)


@given(st.binary(max_size=300))
def test_a_file_of_any_bytes_is_one_error(content: bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "j")
        path.write_bytes(content)
        use(path)


def use(path: Path) -> None:
    """Read a journal in every way, and go on with it. Errors are those of lmc."""
    for read in (lambda: summarize(str(path)), lambda: replayed(path), lambda: gone_on(path)):
        error = error_of(read)
        assert error is None or error.remedy is not None


def error_of(read: Callable[[], object]) -> InputError | JournalError | None:
    try:
        read()
    except (InputError, JournalError) as error:
        return error
    return None


def replayed(path: Path) -> None:
    with RunJournal.replay(str(path)) as journal:
        for answer in ask(journal):
            answer.exception()


def gone_on(path: Path) -> None:
    with resumed(path) as journal:
        for answer in ask(journal):
            answer.exception()


TEXTS = st.sampled_from(
    ["", "[]", "{}", '{"$":"x"}', "[" * 100_000, '{"token_ids": [1]}', '{"text": 1}', "1e999", '"' + "x" * 9, "null"]
)


@given(result=TEXTS, state=st.integers(-1, 5), kind=st.sampled_from(["generate", "score", "call", "other"]))
def test_results_that_are_not_lmcs_are_one_error(result: str, state: int, kind: str, written: Path):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "j")
        for name in ("j", "j-wal"):
            shutil.copy(written.with_name(name), Path(folder, name))
        database = sqlite3.connect(path)
        with database:
            database.execute("UPDATE entries SET result = ?, state = ?, kind = ?", (result, state, kind))
        database.close()
        use(path)


def test_a_file_of_another_version_names_it(tmp_path: Path):
    begun_and_closed(tmp_path / "j")
    change(tmp_path / "j", "PRAGMA user_version = 1")
    with pytest.raises(InputError, match="has version 1, and this lmc reads version 4"):
        RunJournal.open(str(tmp_path / "j"))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM rows; END",
        "CREATE VIEW v AS SELECT * FROM rows",
        "CREATE TABLE more (a)",
        "DROP TABLE rows",
    ],
)
def test_a_file_with_other_tables_is_no_journal(tmp_path: Path, statement: str):
    begun_and_closed(tmp_path / "j")
    change(tmp_path / "j", statement)
    with pytest.raises(InputError, match="no journal"):
        RunJournal.open(str(tmp_path / "j"))


def test_another_database_is_no_journal(tmp_path: Path):
    change(tmp_path / "j", "CREATE TABLE other (a)")
    (tmp_path / "j").chmod(0o644)
    with pytest.raises(InputError, match="no journal"):
        RunJournal.open(str(tmp_path / "j"))
    assert stat.S_IMODE((tmp_path / "j").stat().st_mode) == 0o644, "it is left as it is"


def test_a_journal_is_used_by_one_run_at_a_time(tmp_path: Path):
    journal = begun(tmp_path / "j")
    ask(journal, 1)[0].result()
    with pytest.raises(InputError, match="another run is using"):
        RunJournal.open(str(tmp_path / "j"))
    code = (
        "import sys; from lmc.runtime.journal.journal import RunJournal; from lmc.ir.errors import InputError\n"
        "try: RunJournal.open(sys.argv[1])\nexcept InputError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "j")], capture_output=True, text=True, check=False
    )
    assert "another run is using the journal" in done.stdout
    assert summarize(str(tmp_path / "j")).requests.finished == 1, "others may read it"
    journal.close()
    RunJournal.open(str(tmp_path / "j")).close()


def test_what_comes_after_the_end_of_a_run_waits_for_nothing(tmp_path: Path):
    journal = begun(tmp_path / "j")
    ask(journal, 1)[0].result()
    journal.close()
    assert isinstance(ask(journal, 1)[0].exception(), JournalError)
    journal.row(0, "row", failed=False)
    journal.close()


def test_a_journal_has_one_thread_however_many_begin_to_use_it(tmp_path: Path):
    with begun(tmp_path / "j") as journal:
        engine = JournaledEngine(CountingEngine(), journal)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda number: engine.submit(request(number)).future.result(), range(64)))
        assert len(answers) == 64
        assert sum(thread.name == "lmc-journal" and thread.is_alive() for thread in threading.enumerate()) == 1


def test_a_file_in_which_no_run_began_is_removed(tmp_path: Path):
    RunJournal.open(str(tmp_path / "j")).close()
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_there_is_not_removed(tmp_path: Path):
    (tmp_path / "j").touch(0o644)
    RunJournal.open(str(tmp_path / "j")).close()
    assert (tmp_path / "j").exists()


@pytest.mark.parametrize("use", [RunJournal.open, RunJournal.replay, summarize, forget_texts])
def test_what_is_no_file_is_left_as_it_is(use: Callable[[str], object], tmp_path: Path):
    """A pipe is there in place of a device: ``--journal /dev/null`` of a superuser must not delete it."""
    path = tmp_path / "j"
    os.mkfifo(path, 0o644)
    with pytest.raises(InputError, match=r"is no file|there is no journal") as raised:
        use(str(path))
    assert raised.value.remedy
    assert path.is_fifo()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("use", [summarize, forget_texts, RunJournal.replay])
def test_to_look_at_a_journal_that_is_not_there_makes_none(use: Callable[[str], object], tmp_path: Path):
    with pytest.raises(InputError, match="there is no journal"):
        use(str(tmp_path / "j"))
    assert not list(tmp_path.iterdir())


def test_a_finished_journal_is_kept_until_the_next_run_sends_a_request(tmp_path: Path):
    begun_and_closed(tmp_path / "j")
    before = entries(tmp_path / "j")
    with RunJournal.open(str(tmp_path / "j")) as journal:
        journal.start(HEAD)
    assert entries(tmp_path / "j") == before != []
    with RunJournal.open(str(tmp_path / "j")) as journal:
        journal.start(HEAD)
        ask(journal, 1)[0].result()
    assert len(entries(tmp_path / "j")) == 1


@pytest.mark.parametrize("pages", [8, 20, 40])
def test_a_full_disk_is_one_error_and_what_was_finished_is_kept(tmp_path: Path, pages: int):
    journal = begun(tmp_path / "j")
    limited(journal, pages)
    answers = ask(journal, 400)
    errors = [error for answer in answers if (error := answer.exception()) is not None]
    assert errors
    assert all(isinstance(error, JournalError) and "no space is left" in str(error) for error in errors)
    assert "make room, then run the same command with --resume" in str(errors[0])
    with pytest.raises(JournalError):
        journal.close()
    done = {op for _, _, op, _, state in entries(tmp_path / "j") if state}
    assert done >= {f"a/{number}" for number, answer in enumerate(answers) if answer.exception() is None}
    with resumed(tmp_path / "j") as journal:
        engine = CountingEngine()
        for number in range(400):
            JournaledEngine(engine, journal).submit(request(number)).future.result()
        assert not done & {op for _, op, _ in engine.sent}


def limited(journal: Any, pages: int) -> None:
    """Let the file have no more than so many pages."""
    journal._file.connection.execute(f"PRAGMA max_page_count = {pages}")


def begun_and_closed(path: Path) -> None:
    with begun(path) as journal:
        ask(journal)[-1].result()
        journal.finish()


def change(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


def test_reading_leaves_a_journal_as_it_is(tmp_path: Path):
    begun_and_closed(tmp_path / "j")
    before = (tmp_path / "j").read_bytes()
    summarize(str(tmp_path / "j"))
    file = JournalFile(str(tmp_path / "j"), writable=False)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        file.set_head("state", "other")
    file.close()
    assert (tmp_path / "j").read_bytes() == before


def test_long_answers_are_in_no_file_but_the_journal(tmp_path: Path):
    """SQLite has temporary files of its own, which nothing removes texts from."""
    opened: set[str] = set()

    def look() -> int:
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                opened.add(str(link.readlink()))
        return 0

    file = JournalFile(str(tmp_path / "run.lmcj"), writable=True)
    try:
        with file.transaction():
            file.create()
        file.connection.set_progress_handler(look, 50)
        asked: dict[str, Any] = {"digest": bytes(16), "request": "{}", "bound": 1, "most": 1, "attempts": "[1]"}
        with file.transaction():
            ids = [file.begin("generate", row, "a", 0, **asked) for row in range(300)]
        with file.transaction():
            for entry in ids:
                file.end(entry, DONE, "x" * 8000, Usage())
    finally:
        file.close()
    assert any("run.lmcj" in path for path in opened)
    assert not [path for path in opened if "etilqs" in path]
