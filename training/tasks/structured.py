"""JSON objects from a description: character sheets, cities, and compact objects with any keys and kinds of value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import characters, cities, objects, records
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

    from training.objects import Value

_SYSTEM = Phrasings(
    (
        "You answer in JSON.",
        "You turn texts into JSON objects.",
        "Answer with one JSON object.",
        "You write objects, nothing else.",
        "You fill in JSON sheets.",
        "Every answer is a JSON object.",
        "You read a description and write JSON.",
    ),
    ("You write JSON only.", "Answer with a JSON object from the text."),
)
_CHARACTER = Phrasings(
    (
        "Write the sheet of {name} as JSON.",
        "Fill in the character sheet of {name}.",
        "The character sheet of {name} in JSON, please.",
        "Give the character {name} as a JSON object.",
        "Make a JSON sheet for {name}.",
        "Describe {name} in JSON.",
        "Who is {name}? Answer as a JSON sheet.",
        "Fill in everything about {name} as JSON.",
        "{name} as a character object:",
        "JSON sheet for the character {name}:",
    ),
    ("Fill in the sheet of the character {name} as JSON.", "Give the JSON sheet of {name}."),
)
_OPTIONS = (
    f"house: {', '.join(characters.HOUSES)}; blood status: {', '.join(characters.BLOOD)}; "
    f"occupation: {', '.join(characters.OCCUPATIONS)}; alive: Alive, Deceased"
)
_CITY = Phrasings(
    (
        "Write the city {name} as JSON.",
        "Give name, country, latitude, population and top 3 landmarks of the city as JSON.",
        "The city {name} as a JSON object:",
        "Make a JSON sheet for the city.",
        "Fill in the city sheet for {name}.",
        "Turn the page about {name} into JSON.",
        "What does the page say of {name}? Answer in JSON.",
        "Describe the city {name} in JSON.",
        "JSON sheet for the city of {name}:",
    ),
    ("Give the city of the page as JSON.", "Fill in the JSON sheet of {name}."),
)
_ANY = Phrasings(
    (
        "Write JSON with the keys {keys}.",
        "Keys: {keys}. Answer with an object.",
        "One object with {keys}.",
        "As an object: {keys}.",
        "Make JSON of it, keys {keys}.",
        "Fill in {keys} as JSON.",
        "JSON object, keys {keys}:",
        "The object has the keys {keys}.",
        "Schema: {keys}.",
        "Return an object of {keys}.",
    ),
    ("Give an object with the keys {keys}.", "Write {keys} as one JSON object."),
)
_TEXT = ("Text: ", "Description: ", "Facts:\n", "Text:\n", "About:\n", "")
_PAGE = ("Page:\n", "Page: ", "Text: ", "City: ", "")
_TAGS = ("JSON:\n", "JSON:\n", "Object:\n", "Answer:\n", "")


@dataclass(frozen=True)
class _Item:
    """What is told, what is asked for, and the object that answers."""

    text: str
    orders: tuple[str, ...]
    answers: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


def _characters(rng: Random, split: Split) -> _Item:
    people = [characters.draw(rng, split) for _ in range(1 if rng.random() < 0.75 else 2)]
    listed = rng.random() < 0.4
    texts = [characters.listing(rng, one) if listed else characters.tell(rng, split, one) for one in people]
    rng.shuffle(people)
    orders = [_CHARACTER.pick(rng, split).format(name=one.name) for one in people]
    if rng.random() < 0.25:
        orders[0] += f"\n{_OPTIONS}"
    answers = tuple(objects.render(one.sheet(), 4) for one in people)
    return _Item(rng.choice(_TEXT) + rng.choice(("\n", "\n\n")).join(texts), tuple(orders), answers)


def _city(rng: Random, split: Split, length: int) -> _Item:
    city = cities.draw(rng, split)
    if rng.random() < 0.25:
        text = cities.listing(rng, city)
    else:
        size = rng.choice((200, 300, 500, min(1500, length)))
        text = cities.page(rng, split, city, size, everything=rng.random() < 0.4)
    order = _CITY.pick(rng, split).format(name=city.name)
    return _Item(rng.choice(_PAGE) + text, (order,), (objects.render(city.sheet(), 2),))


def _any(rng: Random, split: Split) -> _Item:
    record = records.draw(rng, split)
    text = records.listing(rng, record) if rng.random() < 0.5 else records.tell(rng, split, record)
    values: dict[str, Value] = {one.key: one.value for one in record.fields}
    keys = ", ".join(records.described(rng, record))
    order = _ANY.pick(rng, split).format(keys=keys)
    indent = None if rng.random() < 0.8 else rng.choice((2, 4))
    if indent is not None:
        order += rng.choice((" Indent it by {}.", " Use {} spaces.", " Indent: {}.")).format(indent)
    return _Item(rng.choice(_TEXT) + text, (order,), (objects.render(values, indent),))


def _item(rng: Random, split: Split, length: int) -> _Item:
    draw = rng.random()
    if draw < 0.35:
        return _characters(rng, split)
    return _city(rng, split, length) if draw < 0.6 else _any(rng, split)


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("structured")
    chat = rng.random() < 0.5
    tag = rng.choice(_TAGS)
    if chat and rng.random() < 0.5:
        document.message("system", _SYSTEM.pick(rng, split))
    while document.length < length:
        item = _item(rng, split, length)
        for index, (order, (text, values)) in enumerate(zip(item.orders, item.answers, strict=True)):
            pieces = [item.text, order] if rng.random() < 0.75 else [order, item.text]
            prompt = "\n".join(pieces) if index == 0 else order
            if chat:
                document.message("user", prompt)
                document.start_turn("assistant")
                document.object(text, values)
                document.end_turn(learned=True)
            else:
                document.text(f"{prompt}\n{tag}")
                document.object(text, values)
                document.answer("\n", graded=False)
                document.text("\n")
    return document
