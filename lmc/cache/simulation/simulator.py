"""A trace through the real cache and scheduler, on a virtual clock and without a model."""

from collections.abc import Sequence as Requests
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import cast

from lmc.cache import policies
from lmc.cache.batch_order.ranks import Layout, ranks
from lmc.cache.order import ByRank
from lmc.cache.scheduler import GROWTH_RESERVE, Scheduler
from lmc.cache.sequence import Sequence
from lmc.cache.simulation.layouts import choose_layout
from lmc.cache.simulation.lookahead import Foresight, Ranking, as_they_come
from lmc.cache.simulation.optimum import found_hits, optimal_hits
from lmc.cache.simulation.recording import RecordingMemory
from lmc.cache.simulation.report import REFERENCE, CostModel, Report, Served, StepWork
from lmc.cache.trace import TraceRequest
from lmc.ir.errors import InputError

OPTIMAL = "optimal"
POLICIES = (*policies.POLICIES, OPTIMAL)
"""The policies of `policies.py`, and ``optimal``: served as by ``lmc``, with the hits of the best eviction (MIN)."""


def simulate(
    requests: Requests[TraceRequest],
    *,
    policy: str,
    kv_tokens: int,
    batch: int,
    prefill_tokens: int = 512,
    layout: Layout | None = None,
    cost: CostModel = REFERENCE,
) -> Report:
    """Serve the requests of a trace from a pool of `kv_tokens` pages, at most `batch` at a time.

    Where the plan's order decides, instances are served in a `layout` (see `ranks.py`); None: in what is best for a
    part of them, by their estimates (`layouts.py`). Seconds are those of the `cost` model.

    Raises:
        InputError: there is no such policy, a size is less than 1, a request can't fit the pool, or one comes after
            another that is not before it.
    """
    simulation = Simulation(
        requests,
        policy=policy,
        kv_tokens=kv_tokens,
        batch=batch,
        prefill_tokens=prefill_tokens,
        layout=layout,
        cost=cost,
    )
    while simulation.step():
        pass
    return simulation.report()


