"""The built-in model in fp32: interpreter, -O0 and -O2 give the same tokens for random programs and batches."""

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import transformers

from lmc import builtin_model
from lmc.backend.lower import lower
from lmc.backend.schedule.schedule import schedule_batch
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.engine.protocol import (
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    Pin,
    Place,
    Request,
    SamplingParams,
    Score,
    ScoreRequest,
)
from lmc.ir.engine.target import Target
from lmc.ir.module import Module
from lmc.ir.semantics import selection
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.passes import pipeline
from lmc.passes.base import PassContext
from lmc.runtime.executor import Executor, Finished, Instance
from lmc.runtime.local import LocalEngine, load_local_engine
from tests.runtime.local.model_programs import random_program, random_rows
from tests.runtime.local.oracle import CLOSE_CALL, generate

PROGRAMS = 8
CASES = 25 if os.environ.get("LMC_TEST_FULL") == "1" else 1
LOGPROB_TOLERANCE = 1e-3

Key = tuple[int, str]
"""Instance and op id."""


@dataclass
class Recorder:
    """An engine that notes what it was asked and what it answered, by instance and op."""

    engine: LocalEngine
    asked: dict[Key, list[Request | ScoreRequest]] = field(default_factory=dict)
    answered: dict[Key, list[Any]] = field(default_factory=dict)
    prefills: int = 0

    @property
    def tokenizer(self) -> Tokenizer:
        return self.engine.tokenizer

    @property
    def info(self) -> EngineInfo:
        return self.engine.info

    @property
    def statistics(self) -> EngineStatistics:
        return self.engine.statistics

    def close(self) -> None:
        self.engine.close()

    def prefill(self, prompt: tuple[int, ...], place: Place | None = None, priority: int = 0) -> Handle[Pin]:
        self.prefills += 1
        return self.engine.prefill(prompt, place, priority)

    def unpin(self, pin: Pin) -> None:
        self.engine.unpin(pin)

    def submit(self, request: Request, on_delta: Any = None) -> Any:
        return self._noted(request, self.engine.submit(request, on_delta))

    def score(self, request: ScoreRequest) -> Any:
        return self._noted(request, self.engine.score(request))

    def _noted(self, request: Request | ScoreRequest, handle: Any) -> Any:
        key = (request.instance, request.op_id)
        self.asked.setdefault(key, []).append(request)
        self.answered.setdefault(key, []).append(handle.future)
        return handle

    def prompts(self, key: Key) -> list[tuple[int, ...]]:
        return [request.prompt for request in self.asked[key]]

    def answers(self, key: Key) -> list[Any]:
        return [future.result() for future in self.answered[key]]


@dataclass
class Comparison:
    """Compares two ways of running one program; `model` settles what is a close call."""

    model: Any
    calls: int = 0
    close_calls: int = 0

    def check(self, module: Module, plain: Recorder, other: Recorder, count: int) -> set[int]:
        """Check every call that both made with equal prompts; gives the instances that a close call split."""
        split: set[int] = set()
        ops = [op for op in module.main.body.ops if isinstance(op, SamplingOp | SelectOp)]
        for instance in range(count):
            for op in ops:
                key = (instance, op.id)
                if instance in split or key not in other.asked:  # merged with an equal call, or not needed
                    continue
                assert other.prompts(key) == plain.prompts(key)
                self.calls += 1
                if not self._agree(op, plain, other, key):
                    self.close_calls += 1
                    split.add(instance)
        return split

    def _agree(self, op: SamplingOp | SelectOp, plain: Recorder, other: Recorder, key: Key) -> bool:
        expected, found = plain.answers(key), other.answers(key)
        if isinstance(op, SelectOp):
            return self._choices_agree(op, expected, found, plain.asked[key][0], plain.tokenizer)
        if _settled(expected[0]) == _settled(found[0]):
            return True
        margin = self._smallest_margin(plain.prompts(key)[0], expected[0].generated_tokens)
        assert margin < CLOSE_CALL, f"{key}: {found[0]} where the interpreter gets {expected[0]}, margin {margin:.2e}"
        return False

    def _choices_agree(
        self, op: SelectOp, expected: list[Score], found: list[Score], request: Any, tokenizer: Any
    ) -> bool:
        for one, other in zip(expected, found, strict=True):
            for row, other_row in zip(one.logprobs, other.logprobs, strict=True):
                assert other_row == pytest.approx(row, abs=LOGPROB_TOLERANCE)
        choices = [str(number) for number in range(len(request.continuations))]
        context = Context.empty(tokenizer)
        winners = [selection.results_of(op, context, [request], choices, scores)[1] for scores in (expected, found)]
        if winners[0] == winners[1]:
            return True
        margin = _choice_margin(op, expected, *map(int, winners))
        assert margin < CLOSE_CALL, f"{op.id}: choice {winners[1]} instead of {winners[0]}, margin {margin:.2e}"
        return False

    def _smallest_margin(self, prompt: tuple[int, ...], count: int) -> float:
        """The least difference of the two best logits along transformers' own generation, the end token included."""
        tokens, _ = generate(self.model, prompt, count)
        with torch.no_grad():
            logits = self.model(torch.tensor([[*prompt, *tokens]])).logits[0, len(prompt) - 1 :]
        best = logits.topk(2).values
        return float((best[:, 0] - best[:, 1]).min())


