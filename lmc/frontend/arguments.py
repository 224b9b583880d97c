"""Arguments as pytrees: which leaves are symbolic, which are part of what a capture holds for.

======================================  ==================================================================
an argument that is                     becomes
======================================  ==================================================================
a ``str``, ``int`` or ``float``         one symbolic parameter
a list of those, of one type            one symbolic parameter, whose length is symbolic too
another list, a tuple, a ``dict``       its items, each by its own path (``examples.0.q``); its shape is fixed
a dataclass or pydantic instance        its fields, by path; its class is fixed
anything else (``None``, ``bool`` …)    itself: the capture holds for this value
======================================  ==================================================================
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from lmc.frontend.guards import Snapshot
from lmc.frontend.locations import user_location
from lmc.frontend.proxy import SPECIAL_METHODS
from lmc.frontend.tools import annotated_type
from lmc.ir.errors import InputError
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, ListType, Type, list_of

if TYPE_CHECKING:
    from lmc.frontend.function import JittedFunction

_SCALARS: dict[type, Type] = {str: TEXT, int: INT, float: FLOAT}
_PYTHON = {kind: python for python, kind in _SCALARS.items()}


@dataclass(frozen=True)
class Bound:
    """Arguments of one call, defaults filled in; ``values`` by parameter name, without the state."""

    values: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def bind(function: JittedFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
    """Bind the arguments of a call. Raises ``InputError`` where they don't fit the signature."""
    signature = function.signature
    try:
        found = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InputError(
            f"{function.name}(): {error}",
            remedy=f"its arguments are {signature}",
            location=user_location() or function.location,
        ) from None
    found.apply_defaults()
    return Bound(dict(found.arguments), found.args, found.kwargs)


MakeLeaf = Callable[[str, Type], Any]
MakeBreak = Callable[[str, str], BaseException]


class Spec(ABC):
    """The shape of an argument. ``extract`` takes an argument apart, ``build`` makes its symbolic counterpart."""

    @abstractmethod
    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        """Put the symbolic leaves of ``value`` by name into ``into``; False where the shape is another."""

    @abstractmethod
    def build(self, leaf: MakeLeaf, stop: MakeBreak) -> Any:
        """The argument with ``leaf(name, type)`` in place of each symbolic leaf; ``stop`` makes a break."""


@dataclass(frozen=True)
class LeafSpec(Spec):
    """One symbolic parameter."""

    name: str
    type: Type

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        if not _fits(value, self.type):
            return False
        # A copy: what a program sees of a list is the list as it was when the program was called.
        into[self.name] = list(value) if isinstance(self.type, ListType) else value
        return True

    def build(self, leaf: MakeLeaf, stop: MakeBreak) -> Any:  # noqa: ARG002
        return leaf(self.name, self.type)


@dataclass(frozen=True)
class StaticSpec(Spec):
    """A value that is part of what the capture holds for."""

    snapshot: Snapshot

    def extract(self, value: Any, into: dict[str, Any]) -> bool:  # noqa: ARG002
        return self.snapshot.matches(value)

    def build(self, leaf: MakeLeaf, stop: MakeBreak) -> Any:  # noqa: ARG002
        return self.snapshot.value


@dataclass(frozen=True)
class SequenceSpec(Spec):
    """A list or tuple of fixed length."""

    kind: type
    items: tuple[Spec, ...]

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        return (
            type(value) is self.kind
            and len(value) == len(self.items)
            and all(spec.extract(item, into) for spec, item in zip(self.items, value, strict=True))
        )

    def build(self, leaf: MakeLeaf, stop: MakeBreak) -> Any:
        return self.kind(spec.build(leaf, stop) for spec in self.items)


@dataclass(frozen=True)
class DictSpec(Spec):
    """A dict with fixed keys, in order."""

    items: tuple[tuple[Any, Spec], ...]

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        return (
            type(value) is dict
            and len(value) == len(self.items)
            and all(
                type(key) is type(found) and key == found and spec.extract(value[found], into)
                for (key, spec), found in zip(self.items, value, strict=True)
            )
        )

    def build(self, leaf: MakeLeaf, stop: MakeBreak) -> Any:
        return {key: spec.build(leaf, stop) for key, spec in self.items}


class Record:
    """An instance of the user's class whose fields are known only at run time; transformed code reads them.

    Its special methods end the capture: they would not be those of the user's class. ``stop`` makes the break.
    """

    __slots__ = ("fields", "kind", "stop")

    def __init__(self, kind: type, fields: dict[str, Any], stop: MakeBreak) -> None:
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "stop", stop)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Record, *_arguments: Any) -> Any:
        raise self.stop(
            f"{name} of a {self.kind.__name__} is needed now, but its fields are known only when the program runs",
            "use its fields in the program, and compare or print the whole before it or in a tool",
        )

    refuse.__name__ = name
    return refuse


for _name in SPECIAL_METHODS:
    setattr(Record, _name, _refusing(_name))


