"""Pure builtins for lists that a program changes, as functions that give the list as it is then, and for branches.

Each row is the name, what it does, the type of its result, and for which types it can't raise.
"""

from __future__ import annotations

import builtins as python
from collections.abc import Callable, Sequence
from typing import Any

from lmc.ir.builtins.builtin_types import ResultType, Safe, always_gives, element, never_safe, same_list
from lmc.ir.builtins.checks import checked_branch_count, checked_branch_index, definition, listed_choices
from lmc.ir.types import ANY, INT, NONE, TEXT, ListType, Type, fits, list_of


def _range(*bounds: int) -> list[int]:
    return list(python.range(*bounds))


def mapping_from(given: Any) -> dict[Any, Any]:
    """``{**given}``."""
    return {**given}


def _starred_from(given: Any) -> list[Any]:
    """``[*given]``: its errors are other ones than those of ``list``."""
    return [*given]


def _interleaved(*sequences: Sequence[Any]) -> list[Any]:
    """The first item of each, then the second ones, and so on."""
    return [item for row in python.zip(*sequences, strict=True) for item in row]


def _popped(items: Sequence[Any], *index: int) -> Any:
    return [*items].pop(*index)


def _changed(name: str) -> Callable[..., Any]:
    """Return a function from a list to the list after its method ``name``."""

    def changed(items: Sequence[Any], *args: Any) -> list[Any]:
        made = [*items]
        getattr(made, name)(*args)
        return made

    return changed


def _sorted_by(items: Sequence[Any], keys: Sequence[Any], *, reverse: bool = False) -> list[Any]:
    order = python.sorted(python.range(len(keys)), key=keys.__getitem__, reverse=reverse)
    return [items[index] for index in order]


def _best_by(choose: Callable[..., int]) -> Callable[..., Any]:
    def best(items: Sequence[Any], keys: Sequence[Any], *default: Any) -> Any:
        if not items and default:
            return default[0]
        return items[choose(python.range(len(items)), key=keys.__getitem__)]

    return best


def _check_lengths(*lengths: int) -> None:
    """Raise what ``zip(strict=True)`` does at the end of items of these numbers."""
    for _ in python.zip(*(python.range(min(lengths), length) for length in lengths), strict=True):
        pass


def _with_last(types: Sequence[Type]) -> Type:
    """The list that comes first, which may then hold the last argument too."""
    found = same_list(types)
    return found if types and isinstance(found, ListType) and fits(types[-1], found.element) else list_of(ANY)


def _element_or_default(types: Sequence[Type]) -> Type:
    """An element of the list, or what is given for when there is none."""
    found = element(types)
    return ANY if any(default != found for default in types[2:]) else found


LIST_BUILTINS: tuple[tuple[str, Any, ResultType, Safe], ...] = (
    ("range", _range, always_gives(list_of(INT)), never_safe),
    ("interleaved", _interleaved, always_gives(list_of(ANY)), never_safe),
    ("list.index", list.index, always_gives(INT), never_safe),
    ("list.count", list.count, always_gives(INT), never_safe),
    ("list.popped", _popped, element, never_safe),
    ("list.without", _changed("pop"), same_list, never_safe),
    ("list.without_first", _changed("remove"), same_list, never_safe),
    ("list.with", _changed("insert"), _with_last, never_safe),
    ("list.replaced", _changed("__setitem__"), _with_last, never_safe),
    ("list.deleted", _changed("__delitem__"), same_list, never_safe),
    ("sorted_by", _sorted_by, same_list, never_safe),
    ("min_by", _best_by(min), _element_or_default, never_safe),
    ("max_by", _best_by(max), _element_or_default, never_safe),
    ("dict_from", dict, always_gives(ANY), never_safe),
    ("mapping_from", mapping_from, always_gives(ANY), never_safe),
    ("starred_from", _starred_from, same_list, never_safe),
    ("check_lengths", _check_lengths, always_gives(NONE), never_safe),
    ("choices", listed_choices, always_gives(list_of(TEXT)), never_safe),
    ("definition", definition, always_gives(TEXT), never_safe),
    ("branch_count", checked_branch_count, always_gives(INT), never_safe),
    ("branch_index", checked_branch_index, always_gives(INT), never_safe),
)
