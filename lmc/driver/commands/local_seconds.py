"""Seconds, KV pool and cache hits of a batch on a local model before it runs, by the simulator."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.cache.node import Tokens
from lmc.cache.simulation.layouts import roomy_block
from lmc.cache.simulation.report import CostModel, Report, StepWork
from lmc.cache.simulation.simulator import simulate
from lmc.cache.trace import TraceRequest
from lmc.cost.ranges import CostRange
from lmc.cost.requests import ComputedPrefix, EstimatedRequest, RowRequests
from lmc.cost.texts import PromptSpan, Texts
from lmc.ir.engine.target import Target
from lmc.ir.tokens.tokens import common_length

BATCH = 256
"""Requests that run at once: the default of engines and executors."""
PREFILL_TOKENS = 512
POOL_TOKENS = 1 << 20
"""Tokens of a KV pool whose size is chosen by free memory, which only the engine knows: its limit."""
MOST_ROWS = 512
"""Rows that are simulated; seconds of more are in proportion."""
_FIRST_TOKEN = -(2**31)
_NO_TOKENS: Tokens = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class LocalPrediction:
    """The run of a batch on a local model.

    Attributes:
        seconds: of the batch, by the lengths of outputs; loading the model is not in it.
        critical_path: of the longest chain of requests that wait for each other in a row, were it alone.
        kv_peak: tokens of the KV pool that running requests hold at most, as expected.
        hit_rate: the share of prompt tokens found in the cache, 0 … 1, as expected.
        rows: those that were simulated.
    """

    seconds: CostRange[float]
    critical_path: CostRange[float]
    kv_peak: int
    hit_rate: float
    rows: int


def predict_local(
    first: Sequence[RowRequests], count: int, texts: Texts, target: Target, cost: CostModel
) -> LocalPrediction:
    """Predict a batch of ``count`` rows, which start with ``first``; ``MOST_ROWS`` of them are enough.

    ``texts`` are those of the walk that found the requests. Three runs are simulated: with the fewest requests and
    tokens, with the expected ones, and with the most.
    """
    simulated = first[:MOST_ROWS]
    share = count / max(len(simulated), 1)
    scenarios = [
        _Scenario(texts, lambda size: size.least, lambda runs: runs.least),
        _Scenario(texts, lambda size: size.expected, lambda runs: runs.expected),
    ]
    is_bounded = all(
        request.runs.most is not None and request.tokens.most is not None
        for row in simulated
        for request in row.requests
    )
    if is_bounded:
        scenarios.append(_Scenario(texts, lambda size: size.most or 0, lambda runs: runs.most or 0.0))
    runs: list[_Run] = []
    for scenario in scenarios:
        requests = scenario.requests(simulated)
        known = next((run for run in runs if _are_same(run.requests, requests)), None)
        runs.append(known or _simulated(requests, scenario.prefixes, target, cost))
    expected = runs[1]
    pages = expected.report.timeline.pages_in_use
    return LocalPrediction(
        seconds=_range([run.report.predicted_seconds * share for run in runs]),
        critical_path=_range([run.critical_path for run in runs]),
        kv_peak=int(pages.max()) if pages.size else 0,
        hit_rate=expected.hit_rate,
        rows=len(simulated),
    )


def _range(values: Sequence[float]) -> CostRange[float]:
    """Return a range of simulated figures: a run with more tokens may by chance be served in a better order."""
    least, expected, *most = values
    least = min(least, expected)
    return CostRange(least, expected, max(expected, *most) if most else None)


@dataclass(frozen=True, eq=False)
class _Run:
    """A simulated run of ``requests``; ``hit_rate`` is that of calls alone, without the prefixes computed ahead."""

    requests: Sequence[TraceRequest]
    report: Report
    critical_path: float
    hit_rate: float


def _are_same(one: Sequence[TraceRequest], other: Sequence[TraceRequest]) -> bool:
    """Return True if two scenarios make the same requests, with the same lengths."""
    return len(one) == len(other) and all(
        (left.id, left.after) == (right.id, right.after)
        and np.array_equal(left.tokens, right.tokens)
        and np.array_equal(left.generated, right.generated)
        for left, right in zip(one, other, strict=True)
    )


def _simulated(
    requests: Sequence[TraceRequest], prefixes: Container[str | int], target: Target, cost: CostModel
) -> _Run:
    """Serve requests as an engine of the target would. Those of ``prefixes`` compute one ahead."""
    prefill = target.prefill_tokens or PREFILL_TOKENS
    longest = max((request.cached_length for request in requests), default=1)
    pool = max(target.kv_tokens or POOL_TOKENS, longest)
    instances = len({request.instance for request in requests})
    all_fit = sum(request.cached_length for request in requests) <= pool
    layout = Layout(InstanceOrder.GIVEN, roomy_block(instances, BATCH)) if all_fit else None
    report = simulate(
        requests, policy="lmc", kv_tokens=pool, batch=BATCH, prefill_tokens=prefill, layout=layout, cost=cost
    )
    calls = [
        (each.tokens.size, served.cached)
        for each, served in zip(requests, report.served, strict=True)
        if each.id not in prefixes
    ]
    prompt, cached = (sum(column) for column in zip(*calls, strict=True)) if calls else (0, 0)
    path = _critical_path(requests, report, cost, prefill)
    return _Run(requests, report, path, cached / prompt if prompt else 0.0)


def _critical_path(requests: Sequence[TraceRequest], report: Report, cost: CostModel, prefill: int) -> float:
    """Return the seconds of the longest chain: each request runs alone, and finds what it found in the batch."""
    ends: dict[str | int, float] = {}
    for request, served in zip(requests, report.served, strict=True):
        start = max((ends[each] for each in request.after), default=0.0)
        ends[request.id] = start + _alone(request, served.cached, cost, prefill)
    return max(ends.values(), default=0.0)


def _alone(request: TraceRequest, cached: int, cost: CostModel, prefill: int) -> float:
    """Return the seconds of a request that runs alone, with so many tokens in the cache."""
    length, seconds = request.tokens.size, 0.0
    for start in range(cached, length, prefill):
        end = min(start + prefill, length)
        attended = (end - start) * (start + end + 1) // 2
        seconds += cost.seconds(StepWork(end - start, end == length, attended, length))
    steps = max(request.generated.size - 1, 0)
    middle = length + steps / 2
    return seconds + steps * cost.seconds(StepWork(1, 1, middle, middle))


@dataclass(frozen=True, slots=True, eq=False)
class _Expanded:
    """A prompt as tokens: those of its first ``n`` ids are the first ``ends[n]``."""

    ids: tuple[int, ...]
    tokens: Tokens
    ends: NDArray[np.int64]


@dataclass
class _Scenario:
    """Requests with one length of each unknown part: of ``tokens``, made as often as ``runs`` says.

    ``prefixes`` are the ids of those that compute a prefix ahead, and generate nothing.
    """

    texts: Texts
    tokens: Callable[[PromptSpan | CostRange[int]], int]
    runs: Callable[[CostRange[float]], float]
    prefixes: set[str | int] = field(default_factory=set[str | int])
    _next: int = _FIRST_TOKEN
    _parts: dict[int, Tokens] = field(default_factory=dict[int, Tokens])
    _left: dict[str, float] = field(default_factory=dict[str, float])
    _shared: dict[tuple[int, ...], tuple[str, ...]] = field(default_factory=dict[tuple[int, ...], tuple[str, ...]])
    _last: _Expanded = field(default_factory=lambda: _Expanded((), _NO_TOKENS, np.zeros(1, np.int64)))

    def requests(self, rows: Sequence[RowRequests]) -> list[TraceRequest]:
        """Return the requests of rows, each row an instance."""
        return [request for number, row in enumerate(rows) for request in self._of_row(number, row)]

    def _of_row(self, instance: int, row: RowRequests) -> list[TraceRequest]:
        made: list[TraceRequest] = []
        ends: dict[int, tuple[str, ...]] = {}
        waiting = deque(sorted(enumerate(row.prefixes, 1), key=lambda each: each[1].place))
        for number, request in enumerate(row.requests):
            while waiting and waiting[0][1].place <= number:
                place, prefix = waiting.popleft()
                ends[-place] = self._prefix(prefix, place, instance, _ends(prefix.after, ends), made)
            last = _ends(request.after, ends)
            for copy in range(self._count(request.op_id, request.runs)):
                name = f"{instance}/{number}/{copy}"
                made.append(self._made(request, name, instance, last))
                last = (name,)
            ends[number] = last
        return made

    def _prefix(
        self, prefix: ComputedPrefix, place: int, instance: int, after: tuple[str, ...], made: list[TraceRequest]
    ) -> tuple[str, ...]:
        """Add the request of a prefix to those ``made``, once in a batch where rows share it; give what ends it."""
        if prefix.is_shared and prefix.prompt in self._shared:
            return self._shared[prefix.prompt]
        for copy in range(self._count(f"prefix {place}", prefix.runs)):
            name = f"{instance}/prefix {place}/{copy}"
            made.append(self._computing(prefix.prompt, name, instance, after))
            self.prefixes.add(name)
            after = (name,)
        if prefix.is_shared:
            self._shared[prefix.prompt] = after
        return after

    def _count(self, key: str, runs: CostRange[float]) -> int:
        """Return how often a request is made here; what is left of a fraction counts for the next row."""
        found = self._left.get(key, 0.0) + self.runs(runs)
        count = math.floor(found + 1e-9)
        self._left[key] = found - count
        return count

    def _made(self, request: EstimatedRequest, name: str, instance: int, after: tuple[str, ...]) -> TraceRequest:
        size = self.tokens(request.output)
        answer = np.concatenate(
            [_NO_TOKENS, *(self._part(each) if each < 0 else np.array([each], np.int32) for each in request.answer)]
        )[:size]
        generated = np.concatenate([answer, self._new(size - answer.size)])
        return replace(
            self._computing(request.prompt, name, instance, after),
            generated=generated,
            expected=request.output.expected,
        )

    def _computing(self, prompt: tuple[int, ...], name: str, instance: int, after: tuple[str, ...]) -> TraceRequest:
        """Return a request that computes a prompt and generates nothing."""
        tokens = self._expanded(prompt)
        known = next((at for at, token in enumerate(prompt) if token < 0), len(prompt))
        return TraceRequest(
            id=name,
            tokens=tokens if tokens.size else self._new(1),
            generated=_NO_TOKENS,
            after=after,
            arrival=0.0,
            instance=instance,
            known=min(known, max(tokens.size, 1)),
            expected=0,
            priority=0,
            location=None,
        )

    def _expanded(self, ids: tuple[int, ...]) -> Tokens:
        """Return token ids with those of unknown parts: numbers that occur nowhere else.

        Prompts mostly begin like the last one, whose beginning is kept: a chain of calls stays linear.
        """
        last = self._last
        shared = common_length(ids, last.ids)
        known = last.ends[shared]
        parts, lengths = [last.tokens[:known]], np.ones(len(ids) - shared, np.int64)
        start = shared
        for at in range(shared, len(ids)):
            if ids[at] < 0:
                part = self._part(ids[at])
                parts += [np.array(ids[start:at], np.int32), part]
                lengths[at - shared], start = part.size, at + 1
        tokens = np.concatenate([*parts, np.array(ids[start:], np.int32)])
        ends = np.concatenate([last.ends[: shared + 1], known + lengths.cumsum()])
        self._last = _Expanded(ids, tokens, ends)
        return tokens

    def _part(self, token: int) -> Tokens:
        if token not in self._parts:
            self._parts[token] = self._new(max(self.tokens(self.texts.span(token)), 0))
        return self._parts[token]

    def _new(self, count: int) -> Tokens:
        self._next += count
        return np.arange(self._next - count, self._next, dtype=np.int64).astype(np.int32)


def _ends(after: Sequence[int], ends: Mapping[int, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the requests of a trace that end what a request waits for."""
    return tuple(dict.fromkeys(each for before in after for each in ends[before]))
