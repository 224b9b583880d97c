"""What transformed code calls: plain Python on plain operands, recorded ops on symbolic ones.

One ``Operators`` belongs to one run of one program. In a capture its session is a ``Recorder``; in a replay no value is
symbolic, and what a host call answered in the captured part is looked up (``EagerSession.answer``), not done again.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from contextlib import AbstractContextManager
from typing import Any

from lmc.frontend import disorder
from lmc.frontend.branches import Block, Branches
from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.catching import Kinds, Protected
from lmc.frontend.generators import Generators
from lmc.frontend.growing import grown, is_grown
from lmc.frontend.harmless import is_deeply_harmless, is_harmless, is_standard_module
from lmc.frontend.list_methods import is_for_a_run, list_method
from lmc.frontend.locations import user_location
from lmc.frontend.looping import ItemLoop, Loop
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.regions import is_iterator
from lmc.frontend.symbolic import CONVERSIONS
from lmc.ir.types import NONE
from lmc.ir.wording import with_article


class Operators(Generators):
    """The helpers of one transformed function that runs; ``path`` is where its ids begin."""

    # Loops

    def loop(self, *names: str) -> Loop:
        """What a ``while`` asks; ``names`` are those that its rounds may bind."""
        return Loop(self, names)

    def over(self, items: Any, traceable: bool, fresh: bool, *names: str) -> ItemLoop:
        """What a ``for`` over ``items`` asks; ``traceable`` says whether a round could stand for all.

        ``fresh`` says that a call gave the items, which then no name is bound to.
        """
        return ItemLoop(self, items, names, traceable=traceable, fresh=fresh)

    def asked(self, value: Any) -> Any:
        """Whether ``value`` is true, where a condition asks for no more."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, bool, value)
        value = self.settled(value)
        if type(value) is Proxy and symbol(value).type != NONE:
            return self.done(tick, self.as_bool(recorder, value))
        return self.truth(value)

    # Text

    def fstring(self, *pieces: Any) -> Any:
        """The pieces of an f-string, formatted already."""
        if self.recorder is None:
            return "".join(pieces)
        return self.recorder.concat(pieces)

    def formatted(self, value: Any, conversion: str, spec: Any) -> Any:
        """One ``{value!conversion:spec}`` of an f-string."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, _format, value, conversion, spec)
        if type(value) is Proxy or type(spec) is Proxy:
            return self.done(tick, self.symbolic_format(recorder, value, conversion, spec))
        if holds_proxy(value) and conversion in ("", "s", "r", "a"):
            return self.done(tick, self.symbolic_format(recorder, value, conversion, spec))
        if is_deeply_harmless(value):
            self.check_unchanged(recorder, value)
            self.check_text(recorder, value)
            return _format(value, conversion, spec)
        return self.done(tick, self.symbolic_format(recorder, recorder.constant(value), conversion, spec))

    # Items

    def slice(self, start: Any, stop: Any, step: Any) -> slice:
        """``start:stop:step``."""
        for part in (start, stop, step):
            if self.recorder is not None and type(part) is not Proxy and not is_harmless(part):
                raise self.foreign_operator(self.recorder, "[:]", part)
        return slice(start, stop, step)

    def subscript(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, operator.getitem, owner, key)
        if type(key) is slice and is_grown(owner):
            found = self._symbolic_item(recorder, self.settled(owner), key)
            return recorder.born([grown(recorder, found)])
        owner = self.settled(owner)
        if issubclass(type(owner), Handle):
            return recorder.born(owner[key]) if issubclass(type(owner), Branches) else owner[key]
        symbolic_slice = type(key) is slice and holds_proxy((key.start, key.stop, key.step))
        if type(owner) is Proxy or type(key) is Proxy or symbolic_slice:
            return self.done(tick, self._symbolic_item(recorder, owner, key))
        if isinstance(owner, type) and _has_own_items(owner):
            raise self.foreign_operator(recorder, "[]", owner)
        found = self.plain(tick, "getitem", operator.getitem, owner, key)
        return recorder.born(found) if type(key) is slice else found

    def set_subscript(self, owner: Any, key: Any, value: Any) -> None:
        """``owner[key] = value``."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            self.served(tick, operator.setitem, owner, key, value)
            return
        if type(key) is slice and disorder.is_disordered(value):
            raise recorder.stop(disorder.CAUSE, disorder.REMEDY)
        if type(key) is slice and is_iterator(value):
            self.check_iterable(recorder, value)
        if type(key) is not slice and self.is_outside(recorder, owner):
            self.change_outside(recorder, owner.__setitem__, (key, value), {})
        elif self._in_own_list(recorder, owner, "__setitem__", key, value):
            list_method(self, recorder, owner, "__setitem__", key, value)
        else:
            owner[self.changed_key(owner, key)] = value

    def delete_subscript(self, owner: Any, key: Any) -> None:
        """``del owner[key]``."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            self.served(tick, operator.delitem, owner, key)
        elif type(key) is not slice and self.is_outside(recorder, owner):
            self.change_outside(recorder, owner.__delitem__, (key,), {})
        elif self._in_own_list(recorder, owner, "__delitem__", key):
            list_method(self, recorder, owner, "__delitem__", key)
        else:
            del owner[self.changed_key(owner, key)]

    def _in_own_list(self, recorder: Recorder, owner: Any, name: str, *args: Any) -> bool:
        """Whether a list of the program's own is changed where only a run knows what that does."""
        own = type(owner) is list and id(owner) not in recorder.foreign
        return own and is_for_a_run(recorder, owner, name, args, {})

    def changed_key(self, owner: Any, key: Any) -> Any:
        """The key under which ``owner`` is to be changed; in a capture only what the capture made may be."""
        recorder = self.recorder
        if recorder is None or issubclass(type(owner), Handle):
            return key
        if type(owner) not in (list, dict) or id(owner) in recorder.foreign:
            raise self.mutation(recorder, owner)
        self.check_settled(recorder, owner)
        recorder.touch(owner)
        if type(owner) is list and type(key) is slice:
            return slice(*(recorder.concrete(part) for part in (key.start, key.stop, key.step)))
        return recorder.concrete(self.hashed(key))

    # Blocks

    def protected(self, kinds: Kinds | None) -> AbstractContextManager[Any]:
        """A block in which exceptions of ``kinds`` are caught; where that is None, any may be caught or seen."""
        if self.recorder is None:
            return contextlib.nullcontext()
        return Protected(self.recorder, kinds)

    @property
    def ended(self) -> tuple[type[BaseException], ...]:
        """What no ``except`` of the user's may catch: a capture's end, and that it could not go as deep as Python."""
        return (CaptureBreak,) if self.recorder is None else (CaptureBreak, RecursionError)

    def runs_on(self) -> bool:
        """Whether this run has not ended: a ``finally`` must not run because of a capture's end."""
        recorder = self.recorder
        if recorder is not None and isinstance(sys.exc_info()[1], RecursionError):
            recorder.stop_too_deep(user_location())
        return recorder is None or recorder.broken is None

    def manage(self, manager: Any) -> Any:
        """What stands after ``with``."""
        recorder = self.recorder
        if recorder is not None and not issubclass(type(manager), Block):
            raise recorder.stop(
                f"`with` on {with_article(self.describe(manager))} runs its own code",
                "open it inside a tool, or outside of the program",
            )
        return manager

    def subject(self, value: Any) -> Any:
        """What ``match`` looks at."""
        recorder = self.recorder
        if recorder is None:
            return value
        if type(value) is Proxy:
            return recorder.specialise(value, "`match` looks at it")
        if holds_proxy(value):
            raise recorder.stop(
                "`match` looks into values that are known only when the program runs", "compare them with =="
            )
        if not is_deeply_harmless(value):
            raise self.foreign_operator(recorder, "match", value)
        self.check_unchanged(recorder, value)
        return value

    def exception(self, value: Any) -> Any:
        """What stands after ``raise``, ``from`` or ``except``."""
        if self.recorder is not None and holds_proxy(value):
            raise self.recorder.stop("an exception that is made when the program runs", "nothing has to change")
        return value


def _has_own_items(kind: type) -> bool:
    """Whether ``kind[key]`` runs a ``__class_getitem__`` that is not Python's own."""
    own = next((vars(base)["__class_getitem__"] for base in kind.__mro__ if "__class_getitem__" in vars(base)), None)
    return own is not None and not is_standard_module(
        getattr(getattr(own, "__func__", own), "__module__", "") or "builtins"
    )


def _format(value: Any, conversion: str, spec: str) -> str:
    if conversion:
        value = CONVERSIONS[conversion][1](value)
    return format(value, spec)