def coarse_trial(
    requests: Requests[TraceRequest],
    *,
    kv_tokens: int,
    batch: int,
    layout: Layout,
    scale: int,
    policy: str = "lmc",
    prefill_tokens: int = 512,
    cost: CostModel = REFERENCE,
) -> Report:
    """Serve requests whose tokens count for `scale` each; the other numbers are those of single tokens.

    A pool that one of them does not fit is taken to be as large as that.
    """
    return simulate(
        requests,
        policy=policy,
        kv_tokens=max(kv_tokens // scale, *(request.cached_length for request in requests)),
        batch=batch,
        prefill_tokens=max(prefill_tokens // scale, 1),
        layout=layout,
        cost=cost.coarse(scale),
    )


@dataclass(slots=True, eq=False)
class _Service:
    """A request that waits or runs: since when it could, since when it does, and how many tokens it has generated."""

    position: int
    ready: float
    started: float | None = None
    first_token: float = 0.0
    generated: int = 0


class Simulation:
    """One run, step by step. `clock` is in seconds since the start of the trace.

    A request is known to the scheduler once it has arrived and all that it comes after has ended. Steps are those of
    the scheduler: an engine would compute the same rows, in the same pages.
    """

    def __init__(
        self,
        requests: Requests[TraceRequest],
        *,
        policy: str,
        kv_tokens: int,
        batch: int,
        prefill_tokens: int = 512,
        layout: Layout | None = None,
        cost: CostModel = REFERENCE,
    ) -> None:
        _check_sizes(
            kv_tokens=kv_tokens, batch=batch, prefill_tokens=prefill_tokens, block=1 if layout is None else layout.block
        )
        if policy not in POLICIES:
            raise InputError(f"there is no policy {policy!r}", remedy=f"choose one of {', '.join(POLICIES)}")
        for request in requests:
            _check_fits(request, kv_tokens)
        self.clock = 0.0
        self._requests = requests
        self._policy = policy
        self._kv_tokens = kv_tokens
        self._batch = batch
        self._prefill_tokens = prefill_tokens
        self._cost = cost
        # The length of an answer is unknown; its bound is known, as from a request's max_tokens.
        self._most_output = max((request.generated.size for request in requests), default=0)
        # With a page for all that could ever be asked for, more change nothing.
        enough = sum(request.tokens.size + self._most_output + GROWTH_RESERVE for request in requests)
        pages = min(kv_tokens, max(enough, 1))
        chosen = policies.POLICIES["lmc" if policy == OPTIMAL else policy]
        self.memory = RecordingMemory(pages, scratch_page=pages, eviction=chosen.eviction())
        order = partial(chosen.order, self.memory.radix)
        self.scheduler = Scheduler(self.memory, prefill_tokens=prefill_tokens, max_running=batch, order=order)
        self._services: dict[Sequence, _Service] = {}
        self._served: dict[int, Served] = {}
        self._hit_tokens = self._steps = self._rows = 0
        self._arrivals: list[tuple[float, int]] = []
        self._followers: list[list[int]] = [[] for _ in requests]
        self._unanswered = [len(request.after) for request in requests]
        positions = _positions(requests)
        for position, request in enumerate(requests):
            for each in request.after:
                self._followers[positions[each]].append(position)
            if not request.after:
                heappush(self._arrivals, (request.arrival, position))
        self._layout = layout
        rank: Ranking = self._ranks if isinstance(order(), ByRank) else as_they_come
        self._foresight = Foresight(requests, self._followers, self.memory, rank) if chosen.turns else None

    def step(self) -> bool:
        """Compute one step; False where everything has been answered."""
        if not self.scheduler.has_work:
            if not self._arrivals:
                return False
            self.clock = max(self.clock, self._arrivals[0][0])
        if self._foresight is not None:
            self._foresight.advance(self.clock)
        while self._arrivals and self._arrivals[0][0] <= self.clock:
            self._enter(*heappop(self._arrivals))
        slices = self.scheduler.next_step()
        began = self.clock
        self.clock += self._cost.seconds(StepWork.of(slices, self.memory.held_pages))
        self._steps += 1
        for rows in slices:
            self._rows += rows.end - rows.start
            rows.sequence.computed = rows.end
            service = self._services[rows.sequence]
            service.started = began if service.started is None else service.started
        for rows in slices:
            if not rows.sequence.pending:
                self._advance(rows.sequence)
        return True

    def report(self) -> Report:
        """Return the figures, once `step` has reported the end."""
        timeline = self.memory.timeline()
        hit_tokens = self._hit_tokens
        if self._policy == OPTIMAL:
            hit_tokens += optimal_hits(timeline, self._kv_tokens) - found_hits(timeline)
        return Report(
            policy=self._policy,
            kv_tokens=self._kv_tokens,
            batch=self._batch,
            requests=len(self._requests),
            prompt_tokens=sum(request.tokens.size for request in self._requests),
            hit_tokens=hit_tokens,
            evicted_tokens=self.memory.radix.evicted_tokens,
            preemptions=self.scheduler.preemptions,
            steps=self._steps,
            depth=_depth(self._requests),
            predicted_seconds=self.clock,
            generated_tokens=sum(request.generated.size for request in self._requests),
            rows=self._rows,
            served=tuple(self._served[position] for position in range(len(self._requests))),
            timeline=timeline,
        )

    def check_invariants(self) -> None:
        """Check the cache and the pages of all that run. Raises `InvariantError`."""
        self.memory.check_invariants(self.scheduler.running)

    def _ranks(self, requests: Requests[TraceRequest]) -> list[int]:
        """The places of requests that come together."""
        if len(requests) == 1:
            return [0]
        layout = self._layout
        if layout is None:
            layout = choose_layout(requests, self._trial, batch=self._batch)
        return ranks(requests, layout)

    def _trial(self, requests: Requests[TraceRequest], layout: Layout, scale: int) -> Report:
        """Simulate these requests alone, one token for `scale` of them."""
        return coarse_trial(
            requests,
            policy=self._policy,
            kv_tokens=self._kv_tokens,
            batch=self._batch,
            prefill_tokens=self._prefill_tokens,
            layout=layout,
            cost=self._cost,
            scale=scale,
        )

    def _enter(self, ready: float, position: int) -> None:
        request = self._requests[position]
        length = request.tokens.size
        most = min(length + self._most_output, self._kv_tokens + 1) if request.generated.size else length
        sequence = Sequence(cast(Requests[int], request.tokens), capacity=most, first_wanted_row=length - 1)
        sequence.priority = request.priority
        self._services[sequence] = _Service(position, ready)
        if self._foresight is None:
            self.scheduler.add(sequence)
            return
        self._foresight.place(sequence, position)
        self.scheduler.add(sequence)
        self._foresight.enters(position)

    def _advance(self, sequence: Sequence) -> None:
        """Append the token drawn after the last row, or end."""
        service = self._services[sequence]
        generated = self._requests[service.position].generated
        if not service.generated:
            service.first_token = self.clock
        service.generated += 1
        if service.generated < generated.size:
            sequence.append(int(generated[service.generated - 1]))
        else:
            self._end(sequence)

    def _end(self, sequence: Sequence) -> None:
        service = self._services.pop(sequence)
        position, cached = service.position, sequence.cached_tokens or 0
        assert service.started is not None
        self._hit_tokens += cached
        self._served[position] = Served(service.ready, service.started, service.first_token, self.clock, cached)
        if self._foresight is not None:
            self._foresight.ends(position)
        self.scheduler.finish(sequence)
        for follower in self._followers[position]:
            self._unanswered[follower] -= 1
            if not self._unanswered[follower]:
                heappush(self._arrivals, (max(self._requests[follower].arrival, self.clock), follower))


def _depth(requests: Requests[TraceRequest]) -> int:
    """Return the number of requests in the longest chain."""
    depths: dict[str | int, int] = {}
    for request in requests:
        depths[request.id] = 1 + max((depths[each] for each in request.after), default=0)
    return max(depths.values(), default=0)


def _positions(requests: Requests[TraceRequest]) -> dict[str | int, int]:
    """Return the position of each request by its id."""
    positions: dict[str | int, int] = {}
    for position, request in enumerate(requests):
        missing = [each for each in request.after if each not in positions]
        if missing:
            raise InputError(
                f"request {request.id!r} comes after {missing[0]!r}, which is not before it",
                remedy="give all requests of a trace, in its order",
                location=request.location,
            )
        positions[request.id] = position
    return positions


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} is {size}", remedy="give at least 1")


def _check_fits(request: TraceRequest, kv_tokens: int) -> None:
    if request.cached_length > kv_tokens:
        raise InputError(
            f"request {request.id!r} needs {request.cached_length:,} pages, for {request.tokens.size:,} tokens of its "
            f"prompt and {request.generated.size:,} generated, and the pool has {kv_tokens:,}",
            remedy=f"simulate a pool of {request.cached_length:,} tokens or more",
            location=request.location,
        )
