"""Questions over facts given in the prompt, answered by letter or by text, raw few-shot or chat."""

from __future__ import annotations

from dataclasses import dataclass
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
        "You take a test about a text.",
        "Choose one of the answers.",
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
        "A test about some texts.\n\n",
        "Questions with several choices.\n\n",
    ),
    ("", "The following are questions with four choices.\n\n"),
)
_PASSAGE = Phrasings(("Text:", "Passage:", "Facts:", "Story:", "Context:"), ("Text:", "Passage:", "Facts:"))
_LETTER = Phrasings(
    (
        "",
        "",
        "\nAnswer with a letter.",
        "\nWhich letter is right?",
        "\nA, B, C or D?",
        "\nGive the letter.",
        "\nLetter only.",
        "\nPick one.",
        "\nSay only the letter.",
    ),
    ("", "\nWhich letter is the answer?", "\nAnswer with one letter."),
)
_WHICH = Phrasings(
    ("Which letter is {option}?", "What is the letter of {option}?", "{option}?", "Letter of {option}?"),
    ("Which letter has {option}?",),
)
_WHAT = Phrasings(("What is {letter}?", "What does {letter} say?", "{letter}?"), ("What stands at {letter}?",))
LETTERS = "ABCDEF"


def _options(rng: Random, split: Split, fact: Fact, facts: list[Fact]) -> tuple[list[str], int]:
    count = 4 if rng.random() < 0.8 else rng.randrange(2, 6)
    options = world.distractors(rng, split, fact, facts, count - 1)
    place = rng.randrange(count)
    options.insert(place, fact.value)
    return options, place


@dataclass(frozen=True)
class Question:
    """A question with its lettered options, if any; `choices` are the possible answers."""

    text: str
    answer: str
    choices: tuple[str, ...]
    options: tuple[str, ...] = ()


def _question(rng: Random, split: Split, facts: list[Fact], mark: str, by_letter: bool) -> Question:
    """Ask for one of the facts."""
    fact = rng.choice(facts)
    question = fact.question(rng, split)
    if not by_letter:
        choices = (fact.value, *world.distractors(rng, split, fact, facts, 3))
        return Question(question, fact.value, choices)
    options, place = _options(rng, split, fact, facts)
    lines = "\n".join(mark.format(letter=LETTERS[index]) + f" {option}" for index, option in enumerate(options))
    return Question(f"{question}\n{lines}", LETTERS[place], tuple(LETTERS[: len(options)]), tuple(options))


def _about_options(rng: Random, split: Split, options: tuple[str, ...]) -> Question:
    """Ask for the letter of an option or for the option at a letter: half of what a question with letters needs."""
    place = rng.randrange(len(options))
    letters = tuple(LETTERS[: len(options)])
    if rng.random() < 0.6:
        return Question(_WHICH.pick(rng, split).format(option=options[place]), letters[place], letters)
    return Question(_WHAT.pick(rng, split).format(letter=letters[place]), options[place], options)


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
            question = _question(rng, split, facts, mark, by_letter)
            document.message("user", f"{head}{question.text}{_LETTER.pick(rng, split) if by_letter else ''}")
            document.reply(question.answer, question.choices)
            head = ""
            while question.options and rng.random() < 0.3:
                about = _about_options(rng, split, question.options)
                document.message("user", about.text)
                document.reply(about.answer, about.choices)


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
            question = _question(rng, split, facts, mark, by_letter)
            document.text(f"Question: {question.text}\nAnswer:")
            document.raw_reply(question.answer, question.choices)
            while question.options and rng.random() < 0.2:
                about = _about_options(rng, split, question.options)
                document.text(f"Question: {about.text}\nAnswer:")
                document.raw_reply(about.answer, about.choices)
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
