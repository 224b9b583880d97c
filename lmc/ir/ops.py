"""The ops of the IR. One class each: typed fields, effect, ``verify``. README.md says how to add one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from lmc.ir import builtins
from lmc.ir.core import (
    Attribute,
    Effect,
    Op,
    Value,
    arguments,
    attribute,
    operand,
    operands,
    parts,
    register,
)
from lmc.ir.engine import SamplingParams
from lmc.ir.errors import InputError
from lmc.ir.rules import (
    expect_context,
    expect_keywords,
    expect_not_context,
    expect_one_of,
    expect_plan,
    expect_results,
    expect_sampling,
    expect_text_parts,
)
from lmc.ir.structure import leaf_count
from lmc.ir.types import ANY, CTX, TEXT, ListType, list_of, type_of

ROLES = ("system", "user", "assistant", "tool")
SELECT_METHODS = ("token_length_normalized", "greedy_token", "unconditional_likelihood_normalized")
HOST_EFFECTS = ("pure", "reads", "writes")
PREFILL_SCOPES = ("instance", "batch")


@register("lm.context")
class ContextOp(Op):
    """A context without any text."""

    def verify(self) -> None:
        expect_results(self, CTX)


@register("lm.extend")
class ExtendOp(Op):
    """Append text: one whole message of ``role``, or bare text where ``role`` is None."""

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


@dataclass(frozen=True, eq=False, kw_only=True)
class SamplingOp(Op):
    """What ``lm.gen`` and ``lm.sample`` share.

    ``id`` is the stable id (random draws, journal and profile are keyed by it), ``name`` the user's variable.
    ``constraint`` names a module symbol. The other attributes are those of ``lmc.ir.engine.SamplingParams``; ``seed``
    takes the place of the run's seed. ``wave`` and ``group`` are plan-fork-join's (see ``expect_plan``).
    """

    context: Value = operand()
    id: str = attribute()
    name: str | None = attribute(None)
    max_tokens: int = attribute(256)
    min_tokens: int = attribute(0)
    stop: tuple[str, ...] = attribute(())
    stop_token_ids: tuple[int, ...] = attribute(())
    temperature: float = attribute(0.0)
    top_p: float = attribute(1.0)
    top_k: int = attribute(0)
    min_p: float = attribute(0.0)
    seed: int | None = attribute(None)
    logprobs: int | None = attribute(None)
    constraint: str | None = attribute(None, symbol="constraint")
    wave: int | None = attribute(None)
    group: str | None = attribute(None)

    @property
    def effect(self) -> Effect:
        return Effect.SAMPLES

    @property
    def may_raise(self) -> bool:
        return True

    @property
    def billable(self) -> bool:
        return True

    @property
    def sampling(self) -> SamplingParams:
        """The attributes as an engine takes them."""
        return SamplingParams(**{field.name: getattr(self, field.name) for field in dataclasses.fields(SamplingParams)})

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_sampling(self, self.sampling)
        expect_plan(self, self.wave, self.group)


@register("lm.gen")
class GenOp(SamplingOp):
    """Generate text and append it.

    Results are the new context, the value, and with ``logprobs`` a ``!any`` of meta data.
    """

    def verify(self) -> None:
        super().verify()
        value = self.results[1].type if len(self.results) > 1 else TEXT
        if self.constraint is None and value != TEXT:
            raise self.fail(f"an unconstrained generation gives !text, not {value}")
        expect_results(self, CTX, value, *([ANY] if self.logprobs is not None else []))


@register("lm.sample")
class SampleOp(SamplingOp):
    """Draw ``n`` independent generations from one context, which stays as it is.

    Results are the list of texts, and with ``logprobs`` a ``!any`` of meta data.
    """

    n: int = attribute()

    def verify(self) -> None:
        super().verify()
        if self.n < 1:
            raise self.fail(f"n is {self.n}", "draw at least one")
        value = self.results[0].type if self.results else list_of(TEXT)
        if not isinstance(value, ListType):
            raise self.fail(f"the result is a list, not {value}")
        if self.constraint is None and value.element != TEXT:
            raise self.fail(f"unconstrained samples give !list<!text>, not {value}")
        expect_results(self, value, *([ANY] if self.logprobs is not None else []))


@register("lm.select")
class SelectOp(Op):
    """Append the likeliest of ``choices``: results are the new context, the choice and a ``!any`` of scores.

    ``choices`` holds literals and ``!text`` values, or one ``!list<!text>``. ``method`` is one of ``SELECT_METHODS``.
    """

    context: Value = operand()
    choices: tuple[str | Value, ...] = parts()
    id: str = attribute()
    name: str | None = attribute(None)
    method: str = attribute("token_length_normalized")
    wave: int | None = attribute(None)
    group: str | None = attribute(None)

    @property
    def effect(self) -> Effect:
        return Effect.PURE

    @property
    def may_raise(self) -> bool:
        return True

    @property
    def billable(self) -> bool:
        return True

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_one_of(self, "method", self.method, SELECT_METHODS)
        if not self.choices:
            raise self.fail("no choices", "give at least one")
        for choice in self.choices:
            if choice == "":
                raise self.fail("an empty choice can't be scored", "leave it out")
            if isinstance(choice, Value) and choice.type not in (TEXT, list_of(TEXT)):
                raise self.fail(f"choice {choice} is {choice.type}", "choices are !text or one !list<!text>")
        expect_plan(self, self.wave, self.group)
        expect_results(self, CTX, TEXT, ANY)


@register("lm.prefill")
class PrefillOp(Op):
    """The same context, with its stable prefix computed once and pinned until its last use.

    Put in by hoist-prefixes. ``scope`` "batch" marks a prefix common to all instances, computed once per batch.
    """

    context: Value = operand()
    scope: str = attribute("instance")

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_one_of(self, "scope", self.scope, PREFILL_SCOPES)
        expect_results(self, CTX)


@register("lm.transcript")
class TranscriptOp(Op):
    """The text of a whole context."""

    context: Value = operand()

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_results(self, TEXT)


@register("text.concat")
class ConcatOp(Op):
    """The texts of ``text``, one after the other."""

    text: tuple[str | Value, ...] = parts()

    def verify(self) -> None:
        expect_text_parts(self, self.text)
        expect_results(self, TEXT)


@register("py.call")
class PyCallOp(Op):
    """Call a pure builtin (``lmc.ir.builtins``) by name. ``keywords`` names the last arguments, in order."""

    function: str = attribute(keyword=True)
    arguments: tuple[Attribute | Value, ...] = arguments()
    keywords: tuple[str, ...] = attribute(())

    @property
    def may_raise(self) -> bool:
        found = builtins.lookup(self.function)
        types = [entry.type if isinstance(entry, Value) else type_of(entry) for entry in self.arguments]
        return found is None or found.may_raise(types, self.keywords)

    def verify(self) -> None:
        if builtins.lookup(self.function) is None:
            raise self.fail(f"no pure builtin is called {self.function!r}", "see lmc/ir/builtins.py")
        expect_keywords(self, self.keywords, len(self.arguments))
        if len(self.results) != 1:
            raise self.fail(f"has one result, not {len(self.results)}")
        if any(value.type == CTX for value in (*self.operands, *self.results)):
            raise self.fail("a context is no Python value", "use the lm ops")


@register("host.call")
class HostCallOp(Op):
    """Call a function of the user's program. ``host`` names a module symbol; ``declared`` repeats its effect."""

    host: str = attribute(keyword=True, symbol="host")
    id: str = attribute()
    arguments: tuple[Attribute | Value, ...] = arguments()
    keywords: tuple[str, ...] = attribute(())
    declared: str = attribute("writes")

    @property
    def effect(self) -> Effect:
        return Effect(self.declared)

    @property
    def may_raise(self) -> bool:
        return True

    def verify(self) -> None:
        expect_one_of(self, "effect", self.declared, HOST_EFFECTS)
        expect_keywords(self, self.keywords, len(self.arguments))
        if len(self.results) != 1:
            raise self.fail(f"has one result, not {len(self.results)}")
        if any(value.type == CTX for value in (*self.operands, *self.results)):
            raise self.fail("a context can't be passed to a host function", "pass its text")


