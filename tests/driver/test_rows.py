import dataclasses
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

from lmc.driver.programs import UsageError
from lmc.driver.rows import ArgumentReader, Signature
from lmc.frontend.function import JittedFunction
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
        (
            ["count=three"],
            "count=three: Input should be a valid integer|count=three: Invalid JSON",
            "give int, as JSON",
        ),
        (["item={}"], "item={}: title: Field required", "as JSON"),
        (["mode=medium"], "mode=medium: ", "as JSON"),
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
        '{"essay": "five", "point": {"x": 4}, "opaque": null}',
    ]
    data = "\ufeff" + "\r\n".join(lines) + "\n"
    path = write(tmp_path, data.encode() + b'{"essay": "\xff"}\n' + b"[" * 100_000)
    rows = READER.rows(path, {"count": 2})
    assert rows[0].arguments == {"essay": "one \u2028 line", "item": Item(title="t", price=2), "count": 2}
    assert rows[7].arguments == {"essay": "five", "point": Point(4), "opaque": None, "count": 2}
    errors = [(str(row.error), row.error.remedy) for row in rows if row.error is not None]
    expected = [
        (3, "the row is not JSON"),
        (4, "the row is a list, no object"),
        (5, "grade has no argument 'esay'"),
        (6, "argument 'count' stands in the row and in the command"),
        (7, "essay: Input should be a valid string"),
        (8, "argument 'count' stands in the row and in the command"),
        (10, "the row is not UTF-8"),
        (11, "the row is nested too deep"),
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
    monkeypatch.setattr("lmc.driver.rows.MAX_ROW_BYTES", 10)
    [row] = READER.rows(write(tmp_path, b'{"essay": "long enough"}'), {})
    assert row.error is not None
    assert "a row of 24 bytes is too large" in row.error.cause


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
        (b'{"essay": "x", "essay": "y"}', "the key 'essay' stands in one object twice"),
        (b'{"essay": "\xe9"}', "the row is not UTF-8"),
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
