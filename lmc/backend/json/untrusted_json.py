"""JSON from files that anybody may have written: every fault is a ``PlanError``, and none is printed at length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmc.backend.plan import PlanError
from lmc.ir.wording import with_article

_NAMES = 6
_NAME = 40


def parse_json(text: str, what: str) -> Any:
    """``json.loads`` that fails in one way, and takes no number that JSON does not have."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} " if "\n" in text else ""
        cause = f"not {with_article(what)}: {error.msg} at {place}column {error.colno}"
        raise PlanError(cause, remedy="name a file written by lmc") from error
    except (ValueError, RecursionError) as error:
        raise PlanError(f"not {with_article(what)}: {error}", remedy="name a file written by lmc") from error


def fields_of(data: Any, names: Sequence[str], what: str) -> list[Any]:
    """The values of an object that has exactly the keys ``names``."""
    if not isinstance(data, dict):
        raise PlanError(f"{what} is an object, not {shorten(data)}")
    lacks, unknown = [name for name in names if name not in data], sorted(set(data).difference(names))
    if lacks or unknown:
        said = [f"{verb} {_listed(found)}" for verb, found in (("lacks", lacks), ("can't have", unknown)) if found]
        raise PlanError(f"{what} {' and '.join(said)}")
    return [data[name] for name in names]


def list_of_width(data: Any, what: str, width: int | None = None) -> list[Any]:
    """``data`` if it is a list (of ``width`` entries)."""
    if not isinstance(data, list) or (width is not None and len(data) != width):
        count = "" if width is None else f" of {width}"
        raise PlanError(f"{what}: a list{count} is needed, not {shorten(data)}")
    return data


def text_of(data: Any) -> str:
    """``data`` if it is text."""
    if not isinstance(data, str):
        raise PlanError(f"text is needed, not {shorten(data)}")
    return data


def truth_of(data: Any) -> bool:
    """``data`` if it is a truth value."""
    if type(data) is not bool:
        raise PlanError(f"not a truth value: {shorten(data)}")
    return data


def shorten(data: Any) -> str:
    """Describe ``data`` in few characters. Never walks into it: nesting may be deep."""
    if isinstance(data, list):
        return f"a list of {len(data)}"
    if isinstance(data, dict):
        return f"an object with the fields {', '.join(sorted(data))[:80]}"
    return repr(data)[:80]


def _listed(names: Sequence[str]) -> str:
    """A few names in full, and how many there are besides."""
    shown = [repr(name) if len(name) <= _NAME else f"a name of {len(name)} characters" for name in names[:_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
