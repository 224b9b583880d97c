"""Rows from CSV and TSV, from JSON arrays, and files that are neither."""

import bz2
import csv
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.driver.batch.rows import ArgumentReader, Row, Signature, count_rows
from lmc.driver.programs import UsageError
from lmc.frontend.program.function import JittedFunction


def grade(
    s: Any,
    essay: str,
    count: int,
    ratio: float = 0.5,
    strict: bool = False,
    dims: list[str] = [],  # noqa: B006 - never changed
    note: str = "none",
    free=None,
) -> None: ...


READER = ArgumentReader(Signature.of(JittedFunction(grade)))


def rows(tmp_path: Path, name: str, data: bytes | str, **fixed: Any) -> list[Row]:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(READER.rows(str(path), fixed))


@pytest.mark.parametrize("name", ["rows.csv", "ROWS.CSV", "rows.tsv"])
def test_cells_are_typed_as_key_value_words_are(tmp_path: Path, name: str):
    text = 'essay,count,ratio,strict,dims,free\r\n"a, ""b""\nc",3,2,true,"[""x"", ""y""]",12\r\n\r\n1,4,,,,\r\n'
    if name == "rows.tsv":
        table = io.StringIO()
        csv.writer(table, delimiter="\t").writerows(csv.reader(io.StringIO(text, newline="")))
        text = table.getvalue()
    first, second = rows(tmp_path, name, "\ufeff" + text)
    assert first.arguments == {
        "essay": 'a, "b"\nc',
        "count": 3,
        "ratio": 2.0,
        "strict": True,
        "dims": ["x", "y"],
        "free": "12",
    }
    assert second.arguments == {"essay": "1", "count": 4, "free": ""}
    assert count_rows(str(tmp_path / name), 1000) == 2


def test_a_cell_that_is_no_good_is_an_error_of_its_row(tmp_path: Path):
    lines = [
        b"essay,count",
        b"a,1",
        b"b,many",
        b"c,",
        b"d",
        b"e,1,2",
        b'"f" g,1',
        b"\xff,1",
        b'"h\ni",2',
        b"j,3",
        b'"k,4',
    ]
    found = rows(tmp_path, "rows.csv", b"\n".join(lines) + b"\n")
    errors = [(str(row.error).partition("rows.csv:")[2], row.error.remedy) for row in found if row.error is not None]
    expected = [
        "3: count=many: is no int",
        "4: count=: is no int",
        "5: the row has 1 cell, and the header has 2",
        "6: the row has 3 cells, and the header has 2",
        "7: the row is no CSV: ',' expected after '\"'",
        "8: the row is not UTF-8",
        "12: a quote that opens a cell of the row is not closed",
    ]
    for (text, remedy), start in zip(errors, expected, strict=True):
        assert text.startswith(start)
        assert remedy
    assert [row.arguments["essay"] for row in found if row.error is None] == ["a", "h\ni", "j"]


@pytest.mark.parametrize(
    ("name", "text", "cause", "remedy"),
    [
        ("rows.csv", "", "holds no rows", "header row"),
        ("rows.csv", "essay,count\n", "holds no rows", "below the header"),
        ("rows.csv", "esay,count\na,1\n", "grade has no argument 'esay'", "did you mean 'essay'"),
        ("rows.csv", "essay,note\na,b\n", "argument 'note' is in the row and in the command", "leave out one"),
        ("rows.csv", ",essay,count\n0,a,1\n", "column 1 of the header has no name", "index=False"),
        ("rows.csv", "essay,essay\na,b\n", "the header has two columns 'essay'", "keep one"),
        ("rows.csv", "essay;count\na;1\n", "the columns are separated by semicolons, not by commas", "with commas"),
        ("rows.csv", "essay\tcount\na\t1\n", "the columns are separated by tabs, not by commas", "name it .tsv"),
        ("rows.tsv", "essay,count\na,1\n", "the columns are separated by commas, not by tabs", "with tabs"),
        ("rows.csv", '"essay,count\na,1\n', "is not closed", '""'),
    ],
)
def test_a_table_without_a_good_header(tmp_path: Path, name: str, text: str, cause: str, remedy: str):
    with pytest.raises(UsageError, match=cause) as caught:
        rows(tmp_path, name, text, note="x")
    assert remedy in str(caught.value.remedy)


def test_a_cell_may_be_long_and_a_row_may_not_be_longer_than_a_row_of_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    [row] = rows(tmp_path, "rows.csv", f"essay,count\n{'x' * 2_000_000},1\n")
    assert len(row.arguments["essay"]) == 2_000_000
    monkeypatch.setattr("lmc.driver.batch.tables.MAX_ROW_BYTES", 20)
    long, short = rows(tmp_path, "rows.csv", f"essay,count\n{'x' * 30},1\ny,2\n")
    assert "is too large" in str(long.error)
    assert short.arguments == {"essay": "y", "count": 2}


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=8)


