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
import torch
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

from lmc.ir.engine import EngineInfo, Pin, Request, SamplingParams, ScoreRequest
from lmc.ir.errors import EngineError, RequestCancelledError, RequestTimeoutError
from lmc.ir.toy import toy_tokenizer
from lmc.runtime.local.engine import LocalEngine
from lmc.runtime.local.memory import Slice
from lmc.runtime.local.model import _wanted_logits

KV_TOKENS = 80
MOST_OPEN = 60  # requests under way when more are asked for: bounds the time of one example
VOCABULARY = 300
LETTERS = tuple(toy_tokenizer().encode(letter)[0] for letter in "abc")
POISON = toy_tokenizer().encode("z")[0]

letters = st.sampled_from(LETTERS)
prompts = st.lists(letters, min_size=1, max_size=14).map(tuple)
poisoned_at = st.sampled_from([None] * 6 + [0, 2, 5, 14])  # where in a prompt; the last one is at its end
timeouts = st.sampled_from([None, None, 0.0, 3.0, 30.0])


def logits_after(prefix: tuple[int, ...]) -> torch.Tensor:
    """What the stand-in model says after a prefix."""
    logits = torch.zeros(VOCABULARY)
    for index, letter in enumerate(LETTERS):
        logits[letter] = 5.0 + (hash((*prefix, index)) % 1000) / 1000
    return logits


def expected_generation(prompt: tuple[int, ...], count: int) -> tuple[int, ...]:
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(logits_after(tuple(tokens)).argmax()))
    return tuple(tokens[len(prompt) :])


def spoil(prompt: tuple[int, ...], position: int | None) -> tuple[int, ...]:
    return prompt if position is None else (*prompt[:position], POISON, *prompt[position:])


class PrefixModel:
    """Stands for `PagedModel`.

    All rows of a slice are spoiled, those before the poison too, where the poison or a spoiled page is among what they
    are computed of; their logits are NaN.
    """

    null_page = KV_TOKENS
    scratch_page = KV_TOKENS + 1
    vocabulary_size = VOCABULARY

    def __init__(self) -> None:
        self.pages: dict[int, tuple[int, ...]] = {}
        self.spoiled: set[int] = set()

    def take_planning_seconds(self) -> float:
        return 0.0

    def rope_length(self, rows: int) -> int:
        return rows // 20  # two namespaces, so that equal prompts are not always shared

    def forward(self, slices: list[Slice]) -> tuple[torch.Tensor, Any]:
        computed = [rows for rows in slices if rows.end > rows.start]
        for rows in computed:
            tokens = tuple(rows.sequence.tokens.tolist())
            for position, slot in zip(range(rows.start, rows.end), rows.slots.tolist(), strict=True):
                if slot != self.scratch_page:
                    self.pages[slot] = tokens[: position + 1]
                    self.spoiled.discard(slot)
        for rows in computed:
            tokens = tuple(rows.sequence.tokens.tolist())
            for position, page in enumerate(rows.sequence.pages[: rows.end].tolist()):
                assert self.pages[page] == tokens[: position + 1], "a page of another prefix is read"
                assert page not in self.spoiled, "a request is served what failed"
        bad = self.spoil(computed)
        _, owners = _wanted_logits(computed)
        wanted = [
            torch.full((VOCABULARY,), float("nan"))
            if owner.rows in bad
            else logits_after(tuple(owner.rows.sequence.tokens[: owner.position + offset + 1].tolist()))
            for owner in owners
            for offset in range(owner.last - owner.first)
        ]
        return torch.stack(wanted) if wanted else torch.empty(0, VOCABULARY), owners

    def spoil(self, computed: list[Slice]) -> list[Slice]:
        """Mark what is spoiled in this step; gives the slices that are."""
        bad: list[Slice] = []
        for rows in computed:
            found = not self.spoiled.isdisjoint(rows.sequence.pages[: rows.end].tolist())
            if found or POISON in rows.sequence.tokens[rows.start : rows.end]:
                bad.append(rows)
                self.spoiled |= set(rows.slots.tolist()) - {self.scratch_page}
        return bad


class Asked:
    """A request under way, with what is known of its end."""

    def __init__(self, handle: Any, request: Any, deadline: float | None, *, cancelled: bool = False) -> None:
        self.handle = handle
        self.request = request
        self.deadline = deadline
        self.cancelled = cancelled


class EngineMachine(RuleBasedStateMachine):
    asked = Bundle("asked")
    pins = Bundle("pins")

    @initialize(
        prefill_tokens=st.sampled_from([1, 4, 64]),
        max_running=st.sampled_from([1, 3, 50]),
        prefix_cache=st.sampled_from([True, True, True, False]),
    )
    def start(self, prefill_tokens: int, max_running: int, prefix_cache: bool) -> None:
        self.now = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now, perf_counter=lambda: 0.0)
        thread = mock.Mock(is_alive=lambda: True)
        self.patches = [
            mock.patch("lmc.runtime.local.worker.time", clock),
            mock.patch("lmc.runtime.local.deadlines.time", clock),
            mock.patch("lmc.runtime.local.worker.threading.Thread", return_value=thread),
        ]
        for patch in self.patches:
            patch.start()
        model: Any = PrefixModel()
        self.engine = LocalEngine(
            model,
            toy_tokenizer(),
            EngineInfo("machine", 100, KV_TOKENS),
            prefill_tokens=prefill_tokens,
            max_running=max_running,
            prefix_cache=prefix_cache,
        )
        self.worker = self.engine._worker
        self.scheduler = self.worker._scheduler
        self.memory = self.scheduler.memory
        self.open: list[Asked] = []
        self.held: list[Pin] = []

    @rule(
        target=asked,
        prompt=prompts,
        max_tokens=st.integers(1, 45),
        instance=st.integers(0, 2),
        timeout=timeouts,
        poison=poisoned_at,
    )
    def submit_one(
        self,
        prompt: tuple[int, ...],
        max_tokens: int,
        instance: int,
        timeout: float | None,
        poison: int | None,
    ) -> Asked:
        return self.submit(spoil(prompt, poison), max_tokens, instance, timeout)

    def submit(
        self,
        prompt: tuple[int, ...],
        max_tokens: int,
        instance: int,
        timeout: float | None,
    ) -> Asked:
        request = Request(prompt, SamplingParams(max_tokens=max_tokens), instance=instance, timeout=timeout)
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

    @rule(target=asked, prompt=prompts, poison=poisoned_at)
    def prefill(self, prompt: tuple[int, ...], poison: int | None) -> Asked:
        prompt = spoil(prompt, poison)
        return self.ask(self.engine.prefill(prompt), prompt, None)

    def ask(self, handle: Any, request: Any, timeout: float | None) -> Asked:
        self.open.append(Asked(handle, request, None if timeout is None else self.now + timeout))
        return self.open[-1]

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
        for pin in self.held:
            self.engine.unpin(pin)
        self.step()
        assert (self.worker._pins, self.memory.radix.pinned_tokens) == (set(), 0)
        self.memory.radix.evict(KV_TOKENS)
        assert (self.memory.pool.used_count, self.memory.radix._roots) == (0, {})


TestEngine = EngineMachine.TestCase
FULL = os.environ.get("LMC_TEST_FULL") == "1"
# The short run takes the same examples every time, the long one takes new ones.
TestEngine.settings = settings(
    max_examples=400 if FULL else 60, stateful_step_count=30, deadline=None, derandomize=not FULL
)
