import dataclasses
import json
import math

import pydantic

from lmc.driver.run.result import Result, describe_error, result_row
from lmc.ir.errors import InputError, Location
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.usage import Usage


class Verdict(pydantic.BaseModel):
    score: int


@dataclasses.dataclass
class Point:
    x: int


PROFILE = Profile("f", {"f/a": OpProfile(Usage(10, 4, 3, 1)), "f/b": OpProfile(Usage(1, 0, 2, 1))})


def test_usage_is_the_sum_over_ops():
    assert Result(1, {}, "", PROFILE).usage == Usage(11, 4, 5, 2)


def test_a_row_has_the_promised_fields_and_is_json():
    value = {"v": Verdict(score=2), "p": Point(1), "set": {1}, "nan": math.nan, "odd": object, "bytes": b"\xff"}
    row = result_row(3, Result(value, {"a": "x", "@meta:a": {"scores": [1]}}, "t", PROFILE))
    assert list(row) == ["index", "value", "variables", "usage", "error"]
    assert row["variables"] == {"a": "x"}, "meta data is no variable"
    assert row["usage"] == {"prompt_tokens": 11, "cached_tokens": 4, "generated_tokens": 5, "calls": 2}
    loaded = json.loads(json.dumps(row, allow_nan=False))
    assert loaded["index"] == 3
    assert loaded["value"]["v"] == {"score": 2}
    assert loaded["value"]["p"] == {"x": 1}
    assert loaded["value"]["odd"] == "<class 'object'>"
    assert loaded["error"] is None


def test_a_value_that_holds_itself_is_shown():
    value: list[object] = [1]
    value.append(value)
    assert result_row(0, Result(value, {}, "", PROFILE))["value"] == "[1, [...]]"


def test_a_failed_row_says_why_and_what_was_spent():
    row = result_row(0, Result.failed(InputError("bad", remedy="mend it", location=Location("p.py", 3)), PROFILE))
    assert row["error"] == "p.py:3: bad\n  remedy: mend it"
    assert (row["value"], row["variables"], row["usage"]["calls"]) == (None, {}, 2)


def test_a_users_error_is_described_with_its_line():
    error = ValueError("no number")
    error.add_note("in the program at p.py:3")
    assert describe_error(error) == "ValueError: no number\n  in the program at p.py:3"
    assert describe_error(SystemExit()) == "SystemExit"
