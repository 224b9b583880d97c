"""The estimate of rows of compiled programs on their target: of ``lmc cost``, and of the results of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lmc.backend.schedule.schedule import schedule_batch
from lmc.cost.caching import CacheRule, SharedPrefixes, rule_of
from lmc.cost.equivalence import requests_key
from lmc.cost.estimate import Estimate, Estimator
from lmc.cost.hints import HintFinder
from lmc.cost.prices import Price, Unpriced
from lmc.cost.ranges import CostRange
from lmc.cost.requests import RowRequests
from lmc.cost.texts import CountingTokenizer, counting
from lmc.cost.walk import WalkFacts, walk_row
from lmc.driver.compile.compile import collection_paused
from lmc.driver.compile.compiled import Compiled
from lmc.driver.run.money import RunPrices
from lmc.driver.targets.probes import known_probe
from lmc.grammar.provider_schema import form_bytes
from lmc.grammar.sharing import source_of
from lmc.ir.cached import cached_property
from lmc.ir.core import Constraint
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.engine.target import Target
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Constraints

_UNLIMITED = 1 << 62


@dataclass(frozen=True, eq=False)
class EstimatedVariant:
    """A compiled form of a program; ``module`` is what its plan runs."""

    compiled: Compiled
    module: Module

    @cached_property
    def key(self) -> Hashable:
        """A value that is equal for modules with the same requests."""
        return requests_key(self.module)

    @classmethod
    def of(cls, compiled: Compiled) -> EstimatedVariant:
        """Return that of a compiled program."""
        return cls(compiled, compiled.plan.module)

    def values_of(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return inputs of the plan by the names of the module's parameters."""
        return {parameter.value.name: inputs[parameter.name] for parameter in self.compiled.plan.parameters}


PlacedRow = tuple[EstimatedVariant, Mapping[str, Any]]
"""A row's variant, and its values by the names of the module's parameters."""


