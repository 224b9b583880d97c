"""Engine, worker, scheduler, radix tree and pool together, one step at a time: nothing leaks, no answer is changed.

The model is replaced by one whose pages hold the prefix that they were computed for. Its logits are a hash of the
prefix, so every answer is known in advance, and reading a page of another prefix is an error. The worker's thread and
its clock are replaced by rules.
"""

import os
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from lmc.cache.eviction import NextUse
from lmc.cache.policies import POLICIES
from lmc.ir.engine.observing import ObservedStep
from lmc.ir.engine.protocol import EngineInfo, Pin, Place, Request, SamplingParams, ScoreRequest, TokenDelta
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import ConstraintError, EngineError, RequestCancelledError, RequestTimeoutError
from lmc.runtime.local.engine import LocalEngine
from tests.runtime.local.letters import (
    LETTERS,
    POISON,
    VOCABULARY,
    Letters,
    expected_constrained,
    expected_generation,
    logits_after,
)
from tests.runtime.local.prefix_model import PrefixModel

pytestmark = pytest.mark.slow("random steps of an engine on a model")

KV_TOKENS = 80
MOST_OPEN = 60  # requests under way when more are asked for: bounds the time of one example

letters = st.sampled_from(LETTERS)
prompts = st.lists(letters, min_size=1, max_size=14).map(tuple)
poisoned_at = st.sampled_from([None] * 6 + [0, 2, 5, 14])  # where in a prompt; the last one is at its end
modes = st.sampled_from(["exact", "guesses", "guesses", "canonical", "off"])
timeouts = st.sampled_from([None, None, 0.0, 3.0, 30.0])
places = st.none() | st.builds(Place, st.integers(1, 2), st.integers(0, 12))
priorities = st.sampled_from([0, 0, 0, 1, -1])


def spoil(prompt: tuple[int, ...], position: int | None) -> tuple[int, ...]:
    return prompt if position is None else (*prompt[:position], POISON, *prompt[position:])


class Asked:
    """A request under way, with what is known of its end."""

    def __init__(
        self, handle: Any, request: Any, deadline: float | None, streamed: list[TokenDelta] | None = None
    ) -> None:
        self.handle = handle
        self.request = request
        self.deadline = deadline
        self.streamed = streamed
        self.cancelled = False


