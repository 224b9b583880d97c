"""Files and batches that outlive a server: ``--state``."""

import json
import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from lmc.ir.errors import InputError
from lmc.runtime.server.batches.store import LineEnd, StateStore, StoredBatch, StoredFile
from tests.runtime.server.servers import FULL, SECONDS, Served, anthropic_client, openai_client, served
from tests.runtime.server.test_batches import chats, ended, line_of, rows_of, upload


def client_of(server: Served) -> openai.OpenAI:
    return openai_client(server.url)


def begin(client: openai.OpenAI, bodies: list[dict[str, Any]]) -> str:
    lines = [line_of(f"row {number}", body) for number, body in enumerate(bodies)]
    return client.batches.create(
        completion_window="24h", endpoint="/v1/chat/completions", input_file_id=upload(client, lines)
    ).id


def until_some_are_done(client: openai.OpenAI, batch_id: str, least: int) -> int:
    end = time.monotonic() + SECONDS
    while True:
        counts = client.batches.retrieve(batch_id).request_counts
        assert counts is not None
        if counts.completed >= least:
            return counts.completed
        assert time.monotonic() < end
        time.sleep(0.005)


def results_in(folder: Path) -> dict[int, bytes]:
    """Results of the lines of the only batch in the state of a server that has ended."""
    database = sqlite3.connect(folder / "lmc-serve.sqlite3")
    try:
        return dict(database.execute("SELECT number, text FROM results"))
    finally:
        database.close()


def answers(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row["custom_id"], row["response"]["body"]["choices"]) for row in rows]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM] if FULL else [signal.SIGKILL])
def test_a_batch_goes_on_where_a_server_has_ended(end: signal.Signals, tmp_path: Path, builtin: Served):
    state = tmp_path / "in" / "state"
    bodies = chats(builtin.model, 150 if FULL else 60, max_tokens=12)
    options = ("--model", "builtin", "--deterministic", "--kv-tokens", "2000", "--state", str(state))
    with served(*options, "--drain-seconds", "0") as server:
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        client = client_of(server)
        batch_id = begin(client, bodies)
        other = client.files.create(file=("kept", b"\x00\xff" * 9), purpose="batch").id
        until_some_are_done(client, batch_id, 10)
        server.process.send_signal(end)
        assert server.process.wait(SECONDS) == (0 if end is signal.SIGTERM else -9)
    before = results_in(state)
    assert 10 <= len(before) < len(bodies)
    with served(*options) as server:
        client = client_of(server)
        batch = ended(client, batch_id)
        assert (batch.status, batch.error_file_id) == ("completed", None)
        rows = rows_of(client, batch.output_file_id)
        assert client.files.content(other).read() == b"\x00\xff" * 9
        assert server.stop() == 0
    after = results_in(state)
    assert {number: after[number] for number in before} == before  # finished lines did not run again
    assert sorted(after) == list(range(1, len(bodies) + 1))
    plain = client_of(builtin)
    once = rows_of(plain, ended(plain, begin(plain, bodies)).output_file_id)
    assert answers(rows) == answers(once)


def test_batches_that_came_too_late_or_were_cancelled_end_at_the_next_start(tmp_path: Path):
    options = ("--model", "builtin", "--state", str(tmp_path))
    with served(*options) as server:
        client = client_of(server)
        late, cancelled = (begin(client, chats(server.model, 400, max_tokens=100)) for _ in range(2))
        until_some_are_done(client, late, 3)
        until_some_are_done(client, cancelled, 3)
        server.process.kill()
    database = sqlite3.connect(tmp_path / "lmc-serve.sqlite3")
    with database:
        for batch_id, name, value in ((late, "expires", int(time.time()) - 1), (cancelled, "status", "cancelling")):
            ((text,),) = database.execute("SELECT data FROM batches WHERE id = ?", (batch_id,)).fetchall()
            database.execute(
                "UPDATE batches SET data = ? WHERE id = ?", (json.dumps({**json.loads(text), name: value}), batch_id)
            )
    database.close()
    with served(*options) as server:
        client = client_of(server)
        for batch_id, status in ((late, "expired"), (cancelled, "cancelled")):
            batch = ended(client, batch_id)
            done, left = rows_of(client, batch.output_file_id), rows_of(client, batch.error_file_id)
            assert batch.status == status
            assert {row["error"]["code"] for row in left} == {f"batch_{status}"}
            assert len(done) >= 3
            assert len({row["custom_id"] for row in done + left}) == len(done + left) == 400


