"""The requests that a program makes for one row, found without a model: known values run, unknown ones have sizes.

A final module is run op by op as ``lmc.ir.semantics.interpreter`` does, with the same semantics. The answers of models
and of host functions are not known, nor is what is computed from them, but for texts, lists and contexts that hold
them. Where an unknown value decides, both ways are walked.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from lmc.cost.caching import Ways
from lmc.cost.ranges import CostRange, total
from lmc.cost.sending import sent_output, sent_prompt
from lmc.cost.texts import (
    LONGEST_TOKEN,
    MARK,
    TOKEN_BYTES,
    CountingTokenizer,
    MessageCounting,
    PromptSpan,
    TextSize,
    known,
)
from lmc.ir.core import Block, Constraint, Op, Value
from lmc.ir.core import walk as walk_ops
from lmc.ir.dialects.core_ops import (
    AssumeOp,
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
from lmc.ir.errors import InputError, LmcError, Location
from lmc.ir.ids import count_holes, matching
from lmc.ir.module import Module
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.semantics import control_flow, selection
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import bind_parameters
from lmc.ir.semantics.requirements import written_tokens
from lmc.ir.types import BOOL, CTX, FLOAT, INT, SCALAR_TYPES, TEXT, Type

Basis = Literal["recorded", "profile", "plan", "guess"]
"""The source of the expected length of an output: its record, a profile, the plan's own hint, or its limit alone."""
MOST_ROUNDS = 64
"""Rounds of a loop that are walked one by one where it is not known how many there are."""
_MOST_INNER_ROUNDS, _FEWEST_ROUNDS = 512, 2
"""Such rounds of a row in which all loops are that it may not come to; and those of each loop behind them."""
_MOST_KNOWN_ROUNDS, _MOST_IDLE_ROUNDS = 10_000, 1_000_000
"""Rounds after which a loop is taken to have no end: one with requests, and one without."""
_LONG = 64
"""Outputs that may be longer are taken to be half as long, where only the limit is known."""
_TURN_SLACK = 64
"""Tokens by which turns that are closed on one way and open on another may differ."""
_STRUCTURAL = frozenset(
    {
        *("list", "list_from", "tuple", "tuple_from", "dict", "zip", "enumerate", "reversed", "interleaved", "range"),
        *("str.join", "list.with", "list.without", "list.popped", "list.replaced", "text", "getitem", "slice"),
        *("starred_from", "unpack2", "unpack3", "unpack4", "unpack_starred"),
    }
)
"""Builtins that move values without looking at them."""
_OVER_ITEMS = frozenset(
    {
        *("list_from", "tuple_from", "zip", "enumerate", "reversed", "interleaved", "getitem"),
        *("starred_from", "unpack2", "unpack3", "unpack4", "unpack_starred"),
    }
)
"""Builtins that go over the characters of a text."""
_SAME_NUMBER = frozenset(
    {"len", "branch_count", "range", "list_from", "starred_from", "tuple_from", "reversed", "sorted", "enumerate"}
)
"""Builtins that give as many items as a list has, that number, or so many items."""
_MAKERS = frozenset({"list", "list_from", "dict", "OrderedDict", "deque"})
_NEW = _MAKERS | {
    *("dict_from", "mapping_from", "set", "set_from", "Counter", "defaultdict", "deepcopy", "starred_from", "sorted"),
    *("sorted_by", "reversed", "zip", "enumerate", "range", "slice", "interleaved", "add", "mul", "list.with"),
    *("list.without", "list.without_first", "list.replaced", "list.deleted", "str.split", "str.splitlines"),
}
"""Builtins that make an object; others may give one that they were given."""
_KEEPING = frozenset({"str.strip", "str.lstrip", "str.rstrip"})
"""Functions of a text that give a part of it."""
_CASED = frozenset({"str.lower", "str.upper", "str.title", "str.capitalize", "str.casefold", "str.swapcase"})
_CASE_BYTES = 3
"""Bytes that another case makes of one at most: U+0390 has 2, and 6 in upper case."""
_CHARACTER_BYTES = 4
_WRITING = frozenset({"str", "repr", "ascii", "format"})
_NUMBER_BYTES: Mapping[Type, int] = {BOOL: 5, FLOAT: 24, INT: 4301}
"""Bytes of numbers as texts: Python writes no integers with more than 4,300 digits."""
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_CHANGEABLE = (list, dict, set, deque)