@register("py.assume")
class AssumeOp(Op):
    """Stop with a clear error unless ``value`` equals ``expected``: what the program was specialised for."""

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


@register("lm.return", terminator=True)
class ReturnOp(Op):
    """End of the program.

    ``values`` are the leaves of what it returns, ``structure`` (canonical JSON) their nesting: a leaf is
    ``{"leaf": i}``, a literal ``{"literal": x}``, containers ``{"list"|"tuple": [...]}``, ``{"dict": [[key, …], …]}``.
    ``variables`` are the user's names on the root context, ``context`` its last value.
    """

    context: Value = operand()
    values: tuple[Value, ...] = operands(())
    structure: str = attribute('{"literal":null}')
    variables: tuple[Value, ...] = operands(())
    variable_names: tuple[str, ...] = attribute(())

    def verify(self) -> None:
        expect_context(self, self.context)
        for value in (*self.values, *self.variables):
            expect_not_context(self, value)
        if len(self.variables) != len(self.variable_names):
            raise self.fail("variables and variable_names differ in length")
        if len(set(self.variable_names)) != len(self.variable_names):
            raise self.fail("two variables have one name")
        try:
            leaves = leaf_count(self.structure)
        except InputError as error:
            raise self.fail(error.cause, "lmc/ir/structure.py says how results are written") from None
        if leaves > len(self.values):
            raise self.fail(f"structure names {leaves} leaves, but there are {len(self.values)} values")
        expect_results(self)


@register("lm.break", terminator=True)
class BreakOp(Op):
    """End of what could be captured; the program goes on eagerly.

    The results of the ops whose ``ids`` stand here (``counts[i]`` values each, flattened in ``values``) take the place
    of running those again.
    """

    values: tuple[Value, ...] = operands(())
    ids: tuple[str, ...] = attribute(())
    counts: tuple[int, ...] = attribute(())
    cause: str = attribute("")

    def verify(self) -> None:
        fits = len(self.ids) == len(self.counts) and sum(self.counts) == len(self.values)
        if not fits or min(self.counts, default=0) < 0:
            raise self.fail("ids, counts and values don't fit together")
        expect_results(self)
