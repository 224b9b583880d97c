"""Records with any keys, and how they are told: texts, whole numbers, yes or no, lists, one object inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import words
from training.attributes import PERSON_ATTRIBUTES
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

    from training.document import Split
    from training.objects import Value

_LINKED = Phrasings(
    (
        "The {key} of {name} is {value}.",
        "{name} has the {key} {value}.",
        "For {name} the {key} is {value}.",
        "{value} is the {key} of {name}.",
        "{name}: {key} {value}.",
        "As {key} {name} has {value}.",
        "The {key} is {value}.",
        "Its {key} is {value}.",
    ),
    ("With {name} goes the {key} {value}.", "The {key} belonging to {name} is {value}."),
)
_LISTS = Phrasings(
    (
        "The {key} of {name} are {value}.",
        "{name} has the {key} {value}.",
        "For {key} {name} has {value}.",
        "{name} comes with the {key} {value}.",
        "Among the {key}: {value}.",
        "The {key} are {value}.",
    ),
    ("{name} has as {key} {value}.", "As {key} there are {value}."),
)
_YES = Phrasings(
    ("{name} is {key}.", "It is true that {name} is {key}.", "{name} is {key} now.", "Yes, {name} is {key}."),
    ("{name} is indeed {key}.",),
)
_NO = Phrasings(
    (
        "{name} is not {key}.",
        "It is false that {name} is {key}.",
        "{name} is not {key} now.",
        "No, {name} is not {key}.",
    ),
    ("{name} is not at all {key}.",),
)
_FLAGS = words.split_words(
    "active open paid retired married public local new hidden ready sold broken free safe late member"
)
_LIST_KEYS = words.split_words("tags tools pets colors friends foods parts topics books names goods skills")
_NUMBER_KEYS = words.split_words(
    "count price size weight height score stock rank pages rooms miles points total level n id"
)
_INNER_KEYS = words.split_words("street number floor width height depth name age code city color zip room label kind")
_INNER_NAMES = words.split_words("address box owner place contact size shelf seller home origin")


@dataclass(frozen=True)
class Field:
    """One key and its value."""

    key: str
    value: Value


@dataclass(frozen=True)
class Record:
    """A named thing or person and its fields; the name may be one of them."""

    name: str
    fields: tuple[Field, ...]


def _text_field(rng: Random, split: Split) -> Field:
    if rng.random() < 0.6:
        attribute = rng.choice([one for one in PERSON_ATTRIBUTES if one.label not in ("age", "year")])
        return Field(attribute.label, attribute.draw(rng, split))
    word = words.any_word(rng, split)
    return Field(words.pick(rng, words.COMMON, split), f"n{word}" if word.isdigit() else word)


def _number_field(rng: Random, split: Split) -> Field:
    draw = rng.random()
    if draw < 0.4:
        return Field("age" if draw < 0.2 else "year", int(words.small_number(rng) if draw < 0.2 else words.year(rng)))
    key = rng.choice(_NUMBER_KEYS) if draw < 0.8 else words.pick(rng, words.COMMON, split)
    return Field(key, rng.randrange(0, 10 ** rng.choice((1, 2, 3, 4, 5))))


def _list_field(rng: Random, split: Split) -> Field:
    kind = rng.choice((words.COLORS, words.ANIMALS, words.JOBS, words.OBJECTS, words.TOPICS))
    size = rng.choice((2, 2, 3, 3, 4))
    return Field(rng.choice(_LIST_KEYS), list(words.distinct(size, lambda: words.open_pick(rng, kind, split))))


def _inner(rng: Random, split: Split) -> Field:
    inner: dict[str, Value] = {}
    for key in rng.sample(_INNER_KEYS, rng.choice((2, 2, 3))):
        if rng.random() < 0.4:
            inner[key] = rng.randrange(1, 1000)
        else:
            inner[key] = words.made_word(rng, split)
    return Field(rng.choice(_INNER_NAMES), inner)


def draw(rng: Random, split: Split) -> Record:
    """Draw a record with two to seven fields of different keys, at most one of them an object."""
    name = words.person(rng, split)
    fields = [Field("name", name)] if rng.random() < 0.7 else []
    if rng.random() < 0.25:
        fields.append(_inner(rng, split))
    count = rng.randrange(2, 8)
    while len(fields) < count:
        draw_value = rng.random()
        if draw_value < 0.45:
            found = _text_field(rng, split)
        elif draw_value < 0.7:
            found = _number_field(rng, split)
        elif draw_value < 0.85:
            found = Field(rng.choice(_FLAGS), rng.random() < 0.5)
        else:
            found = _list_field(rng, split)
        if found.key not in ("name", *(one.key for one in fields)):
            fields.append(found)
    if rng.random() < 0.4:
        rng.shuffle(fields)
    return Record(name, tuple(fields))


def _joined(rng: Random, items: list[Value], last: str) -> str:
    texts = [str(item) for item in items]
    return ", ".join(texts[:-1]) + rng.choice((last, ", ")) + texts[-1]


def _in_words(rng: Random, value: Value) -> str:
    if isinstance(value, bool):
        return rng.choice(("yes", "true")) if value else rng.choice(("no", "false"))
    if isinstance(value, list):
        return _joined(rng, value, ", ")
    return str(value)


def listing(rng: Random, record: Record) -> str:
    """Write the fields as `key: value`, in the order of the object or another."""
    lines: list[str] = []
    fields = list(record.fields)
    if rng.random() < 0.4:
        rng.shuffle(fields)
    for one in fields:
        if isinstance(one.value, dict):
            lines += [f"{one.key} {key}: {value}" for key, value in one.value.items()]
        else:
            lines.append(f"{one.key}: {_in_words(rng, one.value)}")
    return rng.choice(("\n", "\n", "; ")).join(lines)


def _sentence(rng: Random, split: Split, name: str, one: Field) -> str:
    if isinstance(one.value, bool):
        return (_YES if one.value else _NO).pick(rng, split).format(name=name, key=one.key)
    if isinstance(one.value, list):
        return _LISTS.pick(rng, split).format(name=name, key=one.key, value=_joined(rng, one.value, " and "))
    if isinstance(one.value, dict):
        inner = _joined(rng, [f"{key} {value}" for key, value in one.value.items()], " and ")
        return _LINKED.pick(rng, split).format(name=name, key=one.key, value=inner)
    attribute = next((known for known in PERSON_ATTRIBUTES if known.label == one.key), None)
    if attribute is not None and rng.random() < 0.7:
        return f"{name} {attribute.clauses.pick(rng, split).format(value=one.value)}."
    return _LINKED.pick(rng, split).format(name=name, key=one.key, value=one.value)


def tell(rng: Random, split: Split, record: Record) -> str:
    """Tell the fields in sentences, in any order; the name is in them even when it is no field."""
    fields = [one for one in record.fields if one.key != "name"]
    rng.shuffle(fields)
    opening = [f"This is {record.name}."] if rng.random() < 0.5 else []
    return " ".join([*opening, *(_sentence(rng, split, record.name, one) for one in fields)])


_KINDS: tuple[tuple[type, str], ...] = ((bool, "boolean"), (int, "integer"), (str, "string"), (list, "list"))


def described(rng: Random, record: Record) -> list[str]:
    """Return the keys in order, an object's with its own keys, at times each with its kind."""
    kinds = rng.random() < 0.3
    found: list[str] = []
    for one in record.fields:
        if isinstance(one.value, dict):
            found.append(f"{one.key} ({', '.join(one.value)})")
        elif kinds:
            found.append(f"{one.key} ({next(word for kind, word in _KINDS if isinstance(one.value, kind))})")
        else:
            found.append(one.key)
    return found