@dataclass(frozen=True)
class RecordSpec(Spec):
    """An instance of a dataclass or pydantic class."""

    kind: type
    items: tuple[tuple[str, Spec], ...]

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        if type(value) is not self.kind:
            return False
        fields = vars(value)
        return all(name in fields and spec.extract(fields[name], into) for name, spec in self.items)

    def build(self, leaf: MakeLeaf, stop: MakeBreak) -> Any:
        return Record(self.kind, {name: spec.build(leaf, stop) for name, spec in self.items}, stop)


@dataclass(frozen=True)
class Arguments:
    """The shapes of all parameters of a program, in order."""

    specs: Mapping[str, Spec]

    def extract(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Inputs by parameter name; None where the arguments have another shape."""
        into: dict[str, Any] = {}
        return into if all(spec.extract(values[name], into) for name, spec in self.specs.items()) else None

    def build(self, leaf: MakeLeaf, stop: MakeBreak) -> dict[str, Any]:
        """The symbolic counterpart of every parameter."""
        return {name: spec.build(leaf, stop) for name, spec in self.specs.items()}


def shape_of(function: JittedFunction, bound: Bound) -> Arguments:
    """The shapes of these arguments."""
    names = _Names()
    annotations = function.annotations
    return Arguments(
        {name: _spec(value, (name,), names, annotations.get(name)) for name, value in bound.values.items()}
    )


def shape_of_annotations(function: JittedFunction) -> Arguments:
    """The shapes for compiling without inputs: of the defaults, else what the annotations promise.

    A parameter with neither is ``!any``: it can be passed on and turned into text, anything else breaks.
    """
    names = _Names()
    specs: dict[str, Spec] = {}
    for name, parameter in function.signature.parameters.items():
        annotation = function.annotations.get(name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            specs[name] = SequenceSpec(tuple, ())
        elif parameter.kind is parameter.VAR_KEYWORD:
            specs[name] = DictSpec(())
        elif parameter.default is not parameter.empty:
            specs[name] = _spec(parameter.default, (name,), names, annotation)
        else:
            specs[name] = _promised(annotation, (name,), names)
    return Arguments(specs)


class _Names:
    """Names of parameters from their paths, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, path: tuple[Any, ...]) -> str:
        wish = ".".join(map(str, path))
        name = wish
        suffix = 0
        while name in self._taken:
            suffix += 1
            name = f"{wish}_{suffix}"
        self._taken.add(name)
        return name


def _spec(value: Any, path: tuple[Any, ...], names: _Names, annotation: Any) -> Spec:
    kind = type(value)
    if kind in _SCALARS:
        return LeafSpec(names.make(path), _SCALARS[kind])
    if kind is list:
        promised = annotated_type(annotation)
        element = _common_type(value) if value else getattr(promised, "element", None)
        if element in _PYTHON:
            return LeafSpec(names.make(path), list_of(element))
    if kind in (list, tuple):
        return SequenceSpec(kind, tuple(_spec(item, (*path, index), names, None) for index, item in enumerate(value)))
    if kind is dict and all(type(key) in (str, int, bool, type(None)) for key in value):
        return DictSpec(tuple((key, _spec(item, (*path, key), names, None)) for key, item in value.items()))
    fields = _record_fields(kind)
    if fields is not None and all(name in vars(value) for name in fields):
        return RecordSpec(kind, tuple((name, _spec(vars(value)[name], (*path, name), names, None)) for name in fields))
    return StaticSpec(Snapshot(value))


def _promised(annotation: Any, path: tuple[Any, ...], names: _Names) -> Spec:
    fields = _record_fields(annotation) if isinstance(annotation, type) else None
    if fields is not None:
        hints = _hints(annotation)
        return RecordSpec(
            annotation, tuple((name, _promised(hints.get(name), (*path, name), names)) for name in fields)
        )
    promised = ANY if annotation is None else annotated_type(annotation)
    if promised == NONE:
        return StaticSpec(Snapshot(None))
    if isinstance(promised, ListType) and promised.element not in _PYTHON:
        promised = ANY
    return LeafSpec(names.make(path), promised)


def _fits(value: Any, kind: Type) -> bool:
    if kind == ANY:
        return True
    if kind == BOOL:
        return type(value) is bool
    if isinstance(kind, ListType):
        python = _PYTHON[kind.element]
        return type(value) is list and all(type(entry) is python for entry in value)
    return type(value) is _PYTHON[kind]


def _common_type(values: list[Any]) -> Type | None:
    kinds = {type(value) for value in values}
    return _SCALARS.get(kinds.pop()) if len(kinds) == 1 else None


def _record_fields(kind: type) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass or pydantic class whose instances keep them in a plain ``__dict__``."""
    if kind.__getattribute__ is not object.__getattribute__:
        return None
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        plain = not hasattr(kind, "__slots__") and "__getattr__" not in vars(kind)
    elif issubclass(kind, pydantic.BaseModel):
        names = tuple(kind.model_fields)
        plain = True
    else:
        return None
    return (
        names if plain and not any(isinstance(inspect.getattr_static(kind, n, None), property) for n in names) else None
    )


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}
