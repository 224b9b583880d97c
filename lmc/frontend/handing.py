"""What a capture may hand on to what runs later, and what it has to note or refuse of the user's data."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from lmc.frontend.branches import Block, Branches
from lmc.frontend.constructs import Constructs
from lmc.frontend.emitting import SCALARS
from lmc.frontend.guards import unguarded_part
from lmc.frontend.messages import Appendable
from lmc.frontend.proxy import Grown, ProxyMethod
from lmc.frontend.reaching import RECEIVER, reaches
from lmc.frontend.specs import Record
from lmc.frontend.state import State
from lmc.frontend.unclear import Maybe, Unclear, UnknownLength
from lmc.ir.errors import Location
from lmc.ir.wording import with_article

# What only a capture knows, and what a message calls it.
_CAPTURE_ONLY: dict[type, str] = {
    State: "a state",
    Branches: "the branches of a state",
    Block: "a block of a state",
    Record: "a whole argument whose fields are known only when the program runs",
    ProxyMethod: "a method of a value that is known only when the program runs",
    Unclear: "what differs between the ways through a condition",
    Maybe: "what is there only on one way through a condition",
    Grown: "the items of a list whose length only a run decides",
}
# Python's own types whose instances never change, or that a capture never makes.
_FIXED_BUILTINS = frozenset(
    {
        bytes,
        complex,
        range,
        slice,
        frozenset,
        type,
        list,
        tuple,
        dict,
        set,
        type(Ellipsis),
        type(NotImplemented),
        ModuleType,
        FunctionType,
        BuiltinFunctionType,
        MethodType,
        type(str.upper),
        *SCALARS,
    }
)


class Handing(Constructs):
    """The part of ``Recorder`` that looks at the user's data."""

    def freeze(self, held: Any) -> Any:
        """``held``, of which there is a copy now that must not come to differ: it can't be changed any more."""
        if id(held) not in self.foreign:
            self.frozen.add(id(held))
            self.foreign[id(held)] = held
            self.argument_parts.add(id(held))
        return held

    def note_write(self, label: str, declaring: str) -> None:
        """A call may change the user's own data. Breaks where what was read before is read again.

        ``label`` is what messages call the function, ``declaring`` the advice to declare it.
        """
        if self.mutable_reads:
            if self.careful:
                raise self.stop(
                    f"{label} may change data that the program has read, and a later part of the program runs eagerly",
                    declaring,
                )
            self.hazard = True
        self.user_writes += 1

    def check_arguments_kept(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """Break where ``function`` may change an argument of the program, of which the graph holds a copy."""
        label = getattr(function, "__name__", type(function).__name__)
        if isinstance(function, MethodType) and self.outside.is_receiver(function.__self__):
            function, arguments = function.__func__, (*arguments, RECEIVER)
        roots = [function, *(RECEIVER if self.outside.is_receiver(value) else value for value in arguments)]
        if reaches(roots, self.outside.changeable, self.outside.receiver):
            raise self.stop(
                f"{label}() may change an argument of the program: it refers to the same list, dict or object",
                "pass a copy of the argument (list(x), dict(x)), or declare what the function does "
                '(@lmc.tool(effect="reads") or "pure")',
            )
        self.writers += roots

    def check_guarded(self, value: Any, location: Location | None = None) -> None:
        """Break where ``value``, made outside the capture, may change without a guard seeing it."""
        found = unguarded_part(value)
        if found is not None:
            raise self.stop(
                f"{with_article(found.__name__)} comes from outside the program, and may change without being seen",
                "make a list or a text of it before, and use that",
                location,
            )

    def problem_with(self, value: Any) -> str | None:
        """Why ``value`` can't be handed to a function that runs later; None where it can."""
        kind: type = type(value)
        if issubclass(kind, Appendable):
            return "a message or a generation"
        if issubclass(kind, UnknownLength):
            return "what goes over items whose number only a run decides"
        if id(value) in self.outside.own:
            return "a partial function that is made in the program"
        for own, what in _CAPTURE_ONLY.items():
            if issubclass(kind, own):
                return what
        if isinstance(value, FunctionType) and id(value.__code__) in self.codes:
            return "a function that is made in the program"
        if isinstance(value, GeneratorType) and id(value.gi_code) in self.codes:
            return "a generator that is made in the program"
        if issubclass(kind, BaseException) or (kind.__module__ == "builtins" and kind not in _FIXED_BUILTINS):
            return None if id(value) in self.foreign else with_article(kind.__name__)
        return None
