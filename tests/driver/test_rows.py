import dataclasses
import gzip
import math
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

from lmc.driver.batch.rows import ArgumentReader, Signature, count_rows
from lmc.driver.programs import UsageError
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import InputError


class Item(pydantic.BaseModel):
    title: str
    price: float = 1.0


@dataclasses.dataclass
class Point:
    x: int


class Opaque:
    pass


def grade(
    s: Any,
    essay: str,
    count: int = 1,
    ratio: float = 0.5,
    strict: bool = False,
    dims: list[str] = [],  # noqa: B006 - never changed
    item: Item | None = None,
    point: Point | None = None,
    mode: Literal["fast", "slow"] = "fast",
    free=None,
    opaque: Opaque | None = None,
) -> None: ...


def anything(s: Any, **rest: Any) -> None: ...


READER = ArgumentReader(Signature.of(JittedFunction(grade)))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("essay=a=b c", "a=b c"),
        ('essay="quoted"', '"quoted"'),
        ("essay=3", "3"),
        ("essay=", ""),
        ("count=3", 3),
        ("ratio=2", 2.0),
        ("strict=true", True),
        ("strict=no", False),
        ('dims=["a", "b"]', ["a", "b"]),
        ('item={"title": "x"}', Item(title="x")),
        ('point={"x": 3}', Point(3)),
        ("point=null", None),
        ("mode=slow", "slow"),
        ("free=12", "12"),
    ],
)
def test_words_are_typed_by_annotations(word: str, value: object):
    found = READER.assignments([word])[word.partition("=")[0]]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("words", "cause", "remedy"),
    [
        (["essay"], "'essay' is no argument", "key=value"),
        (["essay=a", "essay=b"], "'essay' is given twice", "once"),
        (["esay=a"], "grade has no argument 'esay'", "did you mean 'essay'"),
        (["s=a"], "grade has no argument 's'", "grade takes essay, count"),
        (["count=three"], "count=three: is no int", "give int, as JSON"),
        (["ratio=half"], "ratio=half: is no float", "give float, as JSON"),
        (["strict=perhaps"], "strict=perhaps: is no bool: write true or false", "give bool, as JSON"),
        (["item={}"], "item={}: title: Field required", "as JSON"),
        (["mode=medium"], "mode=medium: is none of 'fast', 'slow'", "give one of these"),
    ],
)
def test_words_that_are_no_good(words: list[str], cause: str, remedy: str):
    with pytest.raises(UsageError, match=cause) as caught:
        READER.assignments(words)
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy


def test_missing_arguments_are_named():
    READER.check_complete({"essay": "x"})
    with pytest.raises(UsageError, match="grade needs essay") as caught:
        READER.check_complete({"count": 3})
    assert caught.value.remedy == "give essay=…, or rows with --input DATA.jsonl"


def test_a_program_with_keywords_of_any_name_takes_them():
    reader = ArgumentReader(Signature.of(JittedFunction(anything)))
    assert reader.assignments(["x=1"]) == {"x": "1"}
    reader.check_complete({})


def write(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(data)
    return str(path)


def test_rows_are_converted_and_faults_stay_in_their_row(tmp_path: Path):
    lines = [
        '{"essay": "one \u2028 line", "item": {"title": "t", "price": 2}}',
        "",
        '{"essay": "two"',
        '["essay"]',
        '{"esay": "three"}',
        '{"count": 3}',
        '{"essay": 3}',
        '{"essay": "four", "count": 1}',
        '{"essay": "four", "point": {"x": [4]}}',
        '{"essay": "five", "point": {"x": 4}, "opaque": null}',
    ]
    data = "\ufeff" + "\r\n".join(lines) + "\n"
    path = write(tmp_path, data.encode() + b'{"essay": "\xff"}\n' + b"[" * 100_000)
    rows = list(READER.rows(path, {"count": 2}))
    assert rows[0].arguments == {"essay": "one \u2028 line", "item": Item(title="t", price=2), "count": 2}
    assert rows[8].arguments == {"essay": "five", "point": Point(4), "opaque": None, "count": 2}
    errors = [(str(row.error), row.error.remedy) for row in rows if row.error is not None]
    expected = [
        (3, "the row is not JSON"),
        (4, 'the row is ["essay"], a list, no object'),
        (5, "grade has no argument 'esay'"),
        (6, "argument 'count' is in the row and in the command"),
        (7, "argument essay is 3, a number: Input should be a valid string"),
        (8, "argument 'count' is in the row and in the command"),
        (9, 'argument point is {"x": [4]}, an object: x is [4], a list: Input should be a valid integer'),
        (11, "the row is not UTF-8"),
        (12, "the row is nested too deep"),
    ]
    for (text, remedy), (line, cause) in zip(errors, expected, strict=True):
        assert text.startswith(f"{path}:{line}: {cause}")
        assert remedy


def test_a_row_that_lacks_an_argument(tmp_path: Path):
    [row] = READER.rows(write(tmp_path, b'{"count": 3}'), {})
    assert isinstance(row.error, InputError)
    assert row.error.cause == "the row lacks essay"
    assert row.error.remedy is not None
    assert row.error.remedy.startswith("add it: grade takes essay, count")


def test_a_row_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lmc.driver.batch.lines.MAX_ROW_BYTES", 17)
    monkeypatch.setattr("lmc.driver.batch.rows.MAX_ROW_BYTES", 17)
    row, fits, last = READER.rows(write(tmp_path, b'{"essay": "long enough"}\n{"essay": "1234"}\r\n{' + b" " * 20), {})
    assert row.error is not None
    assert row.error.cause == "a row of 24 bytes is too large"
    assert fits.arguments == {"essay": "1234"}
    assert last.error is not None
    assert last.error.cause == "a row of 21 bytes is too large"


@pytest.mark.parametrize("data", [b"", b"\n  \n"])
def test_a_file_without_rows(tmp_path: Path, data: bytes):
    with pytest.raises(UsageError, match="holds no rows") as caught:
        READER.rows(write(tmp_path, data), {})
    assert caught.value.remedy


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(UsageError, match=r"none\.jsonl can't be read: No such file") as caught:
        READER.rows(str(tmp_path / "none.jsonl"), {})
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (b'{"essay": "x", "essay": "y"}', "the key 'essay' is in one object twice"),
        (b'{"essay": "\xe9"}', "the row is not UTF-8"),
        (b'{"essay": "x",}', "the row is not JSON: Expecting property name enclosed in double quotes at column 15"),
        (b"[", "the row is not JSON: Expecting value at column 2"),
        (b'{"essay": "x", "ratio": NaN}', "the row is not JSON: it has no number NaN"),
        (b'{"essay": "x", "free": [-Infinity]}', "the row is not JSON: it has no number -Infinity"),
        (b'{"essay": "x", "ratio": 1e999}', "1e999 is too large for a float"),
        (b'{"essay": ' + b"[" * 200_000 + b"}", "the row is nested too deep"),
    ],
)
def test_a_row_that_json_alone_would_take_or_misname(tmp_path: Path, line: bytes, cause: str):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(line + b'\n{"essay": "long enough"}\n')
    first, second = READER.rows(str(path), {"count": 2})
    assert first.error is not None
    assert cause in first.error.cause
    assert str(first.error.location) == f"{path}:1"
    assert second.error is None


