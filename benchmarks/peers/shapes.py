"""The shapes of well-known workloads as calls of an engine; standard library only, for the peers' environments.

A shape is a generator over one row: it yields the calls that can run now and is sent their tokens. The same programs,
as a user of lmc writes them, are in `benchmarks/programs.py`; a test holds that both ask for the same prompts, token
for token. Shots, branches and turns are those of the SGLang paper (arXiv 2312.07104); lengths are a quarter of its
instances, but for `mmlu` and `multi_turn_chat_short`, which are whole; `agents` are those of KVFlow (arXiv 2507.07400).

Every word of `vocabulary()` is one token with the space before it, and the model of `benchmarks/workloads.py` says
nothing else: text it wrote has as many tokens in a later prompt as it had when it was written, whatever the words are.
"""

import random
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

Row = dict[str, Any]
Encode = Callable[[str], list[int]]


@dataclass(frozen=True)
class Call:
    """One generation of exactly `new_tokens` tokens."""

    prompt: list[int]
    new_tokens: int


Program = Generator[list[Call], list[list[int]], None]

DIMENSIONS = ("clarity", "evidence", "structure", "tone", "grammar", "style")
STAGES = ("plan", "execute", "reflect", "final")
OPTIONS = ("first", "second")
SHORT = (4, 8, 6, 5)
LONG = (64, 96, 128, 96)
JUDGEMENT, SCORE, THOUGHT, ACTION, REPLY = 64, 2, 64, 48, 16

JUDGE_HEAD = " You grade articles with care. Article:"
TREE_HEAD = " Solve the question with a tree of thoughts. Question:"
CHAT_HEAD = " You remember what the user says and give an answer to it."
MMLU_HEAD = " The following are questions with four choices about one subject."
_MARKS = " Judge its Views Score User Assistant Question Thought Observation Answer"
_TEMPLATES = " ".join((JUDGE_HEAD, TREE_HEAD, CHAT_HEAD, MMLU_HEAD, _MARKS, *DIMENSIONS, *STAGES, *OPTIONS))
_KNOWN = tuple(dict.fromkeys(re.findall(r"[A-Za-z]+", _TEMPLATES)))
_SIZE = 31_742  # with 256 bytes and two special tokens, 32,000 entries


def vocabulary() -> list[str]:
    """The words, without their space: those of the programs first, then made-up ones."""
    syllables = ["".join(letters) for letters in product("bcdfghjklmnpqrstvwxz", "aeiou")]
    made = ("".join(parts) for parts in product(syllables, syllables, ("", "n", "r", "s", "l")))
    return [*_KNOWN, *(word for word in made if word not in _KNOWN)][:_SIZE]


_WORDS = vocabulary()[len(_KNOWN) :]


def words(rng: random.Random, least: int, most: int | None = None) -> str:
    """So many words that mean nothing, each after a space."""
    return "".join(f" {word}" for word in rng.choices(_WORDS, k=rng.randint(least, most or least)))


REACT_EXAMPLES = words(random.Random("examples"), 400)


def judge_rows(rng: random.Random, count: int) -> list[Row]:
    return [{"article": words(rng, 256)} for _ in range(count)]


def llm_judge(row: Row, encode: Encode) -> Program:
    stem = encode(JUDGE_HEAD) + encode(row["article"])
    views = yield [Call(stem + encode(f" Judge its {dimension}:"), JUDGEMENT) for dimension in DIMENSIONS]
    yield [Call(stem + encode(" Views:") + [*chain(*views)] + encode(" Score:"), SCORE)]


def tree_rows(rng: random.Random, count: int) -> list[Row]:
    return [{"question": words(rng, 24, 40)} for _ in range(count)]