_NONE = frozenset[int]()
_NO_TOKENS = CostRange[int].exactly(0)


@dataclass(frozen=True, slots=True, eq=False)
class UnknownValue:
    """A value of which nothing is known before the run; texts and contexts have sizes instead.

    A list has at most ``most`` items, and a number is at most so large; None: no bound.
    """

    most: int | None = None

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = UnknownValue()


@dataclass(frozen=True, slots=True)
class EstimatedRequest:
    """A request that a row makes.

    Attributes:
        op_id: the id in the run.
        number: that of the sample, or of the score.
        runs: how often it is made: once, perhaps, or for each of an unknown number of elements or rounds.
        prompt: token ids; negative ones are ``PromptSpan`` of the tokenizer's ``texts``.
        tokens: those of the prompt.
        output: tokens that are generated, reasoning included; 0 for a score.
        reasoning: the part of them that is reasoning.
        after: the places of the requests that it waits for, among those of the row; -1, -2 … are its prefixes.
        answer: token ids that its output leaves in its context.
        mean: the tokens that are expected of the output by a profile, before they are rounded.
        ways: the uncertain ways on which it is made.
        is_endless: it stands for any number of rounds, one after the other.
    """

    op: SamplingOp | SelectOp
    op_id: str
    number: int
    runs: CostRange[float]
    prompt: tuple[int, ...] = field(repr=False)
    tokens: CostRange[int]
    output: CostRange[int]
    basis: Basis
    reasoning: CostRange[int] = _NO_TOKENS
    after: tuple[int, ...] = ()
    answer: tuple[int, ...] = field(default=(), repr=False)
    mean: float | None = None
    ways: Ways = frozenset()
    is_endless: bool = False

    @property
    def mean_output(self) -> CostRange[float]:
        """Its output as a part of sums: lengths are rounded for a single output alone."""
        least, expected, most = self.output.least, self.output.expected, self.output.most
        if self.mean is not None:
            expected = max(self.mean, least) if most is None else min(max(self.mean, least), most)
        return CostRange(float(least), float(expected), None if most is None else float(most))

    @property
    def location(self) -> Location | None:
        """The line of the call."""
        return self.op.location


@dataclass(frozen=True, slots=True)
class ComputedPrefix:
    """A prefix that the plan computes ahead. It is no request, and its tokens are not counted.

    Attributes:
        prompt: token ids, as those of a request.
        place: the number of the requests of the row that come before it.
        is_shared: True: it is computed once for all rows of a batch, before them.
        runs, ways, after: as those of a request.
    """

    prompt: tuple[int, ...] = field(repr=False)
    place: int
    runs: CostRange[float]
    is_shared: bool = False
    ways: Ways = frozenset()
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BreakReached:
    """A graph break to which a row comes so often: what is behind it is not known."""

    location: Location | None
    cause: str
    runs: CostRange[float]


@dataclass(frozen=True, slots=True)
class RowRequests:
    """The requests of one row in program order, the graph breaks it may come to, and the error that ends it.

    ``inputs`` are its values by parameter name, ``prefixes`` those computed ahead, in program order.
    """

    requests: tuple[EstimatedRequest, ...]
    breaks: tuple[BreakReached, ...]
    error: Exception | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    prefixes: tuple[ComputedPrefix, ...] = ()


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
    walk = _Walk(facts, bind_parameters(body.parameters, inputs), _ids_of_single_runs(module))
    error: Exception | None = None
    try:
        walk.block(body)
    except _Ended as ended:
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