@given(st.lists(st.tuples(TEXTS, st.integers()), min_size=1, max_size=5), st.sampled_from([",", "\t"]))
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory: pytest.TempPathFactory, table: list, mark: str):
    path = tmp_path_factory.mktemp("tables") / ("rows.csv" if mark == "," else "rows.tsv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=mark)
        writer.writerows([("essay", "count"), *table])
    found = list(READER.rows(str(path), {}))
    assert [(row.arguments.get("essay"), row.arguments.get("count"), row.error) for row in found] == [
        (*entry, None) for entry in table
    ]


@given(st.binary(max_size=60), st.sampled_from(["rows.csv", "rows.tsv", "rows.json", "rows.jsonl"]))
def test_any_bytes_are_rows_or_named_errors(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str):
    folder = tmp_path_factory.mktemp("bytes")
    for start in (b"", b"essay,count\n", b"[", b'[{"essay": "x", "count": 1}, '):
        try:
            found = rows(folder, name, start + data)
        except UsageError as error:
            assert error.remedy  # noqa: PT017 - either is right
        else:
            assert found
            assert all(row.error is None or row.error.remedy for row in found)


def test_a_json_array_is_read_by_its_name(tmp_path: Path):
    text = '\ufeff [\n  {"essay": "a",\n   "count": 1},\n  {"essay": "b"}, 3,\n {"essay": "c", "count": NaN},'
    text += ' {"essay": "d", "essay": "e"}]\n'
    found = rows(tmp_path, "rows.json", text)
    assert found[0].arguments == {"essay": "a", "count": 1}
    assert [str(row.error).partition("rows.json:")[2].partition("\n")[0] for row in found[1:]] == [
        "4: the row lacks count",
        "4: the row is 3, a number, no object",
        "5: the row is not JSON: it has no number NaN",
        "5: the key 'essay' is in one object twice",
    ]
    assert count_rows(str(tmp_path / "rows.json"), 1000) == 5
    lines = rows(tmp_path, "lines.json", '{"essay": "a", "count": 1}\n{"essay": "b", "count": 2}\n')
    assert [row.arguments["count"] for row in lines] == [1, 2]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[{"essay": "a", "count": 1}\n', 2),
        ('[{"essay": "a", "count": 1},\n\n{"essay": ]', 3),
        ('[{"essay": "a", "count": 1}\n{"essay": "b", "count": 1}]', 2),
        ('[{"essay": "a", "count": 1}]\n[]', 2),
        ("[1,]", 1),
    ],
)
def test_a_json_array_that_is_broken_runs_no_row(tmp_path: Path, text: str, line: int):
    with pytest.raises(UsageError, match="the JSON array is broken") as caught:
        rows(tmp_path, "rows.json", text)
    assert caught.value.location is not None
    assert caught.value.location.line == line


def test_other_json_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for text, cause in (("[]", "holds no rows"), ("[" * 100_000, "nested too deep|is broken"), ('["\xe9"]', "UTF-8")):
        with pytest.raises(UsageError, match=cause):
            rows(tmp_path, "rows.json", text.encode("latin-1"))
    monkeypatch.setattr("lmc.driver.batch.lines.MAX_ARRAY_BYTES", 5)
    with pytest.raises(UsageError, match=r"is a JSON array of more than") as caught:
        rows(tmp_path, "rows.json", '[{"a": 1}]')
    assert "jq -c '.[]'" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("data", "cause", "remedy"),
    [
        ('[\n  {"essay": "a"},\n  {"essay": "b"}\n]\n', "holds a JSON array over several lines", "name it .json"),
        (json.dumps({"essay": "a"}, indent=1), "holds a JSON object over several lines", "jq -c ."),
        ('{"a": 1}'.encode("utf-16"), "is UTF-16", "iconv -f UTF-16"),
        ('{"a": 1}'.encode("utf-16-be"), "is UTF-16", "iconv -f UTF-16"),
        ('{"a": 1}'.encode("utf-32"), "is UTF-32", "iconv -f UTF-32"),
        (gzip.compress(b"{}", mtime=0), "is compressed with gzip", "zcat"),
        (bz2.compress(b"{}"), "is compressed with bzip2", "bzcat"),
        (lzma.compress(b"{}"), "is compressed with xz", "xzcat"),
        (b"(\xb5\x2f\xfd\0", "is compressed with zstd", "zstdcat"),
        (b"PAR1\x15\x04", "is a Parquet file", "read_parquet"),
        (b"ARROW1\0\0", "is an Arrow file", "read_feather"),
        (b"SQLite format 3\0", "is an SQLite database", "sqlite3 -csv -header"),
        (b"\x80\x04\x95\0", "is a Python pickle", "JSON Lines"),
        (b"PK\x03\x04", "is a zip archive", "unpack"),
        (b"\xd0\xcf\x11\xe0", "is a workbook of Excel", "save it as CSV"),
    ],
    ids=lambda entry: entry if isinstance(entry, str) and entry[:3] in ("is ", "hol") else "",
)
def test_a_file_of_another_kind_is_named_with_the_remedy(tmp_path: Path, data: bytes | str, cause: str, remedy: str):
    names = ["rows.jsonl"] if isinstance(data, str) else ["rows.jsonl", "rows.csv", "rows.json"]
    for name in names:
        with pytest.raises(UsageError, match=cause) as caught:
            rows(tmp_path, name, data)
        assert remedy in str(caught.value.remedy)
    if cause == "is a zip archive":
        with pytest.raises(UsageError, match=r"rows\.xlsx is a workbook of Excel"):
            rows(tmp_path, "rows.xlsx", data)


def test_a_table_may_begin_with_the_letters_of_another_kind(tmp_path: Path):
    reader = ArgumentReader(Signature("p", ("ORC", "PAR1"), (), {}))
    path = tmp_path / "rows.csv"
    for header in ("ORC,PAR1", "PAR1,ORC"):
        path.write_text(f"{header}\n1,2\n")
        [row] = reader.rows(str(path), {})
        assert row.error is None
