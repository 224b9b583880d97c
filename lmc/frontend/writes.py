"""Changes of what lies outside a program: attributes of objects, containers. Each is a host call, once per instance.

A capture that changes something must look at it when it runs, too: what is changed anywhere in it is *live* in all of
it, which a first attempt at the capture finds out (``Outside``).
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from types import FunctionType, MemberDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any

from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.host_calls import HostCalls
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, ProxyMethod, holds_proxy, is_scalar
from lmc.frontend.recorder import Recorder
from lmc.frontend.specs import Record
from lmc.ir.core import Effect
from lmc.ir.types import ANY
from lmc.ir.wording import with_article

_CLASSES = (type, ABCMeta)
_CONTAINERS = (list, dict, set)
# Methods that change a container and give something.
_TAKING = frozenset({"extend", "update", "__iadd__"})
_GIVING = frozenset({"pop", "popitem", "setdefault"})


class Writes(HostCalls):
    """The part of ``Operators`` that changes what the capture did not make."""

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """``owner.name = value``."""
        tick = self.tick()
        if self.recorder is None:
            self.served(tick, setattr, owner, name, value)
        else:
            self._write_attribute(self.recorder, owner, name, value)

    def delete_attribute(self, owner: Any, name: str) -> None:
        """``del owner.name``."""
        tick = self.tick()
        if self.recorder is None:
            self.served(tick, delattr, owner, name)
        else:
            self._write_attribute(self.recorder, owner, name)

    def _write_attribute(self, recorder: Recorder, owner: Any, name: str, *value: Any) -> None:
        if name.startswith("__") or not stores_plainly(owner, name):
            raise self.mutation(recorder, owner)
        if value and _is_there_already(owner, name, value[0]) and self.is_outside(recorder, value[0]):
            return  # what stands behind ``self.items += …``, which has changed it in place
        self.check_attribute_live(recorder, owner, name)
        for part in value:
            self.check_kept(recorder, part)
            if not is_scalar(part) and name not in recorder.outside.loose:
                recorder.outside.want("loose", name)
                raise self.mutation(recorder, owner)
        function = set_attribute if value else delete_attribute
        recorder.host_call(function, self.path, (owner, name, *value), {}, effect=Effect.WRITES, result_type=ANY)
        self._answered(recorder)

    def check_attribute_live(self, recorder: Recorder, owner: Any, name: str) -> None:
        """Begin anew where attributes of this name were taken for fixed so far."""
        if name not in recorder.outside.names:
            raise self._begin_anew(recorder, owner, name)

    def check_kept(self, recorder: Recorder, value: Any, spec: Any = None) -> None:
        """Break where ``value`` can't be put into what outlives the program: a copy would be."""
        self.check_argument(recorder, None, value, spec, careful=True, label="an object from outside the program")

    def is_outside(self, recorder: Recorder, owner: Any) -> bool:
        """Whether ``owner`` is a container of the user's that is not a copy made for an argument."""
        return type(owner) in _CONTAINERS and id(owner) in recorder.foreign and id(owner) not in recorder.argument_parts

    def change_outside(
        self,
        recorder: Recorder,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        fresh: tuple[Any, ...] = (),
    ) -> Any:
        """``function``, a method of a container that changes it, as a host call. Gives what the method gives."""
        owner = function.__self__
        if not self.is_outside(recorder, owner):
            raise self.mutation(recorder, owner)
        if id(owner) not in recorder.outside.containers:
            raise self._begin_anew(recorder, owner, None)
        if kwargs and type(owner) is not dict:
            raise self.mutation(recorder, owner)
        values = (*args, *kwargs.values())
        if function.__name__ in _TAKING and len(values) == 1 and type(values[0]) in (list, tuple):
            values = tuple(values[0])  # these are kept, and not the list that they are in
            fresh = ()
        for index, value in enumerate(values):
            self.check_kept(recorder, value, fresh[index] if len(fresh) == len(values) else None)
        made = recorder.host_call(function, self.path, args, kwargs, effect=Effect.WRITES, result_type=ANY)
        if function.__name__ in _GIVING:
            return made
        self._answered(recorder)
        return owner if function.__name__ == "__iadd__" else None

    def look_outside(self, recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``function``, a method of a live container that only looks at it."""
        if holds_proxy(args) and any(type(value) is not Proxy and holds_proxy(value) for value in args):
            raise self.changed(recorder, with_article(type(function.__self__).__name__))
        return recorder.host_call(function, self.path, args, kwargs, effect=Effect.READS, result_type=ANY)

    def _begin_anew(self, recorder: Recorder, owner: Any, name: str | None) -> CaptureBreak:
        """End this attempt at a capture: the next knows that this is live."""
        if not recorder.outside.parts:
            recorder.outside.want(*(("containers", id(owner)) if name is None else ("names", name)))
        return self.mutation(recorder, owner)

    def _answered(self, recorder: Recorder) -> None:
        """The last host call is what this operation does, though its result is none of it."""
        assert recorder.last_host is not None
        tick, op_id, _ = recorder.last_host
        recorder.served[tick] = op_id


def stores_plainly(owner: Any, name: str) -> bool:
    """Whether to set an attribute of ``owner`` runs no code of its class, and changes nothing but that attribute."""
    kind: Any = type(owner)
    if issubclass(kind, (Handle, Proxy, ProxyMethod, Record, ModuleType)):
        return False
    if isinstance(owner, type):
        return kind in _CLASSES and owner.__module__ != "builtins"
    if kind.__setattr__ is not object.__setattr__ or kind.__delattr__ is not object.__delattr__:
        return False
    return reads_plainly(owner, name)


def reads_plainly(owner: Any, name: str) -> bool:
    """Whether to read an attribute of ``owner``, once it is there, runs no code of its class."""
    kind: Any = type(owner)
    if isinstance(owner, type):
        return kind in _CLASSES
    if not isinstance(inspect.getattr_static(kind, "__getattribute__"), WrapperDescriptorType):
        return False
    if inspect.getattr_static(kind, "__getattr__", None) is not None:
        return False
    found = inspect.getattr_static(kind, name, None)
    if found is None or isinstance(found, FunctionType | MemberDescriptorType):
        return isinstance(found, MemberDescriptorType) or hasattr(owner, "__dict__")
    return not hasattr(type(found), "__get__") and hasattr(owner, "__dict__")


def _is_there_already(owner: Any, name: str, value: Any) -> bool:
    return getattr(owner, "__dict__", {}).get(name) is value


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """``owner.name = value``, as a host function."""
    setattr(owner, name, value)


def delete_attribute(owner: Any, name: str) -> None:
    """``del owner.name``, as a host function."""
    delattr(owner, name)