def holds_unknown(value: Any) -> bool:
    """Return True if a value, or one in it, is not known."""
    if isinstance(value, str):
        return MARK in value
    if isinstance(value, dict):
        return any(map(holds_unknown, value)) or any(map(holds_unknown, value.values()))
    if isinstance(value, _CONTAINERS):
        return any(map(holds_unknown, value))
    return isinstance(value, UnknownValue)


class _Ended(Exception):  # noqa: N818 - no error: the way that is walked has come to its end
    """The program ends on the way that is walked, or fails there with ``error``. No other exception is a program's."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error


_ONCE = CostRange(1.0, 1.0, 1.0)


@dataclass
class _Walk:
    """Walks blocks. ``runs`` is how often the place is reached where it is, ``guards`` the open bodies of ``cf.try``.

    ``risks`` counts the ops in such bodies that may raise, ``rounds`` those of inner loops.
    ``single_runs`` are the ids of calls without holes. ``depth`` is the number of the regions around the place.
    ``way`` is the number of the uncertain way that is walked: an object is known as long as it is only changed on the
    way on which it was made. ``waits`` are the requests that a value waits for, ``control`` those that the place waits
    for, ``sources`` the values that flow into those of regions. ``changed`` are the others, by their address, and kept
    so that it stays theirs. ``lost`` are objects that values may be which are not known: a change of one of these may
    be theirs. ``taken`` are the ways that lead to the place. ``is_endless``: it is in a round that stands for any
    number of them.
    """

    facts: WalkFacts
    environment: dict[Value, Any]
    single_runs: frozenset[str]
    requests: list[EstimatedRequest] = field(default_factory=list[EstimatedRequest])
    breaks: list[BreakReached] = field(default_factory=list[BreakReached])
    prefixes: list[ComputedPrefix] = field(default_factory=list[ComputedPrefix])
    depth: int = 0
    runs: CostRange[float] = _ONCE
    guards: int = 0
    risks: int = 0
    rounds: int = 0
    way: int = 0
    ways: int = 0
    made: dict[int, tuple[Any, int]] = field(default_factory=dict[int, tuple[Any, int]])
    changed: dict[int, Any] = field(default_factory=dict[int, Any])
    lost: dict[int, Any] = field(default_factory=dict[int, Any])
    waits: dict[Value, frozenset[int]] = field(default_factory=dict[Value, frozenset[int]])
    sources: dict[Value, set[Value]] = field(default_factory=dict[Value, set[Value]])
    control: frozenset[int] = frozenset()
    taken: Ways = frozenset()
    is_endless: bool = False

    def block(self, block: Block) -> tuple[Any, ...]:
        """Walk a block; gives what its terminator lists. Raises ``_Ended`` where the program ends in it."""
        for op in block.ops[:-1]:
            self._run(op)
        end = block.terminator
        if isinstance(end, BreakOp):
            self.breaks.append(BreakReached(end.location, end.cause, self.runs))
        if isinstance(end, LEAVING):
            raise _Ended
        return control_flow.region_results(end, self.environment)

    def _run(self, op: Op) -> None:
        try:
            self._walk_op(op)
        except LmcError as error:
            raise _Ended(error) from None

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
            self._touch(op)
            results = tuple(self._unknown(value.type) for value in op.results)
        elif isinstance(op, PrefillOp):
            results = (self.environment[op.context],)
            needed |= self._prefill(op, needed)
        else:
            results = self._local(op)
        self.environment.update(zip(op.results, results, strict=True))
        if isinstance(op, MapOp | MessagesOp) or (isinstance(op, PyCallOp | LocalCallOp) and op.function in _NEW):
            for result in results:
                if isinstance(result, _CHANGEABLE):
                    self.made.setdefault(id(result), (result, self.way))
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

    # Values

    def _unknown(self, kind: Type, size: TextSize | None = None) -> Any:
        texts = self.facts.tokenizer.texts
        if kind == TEXT:
            return texts.text(size or TextSize(self.facts.tokenizer.ids_of(_LONG // 4), None, None, is_guess=True))
        if kind == CTX:
            return Context.empty(self.facts.tokenizer).text(self._unknown(TEXT))
        return UNKNOWN

    def _is_unknown(self, value: Any) -> bool:
        return holds_unknown(value) or (bool(self.changed) and self._is_changed(value))

    def _is_changed(self, value: Any) -> bool:
        if id(value) in self.changed:
            return True
        if isinstance(value, dict):
            return any(map(self._is_changed, value.values()))
        return isinstance(value, list | tuple) and any(map(self._is_changed, value))

    def _touch(self, op: Op) -> None:
        """Forget what objects hold that an op may change. A function of the program may change those in them, too."""
        for value in op.operands:
            found = self.environment[value]
            if isinstance(found, UnknownValue):  # it may be any of these
                self.changed.update(self.lost)
            elif not isinstance(found, str | int | float | bool | Context | None):
                self.changed[id(found)] = found
                if isinstance(op, HostCallOp):
                    self.changed.update((id(each), each) for each in _held(found))

    def _lose(self, values: Iterable[Any]) -> UnknownValue:
        """Return a value which is not known, and may be, or hold, objects that ``values`` are or hold."""
        for value in values:
            for each in (value, *_held(value)):
                if isinstance(each, _CHANGEABLE):
                    self.lost[id(each)] = each
        return UNKNOWN

    def _local(self, op: Op) -> tuple[Any, ...]:
        """Results of an op that needs no engine."""
        values = [self.environment[value] for value in op.operands]
        is_unknown = any(map(self._is_unknown, values))
        if isinstance(op, AssumeOp) and is_unknown:
            return ()
        if isinstance(op, LocalCallOp):
            return self._on_object(op, is_unknown=is_unknown)
        if not isinstance(op, PyCallOp) or not is_unknown:
            if any(isinstance(value, UnknownValue) for value in values):
                return tuple(self._unknown(value.type) for value in op.results)
            return self._evaluated(op)
        return (self._called(op),)

    def _evaluated(self, op: Op) -> tuple[Any, ...]:
        """Return the results of an op. A builtin raises anything, as in the program; all else raises ``LmcError``."""
        try:
            return semantics.evaluate(op, self.environment, self.facts.tokenizer, self.facts.constraints)
        except RecursionError:
            raise
        except Exception as error:
            if isinstance(op, PyCallOp | LocalCallOp):
                raise _Ended(error) from None
            raise

    def _called(self, op: PyCallOp) -> Any:
        """Return what a builtin gives for values that are not all known."""
        positional, named = semantics.call_arguments(op.arguments, op.keywords, self.environment)
        result = self._result(op, positional)
        if isinstance(result, UnknownValue) and op.results[0].type not in SCALAR_TYPES:
            self._lose((*positional, *named.values()))
        return result

    def _result(self, op: PyCallOp, positional: Sequence[Any]) -> Any:
        kind = op.results[0].type
        if op.function in {"and", "or"} and kind == BOOL:
            decides = op.function == "or"
            return decides if any(value is decides for value in positional) else UNKNOWN
        if op.function in {"and", "or", "choose"}:
            return self._chosen(op.function, positional, kind)
        if op.function in _KEEPING and len(positional) == 1 and isinstance(positional[0], str):
            return self._unknown(TEXT, self._size(positional[0]))
        if op.function in _CASED | {"slice", "getitem"} and isinstance(positional[0], str):
            return self._unknown(TEXT, self._cut(op.function, positional))
        if op.function in _WRITING and len(op.operands) == len(positional) == 1:
            longest = _NUMBER_BYTES.get(op.operands[0].type)
            if longest is not None:
                return self._unknown(TEXT, TextSize(self.facts.tokenizer.ids_of(1), longest, longest))
        is_whole = not any(isinstance(value, UnknownValue) or self._is_changed(value) for value in positional)
        if not is_whole and kind not in {TEXT, CTX}:
            return self._bounded(op.function, positional)
        if _needs_text(op.function, positional):
            return self._unknown(kind)
        if is_whole and (op.function in _STRUCTURAL or self._has_known_length(op, positional) or _adds(op, positional)):
            try:
                return self._evaluated(op)[0]
            except _Ended:
                return self._unknown(kind)
        return self._unknown(kind) if kind in {TEXT, CTX} else self._bounded(op.function, positional)

    def _bounded(self, function: str, values: Sequence[Any]) -> Any:
        """Return a list or a number which is not known, with its bound; or the result of a comparison with that."""
        first = values[0] if values else UNKNOWN
        if function in {"lt", "gt"}:
            less, more = values if function == "lt" else reversed(values)
            bound = more.most if isinstance(more, UnknownValue) else None
            return False if type(less) is int and bound is not None and less >= bound else UNKNOWN
        if function == "slice":
            return UnknownValue(_least_of([self._most_of(first), _most_items(*values[1:])]))
        if function == "zip" or (function == "min" and len(values) > 1):
            return UnknownValue(_least_of([self._most_of(value) for value in values]))
        return UnknownValue(self._most_of(first)) if function in _SAME_NUMBER and len(values) == 1 else UNKNOWN

    def _most_of(self, value: Any) -> int | None:
        """Return the most items of a list, or the largest number that a value may be; None: not known."""
        if isinstance(value, UnknownValue):
            return value.most
        if type(value) is int:
            return value
        return len(value) if isinstance(value, list | tuple) and not self._is_changed(value) else None

    def _cut(self, function: str, values: Sequence[Any]) -> TextSize:
        """Return the size of a part of a text, or of the text in other letters. Tokens at both ends may be cut."""
        size = self._size(values[0])
        if function in _CASED:
            most = None if size.most_bytes is None else size.most_bytes * _CASE_BYTES
            return replace(size, most=most, most_bytes=most)
        count = 1 if function == "getitem" else _most_items(*values[1:])
        lengths = [size.most_bytes, None if count is None else count * _CHARACTER_BYTES]
        longest = min((length for length in lengths if length is not None), default=None)
        is_reversed = function == "slice" and values[3] not in {None, 1}
        tokens = longest if size.most is None or is_reversed else size.most + 2 * LONGEST_TOKEN
        most = longest if tokens is None or longest is None else min(tokens, longest)
        expected = size.expected
        if count is not None:
            expected = min(expected, self.facts.tokenizer.ids_of(count / TOKEN_BYTES))
        return TextSize(expected, most, longest, size.is_guess and count is None)

    def _chosen(self, function: str, values: Sequence[Any], kind: Type) -> Any:
        """Return what ``and``, ``or`` and conditional expressions give: one of their values."""
        condition, first, second = values if function == "choose" else (values[0], values[0], values[1])
        if function == "and":
            first, second = second, first
        if self._is_unknown(condition):
            return self._either(first, second, kind)
        return first if condition else second

    def _has_known_length(self, op: PyCallOp, values: Sequence[Any]) -> bool:
        return op.function == "len" and not isinstance(values[0], str)

    def _on_object(self, op: LocalCallOp, *, is_unknown: bool) -> tuple[Any, ...]:
        """Results of an op that makes or changes an object of the run."""
        values = [self.environment[value] for value in op.operands]
        arguments, _ = semantics.call_arguments(op.arguments, op.keywords, self.environment)
        is_made = op.function in _MAKERS
        here = all(self._is_made_here(value) for value in values)
        moves = is_made or op.function in {"setitem", "getitem"} or _appends(op)
        owner = values[0] if values else None
        is_whole = not any(isinstance(value, UnknownValue) or self._is_changed(value) for value in values)
        moves = moves and not _needs_text(op.function, arguments)
        if here and is_whole and (not is_unknown or (moves and (is_made or isinstance(owner, list | dict)))):
            try:
                return self._evaluated(op)
            except _Ended:
                if not is_unknown:
                    raise
        self._touch(op)
        self._lose(values)
        return tuple(self._unknown(value.type) for value in op.results)

    def _is_made_here(self, value: Any) -> bool:
        """Return True if an object was made on the way that is walked, and so is only changed where that is taken."""
        return not isinstance(value, _CHANGEABLE) or self.made.get(id(value), (None, 0))[1] == self.way

    def _size(self, text: str) -> TextSize:
        """Return the size of a text."""
        plain = known(text)
        tokenizer = self.facts.tokenizer
        return tokenizer.texts.size(text, tokenizer.length(tokenizer.encode(plain)) if plain else 0)

    # Calls

    def _id(self, op: SamplingOp | SelectOp) -> str:
        if any(self._is_unknown(self.environment[value]) for value in op.occurrences):
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
        if any(self._is_unknown(self.environment[value]) for value in op.definition):
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
        return replace(first, most=_largest([first.most, *(each.most for each in others)]))

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
        if not any(isinstance(value, UnknownValue) or self._is_changed(value) for value in values):
            choices = selection.choices_of(op, self.environment)
        is_known = choices is not None
        if choices is None:
            choices = [self._unknown(TEXT)]
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
        choice = self._either_text(choices)
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
            room = self._room([self._size(choice) for choice in choices])
        results = self._generate(generation, constraints, room)
        if holds_unknown(results[1]):  # the context gets the choice, without the form in which it is written
            choice = self._either_text(choices)
            size = self._size(choice)
            token = self.facts.tokenizer.texts.token(PromptSpan(0, size.expected, size.most, size.is_guess))
            before: Context = self.environment[op.context]
            results = (before.generated(Generation((token,), choice, "eos")), choice)
        return selection.written_results(results, choices)

    def _room(self, sizes: Sequence[TextSize]) -> CostRange[int]:
        """Return the ``max_tokens`` with which one of some texts is written: each byte may be a token."""
        least = written_tokens(())
        longest = _largest([size.most_bytes for size in sizes])
        expected = max(size.expected for size in sizes) // self.facts.tokenizer.ids_of(1)
        most = None if longest is None else least + longest
        return CostRange(least, least + (expected if longest is None else min(expected, longest)), most)

    # Either of two values

    def _either_text(self, texts: Sequence[str], share: float | None = None) -> str:
        """Return an unknown text which is one of ``texts``: of two, the first one with the probability ``share``."""
        if len(set(texts)) == 1:
            return texts[0]
        sizes = [self._size(text) for text in texts]
        expected = sum(size.expected for size in sizes) // len(sizes)
        if share is not None:
            expected = _mean(sizes[0].expected, sizes[1].expected, share)
        return self._unknown(
            TEXT,
            TextSize(
                expected,
                _largest([size.most for size in sizes]),
                _largest([size.most_bytes for size in sizes]),
                any(size.is_guess for size in sizes),
            ),
        )

    def _either(self, left: Any, right: Any, kind: Type, share: float = 0.5) -> Any:
        """Return a value that is one of both: ``left`` with the probability ``share``."""
        if left is right or (type(left) in (str, int, float, bool) and type(left) is type(right) and left == right):
            return left
        if isinstance(left, Context) and isinstance(right, Context):
            return self._either_context(left, right, share)
        if isinstance(left, str) and isinstance(right, str):
            return self._either_text([left, right], share)
        if isinstance(left, UnknownValue) and isinstance(right, UnknownValue):
            return UnknownValue(_largest([left.most, right.most]))
        self._lose((left, right))
        return self._unknown(kind)

    def _either_context(self, left: Context, right: Context, share: float) -> Context:
        """Return a context that is one of both: what they begin with, and as many tokens more as either has."""
        first, second = left.prompt, right.prompt
        shared = 0
        while shared < min(len(first), len(second)) and first[shared] == second[shared]:
            shared += 1
        count, length = self.facts.tokenizer.count, self.facts.tokenizer.length
        one, other, begun = count(first), count(second), count(first[:shared])
        slack = 0 if _turns(left) == _turns(right) else _TURN_SLACK
        most = _largest([one.most, other.most])
        # The beginning has a range of its own, which the rest may make up for.
        above = None if most is None else most - begun.least + slack
        below = min(one.least, other.least) - (begun.least if begun.most is None else begun.most) - slack
        middle = _mean(length(first), length(second), share) - length(first[:shared])
        texts = self.facts.tokenizer.texts
        is_guess = texts.is_guess(first[shared:]) or texts.is_guess(second[shared:])
        token = texts.token(PromptSpan(below, middle, above, is_guess))
        longer = left if len(left.messages) >= len(right.messages) else right
        text = self._either_text([known_text(left), known_text(right)], share)
        joined = longer.generated(Generation((token,), text, "eos"))
        assert joined.synced is not None, "a generation settles the text before it"
        settled = replace(joined.synced.tokens, settled=(*first[:shared], token))
        return replace(joined, synced=replace(joined.synced, tokens=settled))

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
        before, self.runs = self.way, runs
        self.ways += 1
        self.way = self.ways
        try:
            return self._enter(block, arguments)
        except _Ended:
            return None
        finally:
            self.way = before

    def _cond(self, op: CondOp) -> tuple[Any, ...]:
        control, taken = self.control, self.taken
        self.control |= self._waits((op.flag,))
        try:
            return self._arms(op)
        finally:
            self.control, self.taken = control, taken

    def _arms(self, op: CondOp) -> tuple[Any, ...]:
        if not self._is_unknown(self.environment[op.flag]):
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
            raise _Ended
        if left is None or right is None:
            self.runs = right_runs if left is None else left_runs
            return right if left is None else left  # type: ignore[return-value]
        both = left_runs.expected + right_runs.expected
        share = left_runs.expected / both if both else 0.5
        may_end = op.leaves or (self.guards and op.inner_may_raise)
        self.runs = CostRange(0.0, min(both, before.expected), before.most) if may_end else before
        return tuple(
            self._either(one, other, value.type, share)
            for one, other, value in zip(left, right, op.results, strict=True)
        )

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
            kinds = [value.type for value in op.results]
            return tuple(
                self._either(one, other, kind, share) for one, other, kind in zip(left, exits, kinds, strict=True)
            )

        while True:
            ended = (
                self._on_a_way(op.condition, values, self.runs) if not is_known else self._enter(op.condition, values)
            )
            if ended is None:
                break
            flag, *exits = ended
            if not self._is_unknown(flag):
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
            raise _Ended
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
        values = self._on_a_way(op.body, [self._endless(value) for value in exits], self.runs)
        if values is not None:
            self._on_a_way(op.condition, values, CostRange(0.0, rest, None))
        self.is_endless = within
        self.runs = self._after(op, before, max(passed, before.expected if not op.leaves else 0.0))
        return leave([self._endless(value) for value in exits], 0.0)

    def _endless(self, value: Any) -> Any:
        """Return what a value may have become after any number of rounds."""
        if isinstance(value, Context):
            token = self.facts.tokenizer.texts.token(PromptSpan(0, 0, None, is_guess=True))
            return value.generated(Generation((token,), self._unknown(TEXT, TextSize(0, None, None, True)), "eos"))
        if isinstance(value, str):
            return self._unknown(TEXT, replace(self._size(value), most=None, most_bytes=None))
        return self._lose((value,))

    def _try(self, op: TryOp) -> tuple[Any, ...]:
        before, requests, risks = self.runs, len(self.requests), self.risks
        self.guards += 1
        try:
            yielded: tuple[Any, ...] | None = self._enter(op.body, ())
        except _Ended as ended:
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
        kinds = [value.type for value in op.results[2:]]
        either = (
            [self._unknown(kind) for kind in kinds]
            if yielded is None
            else [self._either(one, other, kind) for one, other, kind in zip(yielded, fallback, kinds, strict=True)]
        )
        return (UNKNOWN, UNKNOWN, *either)

    def _elements(self, op: MapOp | RaceOp) -> tuple[Any, ...]:
        lists = [self.environment[value] for value in op.lists]
        before = self.runs
        if any(isinstance(value, UnknownValue) or self._is_changed(value) for value in lists):
            found = None if self.facts.profile is None else self.facts.profile.repeats.get(op.id or "")
            mean = 1.0 if found is None or found.mean is None else found.mean
            count = _least_of([self._most_of(each) for each in lists])
            if count is not None:
                mean = min(mean, float(count))
            most = None if count is None or before.most is None else before.most * count
            self._lose(lists)
            arguments = [self._unknown(value.type) for value in op.body.parameters]
            self._on_a_way(op.body, arguments, CostRange(0.0, before.expected * mean, most))
            self.runs = before
            if isinstance(op, MapOp):
                return tuple(UnknownValue(count) for _ in op.results)
            return tuple(self._unknown(value.type) for value in op.results)
        try:
            rows = control_flow.elements(op, self.environment)
        except ValueError as error:  # lists of different lengths
            raise _Ended(error) from None
        if isinstance(op, MapOp):
            return control_flow.map_results(op, [self._enter(op.body, row) for row in rows])
        yielded: list[Any] | None = None
        for number, row in enumerate(rows):
            runs = before if number == 0 else replace(before, least=0.0)
            found_here = self._on_a_way(op.body, row, runs)
            kinds = [value.type for value in op.results]
            here = [self._unknown(kind) for kind in kinds] if found_here is None else list(found_here)
            yielded = (
                here
                if yielded is None
                else [self._either(one, other, kind) for one, other, kind in zip(yielded, here, kinds, strict=True)]
            )
        self.runs = before
        assert yielded is not None, "a race has elements"
        return tuple(yielded)


def known_text(context: Context) -> str:
    """Return the text of the open turn of a context, or of a raw completion."""
    return "".join(part if isinstance(part, str) else part.text for part in context.parts)


def _turns(context: Context) -> tuple[int, str | None]:
    return len(context.messages), context.role


def _part(runs: CostRange[float], share: float) -> CostRange[float]:
    return CostRange(0.0, runs.expected * share, runs.most)


def _mean(left: int, right: int, share: float) -> int:
    """Return the mean of two figures, the first one with the weight ``share``."""
    return int(left * share + right * (1.0 - share))


def _least_of(figures: Sequence[int | None]) -> int | None:
    return min((figure for figure in figures if figure is not None), default=None)


def _largest(figures: Sequence[int | None]) -> int | None:
    found = [figure for figure in figures if figure is not None]
    return max(found) if len(found) == len(figures) else None


def _adds(op: PyCallOp, values: Sequence[Any]) -> bool:
    """Return True if two texts or two lists are put together."""
    return op.function in {"add", "iadd"} and (
        all(isinstance(value, str) for value in values) or all(isinstance(value, list) for value in values)
    )


def _most_items(start: Any, stop: Any, step: Any) -> int | None:
    """Return the most characters that a slice has; None: as many as its text."""
    if step is not None and step != 1:
        return None
    if type(stop) is int and stop >= 0 and (start is None or (type(start) is int and start >= 0)):
        return max(0, stop - (start or 0))
    return -start if type(start) is int and start < 0 else None


def _needs_text(function: str, values: Sequence[Any]) -> bool:
    """Return True if a builtin has to know a text that is unknown: it goes over its characters, or it is a key."""
    if function in {"dict", "OrderedDict"}:
        return any(map(holds_unknown, values[::2]))
    if function in {"getitem", "setitem"} and holds_unknown(values[1]):
        return True
    if function == "str.join":
        over = values[1:]
    elif function == "method":
        over = values[2:] if values[0] == "extend" else ()
    else:
        over = values if function in _OVER_ITEMS else ()
    return any(isinstance(value, str) and MARK in value for value in over)


def _held(value: Any) -> Iterator[Any]:
    """Yield the objects in an object."""
    if not isinstance(value, _CONTAINERS):
        return
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, _CONTAINERS):
            yield each
            yield from _held(each)


def _appends(op: LocalCallOp) -> bool:
    return op.function == "method" and op.arguments[:1] in (("append",), ("extend",), ("appendleft",))
