"""Lookahead hints for the engine: the known prefixes of an instance's upcoming calls.

Other instances have left those prefixes in the cache, or will; without hints an engine would evict them as dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.region_ops import CondOp, MapOp, RaceOp, TryOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.engine.protocol import Engine, Place, Planned, Request, ScoreRequest
from lmc.ir.errors import LmcError
from lmc.ir.semantics import control_flow
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.hints.known_prefixes import CallToCome, Evaluate, RegionEntry, RegionKey, Rounds, Step
from lmc.runtime.scope import Scope

_SHORTEST = 16
"""Tokens; what is shorter is computed again as fast."""
_REMEMBERED = 64
"""Beginnings whose tokens are kept for other instances, which stand beside each other where they share them."""
_asked: WeakKeyDictionary[Engine, list[int]] = WeakKeyDictionary()
"""The number of tokens that requests of executors have asked of each engine, a list of one number."""


class LookaheadHints:
    """Decides for all instances of a run on hints to the engine, and holds the tokens of prompt prefixes.

    Hints start once requests, of this run and of those before, have asked for more tokens than the KV pool holds:
    until then it lets nothing go. Belongs to one event loop.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine if isinstance(engine, Planned) else None
        self.tokens_of = lru_cache(maxsize=_REMEMBERED)(partial(_tokens_of, engine.info.context_length))
        self._asked = _asked_of(engine)
        self._pool = engine.info.kv_tokens or 0
        self._waiting: dict[UpcomingCalls, Callable[[], None]] = {}

    @property
    def is_full(self) -> bool:
        """True if the engine may have to evict."""
        return self._asked[0] >= self._pool

    def call_when_useful(self, calls: UpcomingCalls, expect: Callable[[], None]) -> None:
        """Call ``expect`` once hints are of use."""
        if self.engine is None:
            return
        if self.is_full:
            expect()
        else:
            self._waiting[calls] = expect

    def forget(self, calls: UpcomingCalls) -> None:
        """Its run is over."""
        self._waiting.pop(calls, None)

    def asks(self, requests: Sequence[Request] | Sequence[ScoreRequest]) -> None:
        """These come next."""
        if self.engine is None or (self.is_full and not self._waiting):
            return
        for request in requests:
            self._asked[0] += len(request.prompt)
            self._asked[0] += request.sampling.max_tokens if isinstance(request, Request) else 1
        if self.is_full:
            waiting, self._waiting = self._waiting, {}
            for expect in waiting.values():
                expect()


def _asked_of(engine: Engine) -> list[int]:
    try:
        return _asked.setdefault(engine, [0])
    except TypeError:  # it can't be a key
        return [0]


def _tokens_of(context_length: int, context: Context) -> tuple[int, ...]:
    """Return the tokens of the text so far. Later text may change the last ones; then no prompt matches them."""
    try:
        context.check_fits(context_length)
        return context.prompt
    except LmcError:  # the call that needs this prompt says so, with its own line
        return ()


@dataclass(frozen=True, slots=True)
class _Found:
    """A call to come with its ``prompt`` so far. ``regions`` are those that hold it."""

    call: CallToCome
    rounds: Rounds
    prompt: Context
    regions: tuple[RegionKey, ...]


