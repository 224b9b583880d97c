"""The class that an operator gives for objects of the standard library, found by samples of their classes."""

from __future__ import annotations

import datetime
import decimal
import fractions
import operator
from functools import lru_cache
from typing import Any

_SAMPLES: dict[type, Any] = {
    int: 3,
    bool: True,
    float: 2.5,
    datetime.date: datetime.date(2024, 2, 3),
    datetime.datetime: datetime.datetime(2024, 2, 3),  # noqa: DTZ001
    datetime.timedelta: datetime.timedelta(days=2, hours=1),
    decimal.Decimal: decimal.Decimal("1.5"),
    fractions.Fraction: fractions.Fraction(2, 3),
}
_OPERATORS = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "abs"})
_PLAIN = (int, bool, float)


@lru_cache(maxsize=512)
def class_given(name: str, *classes: type) -> type | None:
    """The class of what the operator ``name`` gives for instances of ``classes``, at least one of the library's."""
    if name not in _OPERATORS or all(kind in _PLAIN for kind in classes):
        return None
    if not all(kind in _SAMPLES for kind in classes):
        return None
    try:
        return type(getattr(operator, name)(*(_SAMPLES[kind] for kind in classes)))
    except TypeError:
        return None
