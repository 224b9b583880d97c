"""The requests that a program makes for one row, found without a model: known values run, unknown ones have sizes.

A final module is run op by op as ``lmc.ir.semantics.interpreter`` does, with the same semantics. The answers of models
and of host functions are not known, nor is what is computed from them, but for texts, lists and contexts that hold
them. Where an unknown value decides, both ways are walked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from lmc.cost.builtins import NEW, WalkedBuiltins, WayEnded
from lmc.cost.caching import Ways
from lmc.cost.ranges import CostRange, largest_of, least_of, total
from lmc.cost.requests import Basis, BreakReached, ComputedPrefix, EstimatedRequest, RowRequests
from lmc.cost.sending import sent_output, sent_prompt
from lmc.cost.texts import (
    TOKEN_BYTES,
    CountingTokenizer,
    MessageCounting,
    PromptSpan,
    TextSize,
    known,
)
from lmc.cost.values import UNKNOWN, UnknownValue, WalkedValues, holds_unknown
from lmc.ir.core import Block, Constraint, Op, Value
from lmc.ir.core import walk as walk_ops
from lmc.ir.dialects.core_ops import (
    BreakOp,
    GenOp,
    HostCallOp,
    LocalCallOp,
    MessagesOp,
    PrefillOp,
    PyCallOp,
    SampleOp,
    SamplingOp,
    SelectOp,
)
from lmc.ir.dialects.region_ops import CondOp, LoopOp, MapOp, RaceOp, TryOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.engine.capabilities import OWN, Capabilities
from lmc.ir.engine.protocol import EngineInfo, Generation, Score
from lmc.ir.errors import InputError, LmcError
from lmc.ir.ids import count_holes, matching
from lmc.ir.module import Module
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.semantics import control_flow, selection
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import bind_parameters
from lmc.ir.semantics.requirements import written_tokens
from lmc.ir.types import TEXT

MOST_ROUNDS = 64
"""Rounds of a loop that are walked one by one where it is not known how many there are."""
_MOST_INNER_ROUNDS, _FEWEST_ROUNDS = 512, 2
"""Such rounds of a row in which all loops are that it may not come to; and those of each loop behind them."""
_MOST_KNOWN_ROUNDS, _MOST_IDLE_ROUNDS = 10_000, 1_000_000
"""Rounds after which a loop is taken to have no end: one with requests, and one without."""
_LONG = 64
"""Outputs that may be longer are taken to be half as long, where only the limit is known."""
_NONE = frozenset[int]()
_NO_TOKENS = CostRange[int].exactly(0)


@dataclass(frozen=True)
class WalkFacts:
    """Facts about a program and its target that are known before a run.

    Attributes:
        tokenizer: that of the target (``lmc.cost.texts.counting``).
        info: the target's capabilities.
        constraints: those of the module; they need not be compiled.
        lengths: the fewest and the most tokens that a constraint allows; None: not known.
        profile: of an earlier run.
        recorded: the answer to the request of this op id and number, where it is known.
        schema_bytes: those of the schema that the target gets for a constraint.
        is_batch: True: rows run together, so what they share is computed once.
    """

    tokenizer: CountingTokenizer
    info: EngineInfo
    constraints: Constraints = semantics.NO_CONSTRAINTS
    lengths: Callable[[Constraint], tuple[int | None, int | None]] = lambda _: (None, None)
    profile: Profile | None = None
    recorded: Callable[[str, int], Generation | Score | None] = lambda _op_id, _number: None
    schema_bytes: Callable[[Constraint], int] = lambda _: 0
    is_batch: bool = False

    def profile_of(self, template: str, op_id: str, others: Collection[str] = ()) -> OpProfile | None:
        """Return the profile of an op: of its id in this run, else of all its runs, which have none of ``others``."""
        ops = {} if self.profile is None else self.profile.ops
        if op_id in ops:
            return ops[op_id]
        pattern = matching(template)
        found = [entry for each, entry in ops.items() if each not in others and pattern.fullmatch(each)]
        return sum(found[1:], found[0]) if found else None

    def measured_prompt(self, found: OpProfile | None, prompt: tuple[int, ...]) -> float | None:
        """Return the tokens that a prompt of an op has by its profile; None: its text says more, or there is none.

        Where nothing tells the size of a text in it, it is as long as those of the profile. Where the tokenizer is not
        known, it has as many tokens for each byte.
        """
        if found is None or not found.usage.calls:
            return None
        if self.tokenizer.texts.is_guess(prompt):
            return found.usage.prompt_tokens / found.usage.calls
        if isinstance(self.tokenizer, MessageCounting) and found.sent_bytes:
            return self.tokenizer.length(prompt) * found.sent_tokens / found.sent_bytes
        return None

    def token_bytes(self, found: OpProfile | None, prompt: tuple[int, ...], sent: int) -> float:
        """Return the bytes of a token of text by the profile of an op, where its tokenizer is not known.

        What its API adds to a prompt has tokens too: without the profile, it is expected to have ``sent`` in all.
        """
        if found is None or not found.sent_tokens:
            return TOKEN_BYTES
        added = sent / self.tokenizer.count(prompt).expected
        return added * found.sent_bytes / found.sent_tokens


def walk_row(module: Module, inputs: Mapping[str, Any], facts: WalkFacts) -> RowRequests:
    """Return the requests of a row. ``inputs`` are its values by parameter name.

    The ranges hold for rows that come to their end; one that fails may make fewer requests. Attempts of a target that
    failed come on top. Raises ``InputError`` for inputs that don't fit the program.
    """
    facts.tokenizer.texts.end_row()
    if holds_unknown(dict(inputs)):  # a mark of this module
        half = InputError(
            "a text of the row holds half of a surrogate pair, which no model can read",
            remedy="decode the text as UTF-8 or UTF-16 before it is given to the program",
        )
        return RowRequests((), (), half, inputs)
    body = module.main.body
    environment, values = bind_parameters(body.parameters, inputs), WalkedValues(facts.tokenizer)
    builtins = WalkedBuiltins(environment, values, facts.constraints)
    walk = _Walk(facts, environment, values, builtins, _ids_of_single_runs(module))
    error: Exception | None = None
    try:
        walk.block(body)
    except WayEnded as ended:
        error = ended.error
    return RowRequests(tuple(walk.requests), tuple(walk.breaks), error, inputs, tuple(walk.prefixes))


@lru_cache(maxsize=16)
def _ids_of_single_runs(module: Module) -> frozenset[str]:
    """Return the ids of the calls of a module that have one run at most: no run of another call has such an id."""
    calls = (op for op in walk_ops([module.main.body]) if isinstance(op, SamplingOp | SelectOp))
    return frozenset(op.id for op in calls if not count_holes(op.id))


def pins_prefixes(capabilities: Capabilities) -> bool:
    """Return True if a target computes prefixes ahead where a plan says so: lmc's own engines do."""
    return capabilities == OWN


