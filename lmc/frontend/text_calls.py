"""Methods of text, plain or symbolic."""

from __future__ import annotations

import re
from typing import Any

from lmc.frontend.disorder import ADDRESS_CAUSE, ADDRESS_REMEDY, holds_address
from lmc.frontend.emitting import SCALARS
from lmc.frontend.iteration import Iteration
from lmc.frontend.proxy import Proxy, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.ir import builtins
from lmc.ir.types import TEXT

_LOOKS_INSIDE = re.compile(r"\{[^{}]*[.\[]")


def text_method(
    ops: Iteration, recorder: Recorder, owner: Any, name: str, *, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``owner.name(*args, **kwargs)`` for text, plain or symbolic."""
    if name == "join" and len(args) == 1 and not kwargs:
        return _join(ops, recorder, owner, args[0])
    check_format(recorder, owner, name, args, kwargs)
    if builtins.lookup(f"str.{name}") is None:
        raise recorder.stop(
            f"the text method {name!r} has no counterpart in the graph, and its text is not known yet",
            "do it in a tool",
        )
    return recorder.pure(f"str.{name}", (owner, *args), kwargs)


def check_format(recorder: Recorder, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Break where ``"{0.x}".format(...)`` or ``"{0[x]}"`` would look into an object of the user's."""
    if name in ("format", "format_map"):
        _check_inside(recorder, owner, name, (*args, *kwargs.values()))
        if any(map(holds_address, (*args, *kwargs.values()))):
            raise recorder.stop(ADDRESS_CAUSE, ADDRESS_REMEDY)


def _check_inside(recorder: Recorder, owner: Any, name: str, values: tuple[Any, ...]) -> None:
    if type(owner) is str and not _LOOKS_INSIDE.search(owner):
        return
    if not all(map(_is_data, values)):
        raise recorder.stop(
            f"{name}() looks into an object, which may run its own code", "take what it needs out of the object before"
        )


def _is_data(value: Any) -> bool:
    """Whether ``value`` is a text, a number, what the program computes, or lists and dicts of those."""
    kind = type(value)
    if kind is dict:
        return all(map(_is_data, value.values()))
    if kind in (list, tuple):
        return all(map(_is_data, value))
    return kind in SCALARS or (kind is Proxy and not symbol(value).constant)


def _join(ops: Iteration, recorder: Recorder, separator: Any, items: Any) -> Any:
    items = ops.settled(items)
    if type(items) is Proxy:
        return recorder.pure("str.join", (separator, items))
    found = list(ops.taken(items))
    if type(separator) is str and not holds_proxy(found):
        return separator.join(found)
    if all(type(item) is str or (type(item) is Proxy and symbol(item).type == TEXT) for item in found):
        pieces = [piece for item in found for piece in (separator, item)][1:]
        return recorder.concat(pieces)
    return recorder.pure("str.join", (separator, found))
