"""Hints: what makes a program cost more than it has to, each at its line, by the estimate of its requests.

docs/cost-hints.md has a section for each code. A hint has figures, and is only given where they matter: a share of the
prompt, of the limit, or of the dollars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

from lmc.cost.caching import CacheRule
from lmc.cost.prices import MONEY, Price, Unpriced
from lmc.cost.ranges import CostRange
from lmc.cost.requests import EstimatedRequest, RowRequests
from lmc.cost.row_values import RowInputs, differing_values
from lmc.cost.texts import CountingTokenizer
from lmc.cost.walk import WalkFacts
from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.core_ops import BeginOp, ContextOp, EndOp, ExtendOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.errors import Location
from lmc.ir.module import Module
from lmc.ir.usage import Usage
from lmc.ir.wording import with_count

CODES = {
    "LMC101": "varying text before constant text",
    "LMC102": "a call per row that does not depend on the row",
    "LMC103": "an unbounded output",
    "LMC104": "a prefix under the cacheable minimum",
    "LMC105": "a max_tokens that outputs never come near",
    "LMC106": "a more expensive model than a select needs",
    "LMC107": "an unbounded prompt",
}
"""The codes, which never change, and their meanings."""
_SHARE = 10
"""A part of a prompt, or of all dollars, matters from a tenth on."""
_TEXT = 64
"""Fewer tokens of text are no rules or examples, but a question or the words around a value."""
_PREFIX = 16
"""Fewer tokens that prompts share are the marks of turns and a few words."""
_OUTPUTS = 20
"""Outputs that a profile needs, so that the longest of them tells something about later ones."""
_TIMES = 4
"""So many times what outputs have, or what another model costs, is far from it."""
_ROOM = 64
"""Tokens: a smaller limit is not worth another one."""
_PASSED = (BeginOp, EndOp, PrefillOp, KeepOp, FreeOp)
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class FoundHint:
    """A hint: its code (``CODES``), the line of the program, the id of the call there, and the facts with figures."""

    code: str
    location: Location | None
    op_id: str
    message: str


@dataclass(slots=True)
class _Calls:
    """The requests of the calls at one line."""

    first: EstimatedRequest
    requests: int = 0
    runs: float = 0.0
    is_bounded: bool = True
    has_bounded_prompt: bool = True
    prompt: float = 0.0
    shared: float = 0.0
    cached: float = 0.0
    dollars: Decimal = _ZERO
    limits: dict[str, tuple[SamplingOp, int]] = field(default_factory=dict[str, tuple[SamplingOp, int]])

    @property
    def mean_prompt(self) -> float:
        """Prompt tokens of a request that is expected."""
        return self.prompt / self.runs if self.runs else 0.0

    @property
    def mean_shared(self) -> float:
        """Tokens of a request that an earlier prompt begins with."""
        return self.shared / self.runs if self.runs else 0.0


@dataclass
class HintFinder:
    """Finds hints in the requests of rows, which are added in the order in which they are sent.

    Attributes:
        facts: those that rows were walked with.
        rule: that of the target's cache.
        model: the target, as messages name it.
        price: of each request.
        cheaper: other models of the same provider, asked for if a ``select`` costs enough to matter.
    """

    facts: WalkFacts
    rule: CacheRule
    model: str
    price: Price | Unpriced
    cheaper: Callable[[], Iterable[tuple[str, Price]]] = tuple
    _inputs: RowInputs = field(default_factory=RowInputs)
    _modules: dict[Module, None] = field(default_factory=dict[Module, None])
    _places: dict[Location | str, _Calls] = field(default_factory=dict["Location | str", _Calls])
    _rows: int = 0

    def add_row(self, module: Module, row: RowRequests) -> None:
        """Begin a row, whose requests follow."""
        self._rows += 1
        self._modules.setdefault(module)
        self._inputs.add(row.inputs)

    def add(
        self, request: EstimatedRequest, shared: int, cached: CostRange[int], dollars: CostRange[Decimal] | None
    ) -> None:
        """Add a request, the tokens that its prompt shares with earlier ones, those in a cache, and its dollars."""
        calls = self._places.setdefault(request.location or request.op.id, _Calls(request))
        runs = request.runs.expected
        calls.requests += 1
        calls.runs += runs
        calls.is_bounded = calls.is_bounded and request.runs.most is not None and request.output.most is not None
        calls.has_bounded_prompt = calls.has_bounded_prompt and request.tokens.most is not None
        calls.prompt += runs * request.tokens.expected
        calls.shared += runs * min(shared, request.tokens.expected)  # which a profile may have made smaller
        calls.cached += runs * cached.expected
        if dollars is not None:
            calls.dollars = MONEY.add(calls.dollars, MONEY.multiply(Decimal(runs), dollars.expected))
        if isinstance(request.op, SamplingOp):
            limit = min(request.op.max_tokens, request.output.most or request.op.max_tokens)
            calls.limits[request.op_id] = (request.op, max(limit, calls.limits.get(request.op_id, (None, 0))[1]))

    def hints(self) -> tuple[FoundHint, ...]:
        """Return the hints, by line and code."""
        found: dict[tuple[str, Location | str], FoundHint] = {}
        for each in (*self._varying_first(), *self._same_for_rows(), *self._by_place()):
            found.setdefault((each.code, each.location or each.op_id), each)
        return tuple(sorted(found.values(), key=_order))

    def _by_place(self) -> Iterator[FoundHint]:
        total = sum((calls.dollars for calls in self._places.values()), _ZERO)
        yield from self._short_prefix()
        yield from self._unbounded_prompt()
        writes = any(isinstance(calls.first.op, SamplingOp) for calls in self._places.values())
        for calls in self._places.values():
            yield from self._unbounded(calls)
            yield from self._wide_limit(calls)
            if isinstance(calls.first.op, SelectOp) and writes and _matters(calls.dollars, total):
                yield from self._dear_select(calls, total)

    def _unbounded(self, calls: _Calls) -> Iterator[FoundHint]:
        if not calls.is_bounded:
            often = with_count(round(calls.runs), "call")
            yield _hint(
                "LMC103",
                calls.first,
                f"no bound is known for how often this call is made, and so none for its output: {often} expected for "
                f"{with_count(self._rows, 'row')}",
            )

    def _unbounded_prompt(self) -> Iterator[FoundHint]:
        """Give the first line with such a prompt, unless calls without a bound lengthen prompts: later ones hold it."""
        if not all(calls.is_bounded for calls in self._places.values()):
            return
        for calls in self._places.values():
            if not calls.has_bounded_prompt:
                yield _hint(
                    "LMC107",
                    calls.first,
                    "no bound is known for the prompt of this call: it holds a text whose length only a run knows, "
                    "such as the result of a tool",
                )
                return

    def _short_prefix(self) -> Iterator[FoundHint]:
        """Give the line whose prompts share most that is not cached, if that is a part of all prompts that matters."""
        if self.rule.least <= 1:
            return
        missed = [
            calls
            for calls in self._places.values()
            if not calls.cached and calls.requests > 1 and _PREFIX <= calls.mean_shared < self.rule.least
        ]
        tokens = sum(calls.shared for calls in missed)
        if not missed or not _matters(tokens, sum(calls.prompt for calls in self._places.values())):
            return
        calls = max(missed, key=lambda each: each.shared)
        yield _hint(
            "LMC104",
            calls.first,
            f"prompts share about {round(calls.mean_shared):,} tokens with earlier ones, and {self.model} caches none "
            f"under {self.rule.least:,}{self._worth(tokens)}",
        )

    def _wide_limit(self, calls: _Calls) -> Iterator[FoundHint]:
        profiles = {op.id: self.facts.profile_of(op.id, op.id) for op, _ in calls.limits.values()}
        measured = [each for each in profiles.values() if each is not None]
        outputs = sum(each.outputs for each in measured)
        if outputs < _OUTPUTS:
            return
        longest = max(each.longest for each in measured)
        limit = max(limit for _, limit in calls.limits.values())
        if limit >= _TIMES * max(1, longest) and limit - longest >= _ROOM:
            yield _hint(
                "LMC105",
                calls.first,
                f"max_tokens allows {limit:,} tokens, and the longest of {outputs:,} outputs in the profile has "
                f"{longest:,}: the most that the call can cost is {limit // max(1, longest)} times what it has cost",
            )

    def _dear_select(self, calls: _Calls, total: Decimal) -> Iterator[FoundHint]:
        if isinstance(self.price, Unpriced) or not calls.runs:
            return
        first = calls.first
        usage = Usage(round(calls.mean_prompt), round(calls.cached / calls.runs), first.output.expected, 1)
        each = self.price.cost(usage)
        other: tuple[Decimal, str] | None = min(
            ((cost, name) for name, price in self.cheaper() if (cost := price.cost(usage)) is not None), default=None
        )
        if each is None or other is None or each < _TIMES * other[0]:
            return
        share = round(100 * calls.dollars / total)
        costs = MONEY.multiply(other[0], Decimal(calls.runs))
        yield _hint(
            "LMC106",
            first,
            f"this select costs {_money(calls.dollars)} dollars with {self.model}, {share} % of all: {other[1]} has "
            f"prices by which it costs {_money(costs)}",
        )

    def _same_for_rows(self) -> Iterator[FoundHint]:
        """Calls that are equal in all rows. Rows that run other modules may have other texts in them."""
        if self._rows < 2 or len(self._modules) != 1 or not self._inputs.differing:
            return
        (module,) = self._modules
        differing = differing_values(module, self._inputs.differing, elements_differ=False)
        for op in _calls(module.main.body):
            calls = self._places.get(op.location or op.id)
            is_greedy = not isinstance(op, SamplingOp) or op.sampling.greedy
            if calls is None or calls.runs < 2 or not is_greedy or not differing.isdisjoint(op.operands):
                continue
            yield _hint(
                "LMC102",
                calls.first,
                f"the prompt of this call is the same in all {self._rows:,} rows: it is made "
                f"{with_count(round(calls.runs), 'time')}, with about {round(calls.prompt):,} prompt tokens in all",
            )

    def _varying_first(self) -> Iterator[FoundHint]:
        for module in self._modules:
            yield from self._varying_first_in(module)

    def _varying_first_in(self, module: Module) -> Iterator[FoundHint]:
        body = module.main.body
        definers = {value: op for op in walk((body,)) for value in op.results}
        differing = differing_values(module, self._inputs.differing, elements_differ=True)
        known = {value: self._inputs.first.get(value.name) for value in body.parameters if value not in differing}
        for op in _calls(body):
            calls = self._places.get(op.location or op.id)
            if calls is None or calls.runs < 2:
                continue
            texts = [
                (extend, part if isinstance(part, str) else known.get(part), part in differing)
                for extend in _extends(op.context, definers)
                for part in extend.text
            ]
            before, after, last = self._around(texts)
            gain = self.rule.found(before + after) - self.rule.found(before)
            if last is None or after < _TEXT or gain < _TEXT or not _matters(gain, calls.mean_prompt):
                continue
            place = replace(calls.first, op=replace(calls.first.op, location=last.location or op.location))
            worth = self._worth(gain * (calls.runs - 1))
            yield _hint(
                "LMC101",
                place,
                f"about {after:,} tokens of constant text come after text that differs between {calls.runs:,.0f} "
                f"calls: in front of it, {gain:,} more tokens of each prompt could be cached{worth}",
            )

    def _around(
        self, texts: Iterable[tuple[ExtendOp | SectionsOp, object, bool]]
    ) -> tuple[int, int, ExtendOp | SectionsOp | None]:
        """Return the tokens of constant text before the first text that differs and after it, and the longest's op."""
        before, after, seen = 0, 0, False
        longest, last = 0, None
        for extend, text, differs in texts:
            if differs:
                seen = True
            elif isinstance(text, str):
                tokens = _tokens(self.facts.tokenizer, text)
                before, after = (before, after + tokens) if seen else (before + tokens, after)
                if seen and tokens > longest:
                    longest, last = tokens, extend
        return before, after, last

    def _worth(self, tokens: float) -> str:
        """Return what so many tokens would cost less if they were cached, as the end of a message."""
        if isinstance(self.price, Unpriced) or self.price.cached is None:
            return ""
        dollars = MONEY.multiply(Decimal(round(tokens)), self.price.input.base - self.price.cached.base) / 10**6
        return f" (about {_money(dollars)} dollars in all)" if dollars > 0 else ""


