from __future__ import annotations

import pytest

from lmc.ir.types import ANY, BOOL, CTX, FLOAT, INT, NONE, SIMPLE_TYPES, TEXT, json_of, list_of, type_of


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