def tree_of_thought(row: Row, encode: Encode) -> Program:
    branches = [encode(TREE_HEAD) + encode(row["question"])]
    for stage in STAGES:
        prompts = [branch + encode(f" {option} {stage}:") for branch in branches for option in OPTIONS]
        answers = yield [Call(prompt, THOUGHT) for prompt in prompts]
        branches = [prompt + answer for prompt, answer in zip(prompts, answers, strict=True)]


def short_chat_rows(rng: random.Random, count: int) -> list[Row]:
    return [{"turns": [words(rng, 256, 512) for _ in SHORT]} for _ in range(count)]


def long_chat_rows(rng: random.Random, count: int) -> list[Row]:
    return [{"turns": [words(rng, 64, 128) for _ in LONG]} for _ in range(count)]


def multi_turn_chat(lengths: Sequence[int], row: Row, encode: Encode) -> Program:
    context = encode(CHAT_HEAD)
    for turn, length in zip(row["turns"], lengths, strict=True):
        context = context + encode(" User:") + encode(turn) + encode(" Assistant:")
        (answer,) = yield [Call(context, length)]
        context = context + answer


def mmlu_rows(rng: random.Random, count: int) -> list[Row]:
    """Ten subjects with five worked questions each."""
    rows: list[Row] = []
    for subject in range(10):
        shots = "".join(f"{words(rng, 80, 110)} Answer:{words(rng, 1)}" for _ in range(5))
        own = len(range(subject, count, 10))
        rows.extend({"shots": shots, "question": words(rng, 60, 100)} for _ in range(own))
    return rows


def mmlu(row: Row, encode: Encode) -> Program:
    yield [Call(encode(MMLU_HEAD) + encode(row["shots"]) + encode(row["question"]) + encode(" Answer:"), 1)]


def react_rows(rng: random.Random, count: int) -> list[Row]:
    """Three, four or five rounds; the last one is not observed."""
    return [
        {"question": words(rng, 16, 32), "observations": [words(rng, 16, 48) for _ in range(2 + number % 3)]}
        for number in range(count)
    ]


def react(row: Row, encode: Encode) -> Program:
    context = encode(REACT_EXAMPLES) + encode(" Question:") + encode(row["question"]) + encode(" Thought:")
    for observation in row["observations"]:
        (thought,) = yield [Call(context, ACTION)]
        context = context + thought + encode(" Observation:") + encode(observation) + encode(" Thought:")
    yield [Call(context, ACTION)]


def agents_rows(rng: random.Random, count: int) -> list[Row]:
    """Eight workflows of four agents with long fixed prompts of their own; their instances come in turn."""
    workflows = [[words(rng, 512) for _ in range(4)] for _ in range(8)]
    return [{"prompts": workflows[number % 8], "task": words(rng, 24)} for number in range(count)]


def agents(row: Row, encode: Encode) -> Program:
    said: list[int] = []
    for prompt in row["prompts"]:
        (said,) = yield [Call(encode(prompt) + encode(row["task"]) + said, REPLY)]


@dataclass(frozen=True)
class Shape:
    """How rows of a workload are made, and the calls of one row. `instances` keeps every engine below two minutes."""

    instances: int
    rows: Callable[[random.Random, int], list[Row]]
    calls: Callable[[Row, Encode], Program]


def _short_chat(row: Row, encode: Encode) -> Program:
    return multi_turn_chat(SHORT, row, encode)


def _long_chat(row: Row, encode: Encode) -> Program:
    return multi_turn_chat(LONG, row, encode)


SHAPES = {
    "llm_judge": Shape(10, judge_rows, llm_judge),
    "tree_of_thought": Shape(4, tree_rows, tree_of_thought),
    "multi_turn_chat_short": Shape(12, short_chat_rows, _short_chat),
    "multi_turn_chat_long": Shape(12, long_chat_rows, _long_chat),
    "mmlu": Shape(80, mmlu_rows, mmlu),
    "react": Shape(12, react_rows, react),
}

ALL_SHAPES = SHAPES | {"agents": Shape(40, agents_rows, agents)}
