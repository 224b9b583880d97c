"""Control flow that a user spells out: ``lmc.cond``, ``lmc.while_loop``, ``lmc.map``, ``lmc.race``.

As plain Python each is what its docstring says. In a capture each becomes its op
(``lmc.frontend.handles.forms``), or the program is refused: who writes one of them wants to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from lmc.frontend.language.refusals import bad
from lmc.frontend.language.running import ACTIVE, activate
from lmc.frontend.language.state import State
from lmc.frontend.program.eager_runs import EagerFrame
from lmc.ir.semantics.control_flow import no_elements
from lmc.ir.wording import with_count

Result = TypeVar("Result")


def cond(flag: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """``then()`` where ``flag`` is true, else ``otherwise()``."""
    return then() if flag else otherwise()


def while_loop(test: Callable[..., Any], body: Callable[..., Any], *state: Any) -> tuple[Any, ...]:
    """The last ``state``, which ``body(*state)``, a tuple as long, replaces while ``test(*state)`` is true.

    Each value of the state is a text, a number, a bool, None or a list of such.
    """
    while test(*state):
        state = checked_state(body(*state), len(state))
    return state


def checked_state(found: Any, count: int) -> tuple[Any, ...]:
    """The next state of a loop. Raises ``TypeError`` where it is no tuple of ``count`` values."""
    if type(found) is not tuple or len(found) != count:
        raise TypeError(
            f"the body of while_loop gives {type(found).__name__}, it should give a tuple of "
            f"{with_count(count, 'value')}"
        )
    return found


def map(function: Callable[..., Result], *lists: Iterable[Any], on: State | None = None) -> list[Result]:
    """``[function(*items) for items in zip(*lists)]``, all elements at the same time, whatever their number.

    Results are in the order of the lists. ``function`` may run programs (``lambda text: judge(text)``) and tools; it
    must not change a state or a list of the program around. With ``on=s`` it is ``function(branch, *items)``: each
    element has a branch of ``s``, which itself stays as it is. Calls of tools that write are made in order.
    """
    results: list[Result] = []
    for active, arguments in elements("map", lists, on):
        with active:
            results.append(function(*arguments))
    return results


def race(
    function: Callable[..., Result],
    *lists: Iterable[Any],
    good: Callable[[Result], Any],
    default: Any = None,
    on: State | None = None,
) -> Any:
    """The first of ``function(*items) for items in zip(*lists)`` for which ``good`` is true, else ``default``.

    Elements run at the same time. The good one of the lowest index wins, so runs are repeatable; those after it are
    cancelled, so nothing in them may write. ``on`` is that of ``lmc.map``. Raises ``InputError`` where there is no
    element.
    """
    raced = False
    for active, arguments in elements("race", lists, on):
        raced = True
        with active:
            result = function(*arguments)
            if good(result):
                return result
    if not raced:
        raise no_elements()
    return default


def elements(
    name: str, lists: tuple[Iterable[Any], ...], on: State | None
) -> Iterator[tuple[AbstractContextManager[None], tuple[Any, ...]]]:
    """Yield the arguments of each element and its context: programs called in it get their ids from its place.

    An element's changes to the lists do not affect those behind it, which run at the same time.
    """
    check_branching(name, on)
    frame = ACTIVE.get()
    base = ""
    if frame is not None or on is not None:
        session: Any = on.core.session if on is not None else frame.session if frame is not None else None
        base = session.allocate(on.path if on is not None else frame.path if frame is not None else "", name)
    begun = [items.copy() if type(items) is list else items for items in lists]
    for index, items in enumerate(zip(*begun, strict=False)):
        place = f"{base}/{index}"
        active = nullcontext() if frame is None else activate(EagerFrame(frame.session, place))
        yield active, (*(() if on is None else (on.another(on.core.copy(), place),)), *items)


def check_branching(name: str, on: Any) -> None:
    """Raise ``CaptureError`` where ``on`` is nothing that elements could have a branch of."""
    if on is not None and not issubclass(type(on), State):
        raise bad(f"lmc.{name}(…, on=…) is given something else than a state", f"give it one: lmc.{name}(…, on=s)")
