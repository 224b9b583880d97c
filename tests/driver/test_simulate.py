import json
from pathlib import Path

import pytest

from lmc.driver import UsageError
from lmc.driver.commands.simulate import POLICIES, read_requests, report_data, run
from lmc.ir.errors import InputError

ROWS = [
    {"id": "a", "tokens": [1, 2, 3], "output": 4},
    {"id": "b", "tokens": [1, 2, 3, 9, 8, 7, 6], "output": 2, "after": ["a"], "arrival": 0.5},
]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    return str(path)


def test_requests_come_with_their_lines(trace: str):
    (first, second), block = read_requests(trace)
    assert block is None
    assert (first.id, second.id, second.after, second.arrival) == ("a", "b", ("a",), 0.5)
    assert (str(first.location), str(second.location)) == (f"{trace}:1", f"{trace}:2")


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_serves_a_file(trace: str, policy: str):
    report, note = run(trace, policy=policy, kv_tokens=100, batch=4, prefill_tokens=8)
    assert note is not None
    data = report_data(report, calibrated=False)
    assert (data["policy"], data["requests"], data["prompt_tokens"], data["hit_tokens"]) == (policy, 2, 10, 6)
    assert data["hit_rate"] == 0.6
    assert json.loads(json.dumps(data)) == data


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("[1]", "the row is no object", "write {"),
        ("{", "the row is not JSON", "one JSON object to a line"),
        ('{"id": 1, "id": 2}', "the key 'id' is in one object twice", "keep one"),
        ('{"id": 1, "tokens": [1], "output": 1, "arrival": NaN}', "it has no number NaN", ""),
        ('{"id": 1, "tokens": [1]}', "the row lacks output", "write {"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, cause: str, remedy: str):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n\n" + text)
    with pytest.raises(InputError, match=cause) as raised:
        read_requests(str(path))
    assert str(raised.value.location) == f"{path}:3"
    assert remedy in (raised.value.remedy or "")


def test_a_row_has_bounded_size(trace: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lmc.driver.batch.rows.MAX_ROW_BYTES", 50)
    with pytest.raises(InputError, match="a row of 89 bytes is too large") as raised:
        read_requests(trace)
    assert str(raised.value.location) == f"{trace}:2"


HEAD = (
    '{"format": "lmc.schedule", "version": 5, "plan": "p", "instances": 2, "origin": null, "order": "tree", '
    '"block": 1, "characters": 4,'
    ' "stages": [{"id": "a", "base": null, "answered": false, "pieces": [{"value": 0}], "after": [], "output": 3}]}'
)


@pytest.mark.parametrize(
    ("lines", "number", "cause"),
    [
        (["[1, 0, [[4, 0]]]", "", "[0, 0, [[5, 9]]]"], 4, "a number from 0 to 5 is needed, not 9"),
        (["[1, 0, [[4, 0]]]", "", "[0,0"], 4, "not a schedule: .* at column 5"),
        (["[1, 0, [[4, 0]]]"], 2, "the schedule is cut off: 1 of 2"),
        (["", "[1, 0, [[4, 0]]]", "[0, 0, [[400, 0]]]"], 4, "request '0/0' needs 102 pages"),
        (["[1, 0, [[4, 0]]]", "[0, 0, [[2000000000, 0]]]"], 1, "have more than"),
    ],
)
def test_what_is_wrong_in_a_schedule_is_said_with_its_line(tmp_path: Path, lines: list[str], number: int, cause: str):
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join([HEAD, *lines]))
    with pytest.raises(InputError, match=cause) as raised:
        run(str(path), policy="lmc", kv_tokens=100, batch=2, prefill_tokens=10)
    assert str(raised.value.location) == f"{path}:{number}"


def test_a_schedule_has_lines_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lmc.driver.commands.schedule.MAX_ROW_BYTES", len(HEAD))
    path = tmp_path / "s.jsonl"
    path.write_text(HEAD + "\n[1, 0, [" + " " * len(HEAD) + "]]\n")
    with pytest.raises(InputError, match=rf"a line of {len(HEAD) + 10} bytes is too large") as raised:
        read_requests(str(path))
    assert str(raised.value.location) == f"{path}:2"


def test_an_empty_file_holds_no_requests(tmp_path: Path):
    (tmp_path / "t.jsonl").write_text("\n\n")
    with pytest.raises(UsageError, match="holds no requests") as raised:
        read_requests(str(tmp_path / "t.jsonl"))
    assert "one request as JSON to a line" in (raised.value.remedy or "")


def test_a_policy_has_to_be_known_before_a_file_is_read():
    with pytest.raises(UsageError, match="there is no policy 'best'") as raised:
        run("nowhere.jsonl", policy="best", kv_tokens=1, batch=1, prefill_tokens=1)
    assert POLICIES[0] in (raised.value.remedy or "")
