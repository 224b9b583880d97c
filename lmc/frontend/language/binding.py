"""Programs and tools that are written in a class: bound to an object of it, or to the class, as methods are."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import MethodType
from typing import Any, Self

_RECEIVERS = ("self", "cls")


class Bindable(ABC):
    """A member of a class body that binds itself when it is read from an object.

    ``template`` is the class's own member, ``receiver`` the object or class that this one is bound to (none: not
    bound). ``function`` is the function to run: a method once it is bound.
    """

    template: Self | None = None
    receiver: tuple[Any, ...] = ()
    function: Any
    is_static = False
    is_of_class = False
    is_method = False

    def take(self, function: Any) -> Any:
        """Note what decorators say of ``function``; gives the function itself."""
        self.is_static = isinstance(function, staticmethod)
        self.is_of_class = isinstance(function, classmethod)
        if isinstance(function, staticmethod | classmethod):
            function = function.__func__
        if isinstance(function, MethodType):
            self.receiver = (function.__self__,)
        self.is_method = not self.is_static and (self.is_of_class or _first_name(function) in _RECEIVERS)
        return function

    @property
    def definition(self) -> Any:
        """The function as it was written."""
        return self.function.__func__ if isinstance(self.function, MethodType) else self.function

    def __set_name__(self, owner: type, name: str) -> None:
        self._settle(owner)

    def __get__(self, instance: Any, owner: type | None = None) -> Self:
        kind: type = owner if owner is not None else type(instance)
        self._settle(instance if isinstance(instance, type) else kind)
        if self.receiver or not self.is_method:
            return self
        if self.is_of_class:
            return self.bound_to(kind)
        return self if instance is None else self.bound_to(instance)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Bindable) or self.template is None or not self.receiver or not other.receiver:
            return False
        return self.template is other.template and self.receiver[0] is other.receiver[0]

    def __hash__(self) -> int:
        return id(self) if self.template is None else hash((id(self.template), id(self.receiver[0])))

    def bound_to(self, receiver: Any) -> Self:
        """The same, bound to ``receiver``."""
        made = self.twin()
        made.template = self
        made.receiver = (receiver,)
        made.function = MethodType(self.definition, receiver)
        made.settled()
        return made

    def twin(self) -> Self:
        """A copy, for what is to differ in a part."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    @abstractmethod
    def settled(self) -> None:
        """Work out anew what follows from whether this is a method, and whether it is bound."""

    def _settle(self, owner: type) -> None:
        """Find out whether it was written in the body of ``owner`` or of a base of it."""
        if self.is_method or self.is_static or self.receiver:
            return
        place = getattr(self.function, "__qualname__", "").rpartition(".")[0]
        if place and any(base.__qualname__ == place for base in owner.__mro__):
            self.is_method = True
            self.settled()


def _first_name(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else ""


def weakly(value: Any) -> Callable[[], Any]:
    """Return a weak reference to ``value``; a strong one if it has no weak references."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


class MethodOwner:
    """The object or class whose method a capture is of.

    ``exclusive`` says that the graph holds for no other: it calls its methods, or keeps it. Else it was read through
    guards alone, which hold for every object of its class that reads the same.
    """

    __slots__ = ("_kind", "exclusive", "get")

    def __init__(self, receiver: Any, *, exclusive: bool) -> None:
        self.get = weakly(receiver)
        self._kind = type(receiver)
        self.exclusive = exclusive

    def admits(self, receiver: tuple[Any, ...]) -> bool:
        """Return True if the capture may hold for ``receiver``."""
        if not receiver:
            return False
        return self.get() is receiver[0] if self.exclusive else type(receiver[0]) is self._kind

    @property
    def is_gone(self) -> bool:
        """True if no run can ask for it again."""
        return self.exclusive and self.get() is None
