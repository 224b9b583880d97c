"""The ops that a model answers: generations, draws, selections, and prefixes computed ahead of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from lmc.ir.core import Effect, Op, Value, attribute, operand, parts, register
from lmc.ir.engine import SamplingParams
from lmc.ir.rules import expect_context, expect_one_of, expect_plan, expect_results, expect_sampling
from lmc.ir.types import ANY, CTX, TEXT, ListType, list_of

SELECT_METHODS = ("token_length_normalized", "greedy_token", "unconditional_likelihood_normalized")
PREFILL_SCOPES = ("instance", "batch")


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
    frequency_penalty: float = attribute(0.0)
    presence_penalty: float = attribute(0.0)
    repetition_penalty: float = attribute(1.0)
    logit_bias: tuple[tuple[int | float, ...], ...] = attribute(())
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
