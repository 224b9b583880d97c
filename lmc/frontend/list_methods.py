"""Methods of the program's own lists that look at items which only a run knows, or change a list that grows.

The list stays the object that it is: what it holds becomes one value of the graph, and after a change another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmc.frontend.growing import as_value, element_type, freeze, grown, is_grown, is_value_list
from lmc.frontend.keyed_calls import by_key
from lmc.frontend.proxy import Proxy, holds_proxy
from lmc.frontend.recorder import Recorder
from lmc.ir.types import ANY

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

LOOKING = frozenset({"index", "count"})
CHANGING = frozenset({"pop", "insert", "remove", "reverse", "sort", "__setitem__", "__delitem__"})


def is_for_a_run(
    recorder: Recorder, owner: list[Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether only a run knows what the method ``name`` of ``owner`` does, and it can be told to do it."""
    if name not in LOOKING | CHANGING or not is_value_list(owner) or not is_value_list(list(args)):
        return False
    if is_grown(owner):
        return True
    if name in ("index", "count", "remove"):
        return holds_proxy(owner) or holds_proxy(args)
    if name == "sort":
        return holds_proxy(owner) and kwargs.get("key") is None
    placed = name in ("pop", "insert", "__setitem__", "__delitem__") and bool(args)
    return placed and type(args[0]) is Proxy and not recorder.is_known(args[0])


def list_method(ops: Operators, recorder: Recorder, owner: list[Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """``owner.name(*args, **kwargs)``."""
    if name in LOOKING:
        return recorder.pure(f"list.{name}", (as_value(recorder, owner), *args), kwargs)
    recorder.touch(owner)
    if name == "sort" and kwargs.get("key") is not None:
        items = recorder.born(owner.copy())
        owner.clear()  # as Python leaves it while it makes the keys
        made = by_key(ops, sorted, items, kwargs)
        if owner:
            raise recorder.stop("the key of sort() changes the list that it sorts", "sort a copy: sorted(items, key=…)")
        owner[:] = made
        return None
    put_in = args[-1:] if name in ("insert", "__setitem__") else ()
    freeze(recorder, put_in)
    before = as_value(recorder, owner, element_type([*owner, *put_in]) or ANY)
    found = recorder.pure("list.popped", (before, *args)) if name == "pop" else None
    owner[:] = [grown(recorder, recorder.pure(_CHANGES[name], (before, *args), kwargs, total=name == "pop"))]
    return found


_CHANGES = {
    "pop": "list.without",
    "insert": "list.with",
    "remove": "list.without_first",
    "reverse": "reversed",
    "sort": "sorted",
    "__setitem__": "list.replaced",
    "__delitem__": "list.deleted",
}
