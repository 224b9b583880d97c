"""Pulling labelled fields or a compact JSON object out of a sentence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from training import words, world
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

_SYSTEM = Phrasings(
    (
        "You extract fields from text.",
        "Extract the fields.",
        "You read text and fill in forms.",
        "You are an extraction tool.",
        "You turn text into fields.",
        "Read the text, then fill in the form.",
        "You find values in text.",
        "You write records.",
        "Texts come in, fields go out.",
    ),
    ("You extract labelled fields.", "You fill in forms from text."),
)
_FIELDS = Phrasings(
    (
        "Extract the fields {keys}.",
        "Give {keys}, one per line.",
        "Fill in: {keys}.",
        "Find {keys} in the text.",
        "Fields: {keys}",
        "List {keys}.",
        "Write down {keys}.",
        "Which values have {keys}?",
        "Read off {keys}.",
        "I need {keys}.",
        "Please note {keys}, each on its line.",
        "Fill out {keys}.",
        "From the text take {keys}.",
        "Get the values of {keys}.",
        "The form has {keys}.",
        "Name the fields {keys}, line by line.",
        "Tell me {keys}, each alone on a line.",
    ),
    ("Fill in the fields {keys}.", "Extract {keys}, one per line."),
)
_JSON = Phrasings(
    (
        "As JSON with the keys {keys}.",
        "Write JSON: {keys}.",
        "Extract {keys} as JSON.",
        "Return a JSON object with {keys}.",
        "JSON with {keys}, please.",
        "Put {keys} into JSON.",
        "Answer in JSON: {keys}.",
        "I need JSON for {keys}.",
        "Make an object with {keys}.",
        "One JSON object, keys {keys}.",
        "Give me {keys} in JSON.",
        "Turn {keys} into a JSON object.",
        "Write {keys} as an object in JSON.",
        "JSON only: {keys}.",
    ),
    ("Extract a JSON object with {keys}.", "Give {keys} as JSON."),
)
_TEXT = ("Text: ", "Sentence: ", "Input: ", "Text:\n")
_SENTENCES = Phrasings(
    (
        "On {date}, {name} came to {city} and paid {price} for a {item}.",
        "{name} from {city} bought a {item} for {price} on {date}.",
        "A {item} was sold to {name} in {city} for {price} on {date}.",
        "In {city}, on {date}, {name} ordered a {item} that costs {price}.",
        "The {item} that {name} wanted was sent to {city} on {date} and cost {price}.",
        "{name} paid {price} for a {item} in {city} on {date}.",
        "For {price}, {name} got a {item} in {city} on {date}.",
        "It was {date} when {name} bought a {item} for {price} in {city}.",
        "{name}, who comes from {city}, sold a {item} on {date} for {price}.",
        "On {date} a {item} for {price} went from {city} to {name}.",
        "In {city} {name} found a {item} for {price} on {date}.",
        "{name} got a {item} from {city}, paid {price}, and left on {date}.",
        "{price} was the price of the {item} that {name} took to {city} on {date}.",
        "A {item} came from {city} on {date}; {name} paid {price} for it.",
        "Since {date} {name} has had a {item}, worth {price}, from {city}.",
        "The order of {date}: one {item}, {price}, for {name} in {city}.",
        "{name} went to {city} on {date}, looked at a {item} and paid {price}.",
        "On {date} the people of {city} gave {name} a {item} worth {price}.",
        "Bill for {name}, {city}, {date}: a {item} at {price}.",
        "{name} asked for a {item} in {city} and on {date} paid {price} for it.",
    ),
    (
        "On {date}, {name} bought a {item} in {city} and paid {price}.",
        "{name} ordered a {item} for {price} from {city} on {date}.",
    ),
)
_VERBS = words.split_words(
    "got sold took found chose wanted rented repaired lost sent carried hid drew painted "
    "washed left saw praised kept opened"
)
_WHERE = (
    "in {city}",
    "near {city}",
    "from {city}",
    "on the way to {city}",
    "at home in {city}",
    "outside {city}",
    "of {city}",
)
_WHEN = ("on {date}", "since {date}", "before {date}", "on the morning of {date}", "by {date}", "after {date}")
_PRICE = (
    "for {price}",
    "worth {price}",
    "at a price of {price}",
    "that cost {price}",
    "at {price}",
    "valued at {price}",
)
_MONTHS = words.split_words("January February March April May June July August September October November December")


def _record(rng: Random, split: Split) -> tuple[str, dict[str, str]]:
    """Write a sentence or two and the fields they hold."""
    if rng.random() < 0.5:
        name = words.person(rng, split)
        facts = world.person_facts(rng, split, name, rng.randrange(2, 6))
        text = " ".join(world.tell(rng, split, facts))
        return text, {"name": name, **{fact.label: fact.value for fact in facts}}
    values = {
        "name": words.person(rng, split),
        "city": words.city(rng, split),
        "date": _date(rng),
        "item": words.open_pick(rng, words.OBJECTS, split),
        "price": rng.choice(("{} dollars", "${}", "{} euros", "{} coins")).format(rng.randrange(2, 200)),
    }
    if split is Split.TRAIN and rng.random() < 0.5:
        return _composed(rng).format(**values), values
    return _SENTENCES.pick(rng, split).format(**values), values


def _composed(rng: Random) -> str:
    """Make a sentence whose parts come in an order drawn at random; its verbs are not those of held-out sentences."""
    parts = [rng.choice(_WHERE), rng.choice(_WHEN), rng.choice(_PRICE)]
    rng.shuffle(parts)
    article = rng.choice(("a", "a", "the", "one", "some", "an old", "a fine", "that"))
    core = rng.choice(("{{name}} {verb} {article} {{item}}", "{article} {{item}} that {{name}} {verb}")).format(
        verb=rng.choice(_VERBS), article=article
    )
    front = rng.randrange(3)
    link = rng.choice((" ", ", ", " "))
    text = (
        link.join((", ".join(parts[:front]) + ("," if front and rng.random() < 0.5 else ""), core)) if front else core
    )
    return f"{text[0].upper()}{text[1:]} {rng.choice((' ', ', ')).join(parts[front:])}."


def _date(rng: Random) -> str:
    if rng.random() < 0.5:
        return f"{rng.randrange(1, 29)} {rng.choice(_MONTHS)}"
    return f"{words.year(rng)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"


def _chosen(rng: Random, values: dict[str, str]) -> dict[str, str]:
    keys = rng.sample(sorted(values), rng.randrange(2, len(values) + 1))
    if "name" in keys and rng.random() < 0.6:
        keys.remove("name")
        keys.insert(0, "name")
    return {key: values[key] for key in keys}


def _listed(rng: Random, keys: list[str]) -> str:
    if rng.random() < 0.5 or len(keys) == 1:
        return ", ".join(keys)
    return ", ".join(keys[:-1]) + " and " + keys[-1]


def _as_json(values: dict[str, str]) -> str:
    typed = {key: int(value) if value.isdigit() else value for key, value in values.items()}
    return json.dumps(typed, separators=(",", ":"), ensure_ascii=False)


def _fill_in(rng: Random, document: Document, values: dict[str, str], *, chat: bool) -> None:
    """Labels are given one by one, values are learned; at times the prompt holds the space after the colon."""
    spaced = rng.random() < 0.12
    for index, (key, value) in enumerate(values.items()):
        document.text(f"{key.capitalize()}:" + (" " if spaced else ""))
        document.answer(value if spaced else f" {value}")
        last = index == len(values) - 1
        if chat and last and rng.random() < 0.5:
            return
        document.answer("\n", graded=False)


def _chat(rng: Random, split: Split, document: Document, length: int) -> None:
    if rng.random() < 0.7:
        document.message("system", _SYSTEM.pick(rng, split))
    while document.length < length:
        text, values = _record(rng, split)
        chosen = _chosen(rng, values)
        keys = [key.capitalize() if rng.random() < 0.3 else key for key in chosen]
        draw = rng.random()
        want = _FIELDS if draw < 0.6 else _JSON
        order = want.pick(rng, split).format(keys=_listed(rng, keys if draw < 0.6 else list(chosen)))
        tagged = rng.choice(_TEXT) + text
        document.message("user", f"{order}\n{tagged}" if rng.random() < 0.6 else f"{tagged}\n{order}")
        if draw < 0.25:
            document.reply("\n".join(f"{key.capitalize()}: {value}" for key, value in chosen.items()))
        elif draw < 0.6:
            document.start_turn("assistant")
            _fill_in(rng, document, chosen, chat=True)
            document.end_turn(learned=True)
        else:
            document.reply(_as_json(chosen))


def _raw(rng: Random, split: Split, document: Document, length: int) -> None:
    as_json = rng.random() < 0.4
    head = rng.choice(_TEXT)
    if rng.random() < 0.4:
        document.text("Extract the fields.\n\n")
    while document.length < length:
        text, values = _record(rng, split)
        document.text(f"{head}{text}\n")
        chosen = _chosen(rng, values)
        if as_json:
            document.text(f"Keys: {', '.join(chosen)}\nJSON:")
            document.raw_reply(_as_json(chosen))
        else:
            _fill_in(rng, document, chosen, chat=False)
        document.text("\n")


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("extraction")
    if rng.random() < 0.55:
        _chat(rng, split, document, length)
    else:
        _raw(rng, split, document, length)
    return document
