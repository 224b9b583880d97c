"""The ops that a model answers: generations, draws, selections, and prefixes computed ahead of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from operator import attrgetter

from lmc.ir.builtins.checks import DEFINED_KINDS
from lmc.ir.cached import cached_property
from lmc.ir.core import Effect, Op, Value, attribute, operand, operands, parts, register
from lmc.ir.dialects.rules import (
    expect_context,
    expect_occurrences,
    expect_one_of,
    expect_plan,
    expect_results,
    expect_sampling,
)
from lmc.ir.engine.protocol import JUMP_FORWARD, SamplingParams
from lmc.ir.types import ANY, BOOL, CTX, FLOAT, INT, TEXT, JsonType, ListType, Type, list_of

DEFAULT_METHOD = "token_length_normalized"
SELECT_METHODS = ("token_length_normalized", "greedy_token", "unconditional_likelihood_normalized")
PREFILL_SCOPES = ("instance", "batch")
_parameters_of = attrgetter(*(field.name for field in dataclasses.fields(SamplingParams)))


@dataclass(frozen=True, eq=False, kw_only=True)
class SamplingOp(Op):
    """The common base of ``lm.gen`` and ``lm.sample``.

    ``id`` is the stable id (random draws, journal and profile are keyed by it), ``occurrences`` are the numbers in its
    holes (``lmc.ir.ids``), ``name`` is the user's variable. ``constraint`` names a module symbol, ``jump_forward`` is
    the treatment of forced text in an engine (see ``lmc.ir.engine.protocol.Request``). The other attributes are those
    of ``lmc.ir.engine.protocol.SamplingParams``; ``seed`` overrides the run's seed. ``wave`` and ``group`` are
    plan-fork-join's (see ``expect_plan``).

    ``expected_tokens`` is the average length of an output, if it is known: a hint for plans without effect on results.

    ``definition`` replaces ``constraint`` by a text known at run time, of kind ``definition_kind``.

    ``forced`` are the only token ids that the constraint allows, if compile-constraints has found them: then no model
    is called, and the op is pure.
    """

    context: Value = operand()
    id: str = attribute()
    occurrences: tuple[Value, ...] = operands(())
    definition: tuple[Value, ...] = operands(())
    name: str | None = attribute(None)
    max_tokens: int = attribute(256)
    min_tokens: int = attribute(0)
    stop: tuple[str, ...] = attribute(())
    stop_token_ids: tuple[int, ...] = attribute(())
    temperature: float | None = attribute(None)
    top_p: float = attribute(1.0)
    top_k: int = attribute(0)
    min_p: float = attribute(0.0)
    frequency_penalty: float = attribute(0.0)
    presence_penalty: float = attribute(0.0)
    repetition_penalty: float = attribute(1.0)
    logit_bias: tuple[tuple[int | float, ...], ...] = attribute(())
    seed: int | None = attribute(None)
    logprobs: int | None = attribute(None)
    constraint: str | None = attribute(None, symbol="constraint")
    definition_kind: str | None = attribute(None)
    jump_forward: str = attribute("exact")
    forced: tuple[int, ...] | None = attribute(None)
    expected_tokens: int | None = attribute(None)
    wave: int | None = attribute(None)
    group: str | None = attribute(None)

    @property
    def effect(self) -> Effect:
        """``samples``; ``pure`` if ``forced``."""
        return Effect.SAMPLES if self.forced is None else Effect.PURE

    @property
    def may_raise(self) -> bool:
        """Yes, unless ``forced`` and of type ``!text``."""
        return self.forced is None or self.value_type != TEXT

    @property
    def billable(self) -> bool:
        """Yes, unless ``forced``."""
        return self.forced is None

    @property
    def value_type(self) -> Type:
        """The type of one generation's value: text, unless the op has a result that says otherwise."""
        return TEXT

    @cached_property
    def sampling(self) -> SamplingParams:
        """The attributes as an engine takes them."""
        return SamplingParams(*_parameters_of(self))

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_occurrences(self, (self.id,), self.occurrences)
        expect_sampling(self, self.sampling)
        expect_one_of(self, "jump_forward", self.jump_forward, JUMP_FORWARD)
        expect_plan(self, self.wave, self.group)
        if self.expected_tokens is not None and not 0 <= self.expected_tokens <= self.max_tokens:
            raise self.fail("expected_tokens lies between 0 and max_tokens", "measure it again, or leave it out")
        value = self.value_type
        if self.constraint is None and value != TEXT:
            raise self.fail(f"an unconstrained generation gives !text, not {value}")
        if value not in (TEXT, INT, FLOAT, BOOL) and not isinstance(value, JsonType):
            raise self.fail(f"no generation gives {value}", "it gives !text, !int, !float, !bool or !json<…>")
        self._verify_definition()
        if self.constraint is None and not self.definition and self.jump_forward != JUMP_FORWARD[0]:
            raise self.fail("jump_forward is for a generation with a constraint", "leave it out")
        if self.forced is not None:
            self._verify_forced(self.forced)

    def _verify_definition(self) -> None:
        if not self.definition:
            if self.definition_kind is not None:
                raise self.fail("definition_kind is for a generation with a definition", "leave it out")
            return
        expect_one_of(self, "definition_kind", self.definition_kind or "none", DEFINED_KINDS)
        if [value.type for value in self.definition] != [TEXT]:
            raise self.fail("a definition is one !text", "give the constraint's text")
        if self.constraint is not None:
            raise self.fail("there is a constraint and a definition of one", "leave one of them out")

    def _verify_forced(self, forced: tuple[int, ...]) -> None:
        rules = (
            (self.constraint is not None, "forced tokens follow from a constraint"),
            (self.logprobs is None, "forced tokens have no log-probabilities"),
            (len(forced) <= self.max_tokens, "there are more forced tokens than max_tokens"),
            (min(forced, default=0) >= 0, "a forced token id is not negative"),
            (self.wave is None, "forced tokens need no call of the model, so they have no wave"),
        )
        for holds, rule in rules:
            if not holds:
                raise self.fail(rule)


