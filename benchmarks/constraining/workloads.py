"""What is generated under constraints: objects and fields that the built-in model knows, from held-out items."""

import random
from dataclasses import dataclass

from training import characters, cities
from training.document import Split

WORD = r"[\w\d\s]{1,16}"
CHARACTER = r"\n".join(
    (
        r"\{",
        rf'    "name": "{WORD}",',
        rf'    "house": "({"|".join(characters.HOUSES)})",',
        rf'    "blood status": "({"|".join(characters.BLOOD)})",',
        rf'    "occupation": "({"|".join(characters.OCCUPATIONS)})",',
        r'    "wand": \{',
        rf'        "wood": "{WORD}",',
        rf'        "core": "{WORD}",',
        r'        "length": [0-9]{1,2}\.[0-9]{0,2}',
        r"    \},",
        r'    "alive": "(Alive|Deceased)",',
        rf'    "patronus": "{WORD}",',
        rf'    "bogart": "{WORD}"',
        r"\}",
    )
)
CITY = r"\n".join(
    (
        r"\{",
        rf'  "name": "{WORD}",',
        rf'  "country": "{WORD}",',
        r'  "latitude": [-+]?[0-9]*\.?[0-9]{0,2},',
        r'  "population": [-+]?[0-9]{1,9},',
        rf'  "top 3 landmarks": \["{WORD}", "{WORD}", "{WORD}"\]',
        r"\}",
    )
)
PAGE_CHARACTERS = 4000
FIELDS = ("name", "country", "river", "mayor", "language")
FIELD = r'"[^"\n\\]{1,24}",'


@dataclass(frozen=True)
class Item:
    """A text, then generations that each match a pattern: what the program writes before each, and the pattern."""

    text: str
    generations: tuple[tuple[str, str], ...]
    max_tokens: int


def json_character(count: int, seed: int = 0) -> list[Item]:
    """One object from one regex, up to 256 tokens; the sheet of a character that the prompt lists."""
    rng = random.Random(seed)
    items: list[Item] = []
    for _ in range(count):
        sheet = characters.draw(rng, Split.HELD_OUT)
        prompt = f"{characters.listing(rng, sheet)}\nFill in the sheet of the character {sheet.name} as JSON.\nJSON:\n"
        items.append(Item(prompt, (("", CHARACTER),), 256))
    return items


def json_city(count: int, seed: int = 1) -> list[Item]:
    """One object from one regex, up to 256 tokens; a city from a page about it."""
    rng = random.Random(seed)
    items: list[Item] = []
    for _ in range(count):
        city = cities.draw(rng, Split.HELD_OUT)
        page = cities.page(rng, Split.HELD_OUT, city, 500, everything=True)
        prompt = f"Page:\n{page}\nGive the city of the page as JSON.\nJSON:\n"
        items.append(Item(prompt, (("", CITY),), 256))
    return items


def json_decode(count: int, seed: int = 2) -> list[Item]:
    """Five short generations one after the other, each by a regex, from a long page."""
    rng = random.Random(seed)
    items: list[Item] = []
    for _ in range(count):
        city = cities.draw(rng, Split.HELD_OUT)
        page = cities.page(rng, Split.HELD_OUT, city, PAGE_CHARACTERS, everything=True)
        prompt = f"Page:\n{page}\nHere are the fields of {city.name} as JSON.\n{{\n"
        parts = tuple((("\n" if at else "") + f'  "{key}": ', FIELD) for at, key in enumerate(FIELDS))
        items.append(Item(prompt, parts, 32))
    return items


WORKLOADS = {"json_character": (json_character, 50), "json_city": (json_city, 50), "json_decode": (json_decode, 10)}