def _settled(generation: Generation) -> tuple[Any, ...]:
    """All of a generation that the program can see."""
    return generation.token_ids, generation.text, generation.remainder, generation.finish_reason


def _choice_margin(op: SelectOp, scores: list[Score], one: int, other: int) -> float:
    rows = [score.logprobs for score in scores]
    if op.method == "greedy_token":
        return next((abs(a - b) for a, b in zip(rows[0][one], rows[0][other], strict=False) if a != b), 0.0)
    if op.method == "token_length_normalized":
        means = [sum(rows[0][index]) / len(rows[0][index]) for index in (one, other)]
        return abs(means[0] - means[1])
    gains = [sum(rows[0][index]) - sum(rows[1][index]) for index in (one, other)]
    return abs(gains[0] - gains[1])


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    """A pool with room for a few instances, so that there are hits, evictions and preemptions."""
    with load_local_engine(builtin_model.path(), device="cpu", kv_tokens=450, prefill_tokens=96) as engine:
        yield engine


@pytest.fixture(scope="module")
def model() -> Any:
    return transformers.LlamaForCausalLM.from_pretrained(builtin_model.path(), dtype=torch.float32).eval()


def run_batch(module: Module, recorder: Recorder, rows: list[dict[str, Any]]) -> list[Outcome]:
    plan = lower(module, Target.parse("builtin"))
    found: dict[int, Finished] = {}
    instances = [Instance(number, row) for number, row in enumerate(rows)]
    executor = Executor(recorder, plan, {})
    asyncio.run(executor.run_batch(instances, schedule_batch(plan, rows).order, found.__setitem__))
    for number in range(len(rows)):
        if (error := found[number].error) is not None:
            raise error
    return [outcome for number in range(len(rows)) if (outcome := found[number].outcome) is not None]


@pytest.mark.parametrize("case", range(CASES))
def test_interpreter_and_levels_agree(case: int, engine: LocalEngine, model: Any) -> None:
    comparison = Comparison(model)
    saved = instances = prefills = 0
    for seed in range(case * PROGRAMS, (case + 1) * PROGRAMS):
        rng = random.Random(seed)
        module, rows = random_program(rng), random_rows(rng, rng.randint(1, 4))
        plain = Recorder(engine)
        expected = [interpret(module, row, plain, instance=number) for number, row in enumerate(rows)]
        for level in ("O0", "O2"):
            compiled = pipeline(level).run(module, PassContext(engine.tokenizer)).module
            other = Recorder(engine)
            outcomes = run_batch(compiled, other, rows)
            split = comparison.check(module, plain, other, len(rows))
            for number, (outcome, oracle) in enumerate(zip(outcomes, expected, strict=True)):
                if number in split:
                    continue
                assert (outcome.value, outcome.text) == (oracle.value, oracle.text), f"program {seed}, {level}"
                for op_id, entry in oracle.profile.ops.items():
                    if op_id in outcome.profile.ops:
                        assert outcome.profile.ops[op_id].usage.prompt_tokens == entry.usage.prompt_tokens
                saved += oracle.usage.prompt_tokens - outcome.usage.prompt_tokens
                assert outcome.usage.prompt_tokens <= oracle.usage.prompt_tokens
                assert level != "O0" or outcome.usage.prompt_tokens == oracle.usage.prompt_tokens
            instances += len(rows)
            prefills += other.prefills
    print(
        f"{PROGRAMS} programs, {instances} runs of instances, {comparison.calls} calls equal, "
        f"{comparison.close_calls} of them up to a close call; {saved} prompt tokens saved by merging equal calls"
    )
    assert prefills > 0
    assert engine.statistics.evicted_tokens > 0
    # The worker lets go of pins when it takes its next commands; what is asked after them comes after them.
    engine.submit(Request((1,), SamplingParams(max_tokens=1))).future.result(60)
    memory = engine._worker._scheduler.memory
    assert memory.pool.used_count == memory.radix.total_tokens
    assert memory.radix.pinned_tokens == 0
