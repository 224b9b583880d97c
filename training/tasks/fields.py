"""Labelled fields, generated one by one after a document: the program writes each label, the model each value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import cities, words, world
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

    from training.objects import Value

LONGEST_PAGE = 4300
_SYSTEM = Phrasings(
    (
        "You read documents.",
        "You fill in labelled fields.",
        "You read a page and fill in a form.",
        "You look values up in a document.",
        "Documents come in, values go out.",
        "Fill in the labels.",
    ),
    ("You look up fields in a page.", "Read the page and fill in its fields."),
)
_ORDER = Phrasings(
    (
        "Fill in the fields of {name}.",
        "Now the fields of {name}.",
        "Give the fields of {name}.",
        "These are the fields of {name}.",
        "What is known of {name}, field by field:",
        "The facts about {name} as JSON:",
        "JSON of {name}:",
        "Take from it the facts about {name}.",
        "{name} in labelled fields:",
        "A form for {name}:",
    ),
    ("Fill in the form for {name}.", "Here are the fields of {name} as JSON."),
)
_KEYS = Phrasings(
    (" Labels: {keys}.", " Keys: {keys}.", " With {keys}.", " Fields: {keys}."), (" The keys are {keys}.",)
)
_PAGE = ("Page:\n", "Document:\n", "Text: ", "Document: ", "")
_END = ("", "", "\nEnd of the page.", "\n---")


@dataclass(frozen=True)
class Style:
    """How labels and values are written.

    `label` holds `{key}` and is given; `opened` says that it holds the first quote of a text; `comma` says that the
    model writes a comma after each value; `start` and `end` stand around the fields.
    """

    label: str
    opened: bool
    comma: bool
    start: str = ""
    end: str = ""


STYLES = (
    Style('  "{key}": ', opened=True, comma=False, start="{\n", end="\n}"),
    Style('  "{key}": ', opened=False, comma=True, start="{\n", end="\n}"),
    Style('  "{key}":', opened=False, comma=True, start="{\n", end="\n}"),
    Style("{key}: ", opened=True, comma=False),
    Style("{key}:", opened=False, comma=True),
    Style("{key}: ", opened=False, comma=True),
)


@dataclass(frozen=True)
class _Page:
    """A text and, by subject, the fields that it states."""

    text: str
    subjects: dict[str, dict[str, Value]]


def _city(rng: Random, split: Split, length: int) -> _Page:
    size = min(LONGEST_PAGE, int(length * rng.uniform(0.4, 0.8)))
    count = 1 if rng.random() < 0.6 or size < 900 else rng.randrange(2, 4)
    found = [cities.draw(rng, split) for _ in range(count)]
    texts = [cities.page(rng, split, one, size // count, everything=True) for one in found]
    return _Page("\n\n".join(texts), {one.name: _flat(one.fields()) for one in found})


def _flat(fields: dict[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in fields.items() if not isinstance(value, list)}


def _people(rng: Random, split: Split, length: int) -> _Page:
    size = min(LONGEST_PAGE, int(length * rng.uniform(0.3, 0.6)))
    each = rng.choice((3, 4, 5, 6))
    text, facts = world.passage(rng, split, max(1, size // 32 // each), each)
    subjects: dict[str, dict[str, Value]] = {}
    for fact in facts:
        value = int(fact.value) if fact.value.isdigit() and not fact.value.startswith("0") else fact.value
        subjects.setdefault(fact.name, {"name": fact.name})[fact.label] = value
    return _Page(text, subjects)


def _table(rng: Random, split: Split, length: int) -> _Page:
    labels = words.distinct(rng.randrange(2, 6), lambda: words.pick(rng, words.COMMON, split))
    count = max(1, min(60, int(min(LONGEST_PAGE, length * rng.uniform(0.3, 0.6))) // (16 * len(labels) + 8)))
    names = words.distinct(count, lambda: words.person(rng, split))
    subjects: dict[str, dict[str, Value]] = {}
    for name in names:
        subjects[name] = {label: _cell(rng, split) for label in labels}
    joint = rng.choice(("\n", ", ", "; "))
    rows = [
        f"{name}{joint}" + joint.join(f"{key}: {value}" for key, value in own.items()) for name, own in subjects.items()
    ]
    return _Page(rng.choice(("\n\n", "\n")).join(rows), subjects)


def _cell(rng: Random, split: Split) -> Value:
    if rng.random() < 0.25:
        return rng.randrange(1, 10 ** rng.choice((2, 3, 4)))
    return words.made_word(rng, split) if rng.random() < 0.7 else words.person(rng, split)


def _page(rng: Random, split: Split, length: int) -> _Page:
    draw = rng.random()
    if draw < 0.45:
        return _city(rng, split, length)
    return _people(rng, split, length) if draw < 0.8 else _table(rng, split, length)


def _fill_in(document: Document, style: Style, fields: dict[str, Value]) -> None:
    """Write the labels as text and the values as answers.

    A number ends with its comma in every style, as nothing else ends it; the last value before a brace has none.
    """
    document.text(style.start)
    for index, (key, value) in enumerate(fields.items()):
        last = index == len(fields) - 1
        label = style.label.format(key=key)
        written = json.dumps(value, ensure_ascii=False)
        comma = (style.comma or not isinstance(value, str)) and not (last and style.end)
        if style.opened and isinstance(value, str):
            label, written = f'{label}"', written[1:]
        elif label.endswith(":"):
            written = f" {written}"
        document.text(label)
        document.answer(written + ("," if comma else ""))
        if not last:
            document.text("\n" if comma else ",\n")
    document.text(style.end)


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("fields")
    chat = rng.random() < 0.45
    style = rng.choice(STYLES)
    if chat and rng.random() < 0.5:
        document.message("system", _SYSTEM.pick(rng, split))
    while document.length < length:
        page = _page(rng, split, min(length, rng.choice((700, 1500, length))))
        head = f"{rng.choice(_PAGE)}{page.text}{rng.choice(_END)}\n"
        names = list(page.subjects)
        for name in rng.sample(names, min(len(names), rng.randrange(1, 6))):
            fields = page.subjects[name]
            keys = rng.sample(sorted(fields), rng.randrange(min(2, len(fields)), len(fields) + 1))
            if "name" in keys:
                keys = ["name", *(key for key in keys if key != "name")]
            order = _ORDER.pick(rng, split).format(name=name)
            if rng.random() < 0.4:
                order += _KEYS.pick(rng, split).format(keys=", ".join(keys))
            chosen = {key: fields[key] for key in keys}
            if chat:
                document.message("user", head + order)
                document.start_turn("assistant")
                _fill_in(document, style, chosen)
                document.end_turn()
            else:
                document.text(f"{head}{order}\n")
                _fill_in(document, style, chosen)
                document.text("\n\n")
            head = ""
    return document
