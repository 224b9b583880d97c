"""Polyfills do what Python's own functions do, call by call: result, order of callbacks, exceptions."""

import bisect
import contextlib
import functools
import itertools
import operator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.frontend.python.library import polyfills

FULL = settings.default.max_examples > 100  # type: ignore[union-attr]
_ITEMS = st.lists(st.integers(-3, 3), max_size=5)
_NUMBERS = st.integers(-3, 3) | st.sampled_from([-1.0, 0.0, 1.0])
_MOST = 12  # items that are taken of an endless iterator


def _taking(groupby: Any) -> Any:
    """Take some items of each group at once, and ask for the rest at the end, where there is none."""

    def groups(items: Any, key: Any, most: int) -> Any:
        kept: list[Any] = []
        for found, group in groupby(items, key):
            kept.append(group)
            yield found, list(itertools.islice(group, most))
        yield [list(group) for group in kept]

    return groups


def _inserting(insort: Any) -> Any:
    """Insert into a sorted list; whole numbers and fractions that are equal show on which side."""

    def inserted(items: Any, value: Any) -> Any:
        found = sorted(items)
        insort(found, value)
        yield [repr(each) for each in found]

    return inserted


def _raising(suppress: Any) -> Any:
    """Suppress one of three exceptions."""

    def raised(number: int, items: Any) -> Any:
        kinds = (KeyError, LookupError, ValueError, TypeError)
        with suppress(*kinds[:number]):
            yield from items
            raise kinds[(number + 1) % 3]("raised")
        yield "after"

    return raised


PAIRS: dict[str, tuple[Any, Any, st.SearchStrategy[Any]]] = {
    "map": (polyfills.map_, map, st.tuples(st.just("one"), _ITEMS)),
    "map of rows": (polyfills.map_rows, map, st.tuples(st.just("two"), _ITEMS, _ITEMS)),
    "filter": (polyfills.filter_, filter, st.tuples(st.sampled_from(["one", None]), _ITEMS)),
    "filterfalse": (polyfills.filterfalse, itertools.filterfalse, st.tuples(st.sampled_from(["one", None]), _ITEMS)),
    "enumerate": (polyfills.enumerate_, enumerate, st.tuples(_ITEMS) | st.tuples(_ITEMS, st.integers(0, 3))),
    "zip": (polyfills.zip_, zip, st.tuples(_ITEMS, _ITEMS) | st.tuples(_ITEMS, _ITEMS, _ITEMS)),
    "fromkeys": (
        lambda items, *value: polyfills.from_keys(items, *value).items(),
        lambda items, *value: dict.fromkeys(items, *value).items(),
        st.tuples(_ITEMS) | st.tuples(_ITEMS, st.integers()),
    ),
    "starmap": (polyfills.starmap, itertools.starmap, st.tuples(st.just("two"), st.lists(st.tuples(_ITEMS, _ITEMS)))),
    "takewhile": (polyfills.takewhile, itertools.takewhile, st.tuples(st.just("one"), _ITEMS)),
    "dropwhile": (polyfills.dropwhile, itertools.dropwhile, st.tuples(st.just("one"), _ITEMS)),
    "accumulate": (polyfills.accumulate, itertools.accumulate, st.tuples(_ITEMS) | st.tuples(_ITEMS, st.just("two"))),
    "reduce": (
        polyfills.reduce,
        functools.reduce,
        st.tuples(st.just("two"), _ITEMS) | st.tuples(st.just("two"), _ITEMS, st.none() | st.integers(0, 3)),
    ),
    "max": (
        lambda key, items, *default: [polyfills.extreme("max", operator.gt, items, key, *default)],
        lambda key, items, *default: [max(items, key=key, **dict(zip(["default"], default, strict=False)))],
        st.tuples(st.just("one"), _ITEMS) | st.tuples(st.just("one"), _ITEMS, st.integers()),
    ),
    "min": (
        lambda key, items, *default: [polyfills.extreme("min", operator.lt, items, key, *default)],
        lambda key, items, *default: [min(items, key=key, **dict(zip(["default"], default, strict=False)))],
        st.tuples(st.just("one"), _ITEMS) | st.tuples(st.just("one"), _ITEMS, st.integers()),
    ),
    "groupby": (
        _taking(polyfills.groupby),
        _taking(itertools.groupby),
        st.tuples(_ITEMS, st.sampled_from(["one", None]), st.integers(0, 3)),
    ),
    "chain": (polyfills.chain, itertools.chain, st.lists(_ITEMS, max_size=3).map(tuple)),
    "from_iterable": (polyfills.from_iterable, itertools.chain.from_iterable, st.tuples(st.lists(_ITEMS, max_size=3))),
    "islice": (polyfills.islice, itertools.islice, st.tuples(_ITEMS, st.integers(0, 6))),
    "islice from": (
        polyfills.islice_from,
        itertools.islice,
        st.tuples(_ITEMS, st.none() | st.integers(0, 6), st.none() | st.integers(0, 6))
        | st.tuples(_ITEMS, st.integers(0, 6), st.none() | st.integers(0, 6), st.integers(1, 3)),
    ),
    "pairwise": (polyfills.pairwise, itertools.pairwise, st.tuples(_ITEMS)),
    "compress": (polyfills.compress, itertools.compress, st.tuples(_ITEMS, _ITEMS)),
    "cycle": (polyfills.cycle, itertools.cycle, st.tuples(_ITEMS)),
    "repeat": (polyfills.repeat, itertools.repeat, st.tuples(st.integers(), st.integers(0, 3))),
    "insort_left": (_inserting(polyfills.insort_left), _inserting(bisect.insort_left), st.tuples(_ITEMS, _NUMBERS)),
    "insort_right": (_inserting(polyfills.insort_right), _inserting(bisect.insort_right), st.tuples(_ITEMS, _NUMBERS)),
    "suppress": (_raising(polyfills.suppress), _raising(contextlib.suppress), st.tuples(st.integers(0, 3), _ITEMS)),
    "count": (
        polyfills.Count,
        itertools.count,
        st.tuples(st.integers()) | st.tuples(st.integers(), st.integers(-2, 2)),
    ),
}


class Log:
    """Functions and iterables that note when they are asked."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def one(self, item: Any) -> Any:
        self.entries.append(("one", item))
        return operator.index(item) % 2

    def two(self, left: Any, right: Any) -> Any:
        self.entries.append(("two", left, right))
        return left - right if isinstance(left, int) and isinstance(right, int) else 0

    def over(self, items: list[Any]) -> Any:
        for item in items:
            self.entries.append(("item", item))
            yield self.over(item) if type(item) is list else item

    def given(self, value: Any) -> Any:
        """An argument as the functions get it."""
        if isinstance(value, str):
            return getattr(self, value)
        return self.over(value) if type(value) is list else value


def run(function: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], str]:
    """Return what a call gives, what was asked meanwhile, and how it ended."""
    log = Log()
    found: list[Any] = []
    try:
        given_args = [log.given(each) for each in args]
        if function is functools.reduce or function is polyfills.reduce:
            return [function(*given_args)], log.entries, "gave"
        for item in itertools.islice(function(*given_args), _MOST):
            log.entries.append("body")
            found.append(item)
    except Exception as error:
        return found, log.entries, repr(error)
    return found, log.entries, "gave"


@pytest.mark.parametrize("name", PAIRS)
def test_a_polyfill_is_the_function_it_stands_for(name: str):
    polyfill, function, calls = PAIRS[name]

    @settings(max_examples=1_000 if FULL else 60)
    @given(args=calls)
    def check(args: tuple[Any, ...]):
        assert run(polyfill, args) == run(function, args)

    check()
