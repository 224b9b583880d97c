"""Plain recall: repeat a list, give the value of a key, give an item by its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training import words
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

_REPEAT = Phrasings(
    (
        "Repeat:",
        "Copy this:",
        "Say again:",
        "Write it once more:",
        "Repeat after me:",
        "Write down:",
        "Now copy:",
        "Again:",
        "Echo:",
    ),
    ("Copy it once more:", "Please repeat:"),
)
_KEY = Phrasings(
    (
        "What is the value of {key}?",
        "{key}?",
        "Give the value for {key}.",
        "What does {key} stand for?",
        "Value of {key}?",
        "Tell me what {key} is.",
        "What belongs to {key}?",
        "Which value has {key}?",
        "Look up {key}.",
        "Find {key}.",
    ),
    ("Please give the value of {key}.", "What is {key}?"),
)
_AFTER = Phrasings(
    (
        "What comes after {key}?",
        "Which item follows {key}?",
        "Name the item after {key}.",
        "After {key} comes what?",
        "What is next to {key}?",
        "Say what is after {key}.",
    ),
    ("What follows {key}?", "Which item comes after {key}?"),
)


def _ask(document: Document, chat: bool, prompt: str, answer: str, tag: str = "Answer:") -> None:
    if chat:
        document.message("user", prompt)
        document.reply(answer)
        return
    document.text(f"{prompt}\n{tag}")
    document.raw_reply(answer)


def _repeat(rng: Random, split: Split, document: Document, chat: bool) -> None:
    items = [words.any_word(rng, split) for _ in range(rng.randrange(3, 10))]
    line = rng.choice((" ", ", ", "; ")).join(items)
    _ask(document, chat, f"{_REPEAT.pick(rng, split)} {line}", line, "Copy:")


def _pairs(rng: Random, split: Split, document: Document, chat: bool, size: int) -> None:
    keys = words.distinct(size, lambda: words.any_word(rng, split))
    values = [words.any_word(rng, split) for _ in keys]
    sign = rng.choice((" = ", ": ", " -> ", " is "))
    listing = rng.choice(("\n", "; ", ", ")).join(
        f"{key}{sign}{value}" for key, value in zip(keys, values, strict=True)
    )
    table = dict(zip(keys, values, strict=True))
    asked = [rng.choice(keys) for _ in range(rng.randrange(3, 12))]
    if not chat and rng.random() < 0.35:
        document.text(f"{listing}\n")
        for key in asked:
            document.text(f"{key}{sign.rstrip()}")
            document.raw_reply(table[key])
        return
    for index, key in enumerate(asked):
        question = _KEY.pick(rng, split).format(key=key)
        _ask(document, chat, f"{listing}\n{question}" if index == 0 else question, table[key])


def _order(rng: Random, split: Split, document: Document, chat: bool) -> None:
    items = words.distinct(rng.randrange(4, 9), lambda: words.any_word(rng, split))
    listing = ", ".join(items)
    for index in range(rng.randrange(2, 5)):
        place = rng.randrange(len(items) - 1)
        question = _AFTER.pick(rng, split).format(key=items[place])
        _ask(document, chat, f"{listing}\n{question}" if index == 0 else question, items[place + 1])


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("recall")
    chat = rng.random() < 0.5
    while document.length < length:
        draw = rng.random()
        if draw < 0.35:
            _repeat(rng, split, document, chat)
        elif draw < 0.8:
            most = max(4, min(40, length // 30))
            _pairs(rng, split, document, chat, rng.randrange(3, most))
        else:
            _order(rng, split, document, chat)
        if not chat:
            document.text("\n")
    return document