_ONCE = CostRange(1.0, 1.0, 1.0)


@dataclass
class _Walk:
    """Walks blocks. ``runs`` is how often the place is reached where it is, ``guards`` the open bodies of ``cf.try``.

    ``risks`` counts the ops in such bodies that may raise, ``rounds`` those of inner loops.
    ``single_runs`` are the ids of calls without holes. ``depth`` is the number of the regions around the place.
    ``ways`` counts the uncertain ways so far; ``taken`` are those that lead to the place. ``waits`` are the requests
    that a value waits for, ``control`` those that the place waits for, ``sources`` the values that flow into those of
    regions. ``is_endless``: the place is in a round that stands for any number of them.
    """

    facts: WalkFacts
    environment: dict[Value, Any]
    values: WalkedValues
    builtins: WalkedBuiltins
    single_runs: frozenset[str]
    requests: list[EstimatedRequest] = field(default_factory=list[EstimatedRequest])
    breaks: list[BreakReached] = field(default_factory=list[BreakReached])
    prefixes: list[ComputedPrefix] = field(default_factory=list[ComputedPrefix])
    depth: int = 0
    runs: CostRange[float] = _ONCE
    guards: int = 0
    risks: int = 0
    rounds: int = 0
    ways: int = 0
    waits: dict[Value, frozenset[int]] = field(default_factory=dict[Value, frozenset[int]])
    sources: dict[Value, set[Value]] = field(default_factory=dict[Value, set[Value]])
    control: frozenset[int] = frozenset()
    taken: Ways = frozenset()
    is_endless: bool = False

    def block(self, block: Block) -> tuple[Any, ...]:
        """Walk a block; gives what its terminator lists. Raises ``WayEnded`` where the program ends in it."""
        for op in block.ops[:-1]:
            self._run(op)
        end = block.terminator
        if isinstance(end, BreakOp):
            self.breaks.append(BreakReached(end.location, end.cause, self.runs))
        if isinstance(end, LEAVING):
            raise WayEnded
        return control_flow.region_results(end, self.environment)

    def _run(self, op: Op) -> None:
        try:
            self._walk_op(op)
        except LmcError as error:
            raise WayEnded(error) from None

    def _walk_op(self, op: Op) -> None:
        needed = self._waits(op.operands) | self.control
        count = len(self.requests)
        if isinstance(op, RegionOp):
            for source, place in (*op.flows(), *op.carried()):
                self.sources.setdefault(place, set()).add(source)
        if self.guards and op.may_raise:  # even a call may: before it is sent
            self.risks += 1
            self.runs = replace(self.runs, least=0.0)
        if isinstance(op, RegionOp):
            results = self._region_op(op)
        elif isinstance(op, SamplingOp) and op.forced is None:
            results = self._generate(*self._defined(op))
        elif isinstance(op, SelectOp):
            results = self._select(op)
        elif isinstance(op, HostCallOp):
            self.values.touch((self.environment[value] for value in op.operands), by_program=True)
            results = tuple(self.values.unknown(value.type) for value in op.results)
        elif isinstance(op, PrefillOp):
            results = (self.environment[op.context],)
            needed |= self._prefill(op, needed)
        else:
            results = self.builtins.run(op)
        self.environment.update(zip(op.results, results, strict=True))
        if isinstance(op, MapOp | MessagesOp) or (isinstance(op, PyCallOp | LocalCallOp) and op.function in NEW):
            self.values.make(results)
        if isinstance(op, RegionOp):
            self._follow(op.results, needed)
            return
        if len(self.requests) > count:
            answer = results[0].prompt[len(self.requests[count].prompt) :] if isinstance(op, GenOp) else ()
            made = self.requests[count:]
            self.requests[count:] = [replace(each, after=tuple(sorted(needed)), answer=answer) for each in made]
            needed = frozenset(range(count, len(self.requests)))
        self.waits.update(dict.fromkeys(op.results, needed))

    # Order

    def _waits(self, values: Iterable[Value]) -> frozenset[int]:
        """Return the requests that values wait for."""
        return _NONE.union(*(self.waits.get(value, _NONE) for value in values))

    def _follow(self, places: Iterable[Value], needed: frozenset[int]) -> None:
        """Let values of a region wait for what flows into them."""
        for place in places:
            self.waits[place] = needed | self._waits(self.sources.get(place, ()))

    # Calls

    def _id(self, op: SamplingOp | SelectOp) -> str:
        if any(self.values.is_unknown(self.environment[value]) for value in op.occurrences):
            return op.id
        return semantics.runtime_id(op, self.environment)

    def _prefill(self, op: PrefillOp, needed: frozenset[int]) -> frozenset[int]:
        """Note a prefix that the plan computes ahead; give the place that its users wait for.

        Only lmc's own engines pin prefixes. Those of a batch are computed by the executor's shared stage, which has no
        regions; elsewhere they are left to the calls, unless they are computed while a call waits for other results.
        """
        is_shared = op.scope == "batch" and not self.depth and self.facts.is_batch
        is_computed = is_shared or op.ahead or op.scope == "instance"
        if not (is_computed and pins_prefixes(self.facts.info.capabilities)):
            return _NONE
        prompt = self.environment[op.context].stable_prefix
        if not prompt:
            return _NONE
        if is_shared:
            prefix = ComputedPrefix(prompt, 0, _ONCE, is_shared=True)
        else:
            after = tuple(sorted(needed))
            prefix = ComputedPrefix(prompt, len(self.requests), self.runs, ways=self.taken, after=after)
        self.prefixes.append(prefix)
        return frozenset((-len(self.prefixes),))

    def _defined(self, op: SamplingOp) -> tuple[SamplingOp, Constraints]:
        """Return an op and its constraints. A definition that is not known remains one."""
        if any(self.values.is_unknown(self.environment[value]) for value in op.definition):
            return op, self.facts.constraints
        return self.facts.constraints.defined(op, self.environment)

    def _generate(
        self, op: SamplingOp, constraints: Constraints, room: CostRange[int] | None = None
    ) -> tuple[Any, ...]:
        """Results of a generation. ``room``: its ``max_tokens`` where a run decides them."""
        context: Context = self.environment[op.context]
        op_id = self._id(op)
        count = op.n if isinstance(op, SampleOp) else 1
        answers = [self.facts.recorded(op_id, number) for number in range(count)]
        recorded = [answer for answer in answers if isinstance(answer, Generation)]
        texts: list[Any] = []
        generations: list[Generation] = []
        symbol = constraints.symbols.get(op.constraint or "")
        tokens = self._sent(context.prompt, symbol)
        is_constrained = op.constraint is not None or bool(op.definition)
        if is_constrained and symbol is None and self._sends_schemas:
            tokens = replace(tokens, most=None)  # nothing bounds one that is not known
        found, sent = self._profile(op, op_id), tokens.expected
        tokens = self._measured(found, context.prompt, tokens)
        for number in range(count):
            reasoning, mean = _NO_TOKENS, None
            if len(recorded) == count:
                generation = recorded[number]
                output, basis = CostRange.exactly(generation.generated_tokens), "recorded"
                texts.append(constraints.read(op, generation.text))
            else:
                mean = None if found is None else found.mean_length
                output, basis = self._output(op, mean, room)
                reasoning = self._reasoning(found, output)
                likely = output.expected if mean is None or output.most is None else min(mean, output.most)
                kept = max(likely - reasoning.expected, 0)
                token_bytes = self.facts.token_bytes(found, context.prompt, sent)
                generation = self._answer(op, output, self.facts.tokenizer.ids_of(kept, token_bytes))
                texts.append(generation.text if op.value_type == TEXT else UNKNOWN)
            generations.append(generation)
            self._request(
                op,
                op_id,
                number,
                context.prompt,
                output=output,
                basis=basis,
                tokens=tokens,
                reasoning=reasoning,
                mean=mean,
            )
        metas = [UNKNOWN] if op.logprobs is not None else []
        if isinstance(op, SampleOp):
            return (texts, *metas)
        return (context.generated(generations[0]), texts[0], *metas)

    @property
    def _sends_schemas(self) -> bool:
        return any(each.structured == "schema" for each in self._served)

    @property
    def _served(self) -> Sequence[Capabilities]:
        """The capabilities of all targets that may answer, that which is asked first in front."""
        return [each for _, each in self.facts.info.served]

    def _sent(self, prompt: tuple[int, ...], symbol: Constraint | None) -> CostRange[int]:
        """Return the tokens of a prompt at the target, which may be other ones at a fallback."""
        schema = self.facts.schema_bytes(symbol) if symbol is not None and self._sends_schemas else 0
        first, *others = (
            sent_prompt(prompt, self.facts.tokenizer.count, each, schema if each.structured == "schema" else 0)
            for each in self._served
        )
        return replace(first, most=largest_of([first.most, *(each.most for each in others)]))

    def _profile(self, op: SamplingOp | SelectOp, op_id: str) -> OpProfile | None:
        return self.facts.profile_of(op.id, op_id, self.single_runs)

    def _measured(self, found: OpProfile | None, prompt: tuple[int, ...], tokens: CostRange[int]) -> CostRange[int]:
        """Return the tokens of a prompt: those expected are from the profile where its own texts do not tell them."""
        measured = self.facts.measured_prompt(found, prompt)
        if measured is None:
            return tokens
        expected = max(round(measured), tokens.least)
        return replace(tokens, expected=expected if tokens.most is None else min(expected, tokens.most))

    def _request(
        self,
        op: SamplingOp | SelectOp,
        op_id: str,
        number: int,
        prompt: tuple[int, ...],
        *,
        output: CostRange[int],
        basis: Basis,
        tokens: CostRange[int],
        reasoning: CostRange[int] = _NO_TOKENS,
        mean: float | None = None,
    ) -> None:
        self.requests.append(
            EstimatedRequest(
                op,
                op_id,
                number,
                self.runs,
                prompt,
                tokens,
                output,
                basis,
                reasoning,
                mean=mean,
                ways=self.taken,
                is_endless=self.is_endless,
            )
        )

    def _reasoning(self, found: OpProfile | None, output: CostRange[int]) -> CostRange[int]:
        """Return the part of an output that is reasoning: of a model that reasons, it may be all."""
        if not any(each.reasoning or each.reasoning_tokens for each in self._served):
            return _NO_TOKENS
        expected = self._served[0].reasoning_tokens // 2
        if found is not None and found.usage.calls:
            expected = round(found.usage.reasoning_tokens / found.usage.calls)
        return CostRange(0, min(expected, output.expected), output.most)

    def _output(self, op: SamplingOp, mean: float | None, room: CostRange[int] | None) -> tuple[CostRange[int], Basis]:
        """Return the tokens of one output and why it is expected to have so many: the ``mean`` of a profile."""
        served = self.facts.info.capabilities
        symbol = self.facts.constraints.symbols.get(op.constraint or "")
        shortest, longest = (None, None) if symbol is None else self.facts.lengths(symbol)
        most = op.max_tokens if longest is None else min(op.max_tokens, longest + 1)
        least = 0
        if served.structured == "exact" and served.contexts == "tokens":
            has_stop = bool(op.stop or op.stop_token_ids)
            if symbol is None and not op.definition:
                least = max(op.min_tokens, 1)
            elif not has_stop:
                least = shortest or 0
        least = min(least, most)
        reasoning = served.reasoning_tokens
        basis: Basis = "guess"
        expected = most if most <= _LONG else most // 2
        if room is not None:
            expected = room.expected
        if mean is not None:
            expected, basis, reasoning = round(mean), "profile", 0
        elif op.expected_tokens is not None:
            expected, basis = op.expected_tokens, "plan"
        bound = most if room is None else room.most
        if bound is not None:
            bound = max(sent_output(bound, each) for each in self._served)
        expected = max(expected + reasoning // 2, least)
        return CostRange(least, expected if bound is None else min(expected, bound), bound), basis

    def _answer(self, op: SamplingOp, output: CostRange[int], ids: int) -> Generation:
        """Return an unknown output: the tokens that it leaves in the context, and its text.

        It is expected to have so many ``ids`` in later prompts, which have no reasoning.
        """
        tokenizer = self.facts.tokenizer
        most = output.most
        is_constrained = op.constraint is not None or bool(op.definition)
        ends_early = bool(op.stop or op.stop_token_ids) or is_constrained or isinstance(tokenizer, MessageCounting)
        kept = tokenizer.texts.token(PromptSpan(0 if ends_early else op.min_tokens, ids, most))
        text = tokenizer.texts.text(TextSize(ids, most, None if most is None else most * tokenizer.token_bytes))
        remainder = ""
        if op.stop and tokenizer.token_bytes > 1:  # a token that holds the beginning of a stop leaves its own
            remainder = tokenizer.texts.text(TextSize(0, 1, tokenizer.token_bytes - 1))
        return Generation((kept,), text + remainder, "eos", remainder)

    def _select(self, op: SelectOp) -> tuple[Any, ...]:
        context: Context = self.environment[op.context]
        values = [self.environment[choice] if isinstance(choice, Value) else choice for choice in op.choices]
        choices: list[str] | None = None
        if self.values.is_whole(values):
            choices = selection.choices_of(op, self.environment)
        is_known = choices is not None
        if choices is None:
            choices = [self.values.unknown(TEXT)]
        if selection.is_written(op, self.facts.info):
            return self._written(op, choices)
        op_id = self._id(op)
        info = self.facts.info
        whole = self.facts.tokenizer.count(context.prompt)
        prompt, continuations = context.choices(choices)
        starts: list[tuple[tuple[int, ...], CostRange[int]]] = []
        start = self.facts.tokenizer.count(prompt)
        if any(token_id < 0 for token_id in self.facts.tokenizer.encode(context.tokens.pending)) or any(
            map(holds_unknown, choices)
        ):  # where the choices begin depends on what is not known
            start = CostRange(min(start.least, whole.least), whole.expected, whole.most)
        if op.method != "unconditional_likelihood_normalized" and info.capabilities == OWN:
            start = self._measured(self._profile(op, op_id), context.prompt, start)
        starts.append((prompt, start))
        if op.method == "unconditional_likelihood_normalized":
            alone = self.facts.tokenizer.start_ids
            starts.append((alone, CostRange.exactly(len(alone))))
        answers = [self.facts.recorded(op_id, number) for number in range(len(starts))]
        scores = [answer for answer in answers if isinstance(answer, Score)]
        basis: Basis = "recorded" if len(scores) == len(starts) else "guess"
        if info.capabilities != OWN:
            starts = [(ids, self._scored(tokens, continuations, is_known=is_known)) for ids, tokens in starts]
        for number, (ids, tokens) in enumerate(starts):
            self._request(op, op_id, number, ids, output=CostRange.exactly(0), basis=basis, tokens=tokens)
        if len(scores) == len(starts) and not any(map(holds_unknown, choices)):
            requests = selection.requests_of(op, context, choices, op_id=op_id, instance=0, info=info)
            return selection.results_of(op, context, requests, choices, scores)
        choice = self.values.either_text(choices)
        return context.text(choice), choice, UNKNOWN

    def _scored(
        self, start: CostRange[int], continuations: Sequence[tuple[int, ...]], *, is_known: bool
    ) -> CostRange[int]:
        """Return the tokens of a server's prompts, one with each continuation. Not ``is_known``: any number of them."""
        found = total((start + self.facts.tokenizer.count(each) for each in continuations), 0)
        return found if is_known else replace(found, most=None)

    def _written(self, op: SelectOp, choices: Sequence[str]) -> tuple[Any, ...]:
        """Results of a selection that the model writes."""
        generation, constraints = selection.written_op(op, list(map(known, choices)), self.facts.constraints)
        room: CostRange[int] | None = None
        if any(map(holds_unknown, choices)):
            constraints = self.facts.constraints
            room = self._room([self.values.size(choice) for choice in choices])
        results = self._generate(generation, constraints, room)
        if holds_unknown(results[1]):  # the context gets the choice, without the form in which it is written
            choice = self.values.either_text(choices)
            size = self.values.size(choice)
            token = self.facts.tokenizer.texts.token(PromptSpan(0, size.expected, size.most, size.is_guess))
            before: Context = self.environment[op.context]
            results = (before.generated(Generation((token,), choice, "eos")), choice)
        return selection.written_results(results, choices)

    def _room(self, sizes: Sequence[TextSize]) -> CostRange[int]:
        """Return the ``max_tokens`` with which one of some texts is written: each byte may be a token."""
        least = written_tokens(())
        longest = largest_of([size.most_bytes for size in sizes])
        expected = max(size.expected for size in sizes) // self.facts.tokenizer.ids_of(1)
        most = None if longest is None else least + longest
        return CostRange(least, least + (expected if longest is None else min(expected, longest)), most)

    # Either of two values

    # Regions

    def _region_op(self, op: RegionOp) -> tuple[Any, ...]:
        if isinstance(op, CondOp):
            return self._cond(op)
        if isinstance(op, LoopOp):
            taken = self.taken
            try:
                return self._loop(op)
            finally:
                self.taken = taken
        if isinstance(op, TryOp):
            return self._try(op)
        assert isinstance(op, MapOp | RaceOp), "all other ops with regions"
        return self._elements(op)

    def _enter(self, block: Block, arguments: Sequence[Any]) -> tuple[Any, ...]:
        self.environment.update(zip(block.parameters, arguments, strict=True))
        self._follow(block.parameters, self.control)
        self.depth += 1
        try:
            return self.block(block)
        finally:
            self.depth -= 1

    def _on_a_way(self, block: Block, arguments: Sequence[Any], runs: CostRange[float]) -> tuple[Any, ...] | None:
        """Walk a region that may not run, or run several times; None where the program ends in it."""
        before, self.runs = self.values.way, runs
        self.ways += 1
        self.values.way = self.ways
        try:
            return self._enter(block, arguments)
        except WayEnded:
            return None
        finally:
            self.values.way = before

    def _cond(self, op: CondOp) -> tuple[Any, ...]:
        control, taken = self.control, self.taken
        self.control |= self._waits((op.flag,))
        try:
            return self._arms(op)
        finally:
            self.control, self.taken = control, taken

    def _arms(self, op: CondOp) -> tuple[Any, ...]:
        if not self.values.is_unknown(self.environment[op.flag]):
            return self._enter(control_flow.chosen_region(op, self.environment), ())
        found = None if self.facts.profile is None else self.facts.profile.branches.get(op.id or "")
        share = op.probability if found is None else found.probability
        share = 0.5 if share is None else share
        before, taken = self.runs, self.taken
        self.ways += 1
        condition = self.ways
        self.taken = taken | {(condition, True)}
        left = self._on_a_way(op.then, (), _part(before, share))
        left_runs = self.runs
        self.taken = taken | {(condition, False)}
        right = self._on_a_way(op.otherwise, (), _part(before, 1 - share))
        right_runs = self.runs
        if left is None and right is None:
            raise WayEnded
        if left is None or right is None:
            self.runs = right_runs if left is None else left_runs
            return right if left is None else left  # type: ignore[return-value]
        both = left_runs.expected + right_runs.expected
        share = left_runs.expected / both if both else 0.5
        may_end = op.leaves or (self.guards and op.inner_may_raise)
        self.runs = CostRange(0.0, min(both, before.expected), before.most) if may_end else before
        return tuple(self.values.either_of(left, right, op.results, share))

    def _loop(self, op: LoopOp) -> tuple[Any, ...]:
        found = None if self.facts.profile is None else self.facts.profile.repeats.get(op.id or "")
        mean = op.expected_rounds if found is None or found.mean is None else found.mean
        mean = 1.0 if mean is None else mean
        before, values = self.runs, control_flow.given(op.initial, self.environment)
        is_known, rounds, passed, begun = True, 0, 0.0, len(self.requests)
        rest = before.expected * mean  # of the rounds that are expected
        left: tuple[Any, ...] | None = None

        def leave(exits: Sequence[Any], runs: float) -> tuple[Any, ...]:
            """Return what the loop has left where it leaves with ``exits`` so often, and did so ``passed`` times."""
            if left is None:
                return tuple(exits)
            share = passed / (passed + runs) if passed + runs else 1.0
            return tuple(self.values.either_of(left, exits, op.results, share))

        while True:
            ended = (
                self._on_a_way(op.condition, values, self.runs) if not is_known else self._enter(op.condition, values)
            )
            if ended is None:
                break
            flag, *exits = ended
            if not self.values.is_unknown(flag):
                if not flag:
                    left, passed = leave(exits, self.runs.expected), passed + self.runs.expected
                    break
            else:
                is_known = False
                reached = None if found is None else found.reached(rounds + 1)
                share = min(1.0, max(0.0, mean - rounds)) if reached is None else reached
                runs = min(self.runs.expected, before.expected * share)
                ends = self.runs.expected - runs
                left, passed = leave(exits, ends), passed + ends
                self.runs = CostRange(0.0, runs, self.runs.most)
                self.ways += 1
                self.taken |= {(self.ways, True)}
            if op.limit is not None and rounds >= op.limit:
                if is_known:
                    control_flow.check_round(op, rounds)
                break
            is_known = is_known and self.runs.least == before.least
            if is_known and rounds > (_MOST_IDLE_ROUNDS if len(self.requests) == begun else _MOST_KNOWN_ROUNDS):
                raise InputError(
                    f"this loop has gone through {rounds - 1:,} rounds and may have no end",
                    remedy="give the loop a condition that becomes false",
                    location=op.location,
                )
            if not is_known and rounds >= self._most_rounds(before, mean):
                return self._without_end(op, exits, leave, before, (passed, max(0.0, rest)))
            rest -= self.runs.expected
            self.rounds += not is_known and before.least == 0.0
            following = self._on_a_way(op.body, exits, self.runs) if not is_known else self._enter(op.body, exits)
            if following is None:
                break
            values = following
            rounds += 1
        if left is None:
            raise WayEnded
        self.runs = before if is_known else self._after(op, before, passed)
        return left

    def _most_rounds(self, before: CostRange[float], mean: float) -> int:
        """Return the rounds of a loop that are walked one by one: loops in other ones may have very many in all."""
        is_inner = before.least == 0.0 and self.rounds >= _MOST_INNER_ROUNDS
        return _FEWEST_ROUNDS if is_inner else max(MOST_ROUNDS, math.ceil(mean))

    def _after(self, op: LoopOp, before: CostRange[float], passed: float) -> CostRange[float]:
        """Return how often the place after a loop is reached that may end the program."""
        ends = op.leaves or op.limit is not None or (self.guards and op.may_raise)
        return CostRange(0.0, min(passed, before.expected), before.most) if ends else before

    def _without_end(
        self,
        op: LoopOp,
        exits: Sequence[Any],
        leave: Callable[[Sequence[Any], float], tuple[Any, ...]],
        before: CostRange[float],
        expected: tuple[float, float],
    ) -> tuple[Any, ...]:
        """Walk a round that stands for all that may follow, which nothing bounds.

        ``expected`` says how often the loop has ended before, and how many of those rounds are expected.
        """
        passed, rest = expected
        self.runs = CostRange(0.0, rest, None)
        within, self.is_endless = self.is_endless, True
        values = self._on_a_way(op.body, [self.values.endless(value) for value in exits], self.runs)
        if values is not None:
            self._on_a_way(op.condition, values, CostRange(0.0, rest, None))
        self.is_endless = within
        self.runs = self._after(op, before, max(passed, before.expected if not op.leaves else 0.0))
        return leave([self.values.endless(value) for value in exits], 0.0)

    def _try(self, op: TryOp) -> tuple[Any, ...]:
        before, requests, risks = self.runs, len(self.requests), self.risks
        self.guards += 1
        try:
            yielded: tuple[Any, ...] | None = self._enter(op.body, ())
        except WayEnded as ended:
            if ended.error is not None:
                if not control_flow.catches(op, ended.error):
                    raise
                if len(self.requests) == requests and self.risks <= risks + 1:  # nothing else can have raised
                    self.runs, self.risks = before, risks
                    return control_flow.caught_results(op, ended.error, self.environment)
            yielded = None
        finally:
            self.guards -= 1
        self.runs, may_raise, self.risks = before, self.risks > risks, risks
        fallback = control_flow.given(op.fallback, self.environment)
        if yielded is not None and not may_raise:
            return control_flow.yielded_results(yielded)
        places = op.results[2:]
        either = (
            [self.values.unknown(value.type) for value in places]
            if yielded is None
            else self.values.either_of(yielded, fallback, places)
        )
        return (UNKNOWN, UNKNOWN, *either)

    def _elements(self, op: MapOp | RaceOp) -> tuple[Any, ...]:
        lists = [self.environment[value] for value in op.lists]
        before = self.runs
        if not self.values.is_whole(lists):
            found = None if self.facts.profile is None else self.facts.profile.repeats.get(op.id or "")
            mean = 1.0 if found is None or found.mean is None else found.mean
            count = least_of([self.values.most_of(each) for each in lists])
            if count is not None:
                mean = min(mean, float(count))
            most = None if count is None or before.most is None else before.most * count
            self.values.lose(lists)
            kinds = [value.type for value in op.body.parameters[1:]]
            items = (self.values.item(each, kind) for each, kind in zip(lists, kinds, strict=True))
            arguments = [UNKNOWN, *items]
            self._on_a_way(op.body, arguments, CostRange(0.0, before.expected * mean, most))
            self.runs = before
            if isinstance(op, MapOp):
                return tuple(UnknownValue(count) for _ in op.results)
            return tuple(self.values.unknown(value.type) for value in op.results)
        try:
            rows = control_flow.elements(op, self.environment)
        except ValueError as error:  # lists of different lengths
            raise WayEnded(error) from None
        if isinstance(op, MapOp):
            return control_flow.map_results(op, [self._enter(op.body, row) for row in rows])
        yielded: list[Any] | None = None
        for number, row in enumerate(rows):
            runs = before if number == 0 else replace(before, least=0.0)
            found_here = self._on_a_way(op.body, row, runs)
            here = [self.values.unknown(value.type) for value in op.results] if found_here is None else found_here
            yielded = [*here] if yielded is None else self.values.either_of(yielded, here, op.results)
        self.runs = before
        assert yielded is not None, "a race has elements"
        return tuple(yielded)


def _part(runs: CostRange[float], share: float) -> CostRange[float]:
    return CostRange(0.0, runs.expected * share, runs.most)