@dataclass(frozen=True)
class Estimation:
    """The estimate of rows on a target.

    Attributes:
        placed: the rows; all variants are compiled for the target.
        tokenizer: counts the tokens of the target.
        prices: those of the target and its fallbacks.
        is_scheduled: rows start in the order of their schedule; else one after the other.
    """

    target: Target
    placed: Sequence[PlacedRow]
    tokenizer: CountingTokenizer
    prices: Sequence[Price | Unpriced]
    is_scheduled: bool = False

    @cached_property
    def _sizes(self) -> Counter[int]:
        """The number of rows of each variant."""
        return Counter(id(variant) for variant, _ in self.placed)

    @property
    def price(self) -> Price | Unpriced:
        """The price of the target itself."""
        return self.prices[0]

    @property
    def rule(self) -> CacheRule:
        """The rule by which the target caches prompts."""
        return _rule_of(self.target)

    @property
    def unpriced(self) -> str | None:
        """The reason why a request may have no price."""
        if isinstance(self.price, Unpriced):
            return self.price.reason
        missing = (each for each in self.prices[1:] if isinstance(each, Unpriced))
        return next((f"the fallback {each.model}: {each.reason}" for each in missing), None)

    def estimate(
        self, finder: HintFinder | None = None, first: list[RowRequests] | None = None, *, keep: int = 0
    ) -> Estimate:
        """Return the estimate, for rows in the order in which a run starts them; with ``finder`` its hints.

        The first ``keep`` rows are appended to ``first``.
        """
        prefixes = SharedPrefixes(self.rule, self.tokenizer, [_rule_of(each) for each in self.target.chain[1:]])
        estimator = Estimator(self.price, prefixes, finder, self.prices[1:])
        for number, variant, row in self._walked():
            estimator.add(variant.module, row, number)
            if first is not None and len(first) < keep:
                first.append(row)
        return estimator.estimate()

    def _walked(self) -> Iterator[tuple[int, EstimatedVariant, RowRequests]]:
        """Yield rows with their numbers, in the order in which a run starts them."""
        facts: dict[int, WalkFacts] = {}
        for number in self._order():
            variant, values = self.placed[number]
            if id(variant) not in facts:
                facts[id(variant)] = self._facts(variant)
            with collection_paused():  # many objects, and none in a cycle
                row = walk_row(variant.module, values, facts[id(variant)])
            yield number, variant, row

    def _order(self) -> Sequence[int]:
        """Return the rows in the order in which a run starts them."""
        if not self.is_scheduled:
            return range(len(self.placed))
        numbers: dict[int, list[int]] = {}
        for number, (variant, _) in enumerate(self.placed):
            numbers.setdefault(id(variant), []).append(number)
        found: list[int] = []
        for members in numbers.values():
            plan = self.placed[members[0]][0].compiled.plan
            inputs = [
                {parameter.name: self.placed[each][1][parameter.value.name] for parameter in plan.parameters}
                for each in members
            ]
            order = range(1) if len(members) == 1 else schedule_batch(plan, inputs).order
            found += [members[index] for index in order]
        return found

    def _facts(self, variant: EstimatedVariant) -> WalkFacts:
        target, compiled = self.target, variant.compiled
        is_exact = target.capabilities.contexts == "tokens" and target.capabilities.structured == "exact"
        compiles = any(each.NAME == "compile-constraints" for each in compiled.options.passes.passes)
        cache, tokenizer = compiled.cache, compiled.tokenizer

        def lengths(symbol: Constraint) -> tuple[int | None, int | None]:
            if not (is_exact and compiles):
                return None, None
            built = cache.built(source_of(symbol.kind, symbol.text, symbol.whitespace), tokenizer)
            return built.facts.shortest_tokens, built.facts.longest_tokens

        def schema_bytes(symbol: Constraint) -> int:
            source = source_of(symbol.kind, symbol.text, symbol.whitespace)
            return max(form_bytes(source, each.capabilities.schema_keywords, each.spec) for each in target.chain)

        return WalkFacts(
            self.tokenizer,
            engine_info(target),
            Constraints.of(variant.module.constraints, None),
            profile=compiled.options.profile,
            lengths=lengths,
            schema_bytes=schema_bytes,
            is_batch=self._sizes[id(variant)] > 1,
        )


class RowEstimator:
    """Estimates a row of a hosted model that is run, where that is asked for."""

    def __init__(self, compiled: Compiled, inputs: Mapping[str, Any], prices: RunPrices) -> None:
        self._compiled = compiled
        self._inputs = inputs
        self._prices = prices

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()  # a result that is sent to another process leaves it out

    def __deepcopy__(self, _: object) -> RowEstimator:
        return self  # ``asdict`` of a result copies it

    def dollars(self) -> CostRange[Decimal] | None:
        """Return the dollars of the row alone; None: a request has no price."""
        compiled, variant = self._compiled, EstimatedVariant.of(self._compiled)
        row = variant, variant.values_of(self._inputs)
        estimation = Estimation(compiled.target, [row], counting(compiled.tokenizer), self._prices.chain())
        return estimation.estimate().total.dollars


def engine_info(target: Target) -> EngineInfo:
    """Return the engine of a target as the semantics of its programs needs it, without loading it."""
    fallbacks = tuple((each.spec, each.capabilities) for each in target.chain[1:])
    return EngineInfo(target.spec, _UNLIMITED, capabilities=target.capabilities, fallbacks=fallbacks)


def _rule_of(target: Target) -> CacheRule:
    return rule_of(target, _server_of(target))


def _server_of(target: Target) -> str | None:
    """Return the kind of a server, as it was declared or found by a probe."""
    if target.kind != "server" or target.remote is None or target.path is None:
        return None
    probe = known_probe(target.path)
    return target.remote.server or (None if probe is None else probe.probe.model.owner)
