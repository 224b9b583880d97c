import json
import os
import tracemalloc
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmc.driver.batch import chunks as parts
from lmc.driver.batch.chunks import parts_of
from lmc.driver.batch.rows import ArgumentReader, Row, Signature
from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.ir.errors import InputError
from tests.driver import programs


def rows(count: int, size: int = 0) -> Iterator[Row]:
    return (Row({"a": number}, size=size) for number in range(count))


def numbers(path: str, source: Iterator[Row]) -> list[list[int]]:
    return [[number for number, _ in part] for part in parts_of(path, source)]


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("")
    return str(path)


def test_a_file_is_one_part(data: str):
    assert numbers(data, rows(2000)) == [list(range(2000))]


def test_what_may_come_slowly_is_read_row_by_row(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", str(tmp_path / "pipe")):
        source = rows(3)
        assert next(iter(parts_of(path, source))) == [(0, ((), {"a": 0}))]
        assert next(source).arguments == {"a": 1}


def test_parts_are_as_large_as_memory_allows(data: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts, "PART_BYTES", 5 * parts.ROW_BYTES)
    assert numbers(data, rows(12)) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
    assert numbers(data, rows(4, size=4 * parts.ROW_BYTES)) == [[0], [1], [2], [3], []]


def test_a_row_that_is_no_good_keeps_its_place(data: str):
    wrong = InputError("no good")
    [part] = parts_of(data, iter([Row({"a": 0}), Row({}, wrong), Row({"a": 2})]))
    assert part == [(0, ((), {"a": 0})), (1, wrong), (2, ((), {"a": 2}))]


def test_where_reading_breaks_off_the_rows_before_come_first(data: str):
    def broken() -> Iterator[Row]:
        yield from rows(3)
        raise InputError("reading broke off")

    source = iter(parts_of(data, broken()))
    assert [number for number, _ in next(source)] == [0, 1, 2]
    with pytest.raises(InputError, match="reading broke off"):
        next(source)


def test_rows_hold_as_much_memory_as_is_counted_for_them(data: str):
    count, size = 2000, 600
    lines = (json.dumps({"essay": f"{number:05}" * (size // 5)}) + "\n" for number in range(count))
    Path(data).write_text("".join(lines))
    start = Runner(programs.judge, Options("toy"))._entered()
    start.prepare([((), {"essay": "x"})])
    reader = ArgumentReader(Signature.of(programs.judge))
    tracemalloc.start()
    try:
        [part] = parts_of(data, reader.rows(data, {}))
        waiting = deque((number, row) for number, row in part if not isinstance(row, InputError))
        prepared = start.prepare_window(waiting, is_loaded=False)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(prepared) == len(part) == count
    assert held / count < size + parts.ROW_BYTES
