"""JSON Schemas that are measured: each as a schema, as the pattern of its compact JSON, and outputs of it."""

import json
from typing import Any

from benchmarks.constraining.patterns import FRACTION_AND_OFFSET, TIME


def _text(low: int, high: int | None = None) -> dict[str, Any]:
    bounds = {"minLength": low} | ({} if high is None else {"maxLength": high})
    return {"type": "string", **bounds}


def _object(**properties: Any) -> dict[str, Any]:
    """Every property required, no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


NESTED = _object(
    id={"type": "integer"},
    title={"type": "string"},
    author=_object(name={"type": "string"}, verified={"type": "boolean"}, role={"enum": ["reader", "editor", "owner"]}),
    tags={"type": "array", "items": {"type": "string"}},
    sections={
        "type": "array",
        "items": _object(heading={"type": "string"}, words={"type": "integer"}, draft={"type": "boolean"}),
    },
    parent={"type": ["integer", "null"]},
)
BOUNDED = _object(
    id={"type": "string", "format": "uuid"},
    name=_text(2, 40),
    email={"type": "string", "format": "email"},
    age={"type": "integer", "minimum": 0, "maximum": 150},
    joined={"type": "string", "format": "date-time"},
    code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
    summary=_text(0, 200),
    scores={"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 10}, "minItems": 1, "maxItems": 5},
)

# What stands in a JSON string for one character: itself, or an escape; a pair of them where it is beyond U+FFFF.
_HEX = "[0-9A-Fa-f]"
_CHARACTER = (
    r'(?:[^"\\\x00-\x1f\ud800-\udfff]|\\["\\/bfnrt]'
    rf"|\\u(?:[0-9A-Ca-cE-Fe-f]{_HEX}{{3}}|[Dd][0-7]{_HEX}{{2}})"
    rf"|\\u[Dd][89ABab]{_HEX}{{2}}\\u[Dd][C-Fc-f]{_HEX}{{2}})"
)
_TEXT = f'"{_CHARACTER}*"'
_INTEGER, _BOOLEAN = "(?:0|-?[1-9][0-9]*)", "(?:true|false)"
_UUID = f"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"

# The formats as lmc/grammar/schema/README.md describes them: all of it valid, not all that is valid.
_FOURS = "(?:0[48]|[2468][048]|[13579][26])"
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_TO_28 = "0[1-9]|1[0-9]|2[0-8]"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:{_TO_28}|29|30|31)|(?:0[469]|11)-(?:{_TO_28}|29|30)|02-(?:{_TO_28}))"
    f"|(?:[0-9]{{2}}{_FOURS}|{_FOURS}00)-02-29)"
)
_DATE_TIME = _DATE + "T" + TIME + FRACTION_AND_OFFSET
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_LOCAL = rf"(?:{_ATOM}{{1,64}}|{_ATOM}{{1,31}}\.{_ATOM}{{1,32}}|{_ATOM}{{1,15}}(?:\.{_ATOM}{{1,15}}){{2,3}})"


def _label(longest: int) -> str:
    return f"(?:[A-Za-z0-9]{{1,{longest}}}|[A-Za-z0-9](?:-?[A-Za-z0-9]){{0,{(longest - 1) // 2}}})"


_EMAIL = rf"{_LOCAL}@{_label(63)}(?:\.{_label(30)}){{0,3}}\.[A-Za-z]{{2,24}}"


def _members(**values: str) -> str:
    """A compact object."""
    return r"\{" + ",".join(f'"{key}":{value}' for key, value in values.items()) + r"\}"


def _list(item: str, low: int = 0, high: int | None = None) -> str:
    """A compact list of ``low`` to ``high`` items."""
    rest = f"{{{max(low - 1, 0)},{'' if high is None else high - 1}}}"
    listed = rf"\[{item}(?:,{item}){rest}\]"
    return listed if low else rf"(?:\[\]|{listed})"


NESTED_MEANING = _members(
    id=_INTEGER,
    title=_TEXT,
    author=_members(name=_TEXT, verified=_BOOLEAN, role='"(?:reader|editor|owner)"'),
    tags=_list(_TEXT),
    sections=_list(_members(heading=_TEXT, words=_INTEGER, draft=_BOOLEAN)),
    parent=f"(?:{_INTEGER}|null)",
)
BOUNDED_MEANING = _members(
    id=f'"{_UUID}"',
    name=f'"{_CHARACTER}{{2,40}}"',
    email=f'"{_EMAIL}"',
    age="(?:[1-9]?[0-9]|1[0-4][0-9]|150)",
    joined=f'"{_DATE_TIME}"',
    code='"[A-Z]{3}-[0-9]{4}"',
    summary=f'"{_CHARACTER}{{0,200}}"',
    scores=_list("(?:[1-9]|10)", 1, 5),
)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


NESTED_OUTPUTS = (
    _compact(
        {
            "id": 40213,
            "title": "A short guide to tide tables",
            "author": {"name": "Mirabel Ashdown", "verified": True, "role": "editor"},
            "tags": ["sea", "tables", "how-to"],
            "sections": [
                {"heading": "Why the moon matters", "words": 812, "draft": False},
                {"heading": 'Reading a "table"', "words": 1290, "draft": True},
            ],
            "parent": None,
        }
    ),
    _compact(
        {
            "id": -7,
            "title": "Über 🌊 und Mond",
            "author": {"name": "", "verified": False, "role": "owner"},
            "tags": [],
            "sections": [],
            "parent": 12,
        }
    ),
)
BOUNDED_OUTPUTS = (
    _compact(
        {
            "id": "3f2b8c1e-9a47-4d06-b5e3-7c1d20a9f86b",
            "name": "Mirabel Ashdown",
            "email": "mirabel.ashdown@mail.example.org",
            "age": 37,
            "joined": "2031-04-17T09:26:53Z",
            "code": "KQX-2048",
            "summary": "Keeps the bridge at night, writes tables of the tides, never sleeps before the lamp is out.",
            "scores": [7, 10, 3],
        }
    ),
    _compact(
        {
            "id": "00000000-0000-4000-8000-000000000001",
            "name": "Žofie\n2",
            "email": "z2@example.com",
            "age": 150,
            "joined": "1999-12-31T23:59:59.25+02:00",
            "code": "AAA-0000",
            "summary": "",
            "scores": [1],
        }
    ),
)
