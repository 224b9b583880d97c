"""The ops of the IR. One class each: typed fields, effect, ``verify``. README.md says how to add one.

Model calls are in ``model_ops.py``; import them from here like all others. Ops with regions
are in ``region_ops.py``.
"""

from __future__ import annotations

from lmc.ir.builtins import builtins, object_builtins
from lmc.ir.builtins.live import hosts_of
from lmc.ir.builtins.structure import leaf_count
from lmc.ir.core import Attribute, Effect, Op, Value, arguments, attribute, operand, operands, parts, register
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.model_ops import (
    PREFILL_SCOPES,
    SELECT_METHODS,
    GenOp,
    PrefillOp,
    SampleOp,
    SamplingOp,
    SelectOp,
)
from lmc.ir.dialects.rules import (
    expect_context,
    expect_flag,
    expect_keywords,
    expect_not_context,
    expect_occurrences,
    expect_one_of,
    expect_results,
    expect_text_parts,
)
from lmc.ir.errors import InputError
from lmc.ir.types import ANY, CTX, TEXT, holds_context, type_of
from lmc.ir.wording import with_count

__all__ = [
    "HOST_EFFECTS",
    "PREFILL_SCOPES",
    "ROLES",
    "SELECT_METHODS",
    "AssumeOp",
    "BeginOp",
    "BreakOp",
    "ConcatOp",
    "ContextOp",
    "EndOp",
    "ExtendOp",
    "FreeOp",
    "GenOp",
    "HostCallOp",
    "KeepOp",
    "LocalCallOp",
    "MessagesOp",
    "PrefillOp",
    "PyCallOp",
    "ReturnOp",
    "SampleOp",
    "SamplingOp",
    "SelectOp",
    "TranscriptOp",
    "UnreachableOp",
]

ROLES = ("system", "user", "assistant", "tool")
HOST_EFFECTS = ("pure", "reads", "writes")


@register("lm.context")
class ContextOp(Op):
    """Begin an empty context."""

    def verify(self) -> None:
        expect_results(self, CTX)


@register("lm.extend")
class ExtendOp(Op):
    """Append text: one whole message of ``role``, or bare text if ``role`` is none."""

    context: Value = operand()
    role: str | None = attribute(None, keyword=True)
    text: tuple[str | Value, ...] = parts()

    def verify(self) -> None:
        expect_context(self, self.context)
        if self.role is not None:
            expect_one_of(self, "role", self.role, ROLES)
        expect_text_parts(self, self.text)
        expect_results(self, CTX)


@register("lm.begin")
class BeginOp(Op):
    """Close the open turn, if any, and open one of ``role``; what follows belongs to it until ``lm.end``."""

    context: Value = operand()
    role: str = attribute(keyword=True)

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_one_of(self, "role", self.role, ROLES)
        expect_results(self, CTX)


@register("lm.end")
class EndOp(Op):
    """Close the open turn."""

    context: Value = operand()

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_results(self, CTX)


@register("lm.transcript")
class TranscriptOp(Op):
    """The text of a whole context; with ``since`` (at most one context), the text appended after that context.

    That text must belong to one turn, or to the raw completion: else the op raises ``CaptureError``.
    """

    context: Value = operand()
    since: tuple[Value, ...] = operands(())

    @property
    def may_raise(self) -> bool:
        """With ``since``."""
        return bool(self.since)

    def verify(self) -> None:
        expect_context(self, self.context)
        for value in self.since:
            expect_context(self, value)
        if len(self.since) > 1:
            raise self.fail("a text has one beginning", "give since one context, or leave it out")
        expect_results(self, TEXT)


@register("lm.messages")
class MessagesOp(Op):
    """The messages of a context, the open turn last: a new list of dicts (role, content), an object of the run."""

    context: Value = operand()

    @property
    def effect(self) -> Effect:
        return Effect.LOCAL

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_results(self, ANY)


@register("text.concat")
class ConcatOp(Op):
    """Concatenate texts."""

    text: tuple[str | Value, ...] = parts()

    def verify(self) -> None:
        expect_text_parts(self, self.text)
        expect_results(self, TEXT)


@register("py.call")
class PyCallOp(Op):
    """Call a pure builtin (``lmc.ir.builtins.builtins``) by name. ``keywords`` names the last arguments, in order."""

    function: str = attribute(keyword=True)
    arguments: tuple[Attribute | Value, ...] = arguments()
    keywords: tuple[str, ...] = attribute(())

    @property
    def may_raise(self) -> bool:
        """Yes, unless the builtin cannot raise on operands of these types."""
        found = builtins.lookup(self.function)
        types = [entry.type if isinstance(entry, Value) else type_of(entry) for entry in self.arguments]
        return found is None or found.may_raise(types, self.keywords)

    def verify(self) -> None:
        if builtins.lookup(self.function) is None:
            raise self.fail(f"no pure builtin is called {self.function!r}", "see lmc/ir/builtins/builtins.py")
        expect_keywords(self, self.keywords, len(self.arguments))
        if len(self.results) != 1:
            raise self.fail(f"has one result, not {len(self.results)}")
        if any(holds_context(value.type) for value in (*self.operands, *self.results)):
            raise self.fail("a context is no Python value", "use the lm ops")


