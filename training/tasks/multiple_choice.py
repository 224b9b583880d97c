"""Questions over facts given in the prompt, answered by letter or by text, raw few-shot or chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training import world
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

    from training.world import Fact

_SYSTEM = Phrasings(
    (
        "You answer questions about a text.",
        "Answer with one letter.",
        "You answer multiple-choice questions.",
        "Read the text and answer.",
        "You are a careful reader.",
    ),
    ("You answer questions about the passage.", "Read carefully and answer."),
)
_INTRO = Phrasings(
    (
        "",
        "",
        "The following are multiple choice questions.\n\n",
        "Answer the questions.\n\n",
        "Choose the right answer.\n\n",
    ),
    ("", "The following are questions with four choices.\n\n"),
)
_PASSAGE = Phrasings(("Text:", "Passage:", "Facts:", "Story:", "Context:"), ("Text:", "Passage:", "Facts:"))
_LETTER = Phrasings(
    ("", "", "\nAnswer with a letter.", "\nWhich letter is right?", "\nA, B, C or D?"),
    ("", "\nWhich letter is the answer?", "\nAnswer with one letter."),
)
LETTERS = "ABCDEF"


def _options(rng: Random, split: Split, fact: Fact, facts: list[Fact]) -> tuple[list[str], int]:
    count = 4 if rng.random() < 0.8 else rng.randrange(2, 6)
    options = world.distractors(rng, split, fact, facts, count - 1)
    place = rng.randrange(count)
    options.insert(place, fact.value)
    return options, place


def _question(
    rng: Random, split: Split, fact: Fact, facts: list[Fact], mark: str, by_letter: bool
) -> tuple[str, str, tuple[str, ...]]:
    """Return the question with its options, the answer and the possible answers."""
    question = fact.question(rng, split)
    if not by_letter:
        return question, fact.value, (fact.value, *world.distractors(rng, split, fact, facts, 3))
    options, place = _options(rng, split, fact, facts)
    lines = "\n".join(mark.format(letter=LETTERS[index]) + f" {option}" for index, option in enumerate(options))
    return f"{question}\n{lines}", LETTERS[place], tuple(LETTERS[: len(options)])


def _text(rng: Random, split: Split, length: int) -> tuple[str, list[Fact]]:
    total = max(3, min(60, int(length * rng.uniform(0.15, 0.5)) // 32))
    each = rng.choice((1, 2, 3, 4, 6))
    return world.passage(rng, split, max(1, total // each), each)


def _chat(rng: Random, split: Split, document: Document, length: int, mark: str) -> None:
    if rng.random() < 0.6:
        document.message("system", _SYSTEM.pick(rng, split))
    while document.length < length:
        text, facts = _text(rng, split, min(length, rng.choice((400, 800, length))))
        head = f"{_PASSAGE.pick(rng, split)} {text}\n"
        for _ in range(rng.randrange(2, 9)):
            by_letter = rng.random() < 0.65
            question, answer, choices = _question(rng, split, rng.choice(facts), facts, mark, by_letter)
            document.message("user", f"{head}{question}{_LETTER.pick(rng, split) if by_letter else ''}")
            document.reply(answer, choices)
            head = ""


def _raw(rng: Random, split: Split, document: Document, length: int, mark: str) -> None:
    document.text(_INTRO.pick(rng, split))
    own_passage = rng.random() < 0.5
    by_letter = rng.random() < 0.7
    passage_tag = _PASSAGE.pick(rng, split)
    while document.length < length:
        size = rng.choice((150, 250, 400)) if own_passage else min(length, rng.choice((400, 800, length)))
        text, facts = _text(rng, split, size)
        document.text(f"{passage_tag} {text}\n" + ("" if own_passage else "\n"))
        for _ in range(1 if own_passage else rng.randrange(3, 10)):
            question, answer, choices = _question(rng, split, rng.choice(facts), facts, mark, by_letter)
            document.text(f"Question: {question}\nAnswer:")
            document.raw_reply(answer, choices)
            document.text("\n")


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("multiple_choice")
    mark = rng.choice(("{letter}.", "{letter}.", "{letter})", "({letter})", "{letter}:"))
    if rng.random() < 0.5:
        _chat(rng, split, document, length, mark)
    else:
        _raw(rng, split, document, length, mark)
    return document
