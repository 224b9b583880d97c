"""Arithmetic with one-digit operands: sums, differences, products, small word problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training import words
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

_SYSTEM = Phrasings(("You do sums.", "You are a calculator.", "Answer with a number."), ("You calculate.",))
_PLAIN = {
    "+": Phrasings(
        (
            "{a} + {b} = ?",
            "What is {a} + {b}?",
            "{a} plus {b}?",
            "Add {a} and {b}.",
            "What is {a} plus {b}?",
            "Compute {a}+{b}.",
        ),
        ("How much is {a} plus {b}?", "Compute {a} + {b}."),
    ),
    "-": Phrasings(
        (
            "{a} - {b} = ?",
            "What is {a} - {b}?",
            "{a} minus {b}?",
            "Take {b} from {a}.",
            "What is {a} minus {b}?",
            "Compute {a}-{b}.",
        ),
        ("How much is {a} minus {b}?", "Compute {a} - {b}."),
    ),
    "*": Phrasings(
        (
            "{a} * {b} = ?",
            "What is {a} * {b}?",
            "{a} times {b}?",
            "Multiply {a} by {b}.",
            "What is {a} times {b}?",
            "Compute {a}*{b}.",
        ),
        ("How much is {a} times {b}?", "Compute {a} * {b}."),
    ),
}
_STORY = {
    "+": Phrasings(
        (
            "{name} has {a} {things} and gets {b} more. How many {things} does {name} have?",
            "There are {a} {things} in the box and {b} more on the table. How many {things} are there?",
            "{name} finds {a} {things}, then {b} more. How many in all?",
        ),
        ("{name} has {a} {things} and finds {b} more. How many {things} in all?",),
    ),
    "-": Phrasings(
        (
            "{name} has {a} {things} and loses {b}. How many {things} are left?",
            "{name} had {a} {things} and gave away {b}. How many are left?",
            "There are {a} {things}. {name} takes {b} away. How many {things} are left?",
        ),
        ("{name} had {a} {things} and loses {b}. How many {things} does {name} have left?",),
    ),
    "*": Phrasings(
        (
            "{name} has {a} bags with {b} {things} each. How many {things} in all?",
            "There are {a} boxes and each has {b} {things}. How many {things} are there?",
        ),
        ("{name} has {a} boxes with {b} {things} each. How many {things} are there?",),
    ),
}


def _problem(rng: Random, split: Split) -> tuple[str, str]:
    sign = rng.choice("++--*")
    a, b = rng.randrange(10), rng.randrange(10)
    if sign == "-" and a < b:
        a, b = b, a
    result = {"+": a + b, "-": a - b, "*": a * b}[sign]
    spelled = rng.random() < 0.12
    shown = {"a": words.COUNT_WORDS[a] if spelled else a, "b": words.COUNT_WORDS[b] if spelled else b}
    if rng.random() < 0.65:
        return _PLAIN[sign].pick(rng, split).format(**shown), str(result)
    things = words.pick(rng, words.OBJECTS, split) + "s"
    return _STORY[sign].pick(rng, split).format(name=words.first_name(rng, split), things=things, **shown), str(result)


def _equations(rng: Random, document: Document, length: int) -> None:
    while document.length < length:
        sign = rng.choice("++--*")
        a, b = rng.randrange(10), rng.randrange(10)
        if sign == "-" and a < b:
            a, b = b, a
        document.text(f"{a} {sign} {b} =")
        document.raw_reply(str({"+": a + b, "-": a - b, "*": a * b}[sign]))


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("arithmetic")
    draw = rng.random()
    if draw < 0.2:
        _equations(rng, document, length)
        return document
    chat = draw < 0.65
    if chat and rng.random() < 0.6:
        document.message("system", _SYSTEM.pick(rng, split))
    while document.length < length:
        question, answer = _problem(rng, split)
        if chat:
            document.message("user", question)
            document.reply(answer)
        else:
            document.text(f"Question: {question}\nAnswer:")
            document.raw_reply(answer)
            document.text("\n")
    return document
