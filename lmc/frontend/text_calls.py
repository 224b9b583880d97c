"""Methods of text, plain or symbolic."""

from __future__ import annotations

from typing import Any

from lmc.frontend.iteration import Iteration
from lmc.frontend.proxy import Proxy, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.ir import builtins
from lmc.ir.types import TEXT


def text_method(
    ops: Iteration, recorder: Recorder, owner: Any, name: str, *, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``owner.name(*args, **kwargs)`` for text, plain or symbolic."""
    if name == "join" and len(args) == 1 and not kwargs:
        return _join(ops, recorder, owner, args[0])
    if builtins.lookup(f"str.{name}") is None:
        raise recorder.stop(
            f"the text method {name!r} has no counterpart in the graph, and its text is not known yet",
            "do it in a tool",
        )
    return recorder.pure(f"str.{name}", (owner, *args), kwargs)


def _join(ops: Iteration, recorder: Recorder, separator: Any, items: Any) -> Any:
    if type(items) is Proxy:
        return recorder.pure("str.join", (separator, items))
    found = list(ops.iterate(items))
    if type(separator) is str and not holds_proxy(found):
        return separator.join(found)
    if all(type(item) is str or (type(item) is Proxy and symbol(item).type == TEXT) for item in found):
        pieces = [piece for item in found for piece in (separator, item)][1:]
        return recorder.concat(pieces)
    return recorder.pure("str.join", (separator, found))
