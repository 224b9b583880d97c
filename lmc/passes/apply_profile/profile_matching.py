"""Matching of a profile to the ops of a module: ids of runs, and places in a program."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Generic, TypeVar

from lmc.ir.ids import base_of, count_holes, matching
from lmc.ir.profile import OpProfile

_NUMBER = re.compile(r"[0-9]+")
_BRANCH = re.compile(r"(?<=/)(?:[0-9]+|\$)(?=/|$)")
_Counts = TypeVar("_Counts", bound=Any)


def measured(templates: Iterable[str], ops: Mapping[str, OpProfile]) -> tuple[dict[str, OpProfile], list[str]]:
    """Return the measurements of each op, by its id in the module, and the unmatched ids of runs.

    An id without holes is that of a run, one with holes matches those of all its runs; where several match a run (arms
    of a condition may share an id) each gets it. An op without a matching run gets those whose ids differ in numbers
    alone: other uses of its name, other branches of its fork.
    """
    exact: set[str] = set()
    by_shape: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    families: dict[str, str] = {}
    for template in dict.fromkeys(templates):
        families[template] = _family(template)
        if count_holes(template):
            shape = _shape(template.replace("*", "").replace("$", "0"))
            by_shape.setdefault(shape, []).append((template, matching(template)))
        else:
            exact.add(template)
    found: dict[str, OpProfile] = {}
    of_family: dict[str, OpProfile] = {}
    unknown: list[str] = []
    for op_id, entry in ops.items():
        owners = [op_id] if op_id in exact else []
        owners = owners or [one for one, pattern in by_shape.get(_shape(op_id), ()) if pattern.fullmatch(op_id)]
        for owner in owners:
            _add(found, owner, entry)
        _add(of_family, _family(op_id), entry)
        if not owners:
            unknown.append(op_id)
    for template, family in families.items():
        if template not in found and family in of_family:
            found[template] = of_family[family]
    asked = set(families.values())
    return found, [op_id for op_id in unknown if _family(op_id) not in asked]


class Places(Generic[_Counts]):
    """Counts at each place of a program. ``op_ids`` are those of a module.

    Rounds of a loop that are captured one by one are at one place, each with an id. If the module has all ids that the
    profile has there, each has its own counts; otherwise other arguments have led to another number of rounds, and all
    share the sum of the counts.
    """

    def __init__(self, counts: Mapping[str, _Counts], op_ids: Collection[str]) -> None:
        self.together: dict[str, _Counts] = {}
        self._counts = counts
        self._differ: set[str] = set()
        for op_id, entry in counts.items():
            _add(self.together, base_of(op_id), entry)
            if op_id not in op_ids:
                self._differ.add(base_of(op_id))

    def find(self, op_id: str) -> _Counts | None:
        """Return the counts of an op; None if there are none."""
        place = base_of(op_id)
        alone = None if place in self._differ else self._counts.get(op_id)
        return self.together.get(place) if alone is None else alone


def _shape(op_id: str) -> str:
    """The id with all numbers alike, so that few patterns have to be tried on each id."""
    return _NUMBER.sub("0", base_of(op_id))


def _family(op_id: str) -> str:
    """The id without the numbers of uses and of branches."""
    return _BRANCH.sub("0", base_of(op_id.replace("*", "")))


def _add(found: dict[str, _Counts], key: str, entry: _Counts) -> None:
    found[key] = found[key] + entry if key in found else entry