class EngineMachine(RuleBasedStateMachine):
    asked = Bundle("asked")
    pins = Bundle("pins")
    expectations = Bundle("expectations")

    @initialize(
        prefill_tokens=st.sampled_from([1, 4, 64]),
        max_running=st.sampled_from([1, 3, 50]),
        prefix_cache=st.sampled_from([True, True, True, False]),
        policy=st.sampled_from(["lmc", "lmc", *POLICIES]),
    )
    def start(self, prefill_tokens: int, max_running: int, prefix_cache: bool, policy: str) -> None:
        self.now = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now, perf_counter=lambda: 0.0)
        thread = mock.Mock(is_alive=lambda: True)
        self.patches = [
            mock.patch("lmc.runtime.local.worker.time", clock),
            mock.patch("lmc.runtime.local.deadlines.time", clock),
            mock.patch(
                "lmc.runtime.local.sampling.drafting.DraftLength.limit", return_value=9
            ),  # however the last ones fared
            mock.patch("lmc.runtime.local.worker.threading.Thread", return_value=thread),
        ]
        for patch in self.patches:
            patch.start()
        model: Any = PrefixModel(
            logits_after, kv_tokens=KV_TOKENS, vocabulary_size=VOCABULARY, poison=POISON, rope_rows=20
        )
        self.engine = LocalEngine(
            model,
            toy_tokenizer(),
            EngineInfo("machine", 100, KV_TOKENS),
            prefill_tokens=prefill_tokens,
            max_running=max_running,
            prefix_cache=prefix_cache,
            policy=policy,
        )
        self.worker = self.engine._worker
        self.scheduler = self.worker._scheduler
        self.memory = self.scheduler.memory
        self.open: list[Asked] = []
        self.computed = self.found = 0
        self.observed: list[ObservedStep | None] = []
        self.end_observing = self.engine.observe(self.observed.append)
        self.held: list[Pin] = []

    @rule(
        target=asked,
        prompt=prompts,
        max_tokens=st.integers(1, 45),
        instance=st.integers(0, 2),
        timeout=timeouts,
        poison=poisoned_at,
        place=places,
        priority=priorities,
        expected=st.none() | st.integers(0, 45),
    )
    def submit_one(
        self,
        prompt: tuple[int, ...],
        max_tokens: int,
        instance: int,
        timeout: float | None,
        poison: int | None,
        place: Place | None,
        priority: int,
        expected: int | None,
    ) -> Asked:
        planned: dict[str, Any] = {"place": place, "priority": priority, "expected_tokens": expected}
        return self.submit(spoil(prompt, poison), max_tokens, instance, timeout, **planned)

    @precondition(lambda self: len(self.open) < MOST_OPEN)
    @rule(
        target=asked,
        prompt=prompts,
        max_tokens=st.integers(1, 45),
        length=st.integers(1, 40),
        seed=st.integers(0, 50),
        mode=modes,
        timeout=timeouts,
        poison=poisoned_at,
    )
    def submit_one_constrained(
        self,
        prompt: tuple[int, ...],
        max_tokens: int,
        length: int,
        seed: int,
        mode: Any,
        timeout: float | None,
        poison: int | None,
    ) -> Asked:
        return self.submit_constrained(spoil(prompt, poison), max_tokens, length, seed, mode, timeout)

    def submit_constrained(
        self,
        prompt: tuple[int, ...],
        max_tokens: int,
        length: int,
        seed: int,
        mode: Any,
        timeout: float | None = None,
    ) -> Asked:
        request = Request(
            prompt,
            SamplingParams(max_tokens=max_tokens, logprobs=None if seed % 2 else 0),
            timeout=timeout,
            constraint=Letters(seed, length, guesses=mode == "guesses"),
            jump_forward="exact" if mode == "guesses" else mode,
        )
        streamed: list[TokenDelta] = []
        return self.ask(self.engine.submit(request, streamed.append), request, timeout, streamed)

    def submit(
        self,
        prompt: tuple[int, ...],
        max_tokens: int,
        instance: int,
        timeout: float | None,
        **planned: Any,
    ) -> Asked:
        request = Request(prompt, SamplingParams(max_tokens=max_tokens), instance=instance, timeout=timeout, **planned)
        return self.ask(self.engine.submit(request), request, timeout)

    @rule(
        target=asked,
        prompt=prompts,
        continuations=st.lists(st.tuples(prompts, poisoned_at), max_size=3),
        timeout=timeouts,
        poison=poisoned_at,
    )
    def score(
        self,
        prompt: tuple[int, ...],
        continuations: list[tuple[tuple[int, ...], int | None]],
        timeout: float | None,
        poison: int | None,
    ) -> Asked:
        request = ScoreRequest(spoil(prompt, poison), tuple(spoil(*each) for each in continuations), timeout=timeout)
        return self.ask(self.engine.score(request), request, timeout)

    @precondition(lambda self: len(self.open) < MOST_OPEN)
    @rule(target=asked, prompt=prompts, count=st.integers(2, 6))
    def submit_many(self, prompt: tuple[int, ...], count: int) -> Any:
        """More than the pool holds at their full lengths, so that some are preempted."""
        return multiple(*(self.submit((*prompt, LETTERS[number % 3]), 40, number % 2, None) for number in range(count)))

    @precondition(lambda self: len(self.open) < MOST_OPEN)
    @rule(target=asked, prompt=prompts, count=st.integers(2, 6), mode=modes)
    def submit_many_constrained(self, prompt: tuple[int, ...], count: int, mode: Any) -> Any:
        return multiple(
            *(self.submit_constrained((*prompt, LETTERS[number % 3]), 45, 40, number, mode) for number in range(count))
        )

    @rule(target=asked, prompt=prompts, poison=poisoned_at)
    def prefill(self, prompt: tuple[int, ...], poison: int | None) -> Asked:
        prompt = spoil(prompt, poison)
        return self.ask(self.engine.prefill(prompt), prompt, None)

    def ask(self, handle: Any, request: Any, timeout: float | None, streamed: list[TokenDelta] | None = None) -> Asked:
        self.open.append(Asked(handle, request, None if timeout is None else self.now + timeout, streamed))
        return self.open[-1]

    @rule(target=expectations, prompt=prompts | st.just(()), place=places.filter(bool))
    def expect(self, prompt: tuple[int, ...], place: Place) -> int:
        return self.engine.expect(prompt, place)

    @rule(key=consumes(expectations))
    def withdraw(self, key: int) -> None:
        self.engine.withdraw(key)
        self.engine.withdraw(key)

    @rule(entry=consumes(asked))
    def cancel(self, entry: Asked) -> None:
        entry.cancelled = True
        entry.handle.cancel()

    @rule(seconds=st.sampled_from([0.5, 2.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=pins, count=st.integers(1, 12))
    def steps(self, count: int) -> Any:
        found: list[Pin] = []
        for _ in range(count):
            found += self.step()
        self.held += found
        return multiple(*found)

    @rule(pin=consumes(pins))
    def unpin(self, pin: Pin) -> None:
        self.held.remove(pin)
        self.engine.unpin(pin)

    def step(self) -> list[Pin]:
        """What the worker's thread does in one turn; gives the prefixes that are held from now on."""
        if not (self.worker._inbox or self.scheduler.has_work):
            return []
        self.worker._take_commands()
        self.worker._turn()
        self.check()
        return self.settle_done()

    def settle_done(self) -> list[Pin]:
        """Check the answers that are there; gives the prefixes among them."""
        done = [entry for entry in self.open if entry.handle.future.done()]
        self.open = [entry for entry in self.open if entry not in done]
        results = [self.settle(entry) for entry in done]
        return [result for result in results if isinstance(result, Pin)]

    def settle(self, entry: Asked) -> Any:
        """Check an answer against what it must be."""
        error = entry.handle.future.exception()
        timing = entry.handle.future.result().timing if error is None else error.timing
        if timing is not None:  # else no task was made for it
            self.computed += timing.computed_tokens
            self.found += timing.cached_tokens
            assert (timing.admitted is None) <= (timing.first_token is None)
        if isinstance(error, RequestTimeoutError):
            assert entry.deadline is not None
            assert entry.deadline <= self.now
            return None
        if isinstance(error, RequestCancelledError):
            assert entry.cancelled
            return None
        poisoned = self.computes_poison(entry.request)
        if isinstance(error, EngineError):
            assert poisoned, "a request failed for another's NaN"
            assert "NaN" in str(error)
            return None
        assert not poisoned, "what is NaN went unnoticed"
        if isinstance(entry.request, Request) and isinstance(entry.request.constraint, Letters):
            return self.settle_constrained(entry, entry.request.constraint, error)
        result = entry.handle.future.result()
        if isinstance(entry.request, Request):
            prompt, most = entry.request.prompt, entry.request.sampling.max_tokens
            room = min(most, KV_TOKENS + 1 - len(prompt))
            assert result.token_ids == expected_generation(prompt, room)
        elif isinstance(entry.request, ScoreRequest):
            for continuation, logprobs in zip(entry.request.continuations, result.logprobs, strict=True):
                prefix = entry.request.prompt
                for token, found in zip(continuation, logprobs, strict=True):
                    assert abs(found - float(logits_after(prefix).log_softmax(-1)[token])) < 1e-5
                    prefix = (*prefix, token)
        return result

    def settle_constrained(self, entry: Asked, constraint: Letters, error: Any) -> None:
        prompt, sampling = entry.request.prompt, entry.request.sampling
        room = min(sampling.max_tokens, KV_TOKENS + 1 - len(prompt))
        tokens, is_whole = expected_constrained(prompt, constraint, room)
        assert entry.streamed is not None
        assert "".join(delta.text for delta in entry.streamed) == toy_tokenizer().decode(tokens)
        if not is_whole:
            assert isinstance(error, ConstraintError)
            return
        result = entry.handle.future.result()
        assert result.token_ids == tokens
        assert result.finish_reason == ("eos" if len(tokens) == constraint.length else "length")
        assert result.generated_tokens == len(tokens)
        if result.logprobs is not None:
            expected = [
                float(logits_after((*prompt, *tokens[:index])).log_softmax(-1)[token])
                for index, token in enumerate(tokens)
            ]
            assert [each.token_id for each in result.logprobs] == list(tokens)
            assert np.allclose([each.logprob for each in result.logprobs], expected, atol=1e-5)

    def computes_poison(self, request: Any) -> bool:
        """Whether the poison is among the tokens whose keys and values are computed for a request."""
        if isinstance(request, Request):
            return POISON in request.prompt
        if isinstance(request, ScoreRequest):
            # The last token of a continuation is scored, and never computed.
            return POISON in request.prompt or any(POISON in each[:-1] for each in request.continuations)
        return POISON in request and self.engine._prefix_cache

    @invariant()
    def check(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.memory.check_invariants(self.scheduler.running)
        running, waiting = len(self.scheduler.running), len(self.scheduler._waiting)
        assert set(self.worker._tasks) >= set(self.scheduler.running)
        assert len(self.worker._tasks) == running + waiting
        assert len(self.worker._deadlines) <= len(self.worker._unresolved)
        assert all(not task.future.done() for task in self.worker._unresolved)
        assert self.memory.available >= 0
        if isinstance(eviction := self.memory.radix.eviction, NextUse):
            eviction.expected.check_invariants()
            standing = sum(each is not None for each in self.worker._expected.values())
            assert len(eviction.expected) == waiting + standing
        assert all(POISON not in node.tokens for node in self.memory.radix.nodes())
        owners = {task.sequences[0].cache_key for task in self.worker._tasks.values()}
        roots: Any = self.memory.radix._roots
        assert all(key.owner is None or key in owners for key in roots)
        used = np.concatenate([np.empty(0, np.int64), *(each.own_pages for each in self.scheduler.running)])
        assert self.memory.pool.used_count == self.memory.radix.total_tokens + used.size

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        try:
            self.finish()
        finally:  # tests that come later need their threads and clocks, whatever was found here
            for patch in self.patches:
                patch.stop()

    def finish(self) -> None:
        # The sequence admitted first is never preempted and gains a token a step. At worst each one comes to that
        # place without any computed token left: its length once to get them back, once to go on.
        most = 2 * KV_TOKENS * (len(self.open) + 1)
        taken = 0
        while self.worker._inbox or self.scheduler.has_work:
            assert taken < most, "no progress"
            self.held += self.step()
            taken += 1
        self.held += self.settle_done()  # answered at once, without a step
        assert self.open == []
        assert (self.worker._tasks, self.worker._unresolved, len(self.worker._deadlines)) == ({}, set(), 0)
        totals = self.engine.statistics
        assert self.computed == totals.prefilled_tokens
        for name, total in (
            ("prefilled", totals.prefilled_tokens),
            ("rows", totals.rows),
            ("evicted", totals.evicted_tokens),
            ("preempted", totals.preemptions),
            ("found", self.found),
        ):
            assert sum(getattr(step, name) for step in self.observed if step is not None) == total
        self.end_observing()
        for pin in self.held:
            self.engine.unpin(pin)
        self.step()
        assert self.observed[-1] is None
        assert (self.worker._pins, self.memory.radix.pinned_tokens) == (set(), 0)
        self.memory.radix.evict(KV_TOKENS)
        assert (self.memory.pool.used_count, self.memory.radix._roots) == (0, {})


TestEngine = EngineMachine.TestCase
FULL = os.environ.get("LMC_TEST_FULL") == "1"
# The short run takes the same examples every time, the long one takes new ones.
TestEngine.settings = settings(
    max_examples=200 if FULL else 15, stateful_step_count=30, deadline=None, derandomize=not FULL
)