@dataclass(frozen=True, slots=True)
class LookaheadWalk:
    """Finds the calls to come of an instance, of whose elements no more than so many.

    Values that can't be computed are left out: the run reports the error when it reaches them.
    """

    tokenizer: Tokenizer
    constraints: Constraints
    most_elements: int

    def over(
        self, steps: Sequence[Step], environment: Scope, rounds: Rounds, regions: tuple[RegionKey, ...]
    ) -> Iterator[_Found]:
        """Recursion is as deep as regions are nested."""
        for step in steps:
            with suppress(Exception):
                if isinstance(step, CallToCome):
                    yield _Found(step, rounds, step.beginning.read(environment), regions)
                elif isinstance(step, Evaluate):
                    self._evaluate(step.op, environment)
                else:
                    inside = (*regions, (step.op.regions[step.number], rounds))
                    for values, inner in self._runs(step, environment, rounds):
                        yield from self.over(step.steps, Scope(environment, values), inner, inside)

    def _evaluate(self, op: Op, environment: Scope) -> None:
        if not all(environment.knows(value) for value in op.results):
            results = semantics.evaluate(op, environment, self.tokenizer, self.constraints)
            environment.update(zip(op.results, results, strict=True))

    def _runs(
        self, region: RegionEntry, environment: Scope, rounds: Rounds
    ) -> Iterator[tuple[list[tuple[Value, Any]], Rounds]]:
        """The values of the region's parameters, and the rounds in it, for each run of it that is known."""
        op = region.op
        if isinstance(op, CondOp):
            if not environment.knows(op.flag) or bool(environment[op.flag]) is (region.number == 0):
                yield [], rounds
        elif isinstance(op, TryOp):
            yield [], rounds
        elif region.each and isinstance(op, MapOp | RaceOp):
            for row in islice(control_flow.elements(op, environment), self.most_elements):
                yield list(zip(region.each, row, strict=True)), (*rounds, row[0])
        else:
            places = [place for place, _ in region.given]
            values = control_flow.given([source for _, source in region.given], environment)
            yield list(zip(places, values, strict=True)), (*rounds, 0)


class UpcomingCalls:
    """The expectations of one run of a plan for calls that may wait for an answer, and begin as ``steps`` say.

    Each is withdrawn once its call has begun, or the op that holds it is over, or the other arm of a condition is
    taken; those that are left when the run ends. ``place_at`` gives the place of a stage of the instance, ``walk``
    finds its calls. Rounds are the numbers of those around an op, as in ``Frame.rounds``.
    """

    def __init__(
        self, lookahead: LookaheadHints, steps: Sequence[Step], place_at: Callable[[int], Place], walk: LookaheadWalk
    ) -> None:
        self._lookahead = lookahead
        self._steps = steps
        self._place_at = place_at
        self._walk = walk
        self._keys: dict[tuple[Op, Rounds], tuple[int, CallToCome]] = {}
        self._inside: dict[RegionKey, list[tuple[Op, Rounds]]] = {}

    def expect(self, environment: Mapping[Value, Any], has_begun: Callable[[int], bool]) -> None:
        """Begin the run, with the values of the program's own body; ``has_begun`` tells of its instructions."""
        if self._steps:
            self._lookahead.call_when_useful(self, lambda: self._expect(environment, has_begun))

    def _expect(self, environment: Mapping[Value, Any], has_begun: Callable[[int], bool]) -> None:
        engine = self._lookahead.engine
        if engine is None:
            return
        steps = [step for step in self._steps if isinstance(step, Evaluate) or not has_begun(step.index)]
        for found in self._walk.over(steps, Scope(environment, ()), (), ()):
            tokens = self._lookahead.tokens_of(found.prompt)
            key = found.call.op, found.rounds
            if len(tokens) >= _SHORTEST and key not in self._keys:
                self._keys[key] = engine.expect(tokens, self._place_at(found.call.stage)), found.call
                for region in found.regions:
                    self._inside.setdefault(region, []).append(key)

    def begun(self, op: Op, rounds: Rounds) -> None:
        """The engine has the requests of a call."""
        known = self._keys.get((op, rounds))
        if known is not None and not known[1].stays:
            self._withdraw((op, rounds))

    def over(self, op: RegionOp, rounds: Rounds) -> None:
        """An op with regions is over, or of its arms one is taken."""
        if self._inside:
            for block in op.regions:
                self.skipped(block, rounds)

    def skipped(self, block: Block, rounds: Rounds) -> None:
        """A region of an op does not run, or not any more."""
        for key in self._inside.pop((block, rounds), ()):
            self._withdraw(key)

    def withdraw_all(self) -> None:
        """The run is over."""
        self._lookahead.forget(self)
        for key in list(self._keys):
            self._withdraw(key)

    def _withdraw(self, key: tuple[Op, Rounds]) -> None:
        known = self._keys.pop(key, None)
        if known is not None and self._lookahead.engine is not None:
            self._lookahead.engine.withdraw(known[0])