def _hint(code: str, at: EstimatedRequest, message: str) -> FoundHint:
    return FoundHint(code, at.location, at.op.id, message)


def _order(hint: FoundHint) -> tuple[str, int, str, str]:
    place = hint.location
    return ("", 0, hint.op_id, hint.code) if place is None else (place.file, place.line, hint.code, hint.op_id)


def _matters(part: float | Decimal, whole: float | Decimal) -> bool:
    return part > 0 and part * _SHARE >= whole


def _money(dollars: Decimal) -> str:
    """Return an amount with two digits that count, and all digits before the point."""
    digits = max(2, 1 - dollars.adjusted()) if dollars else 2
    return format(dollars.quantize(Decimal(1).scaleb(-digits), context=MONEY), "f")


def _tokens(tokenizer: CountingTokenizer, text: str) -> int:
    return tokenizer.count(tokenizer.encode(text)).expected if text else 0


def _calls(block: Block) -> Iterator[SamplingOp | SelectOp]:
    return (op for op in walk((block,)) if isinstance(op, SamplingOp | SelectOp))


def _extends(context: Value, definers: dict[Value, Op]) -> list[ExtendOp | SectionsOp]:
    """Return the ops that append text to a context from its beginning on; none where a model wrote a part of it."""
    found: list[ExtendOp | SectionsOp] = []
    op = definers.get(context)
    while not isinstance(op, ContextOp):
        if isinstance(op, ExtendOp | SectionsOp):
            found.append(op)
        elif not isinstance(op, _PASSED):
            return []
        op = definers.get(op.context)
    found.reverse()
    return found