def test_floats_that_json_has_no_number_for_are_text(tmp_path: Path):
    lines = b"".join(b'{"essay": "x", "ratio": "%s"}\n' % word for word in (b"NaN", b"Infinity", b"-inf"))
    found = [row.arguments["ratio"] for row in READER.rows(write(tmp_path, lines), {})]
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -math.inf]


def test_values_in_errors_are_short(tmp_path: Path):
    [row] = READER.rows(write(tmp_path, b'{"essay": "x", "count": "%s"}' % (b"y" * 1000)), {})
    assert row.error is not None
    assert row.error.cause.startswith('argument count is "yyy')
    assert "…, a string: Input should be a valid integer" in row.error.cause
    assert len(row.error.cause) < 200
    with pytest.raises(UsageError) as caught:
        READER.assignments([f"count={'y' * 1000}"])
    assert len(caught.value.cause) < 200


def test_rows_are_read_when_they_are_asked_for(tmp_path: Path):
    path = write(tmp_path, b'{"essay": "1"}\n' * 3)
    rows = READER.rows(path, {})
    assert next(rows).arguments == {"essay": "1"}
    Path(path).write_bytes(b"")
    assert len(list(rows)) <= 2  # what was buffered


@pytest.mark.parametrize(
    ("data", "cause", "remedy"),
    [
        ('{"essay": "x"}'.encode("utf-16"), "is UTF-16, not UTF-8", "iconv -f UTF-16"),
        (gzip.compress(b'{"essay": "x"}', mtime=0), "is compressed with gzip", "zcat"),
    ],
)
def test_a_file_that_is_no_text(tmp_path: Path, data: bytes, cause: str, remedy: str):
    with pytest.raises(UsageError, match=cause) as caught:
        READER.rows(write(tmp_path, data), {})
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("name", ["rows.yaml", "rows.txt", "rows", "rows.json"])
@pytest.mark.parametrize("first", [b"- essay: long enough", b"essay,count", b"\x93\xfe caf\xe9", b'{"essay": "x"'])
def test_a_file_of_another_kind_is_refused_at_its_first_row(tmp_path: Path, name: str, first: bytes):
    path = tmp_path / name
    path.write_bytes(b"\n" + first + b'\n{"essay": "long enough"}\n')
    with pytest.raises(UsageError, match="is of no kind that can be read: the row is not") as caught:
        READER.rows(str(path), {})
    assert str(caught.value.location) == f"{path}:2"
    assert all(word in str(caught.value.remedy) for word in ("JSON Lines", "JSON array", ".csv", ".tsv"))


@pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.json", "rows.ndjson"])
def test_json_lines_of_any_name_are_rows(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(b'{"essay": "x", "ratio": NaN}\n{"essay": "long enough"}\nno JSON\n')
    assert [row.error is None for row in READER.rows(str(path), {})] == [False, True, False]


def test_lines_are_counted_in_plain_files_that_are_not_too_large(tmp_path: Path):
    path = write(tmp_path, b'{"essay": "1"}\n\n{"essay": "2"}')
    assert count_rows(path, 1000) == 2
    assert count_rows(path, 5) is None
    assert count_rows(str(tmp_path), 1000) is None
    assert count_rows("-", 1000) is None
