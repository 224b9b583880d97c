from __future__ import annotations

import pytest

from lmc.ir.types import (
    ANY,
    BOOL,
    CTX,
    FLOAT,
    INT,
    NONE,
    SIMPLE_TYPES,
    TEXT,
    Type,
    fits,
    holds_context,
    json_of,
    list_of,
    type_of,
)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, NONE),
        (True, BOOL),
        (1, INT),
        (1.0, FLOAT),
        ("a", TEXT),
        ([], list_of(ANY)),
        (["a", "b"], list_of(TEXT)),
        (["a", 1], list_of(ANY)),
        ([["a"]], list_of(list_of(TEXT))),
        (("a",), ANY),
        ({"a": 1}, ANY),
        (object(), ANY),
    ],
)
def test_types_of_values(value: object, kind: object):
    assert type_of(value) == kind


def test_types_compare_by_value():
    assert list_of(TEXT) == list_of(TEXT) != list_of(INT)
    assert json_of("a") != json_of("b")
    assert SIMPLE_TYPES["ctx"] is CTX


def test_types_print():
    assert [str(kind) for kind in (CTX, list_of(TEXT), json_of("Verdict"))] == [
        "!ctx",
        "!list<!text>",
        "!json<Verdict>",
    ]


@pytest.mark.parametrize(
    ("found", "place", "expected"),
    [
        (TEXT, TEXT, True),
        (TEXT, INT, False),
        (INT, ANY, True),
        (ANY, INT, False),
        (CTX, CTX, True),
        (CTX, ANY, False),
        (list_of(CTX), ANY, False),
        (list_of(CTX), list_of(ANY), False),
        (list_of(TEXT), ANY, True),
        (list_of(TEXT), list_of(ANY), True),
        (list_of(list_of(TEXT)), list_of(ANY), True),
        (list_of(ANY), list_of(TEXT), False),
        (TEXT, list_of(TEXT), False),
        (json_of("a"), json_of("b"), False),
        (json_of("a"), ANY, True),
    ],
)
def test_where_types_fit(found: Type, place: Type, expected: bool):
    assert fits(found, place) is expected


def test_types_that_hold_contexts():
    assert [holds_context(kind) for kind in (CTX, list_of(list_of(CTX)), list_of(TEXT), ANY)] == [
        True,
        True,
        False,
        False,
    ]
