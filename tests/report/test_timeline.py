"""Timelines from files: cut anywhere, written by anybody."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.errors import InputError
from lmc.report.timeline import FORMAT, MAX_LINE, RunTimeline, read_timeline
from tests.driver import programs
from tests.driver.timelines import recorded

HEADER: dict[str, Any] = {
    "format": FORMAT,
    "version": 1,
    "lmc": "0",
    "program": "p",
    "sources": {"p": "0" * 64},
    "target": "toy",
    "input": None,
    "rows": None,
}


def event(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b",\n"


def head(**changed: Any) -> list[bytes]:
    return [b"[\n", event(ph="M", pid=0, tid=0, name=FORMAT, args=HEADER | changed)]


def read(lines: list[bytes]) -> RunTimeline:
    return read_timeline(lines, "t.json")


@cache
def _whole(folder: Path) -> bytes:
    rows = [{"topic": "a"}, {"topic": "b"}]
    recorded(programs.breaks, rows, folder / "t.json")
    return (folder / "t.json").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _whole(tmp_path_factory.mktemp("timeline"))


def test_a_file_that_is_cut_anywhere_holds_all_before_the_cut(whole: bytes):
    complete = read(whole.splitlines(keepends=True))
    header = whole.index(b"\n", 3)
    before = RunTimeline(header=complete.header)
    for end in range(header - 1, len(whole) + 1):
        found = read(whole[:end].splitlines(keepends=True))
        for name in ("plans", "requests", "tools"):
            assert getattr(found, name) == getattr(complete, name)[: len(getattr(found, name))]
            assert len(getattr(found, name)) >= len(getattr(before, name))
        assert found.is_complete == (b'"end"' in whole[:end] and whole[:end].rstrip(b"\n]").endswith(b"}}"))
        before = found
    assert before == complete


def test_a_file_that_ends_before_its_header_is_no_timeline(whole: bytes):
    for end in range(whole.index(b"\n", 3) - 1):
        with pytest.raises(InputError, match="has no header of a timeline"):
            read(whole[:end].splitlines(keepends=True))


def test_every_prefix_of_lines_is_json_once_it_is_closed(whole: bytes):
    json.loads(whole)
    lines = whole.splitlines()
    for count in range(2, len(lines)):
        json.loads(b"\n".join(lines[:count]).rstrip(b",") + b"]")


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ([], "t.json has no header of a timeline"),
        ([b"{}\n"], "t.json is no timeline: line 1 is no event of one"),
        ([b"\x80\x00\n"], "t.json is no timeline: line 1 is no event of one"),
        ([b"[\n", b'{"name": 3},\n'], "t.json is no timeline: line 2 is no event of one"),
        ([b"[\n", event(ph="M", name="other", args={})], "t.json is no timeline: line 2 is no event of one"),
        (head(version=2), "t.json is a timeline of version 2, and this lmc reads version 1"),
        (head(version="x" * 1000), f"t.json is a timeline of version 'x{'x' * 38}, and this lmc reads version 1"),
        (head(sources=[1]), "t.json is no timeline: line 2 is no event of one"),
        ([*head(), b"nonsense\n"], "t.json is no timeline: line 3 is no event of one"),
        ([*head(), b"[" * 100_000 + b"\n"], "t.json is no timeline: line 3 is no event of one"),
        ([*head(), b" " * MAX_LINE + b"{}\n"], "t.json is no timeline: line 3 is no event of one"),
        ([*head(), b"9" * 5000 + b"\n"], "t.json is no timeline: line 3 is no event of one"),
        (
            [*head(), event(ph="X", pid=1, tid=1, ts=0, dur=-1, name="a", cat="generate", args={})],
            "t.json is no timeline: line 3 is no event of one",
        ),
        (
            [*head(), event(ph="X", pid=1, tid=1, ts=0, dur=1, name="a", cat="generate", args={"row": "0"})],
            "t.json is no timeline: line 3 is no event of one",
        ),
        ([*head(), event(ph="X", pid=3, name="step", args={})], "t.json is no timeline: line 3 is no event of one"),
        ([*head(), event(ph="M", name="plan", args={"plan": 1})], "t.json is no timeline: line 3 is no event of one"),
    ],
)
def test_what_is_no_timeline_is_refused(lines: list[bytes], cause: str):
    with pytest.raises(InputError) as failure:
        read(lines)
    assert failure.value.cause == cause
    assert failure.value.remedy


def test_events_and_fields_that_are_not_known_are_left_out():
    found = read([*head(more=1), event(ph="i", pid=9, name="x"), event(ph="X", pid=7, name="y", args={"a": []})])
    assert found == RunTimeline(header=found.header)


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(["ph", "pid", "tid", "ts", "dur", "name", "cat", "args"])
known = ["M", "X", "plan", "end", "generate", "score", 1, 2, 3, {"row": None, "ready": 0, "sample": 1}]
values = json_values | st.sampled_from(known)
events = st.dictionaries(fields, values).map(lambda event: json.dumps(event).encode() + b",\n")


@given(st.lists(events, max_size=5) | st.lists(st.binary(max_size=40)))
def test_anything_is_read_or_refused(lines: list[bytes]):
    for given_lines in (lines, [*head(), *lines]):
        with suppress(InputError):
            read(given_lines)
