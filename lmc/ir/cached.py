"""A property that is computed once per object, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property  # noqa: PLC0414 - exported as the standard one
else:

    class cached_property:  # noqa: N801 - named as the one that it replaces
        """``functools.cached_property`` without its lock.

        In Python 3.11 that lock belongs to the class: one slow computation stops those of all other objects, and a
        child that is forked meanwhile waits for ever. Threads that come at the same time may compute the value twice;
        all of them get the first one that was kept.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self._function = function
            self._name = function.__name__
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = vars(instance)
            try:
                return kept[self._name]
            except KeyError:
                return kept.setdefault(self._name, self._function(instance))