@register("py.local")
class LocalCallOp(Op):
    """Make, change or iterate an object of the run (``lmc/ir/builtins/object_builtins.py``); keywords: ``py.call``.

    Objects of a run are containers that the program makes while it runs, and that nothing outside of it holds. These
    ops keep their order, also with ops that have such ops in their regions. Any other op that uses a value which may be
    such an object keeps its place among them, so ``py.call`` may look into one. They are not ordered with host
    functions, unless one takes such an object: it may change the object only while it runs.
    """

    function: str = attribute(keyword=True)
    arguments: tuple[Attribute | Value, ...] = arguments()
    keywords: tuple[str, ...] = attribute(())

    @property
    def effect(self) -> Effect:
        return Effect.LOCAL

    @property
    def may_raise(self) -> bool:
        """Yes, unless the builtin cannot raise on operands of these types."""
        found = object_builtins.lookup(self.function)
        types = [entry.type if isinstance(entry, Value) else type_of(entry) for entry in self.arguments]
        return found is None or found.may_raise(types, self.keywords)

    def verify(self) -> None:
        if object_builtins.lookup(self.function) is None:
            raise self.fail(
                f"no builtin for objects is called {self.function!r}", "see lmc/ir/builtins/object_builtins.py"
            )
        expect_keywords(self, self.keywords, len(self.arguments))
        if len(self.results) != 1:
            raise self.fail(f"has one result, not {len(self.results)}")
        if any(holds_context(value.type) for value in (*self.operands, *self.results)):
            raise self.fail("a context is no Python value", "use the lm ops")


@register("host.call")
class HostCallOp(Op):
    """Call a function of the user's program. ``host`` names a module symbol; ``declared`` repeats its effect.

    ``id`` has no holes: a call is identified by its place (``lmc.ir.ids``).

    ``early``: a run may start the call before it is known that the region around it runs
    (``lmc.ir.semantics.speculation``). If the region does not run, the result is dropped; so no result depends on it.
    """

    host: str = attribute(keyword=True, symbol="host")
    id: str = attribute()
    arguments: tuple[Attribute | Value, ...] = arguments()
    keywords: tuple[str, ...] = attribute(())
    declared: str = attribute("writes")
    early: bool = attribute(False)

    @property
    def effect(self) -> Effect:
        """The effect that ``declared`` names."""
        return Effect(self.declared)

    @property
    def may_raise(self) -> bool:
        return True

    def verify(self) -> None:
        expect_one_of(self, "effect", self.declared, HOST_EFFECTS)
        if self.early and self.effect is Effect.WRITES:
            raise self.fail("starts early, but writes", "start only calls early that read, or are pure")
        expect_keywords(self, self.keywords, len(self.arguments))
        if len(self.results) != 1:
            raise self.fail(f"has one result, not {len(self.results)}")
        if any(holds_context(value.type) for value in (*self.operands, *self.results)):
            raise self.fail("a context can't be passed to a host function", "pass its text")
        expect_occurrences(self, (self.id,), ())


@register("py.assume")
class AssumeOp(Op):
    """Raise ``PlanMismatchError`` unless ``value`` equals ``expected``, which the program was specialised for."""

    value: Value = operand()
    expected: Attribute = attribute()

    @property
    def effect(self) -> Effect:
        return Effect.WRITES

    @property
    def may_raise(self) -> bool:
        return True

    def verify(self) -> None:
        expect_not_context(self, self.value)
        expect_results(self)


@register("lm.return", ends=("function", "region"))
class ReturnOp(Op):
    """End the program.

    ``values`` are the leaves of the returned value, ``structure`` (canonical JSON) is their nesting: a leaf is
    ``{"leaf": i}``, a literal ``{"literal": x}``, containers ``{"list"|"tuple": [...]}``, ``{"dict": [[key, …], …]}``.
    ``variables`` are the user's names on the root context, ``context`` is its last value. A variable listed in
    ``present_names`` exists only if its flag in ``present`` is true.
    """

    context: Value = operand()
    values: tuple[Value, ...] = operands(())
    structure: str = attribute('{"literal":null}')
    variables: tuple[Value, ...] = operands(())
    variable_names: tuple[str, ...] = attribute(())
    present: tuple[Value, ...] = operands(())
    present_names: tuple[str, ...] = attribute(())

    def verify(self) -> None:
        expect_context(self, self.context)
        for value in self.present:
            expect_flag(self, value)
        if len(self.present) != len(self.present_names):
            raise self.fail("present and present_names differ in length")
        if len(set(self.present_names)) != len(self.present_names):
            raise self.fail("a variable has two flags")
        if not set(self.present_names) <= set(self.variable_names):
            raise self.fail("a flag says whether a variable is present that is not listed", "list it in variables")
        for value in (*self.values, *self.variables):
            expect_not_context(self, value)
        if len(self.variables) != len(self.variable_names):
            raise self.fail("variables and variable_names differ in length")
        if len(set(self.variable_names)) != len(self.variable_names):
            raise self.fail("two variables have one name")
        try:
            leaves = leaf_count(self.structure)
        except InputError as error:
            raise self.fail(error.cause, "lmc/ir/builtins/structure.py says how results are written") from None
        if leaves > len(self.values):
            raise self.fail(
                f"structure names {with_count(leaves, 'leaf', 'leaves')} for {with_count(len(self.values), 'value')}"
            )
        expect_results(self)


@register("cf.unreachable", ends=("function", "region"))
class UnreachableOp(Op):
    """End a block that no run reaches, because an op before it leaves on every path."""

    def verify(self) -> None:
        expect_results(self)


@register("lm.break", ends=("function", "region"))
class BreakOp(Op):
    """End the captured part of a program (a graph break); the rest runs eagerly.

    ``record`` describes the live variables (``lmc.ir.builtins.live``), ``values`` are its leaves. ``cause`` and
    ``remedy`` are for the user.
    """

    values: tuple[Value, ...] = operands(())
    cause: str = attribute("")
    remedy: str = attribute("")
    record: str = attribute()

    def verify(self) -> None:
        try:
            hosts_of(self.record, len(self.values))
        except InputError as error:
            raise self.fail(error.cause, "lmc/ir/builtins/live.py says how records are written") from None
        expect_results(self)
