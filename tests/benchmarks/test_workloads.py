"""The programs of lmc and the shapes that its peers run are the same work, whatever a model says."""

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import workloads
from benchmarks.peers import protocol
from benchmarks.peers.shapes import ALL_SHAPES, Call
from benchmarks.programs import PROGRAMS
from lmc.driver.compile.compile import compile_program
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.variants import inputs_of
from lmc.ir.engine.protocol import DoneHandle, Generation, Handle, OnDelta, Request
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.passes.pipelines import PipelineOptions

FIRST_WORD = 258


def said(prompt: tuple[int, ...], new_tokens: int) -> list[int]:
    """Words that hang on the prompt alone."""
    rng = random.Random(str(prompt))
    return [rng.randrange(FIRST_WORD, 32_000) for _ in range(new_tokens)]


class WordsEngine(ToyEngine):
    """Says words; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self._tokenizer = Tokenizer.from_json(workloads.tokenizer().to_str())
        self.asked: Counter[tuple[tuple[int, ...], int]] = Counter()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        count = request.sampling.max_tokens
        assert request.sampling.min_tokens == count
        assert request.sampling.greedy
        self.asked[request.prompt, count] += 1
        ids = tuple(said(request.prompt, count))
        text = self._tokenizer.decode(ids)
        return DoneHandle[Generation].of(Generation(ids, text, "length", generated_tokens=count))


def asked_by_shapes(workload: str, rows: list[dict]) -> Counter:
    asked: Counter[tuple[tuple[int, ...], int]] = Counter()

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        asked.update((tuple(prompt), new_tokens) for prompt in prompts)
        return [said(tuple(prompt), new_tokens) for prompt in prompts]

    texts: dict[str, list[int]] = {}
    work = workloads.work_of(workload, rows, texts)
    run = protocol.call_by_call({"workload": workload, "texts": texts}, protocol.in_step(generate, largest=5))
    done = run(rows)
    assert (done.prompt_tokens, done.new_tokens) == (work.prompt_tokens, work.new_tokens)
    assert sum(len(answer) for answers in done.answers for answer in answers) == work.new_tokens
    assert sum(asked.values()) == work.calls
    return asked


@pytest.mark.parametrize("workload", ALL_SHAPES)
def test_programs_and_shapes_ask_for_the_same_tokens(workload: str):
    rows = ALL_SHAPES[workload].rows(random.Random(workload), 3)
    engine = WordsEngine()
    for number, row in enumerate(rows):
        bound = bind(PROGRAMS[workload], (), row)
        compiled = compile_program(PROGRAMS[workload], bound, Target("toy"), PipelineOptions("O2"), engine.tokenizer)
        assert not compiled.breaks
        interpret(compiled.module, inputs_of(compiled.captured, bound), engine, instance=number)
    assert engine.asked == asked_by_shapes(workload, rows)


def test_every_word_is_one_token_again():
    tokenizer = workloads.tokenizer()
    assert tokenizer.get_vocab_size() == 32_000
    ids = list(range(FIRST_WORD, 32_000))
    assert tokenizer.encode(tokenizer.decode(ids)).ids == ids


def test_a_peer_that_did_other_work_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(workloads, "make_words_model", lambda folder: tmp_path)
    right = workloads.work_of("mmlu", workloads.batches_of("mmlu", 10, 1)[1], {})
    answer = {"seconds": [1.0], "prompt_tokens": [right.prompt_tokens], "new_tokens": [right.new_tokens]}
    runners: Any = SimpleNamespace(run=lambda peer, job: answer)
    assert workloads.measure(runners, "lmc", "float32", "mmlu", 10, 1)["seconds"] == [1.0]
    answer["new_tokens"] = [right.new_tokens - 1]
    with pytest.raises(SystemExit, match="did other work"):
        workloads.measure(runners, "lmc", "float32", "mmlu", 10, 1)


def test_ratios_are_to_the_best_peer_and_both_chats_count_once():
    def answers(ours: float, one: float, other: float) -> dict:
        work = [{"calls": 1, "prompt_tokens": 1_000, "new_tokens": 5}]
        seconds = {"lmc": [ours], "transformers": [one], "vllm": [other]}
        return {name: {"seconds": times, "instances": 3, "work": work} for name, times in seconds.items()}

    found = {
        "bfloat16/mmlu": answers(1, 9, 4),
        "bfloat16/multi_turn_chat_short": answers(1, 2, 3),
        "bfloat16/multi_turn_chat_long": answers(2, 1, 9),
    }
    assert workloads.means(found) == "Geometric mean over 2 workloads, best peer / lmc, bfloat16: 2.00.\n"
    line = workloads.row("bfloat16", "mmlu", found["bfloat16/mmlu"], ["lmc", "transformers", "vllm"])
    assert line == ["bfloat16", "mmlu", "3", "1", "1,000", "5", "1.00", "9.00", "4.00", "4.00"]
    assert workloads.speed_up({"lmc": {"seconds": [1.0]}}) is None


def test_a_step_goes_in_batches_of_equal_lengths():
    def program(count: int):
        answers = yield [Call([number], 2) for number in range(count)]
        assert answers == [[number, number] for number in range(count)]

    sizes: list[int] = []

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        sizes.append(len(prompts))
        return [prompt * new_tokens for prompt in prompts]

    protocol.in_step(generate, largest=4)([program(3), program(4)])
    assert sizes == [4, 3]