def test_a_full_disk_ends_batches_and_nothing_else(tmp_path: Path):
    """Files of the server can't grow: so results can't be written."""
    options = ("--model", "builtin", "--deterministic", "--state", str(tmp_path))
    bodies = chats("builtin", 300, max_tokens=60)
    with served(*options) as server:
        client = client_of(server)
        claude = anthropic_client(server.url)
        batch_id = begin(client, bodies)
        asks: list[Any] = [
            {
                "custom_id": f"row-{number}",
                "params": {
                    "model": "builtin",
                    "max_tokens": 60,
                    "messages": [{"role": "user", "content": f"{number}"}],
                },
            }
            for number in range(300)
        ]
        messages = claude.messages.batches.create(requests=asks).id
        until_some_are_done(client, batch_id, 1)
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, most))
        batch = ended(client, batch_id)
        assert (batch.status, batch.completed_at) == ("failed", None)
        assert batch.failed_at is not None
        assert batch.errors is not None
        (error,) = batch.errors.data or []
        assert error.message is not None
        assert "the state can't be read or written" in error.message
        assert batch.request_counts is not None
        assert (batch.request_counts.total, batch.request_counts.failed) == (300, 0)
        while (other := claude.messages.batches.retrieve(messages)).processing_status != "ended":
            time.sleep(0.05)
        assert other.request_counts.processing == 0
        assert other.request_counts.succeeded + other.request_counts.errored == 300
        results = {row.custom_id: row.result for row in claude.messages.batches.results(messages)}
        assert sorted(results) == sorted(f"row-{number}" for number in range(300))
        assert {result.type for result in results.values()} <= {"succeeded", "errored"}
        with pytest.raises(openai.InternalServerError, match="the state can't be read or written"):
            upload(client, [line_of("a", bodies[0])])
        assert client.chat.completions.create(**bodies[0]).choices[0].message.content
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert ended(client, begin(client, bodies[:9])).status == "completed"
        assert client.batches.retrieve(batch_id).status == "failed"
        assert batch_id in [each.id for each in client.batches.list() if each.status == "failed"]
        assert server.stop() == 0
    with served(*options) as server:  # what could not be written is not known: the batch goes on
        client = client_of(server)
        batch = ended(client, batch_id)
        assert batch.status == "completed"
        assert len(rows_of(client, batch.output_file_id)) == 300


def test_a_failure_that_can_be_written_stays():
    store = StateStore()
    batch = StoredBatch("b", "openai", "e", 0, 1, 2)
    store.add_batch(batch, [(1, b"a"), (2, b"b")])
    failed = store.fail_batch(replace(batch, status="failed", error="why"), [])
    assert store.batch("b", "openai") == failed
    assert store.unfinished_batches() == []


def test_a_second_server_on_the_same_state_is_refused(tmp_path: Path):
    options = ("--model", "toy", "--state", str(tmp_path))
    refused = pytest.raises(AssertionError, match="another server keeps its state in")
    with served(*options), refused, served(*options):
        pass
    with served(*options):
        pass


def test_state_that_is_none_is_refused(tmp_path: Path):
    (tmp_path / "lmc-serve.sqlite3").write_bytes(b"no database " * 1000)
    with pytest.raises(InputError, match="can't be used"):
        StateStore(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be used"):
        StateStore(tmp_path / "file")


_WRITER = """
import sys
from pathlib import Path
from lmc.runtime.server.batches.store import LineEnd, StateStore, StoredBatch
store = StateStore(Path(sys.argv[1]))
store.add_batch(StoredBatch("b", "openai", "/v1/chat/completions", 0, 1, 400), [(n, b"request") for n in range(400)])
for number in range(400):
    store.finish("b", [LineEnd(number, "succeeded", b"x" * (number * 37 % 5000))])
    print(number, flush=True)
"""


def test_what_was_done_survives_a_cut_at_any_byte(tmp_path: Path):
    """The log of SQLite is what a crash can leave unfinished: cut anywhere, it has a prefix of what was done."""
    folder = tmp_path / "state"
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 150:
                process.kill()
                break
        done = max([150, *(int(line) for line in process.stdout if line.endswith("\n"))])
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    log = whole["lmc-serve.sqlite3-wal"]
    choose = random.Random(3)
    for cut in [len(log), *(choose.randrange(len(log)) for _ in range(60))]:
        copy = tmp_path / str(cut)
        copy.mkdir()
        for name, content in whole.items():
            (copy / name).write_bytes(content[:cut] if name.endswith("-wal") else content)
        store = StateStore(copy)
        try:
            if store.batch("b", "openai") is None:
                assert cut < len(log)
                continue
            missing = store.unfinished_lines("b")
            first = missing[0]
            assert missing == list(range(first, 400))
            assert cut < len(log) or first > done
            lines = b"".join(store.results("b")).splitlines()
            assert lines == [b"x" * (number * 37 % 5000) for number in range(first)]
            assert [store.request("b", number) for number in missing] == [b"request"] * len(missing)
        finally:
            store.close()


def test_the_first_result_of_a_line_stays():
    store = StateStore()
    store.add_batch(StoredBatch("b", "openai", "e", 0, 1, 2), [(1, b"a"), (2, b"b")])
    store.finish("b", [LineEnd(1, "succeeded", b"first", 3, 2, 1)])
    store.finish("b", [LineEnd(1, "expired", b"second"), LineEnd(2, "errored", b"other")])
    assert list(store.results("b")) == [b"first\nother\n"]
    assert list(store.results("b", errors=False)) == [b"first\n"]
    assert store.counts("b").lines == {"succeeded": 1, "errored": 1}


def test_files_expire():
    store = StateStore()
    now = int(time.time())
    store.add_file(StoredFile("old", now - 9, now - 1, "x", "batch", 1), b"x")
    store.add_file(StoredFile("new", now - 9, now + 99, "x", "batch", 1), b"x")
    assert store.file("old") is None
    assert [file.id for file in store.files(None, None, 9, newest_first=True)] == ["new"]
