"""Traces: what is left out is filled in, what is wrong is refused with its place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cache import trace
from lmc.cache.trace import TraceRequest, read_trace
from lmc.ir.errors import InputError, Location


def read(*rows: object) -> list[TraceRequest]:
    return read_trace((Location("t.jsonl", number), row) for number, row in enumerate(rows, 1))


def row(name: str | int, tokens: object, output: object = 0, **fields: object) -> dict[str, object]:
    return {"id": name, "tokens": tokens, "output": output, **fields}


def test_a_row_with_nothing_optional() -> None:
    (request,) = read(row("a", [5, 6], 4))
    assert (request.id, request.tokens.tolist(), request.generated.size) == ("a", [5, 6], 4)
    assert (request.after, request.arrival, request.instance, request.priority) == ((), 0.0, 0, 0)
    assert (request.known, request.expected) == (2, 4)
    assert str(request.location) == "t.jsonl:1"


def test_all_that_is_given_is_kept() -> None:
    _, request = read(
        row(1, [5, 6]),
        row(2, [5, 7], 3, after=[1, 1], arrival=2, instance="x", known=1, expected=9, priority=-4),
    )
    assert (request.after, request.arrival, request.known, request.expected) == ((1,), 2.0, 1, 9)
    assert (request.instance, request.priority) == (1, -4)


def test_an_answer_is_what_the_first_request_that_goes_on_has_there() -> None:
    first, other, _, _ = read(
        row("a", [1, 2], 3),
        row("b", [1, 2, 3, 4, 5, 6]),  # goes on from it, but does not wait for it
        row("c", [1, 2, 7, 8], 1, after=["a"]),
        row("d", [1, 2, 9, 9, 9], after=["a", "b"]),
    )
    assert first.generated.tolist()[:2] == [7, 8]
    assert first.generated[2] < 0
    assert other.generated.tolist() == []


def test_answers_that_nobody_goes_on_from_are_like_no_other_token() -> None:
    requests = read(row("a", [1], 4), row("b", [1], 3, after=["a"]), row("c", [2], 2, after=["a"]))
    made = np.concatenate([request.generated for request in requests]).tolist()
    assert len(set(made)) == 9
    assert max(made) < 0


def test_answers_are_cut_to_the_output() -> None:
    first, _ = read(row("a", [1], 2), row("b", [1, 5, 6, 7], after=["a"]))
    assert first.generated.tolist() == [5, 6]


def test_what_is_known_at_first_ends_where_the_first_answer_begins() -> None:
    turns = read(
        row("a", [1, 2, 3], 2),
        row("b", [1, 2, 3, 8, 8, 4], 2, after=["a"]),
        row("c", [1, 2, 3, 8, 8, 4, 9, 9, 5], 2, after=["b"]),
        row("other", [1, 2], 1, after=["c"]),
        row("join", [1, 2, 3, 8], 1, after=["other", "a"]),
    )
    assert [turn.known for turn in turns] == [3, 3, 3, 2, 3]


def test_the_mean_output_is_expected() -> None:
    assert [each.expected for each in read(row(1, [1], 2), row(2, [1], 5, expected=1), row(3, [1], 6))] == [4, 1, 4]


def test_what_hangs_together_is_one_instance_and_a_name_is_another() -> None:
    requests = read(
        row(0, [1]),
        row(1, [1]),
        row(2, [1], instance=0),
        row(3, [1], after=[0]),
        row(4, [1], after=[1], instance="x"),
        row(5, [1], instance="0"),
        row(6, [1], after=[3, 1]),
        row(7, [1], instance=0),
    )
    # 0, 1, 3 and 6 hang together (1 by 6); so would 4, which has a name.
    assert [request.instance for request in requests] == [0, 0, 1, 0, 2, 3, 0, 1]


def test_ids_that_look_alike_are_different() -> None:
    assert [each.id for each in read(row(1, [1]), row("1", [1]))] == [1, "1"]


def test_no_rows_are_no_requests() -> None:
    assert read() == []


@pytest.mark.parametrize(
    ("second", "cause", "remedy"),
    [
        ([1, 2], "the row is no object", '"tokens"'),
        ("x", "the row is no object", '"tokens"'),
        ({"id": 1, "tokens": [1]}, "the row lacks output", '"output": 40'),
        ({}, "the row lacks id, tokens, output", '"output": 40'),
        (row(2, [1], outputs=3), "a request has no 'outputs'", "did you mean 'output'"),
        (row(2, [1], x=3), "a request has no 'x'", "it may have id, tokens"),
        (row(1, [1]), r"the id 1 is given twice \(first at t.jsonl:1\)", "an id of its own"),
        ({"id": None, "tokens": [1], "output": 1}, "the id is null", "whole number"),
        ({"id": True, "tokens": [1], "output": 1}, "id has True", "a text or a whole number"),
        ({"id": [], "tokens": [1], "output": 1}, r"id has \[\]", "a text or a whole number"),
        (row(2, []), r"tokens is \[\]", "at least one"),
        ({"id": 2, "tokens": "abc", "output": 1}, "tokens is 'abc'", "ids of the prompt's tokens"),
        (row(2, [1, -1]), "a token is -1", "from 0 to 2147483647"),
        (row(2, [1, 2**31]), "a token is 2147483648", "from 0 to 2147483647"),
        (row(2, [1, True]), "a token is True", "whole numbers"),
        (row(2, [1.5]), "a token is 1.5", "whole numbers"),
        (row(2, [None]), "a token is None", "whole numbers"),
        (row(2, [10**80]), "a token is 10000.*…", "whole numbers"),
        (row(2, [1], -1), "output is -1", "from 0"),
        (row(2, [1], 2.0), "output is 2.0", "a whole number"),
        (row(2, [1], 2**40), "output is 1099511627776", "a whole number"),
        (row(2, [1], after=1), "after is no list", "for none"),
        (row(2, [1], after=[3]), "to come after 3, which no row before it", "before this one"),
        (row(2, [1], after=[2]), "to come after 2, which no row before it", "before this one"),
        (row(2, [1], after=["1"]), "to come after '1', which no row before it", "before this one"),
        (row(2, [1], after=[None]), "after has None", "a text or a whole number"),
        (row(2, [1], arrival=-1), "arrival is -1", "seconds from 0"),
        (row(2, [1], arrival=float("nan")), "arrival is nan", "seconds from 0"),
        (row(2, [1], arrival="1"), "arrival is '1'", "seconds from 0"),
        (row(2, [1], arrival=None), "arrival is None", "seconds from 0"),
        (row(2, [1], known=2), "known is 2", "from 0 to 1"),
        (row(2, [1], known=-1), "known is -1", "from 0 to 1"),
        (row(2, [1], expected="5"), "expected is '5'", "a whole number"),
        (row(2, [1], priority=2000), "priority is 2000", "from -1000 to 1000"),
        (row(2, [1], instance=1.5), "instance has 1.5", "a text or a whole number"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(second: object, cause: str, remedy: str) -> None:
    with pytest.raises(InputError, match=cause) as raised:
        read(row(1, [1]), second)
    assert str(raised.value.location) == "t.jsonl:2"
    assert remedy in (raised.value.remedy or "")


def test_a_trace_has_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_TOKENS", 10)
    read(row(1, [1, 2], 3), row(2, [1, 2], 3))
    with pytest.raises(InputError, match="the trace is too large") as large:
        read(row(1, [1, 2], 3), row(2, [1, 2], 4))
    assert "at most 10 tokens" in (large.value.remedy or "")
    monkeypatch.setattr(trace, "MAX_REQUESTS", 1)
    with pytest.raises(InputError, match="the trace is too long") as long:
        read(row(1, [1]), row(2, [1]))
    assert "at most 1 requests" in (long.value.remedy or "")


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
keys = st.sampled_from(
    ["id", "tokens", "output", "after", "arrival", "instance", "known", "expected", "priority", "more"]
)


@given(st.lists(st.dictionaries(keys, values, max_size=9) | values, max_size=4))
def test_whatever_stands_in_a_file_is_a_trace_or_refused(rows: list[object]) -> None:
    refused: InputError | None = None
    try:
        requests = read(*rows)
    except InputError as error:
        refused = error
        requests = []
    if refused is None:
        assert [request.id for request in requests] == [row["id"] for row in rows if isinstance(row, dict)]
    else:
        assert refused.location is not None
        assert refused.remedy
