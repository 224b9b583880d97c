"""The programs of examples/, each with a few inputs of its own data."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from examples import (
    character,
    chat,
    debate,
    extract,
    generative_agents,
    judge,
    labels,
    map_reduce,
    multi_chain,
    multiple_choice,
    react,
    self_refine,
    sglang_tips,
    skeleton_of_thought,
    tree_of_thought,
)
from lmc.frontend.program.function import JittedFunction
from tests.project.layers import REPOSITORY

DATA = REPOSITORY / "examples" / "data"


@dataclass(frozen=True)
class Example:
    """What an example is run with."""

    program: JittedFunction
    rows: Sequence[dict[str, Any]]


def rows_of(file: str, count: int = 3) -> list[dict[str, Any]]:
    """The first rows of a file in examples/data."""
    return [json.loads(line) for line in (DATA / file).read_text(encoding="utf-8").splitlines()[:count]]


def similar_rows(file: str, count: int) -> list[dict[str, Any]]:
    """Return up to ``count`` random rows of the kind of those in a file: their texts have sentences of those."""
    rng, rows = random.Random(file), rows_of(file, 1000)
    found: dict[str, dict[str, Any]] = {}
    for _ in range(10 * count):
        row = {
            key: _mixed([each[key] for each in rows], value, rng) if isinstance(value, str) else value
            for key, value in rng.choice(rows).items()
        }
        found.setdefault(json.dumps(row), row)
        if len(found) == count:
            break
    return [*found.values()]


def _mixed(texts: Sequence[str], text: str, rng: random.Random) -> str:
    """Return a text with as many sentences as ``text``; where it has one, the beginning of a text and another's end."""
    count = len(_sentences(text))
    if count > 1:
        return " ".join(rng.choices([each for other in texts for each in _sentences(other)], k=count))
    begun, ended = (rng.choice(texts).split() for _ in range(2))
    begin, end = (round(rng.uniform(0.3, 0.7) * len(words)) for words in (begun, ended))
    return " ".join((*begun[:begin], *ended[end:]))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!])\s", text)


EXAMPLES = {
    "character": Example(character.character, rows_of("characters.jsonl", 1)),
    "chat": Example(chat.chat, rows_of("chats.jsonl")),
    "debate": Example(debate.debate, rows_of("essays.jsonl")),
    "extract": Example(extract.extract, rows_of("pages.jsonl", 2)),
    "generative_agents": Example(generative_agents.live, rows_of("agents.jsonl", 2)),
    "judge": Example(judge.judge, rows_of("essays.jsonl", 2)),
    "labels": Example(labels.label, rows_of("sentences.jsonl")),
    "map_reduce": Example(map_reduce.report, [{"folder": str(map_reduce.ORDERS)}]),
    "multi_chain": Example(multi_chain.answer, rows_of("questions.jsonl")),
    "multiple_choice": Example(multiple_choice.answer, rows_of("questions.jsonl")),
    "react": Example(react.answer, rows_of("lookups.jsonl")),
    "self_refine": Example(self_refine.refine, rows_of("sentences.jsonl")),
    "sglang_tips": Example(sglang_tips.tips, [{"topic": "cats", "points": ["food", "sleep", "play"]}]),
    "skeleton_of_thought": Example(skeleton_of_thought.invite, rows_of("dinners.jsonl", 2)),
    "tree_of_thought": Example(tree_of_thought.reach, rows_of("countdowns.jsonl")),
}
"""By the name of the file."""
MANY_ROWS = {
    "character": "characters.jsonl",
    "debate": "essays.jsonl",
    "extract": "pages.jsonl",
    "judge": "essays.jsonl",
    "labels": "sentences.jsonl",
    "multi_chain": "questions.jsonl",
    "multiple_choice": "questions.jsonl",
    "react": "lookups.jsonl",
    "self_refine": "sentences.jsonl",
    "tree_of_thought": "countdowns.jsonl",
}
"""The data of examples with rows enough for two halves."""
