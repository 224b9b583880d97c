"""Prints held-out items as JSON lines: `python -m training.samples --family judgement --count 5`."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from random import Random

from training.document import Document, Kind, Split
from training.tasks import FAMILIES


@dataclass(frozen=True)
class Item:
    """A prompt (special tokens spelled out) and what must follow; `choices` when it is one of a few."""

    family: str
    prompt: str
    answer: str
    choices: tuple[str, ...]


def items_of(document: Document) -> list[Item]:
    """Return every graded answer of a document with all the text before it."""
    found: list[Item] = []
    prompt = ""
    for segment in document.segments:
        if segment.kind is Kind.ANSWER and segment.graded:
            found.append(Item(document.family, prompt, segment.text, segment.choices))
        prompt += segment.text
    return found


def held_out(family: str, count: int, characters: int, seed: int) -> list[Item]:
    """Return the last item of each of `count` held-out documents."""
    documents = (
        FAMILIES[family](Random(f"samples/{seed}/{family}/{index}"), Split.HELD_OUT, characters)
        for index in range(count)
    )
    return [items_of(document)[-1] for document in documents]


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=sorted(FAMILIES), default=None, help="one family; default all")
    parser.add_argument("--count", type=int, default=3, help="items per family")
    parser.add_argument("--characters", type=int, default=900, help="length of a document")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for family in [arguments.family] if arguments.family else sorted(FAMILIES):
        for item in held_out(family, arguments.count, arguments.characters, arguments.seed):
            print(json.dumps(item.__dict__, ensure_ascii=False))


if __name__ == "__main__":
    main()
