"""Iterators over lists and dicts of the capture's own, which the program may change between two steps.

A list iterator is an index into the list, so it follows all changes of a list whose items are known one by one. Where a
list gets a length that only a run decides, or a dict other keys, the next step ends the capture.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lmc.frontend.growing import is_grown
from lmc.frontend.harmless import VIEWS
from lmc.frontend.same_values import are_same_objects

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder

_LIST_CAUSE = "a list gets a length that only a run decides while the program iterates over it"
_LIST_REMEDY = "iterate over a copy: for item in list(items); or by index: while index < len(items)"
_DICT_CAUSE = "the keys of a dict change while the program iterates over it"
_DICT_REMEDY = "iterate over a copy: for key in list(entries)"


def live_iterator(recorder: Recorder, items: Any, *, backwards: bool = False) -> Iterator[Any] | None:
    """Return an iterator over ``items``, a list, dict or view of a dict, as it changes; None for anything else."""
    if type(items) is list:
        indices = range(len(items) - 1, -1, -1) if backwards else itertools.count()
        return recorder.born(_listed(recorder, items, indices))
    if type(items) is dict or type(items) in VIEWS:
        entries: Any = items if type(items) is dict else gc.get_referents(items)[0]
        keys = list(reversed(entries) if backwards else entries)
        return recorder.born(_entries(items, entries, unchanged(recorder, entries, keys)))
    return None


def unchanged(recorder: Recorder, held: Any, steps: Iterable[Any]) -> Iterator[Any]:
    """Return ``steps`` over the items of a list, or the keys of a dict, that breaks once ``held`` has others."""
    return recorder.born(_unchanged(recorder, held, list(held), recorder.changes_of(held), steps))


def _unchanged(recorder: Recorder, held: Any, items: list[Any], changes: int, steps: Iterable[Any]) -> Iterator[Any]:
    left = iter(steps)
    while True:
        if recorder.changes_of(held) != changes and not are_same_objects(items, list(held)):
            raise recorder.stop(*((_LIST_CAUSE, _LIST_REMEDY) if type(held) is list else (_DICT_CAUSE, _DICT_REMEDY)))
        changes = recorder.changes_of(held)
        for item in left:
            yield item
            break
        else:
            return


def _listed(recorder: Recorder, items: list[Any], indices: Iterable[int]) -> Iterator[Any]:
    changes = -1
    for index in indices:
        if recorder.changes_of(items) != changes and is_grown(items):
            raise recorder.stop(_LIST_CAUSE, _LIST_REMEDY)
        changes = recorder.changes_of(items)
        if index >= len(items):
            return
        yield items[index]


def _entries(items: Any, entries: Any, keys: Iterable[Any]) -> Iterator[Any]:
    """Iterate by key: a dict is cleared and filled again where the arms of a condition meet."""
    for key in keys:
        if type(items) is VIEWS[1]:
            yield entries[key]
        else:
            yield (key, entries[key]) if type(items) is VIEWS[2] else key
