"""Reads of what lies outside a program: globals, closures, attributes. Each is part of what the capture holds for."""

from __future__ import annotations

import builtins
import enum
import inspect
import sys
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import pydantic

from lmc.frontend.base import Base
from lmc.frontend.binding import Bindable
from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.emitting import SCALARS
from lmc.frontend.function import JittedFunction
from lmc.frontend.guards import MISSING, mutable_parts
from lmc.frontend.harmless import is_immutable, is_standard_module
from lmc.frontend.messages import Appendable
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, ProxyMethod, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.specs import Record
from lmc.frontend.tools import Tool
from lmc.frontend.writes import reads_plainly
from lmc.ir.core import Effect
from lmc.ir.types import ANY, JsonType
from lmc.ir.wording import with_article

_OWN = (Handle, Tool)
_METHODS: tuple[type[Any], ...] = (FunctionType, classmethod, staticmethod, Bindable)
_PLAIN_METACLASSES = (type, enum.EnumMeta, type(pydantic.BaseModel))


class Reads(Base):
    """The reading part of ``Operators``."""

    def read_global(self, name: str, value: Any) -> Any:
        """A name of the module, or a builtin."""
        recorder = self.recorder
        owner = self.program.globals
        if recorder is None:
            return self.earlier("global", owner, name, value)
        if getattr(builtins, name, None) is value and name not in owner:
            return (
                value if recorder.reads.seen("global", owner, name, value) else self._add_global(recorder, name, value)
            )
        self._check_read(recorder, f"the global {name!r}", value, rebound=name in self.program.rebound)
        return value if recorder.reads.seen("global", owner, name, value) else self._add_global(recorder, name, value)

    def read_closure(self, name: str, value: Any) -> Any:
        """A variable of an enclosing function."""
        cell = self.program.cell(name)
        recorder = self.recorder
        if recorder is None:
            return self.earlier("cell", cell, name, value)
        self._check_read(recorder, f"the outer variable {name!r}", value, rebound=name in self.program.rebound)
        if not recorder.reads.seen("cell", cell, name, value):
            recorder.reads.add_cell(cell, name, value)
            self._take_in(recorder, value)
        return value

    def write_outside(self, name: str, value: Any) -> Any:
        """``global name`` or ``nonlocal name``, then ``name = value``."""
        if self.recorder is not None:
            raise self.recorder.stop(
                f"the program binds {name!r}, which belongs to its module or an enclosing function",
                "return the value instead, or set it in a tool",
            )
        return value

    def attribute(self, owner: Any, name: str) -> Any:
        """``owner.name``."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, getattr, owner, name)
        return self.done(tick, self.read_attribute(recorder, owner, name))

    def read_attribute(self, recorder: Recorder, owner: Any, name: str) -> Any:
        """``owner.name`` in a capture."""
        kind = type(owner)
        if kind is Proxy:
            return self._symbolic_attribute(recorder, owner, name)
        if kind is Record:
            return self._record_field(recorder, owner, name)
        if kind is super:
            return self._inherited(recorder, owner, name)
        if issubclass(kind, (*_OWN, JittedFunction, Appendable, ProxyMethod)):
            return getattr(owner, name)
        if kind.__module__ == "builtins" and not isinstance(
            owner, type | ModuleType | FunctionType | BuiltinFunctionType
        ):
            if id(owner) not in recorder.outside.containers:
                self.check_unchanged(recorder, owner)
            return getattr(owner, name)
        if isinstance(owner, FunctionType) and id(owner.__code__) in recorder.codes:
            return getattr(owner, name)
        return self._outside_attribute(recorder, owner, name)

    def importing(self, names: tuple[str, ...]) -> None:
        """``import a.b, c``: a module that is loaded already runs nothing when it is imported again."""
        if self.recorder is not None:
            for name in names:
                self._loaded(self.recorder, name)

    def importing_from(self, module: str, names: tuple[str, ...]) -> None:
        """``from module import names``."""
        if self.recorder is None:
            return
        owner = self._loaded(self.recorder, module)
        for name in names:
            if not _holds(owner, name):
                self._loaded(self.recorder, f"{module}.{name}")
            else:
                self._outside_attribute(self.recorder, owner, name)

    def _loaded(self, recorder: Recorder, name: str) -> ModuleType:
        if name not in sys.modules:
            raise recorder.stop(f"importing {name!r} runs it", "import it at the top of the file")
        return sys.modules[name]

    def _add_global(self, recorder: Recorder, name: str, value: Any) -> Any:
        recorder.reads.add_global(self.program.globals, name, value)
        self._take_in(recorder, value)
        return value

    def _take_in(self, recorder: Recorder, value: Any) -> None:
        """From now on nothing in ``value`` may be changed by the capture."""
        recorder.check_guarded(value)
        before = len(recorder.foreign)
        mutable_parts(value, recorder.foreign)
        recorder.mutable_reads += len(recorder.foreign) - before

    def _check_read(self, recorder: Recorder, what: str, value: Any, *, rebound: bool) -> None:
        if not recorder.user_writes:
            recorder.mutable_reads += rebound
            return
        container = type(value) in (list, dict, set)
        if container and not rebound:
            if id(value) in recorder.outside.containers:
                return
            if not recorder.outside.steady:
                recorder.outside.want("containers", id(value))
        if rebound or container or (type(value) is tuple and not is_immutable(value)):
            raise self.changed(recorder, what)

    def _symbolic_attribute(self, recorder: Recorder, owner: Proxy, name: str) -> Any:
        kind = symbol(owner).type
        if name.startswith("__") and name.endswith("__"):
            raise recorder.stop(
                f"{name} of {symbol(owner).origin} is known only when the program runs", "do it in a tool"
            )
        if kind == ANY or isinstance(kind, JsonType):
            if symbol(owner).held:
                return self._held_attribute(recorder, owner, name)
            # Data or a method, nobody knows yet: look it up when the program runs.
            return self._read_in_run(recorder, owner, name)
        return ProxyMethod(owner, name)

    def _held_attribute(self, recorder: Recorder, owner: Proxy, name: str) -> Any:
        found = recorder.held(owner, name)
        if found is not None:
            return found
        raise recorder.stop(
            f"{name!r} of {symbol(owner).origin} is no field that its schema names; a method may change the value",
            "use fields, items and operators in the program, or pass it to a tool",
        )

    def _record_field(self, recorder: Recorder, owner: Record, name: str) -> Any:
        if name in owner.fields:
            return owner.fields[name]
        raise recorder.stop(
            f"{owner.kind.__name__}.{name} is no field of the argument, but code of its class",
            "use the fields in the program, and call methods before it or in a tool",
        )

    def parent(self, owner: Any, *kind: Any) -> Any:
        """``super()`` or ``super(kind, owner)``."""
        if self.recorder is not None and holds_proxy([owner, *kind]):
            raise self.recorder.stop("super() of a value that is known only when the program runs", "do it in a tool")
        around: Any = kind[0] if kind else self.program.cell("__class__").cell_contents
        return super(around, owner)

    def _inherited(self, recorder: Recorder, found: Any, name: str) -> Any:
        """An attribute of ``super()``."""
        owner: Any = found.__self__
        order: Any = found.__self_class__.__mro__
        behind = order[order.index(found.__thisclass__) + 1 :]
        for base in behind:
            held = vars(base).get(name)
            if name in recorder.outside.names or isinstance(held, property):
                raise self._runs_code(recorder, owner, name)
            recorder.reads.add_attribute(base, name, getattr(base, name, MISSING))
            if name in vars(base):
                method = isinstance(held, (*_METHODS, WrapperDescriptorType))
                if not method and hasattr(type(held), "__get__"):
                    raise self._runs_code(recorder, owner, name)
                if not method:
                    self._take_in(recorder, held)
                return getattr(found, name)
        return getattr(found, name)  # raises what Python does

    def _outside_attribute(self, recorder: Recorder, owner: Any, name: str) -> Any:
        if name in recorder.outside.names and not isinstance(owner, ModuleType):
            if not reads_plainly(owner, name):
                raise self._runs_code(recorder, owner, name)
            return self._live_attribute(recorder, owner, name)
        value, guarded = self._plain_attribute(recorder, owner, name)
        if not guarded:
            return value
        if recorder.reads.seen("attribute", owner, name, value) and not recorder.user_writes:
            return value
        code = isinstance(value, type | ModuleType | FunctionType | BuiltinFunctionType | JittedFunction | Tool)
        standard = isinstance(owner, type) and is_standard_module(owner.__module__)
        fixed = isinstance(owner, ModuleType | enum.Enum) or _is_frozen(owner) or standard
        fixed = fixed or (isinstance(owner, type) and code)
        if not fixed and recorder.user_writes and type(value) in SCALARS and reads_plainly(owner, name):
            return self._read_in_run(recorder, owner, name)
        if not fixed:
            recorder.mutable_reads += 1
        self._check_read(recorder, f"the attribute {name!r}", value, rebound=bool(recorder.user_writes) and not fixed)
        recorder.reads.add_attribute(owner, name, value)
        self._take_in(recorder, value)
        return value

    def _read_in_run(self, recorder: Recorder, owner: Any, name: str) -> Proxy:
        """The attribute as it is when the program runs."""
        what = symbol(owner).origin if type(owner) is Proxy else with_article(self.describe(owner))
        return recorder.host_call(
            get_attribute,
            self.path,
            (owner, name),
            {},
            effect=Effect.READS,
            result_type=ANY,
            origin=f"the attribute {name!r} of {what}",
        )

    def _live_attribute(self, recorder: Recorder, owner: Any, name: str) -> Proxy:
        """An attribute that the program itself sets somewhere."""
        made = self._read_in_run(recorder, owner, name)
        value = getattr(owner, name, None)
        if not recorder.user_writes and type(value) in SCALARS and name not in recorder.outside.loose:
            # Nothing else is stored there while the program runs; what is there before is guarded.
            recorder.reads.add_kind(owner, name, value)
            symbol(made).scalar = True
            symbol(made).volatile = False
        return made

    def _plain_attribute(self, recorder: Recorder, owner: Any, name: str) -> tuple[Any, bool]:
        """The attribute, and whether it is data to be guarded; breaks where reading it would run the user's code."""
        kind = type(owner)
        if isinstance(owner, ModuleType):
            if not _holds(owner, name) and not is_standard_module(owner.__name__):
                raise self._runs_code(recorder, owner, name)
            return getattr(owner, name), True
        if isinstance(owner, type):
            if not isinstance(owner, _PLAIN_METACLASSES) and not is_standard_module(kind.__module__):
                raise self._runs_code(recorder, owner, name)
            return getattr(owner, name), True
        if is_standard_module(kind.__module__):
            return getattr(owner, name), not callable(getattr(owner, name, None))
        found = inspect.getattr_static(kind, name, None)
        data = isinstance(found, MemberDescriptorType | GetSetDescriptorType)
        if not isinstance(inspect.getattr_static(kind, "__getattribute__"), WrapperDescriptorType):
            raise self._runs_code(recorder, owner, name)
        if isinstance(found, _METHODS) and name not in getattr(owner, "__dict__", ()):
            recorder.reads.add_attribute(kind, name, getattr(kind, name))
            recorder.reads.add_method(owner, name)
            if recorder.outside.is_receiver(owner) and name in (self.program.attributes or (name,)):
                recorder.outside.escaped = True
            return getattr(owner, name), False
        named_tuple_field = isinstance(owner, tuple) and name in getattr(kind, "_fields", ())
        enum_field = isinstance(owner, enum.Enum) and name in ("name", "value")
        plain = data or named_tuple_field or enum_field or _stands_before(owner, name, found)
        if found is not None and hasattr(type(found), "__get__") and not plain:
            raise self._runs_code(recorder, owner, name)
        if found is None and name not in getattr(owner, "__dict__", ()):
            raise self._runs_code(recorder, owner, name)
        return getattr(owner, name), True

    def _runs_code(self, recorder: Recorder, owner: Any, name: str) -> CaptureBreak:
        return recorder.stop(
            f"reading {name!r} of {with_article(self.describe(owner))} may run its own code",
            "read it before the program is called and pass it in, or read it in a tool",
        )


def _holds(module: ModuleType, name: str) -> bool:
    """Return whether a name of a module can be read without running the user's code: lmc loads its own on first use."""
    return hasattr(module, name) if module.__name__ == "lmc" else name in vars(module)


def _stands_before(owner: Any, name: str, found: Any) -> bool:
    """Whether an attribute of the object itself is read instead of ``found``, which its class has."""
    return name in getattr(owner, "__dict__", ()) and not hasattr(type(found), "__set__")


def get_attribute(owner: Any, name: str) -> Any:
    """``owner.name``, as a host function."""
    return getattr(owner, name)


def _is_frozen(owner: Any) -> bool:
    parameters = getattr(type(owner), "__dataclass_params__", None)
    return isinstance(owner, tuple) or bool(parameters is not None and parameters.frozen)