@register("lm.gen")
class GenOp(SamplingOp):
    """Generate text and append it.

    Results are the new context, the value, and with ``logprobs`` its meta data (``!any``).
    """

    @property
    def value_type(self) -> Type:
        return self.results[1].type if len(self.results) > 1 else TEXT

    def verify(self) -> None:
        super().verify()
        expect_results(self, CTX, self.value_type, *([ANY] if self.logprobs is not None else []))


@register("lm.sample")
class SampleOp(SamplingOp):
    """Draw ``n`` independent generations from one context, which stays as it is.

    Results are the list of texts, and with ``logprobs`` their meta data (``!any``).
    """

    n: int = attribute()

    @property
    def value_type(self) -> Type:
        kind = self.results[0].type if self.results else None
        return kind.element if isinstance(kind, ListType) else TEXT

    def verify(self) -> None:
        if self.n < 1:
            raise self.fail(f"n is {self.n}", "draw at least one")
        if self.results and not isinstance(self.results[0].type, ListType):
            raise self.fail(f"the result is a list, not {self.results[0].type}")
        super().verify()
        expect_results(self, list_of(self.value_type), *([ANY] if self.logprobs is not None else []))


@register("lm.select")
class SelectOp(Op):
    """Append the likeliest of ``choices``: results are the new context, the choice and the scores (``!any``).

    ``choices`` holds literals and ``!text`` values, or one ``!list<!text>``. ``method`` is one of ``SELECT_METHODS``;
    without one it is ``DEFAULT_METHOD`` on a target that scores texts, and elsewhere the model writes its choice.
    ``occurrences`` are the numbers in the holes of ``id`` (``lmc.ir.ids``).
    """

    context: Value = operand()
    choices: tuple[str | Value, ...] = parts()
    id: str = attribute()
    occurrences: tuple[Value, ...] = operands(())
    name: str | None = attribute(None)
    method: str | None = attribute(None)
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
        expect_occurrences(self, (self.id,), self.occurrences)
        expect_one_of(self, "method", self.method or DEFAULT_METHOD, SELECT_METHODS)
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

    Put in by hoist-prefixes. ``scope`` "batch" marks a prefix common to all instances, computed once per batch. One
    instance alone leaves it to its calls, unless it is ``ahead``: computed while a call waits for other results.
    """

    context: Value = operand()
    scope: str = attribute("instance")
    ahead: bool = attribute(False)

    def verify(self) -> None:
        expect_context(self, self.context)
        expect_one_of(self, "scope", self.scope, PREFILL_SCOPES)
        expect_results(self, CTX)
