"""Patterns that are measured, and outputs of them."""

import json
import random
import re

ASCII_WORD, PLAIN_WORD = r"[A-Za-z0-9_ \t\n\r\f\v]{1,16}", r"[\w\d\s]{1,16}"


def _lines(*lines: str) -> str:
    return r"\n".join(lines)


def character_pattern(word: str) -> str:
    """An object over several lines: six texts, four choices, a number; most of it is forced."""
    return _lines(
        r"\{",
        rf'    "name": "{word}",',
        r'    "order": "(Ember|Lantern|Harbour|Thornwood)",',
        r'    "family line": "(Old-line|Half-line|First-born)",',
        r'    "trade": "(apprentice|teacher|warden|keeper of the bridge|night miller|circle of the heron)",',
        r'    "staff": \{',
        rf'        "wood": "{word}",',
        rf'        "core": "{word}",',
        r'        "length": [0-9]{1,2}\.[0-9]{0,2}',
        r"    \},",
        r'    "state": "(Living|Departed)",',
        rf'    "companion": "{word}",',
        rf'    "fear": "{word}"',
        r"\}",
    )


def city_pattern(word: str) -> str:
    """A smaller object, with numbers and a list."""
    return _lines(
        r"\{",
        rf'  "name": "{word}",',
        rf'  "country": "{word}",',
        r'  "latitude": [-+]?[0-9]*\.?[0-9]{0,2},',
        r'  "population": [-+]?[0-9]{1,9},',
        rf'  "top 3 places": \["{word}", "{word}", "{word}"\]',
        r"\}",
    )


def character(*, name: str, wood: str, core: str, companion: str, fear: str) -> str:
    """An output of the first pattern."""
    staff = {"wood": wood, "core": core, "length": 11.25}
    lines = {"name": name, "order": "Lantern", "family line": "Half-line", "trade": "keeper of the bridge"}
    lines |= {"staff": staff, "state": "Living", "companion": companion, "fear": fear}
    return json.dumps(lines, indent=4, ensure_ascii=False)


def city(*, name: str, country: str, latitude: str, places: tuple[str, str, str]) -> str:
    """An output of the second."""
    listed = ", ".join(f'"{place}"' for place in places)
    return (
        f'{{\n  "name": "{name}",\n  "country": "{country}",\n  "latitude": {latitude},\n'
        f'  "population": 2148271,\n  "top 3 places": [{listed}]\n}}'
    )


CHARACTERS = (
    character(
        name="Mirabel Ashdown", wood="silver birch", core="heron feather", companion="grey otter", fear="deep water"
    ),
    character(name="Tam 3", wood="yew", core="salt_glass", companion="a very old crow", fear="x"),
)
CHARACTERS_UNICODE = (
    *CHARACTERS,
    character(name="Željka Ørsted", wood="ясень", core="木の葉", companion="γάτα", fear="größere Höhen"),
)
CITIES = (
    city(name="Paris", country="France", latitude="48.85", places=("Eiffel Tower", "Louvre", "Notre Dame")),
    city(name="Valparaiso", country="Chile", latitude="-33.", places=("Cerro Alegre", "the harbour", "Muelle Prat")),
)
CITIES_UNICODE = (
    *CITIES,
    city(name="Zürich", country="Schweiz", latitude="47.37", places=("Großmünster", "Zoo", "湖")),
)

EMAIL = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,63}\.[A-Za-z]{2,6}"
DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
FRACTION_AND_OFFSET = r"(\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
MOMENT = DATE + "T" + TIME + FRACTION_AND_OFFSET


def thousand_choices() -> tuple[str, ...]:
    """Names by seed; one in twenty begins with another one whole, which a leftmost-first reading loses."""
    chance = random.Random(1000)
    made: dict[str, None] = {}

    def word() -> str:
        return "".join(chance.choice("bdfglmnprstvz") + chance.choice("aeiou") for _ in range(chance.randint(1, 3)))

    while len(made) < 1000:
        known = list(made)
        begun = chance.choice(known) if known and chance.random() < 0.05 else word().capitalize()
        made[f"{begun} {word()}"] = None
    return tuple(made)


def of_python(pattern: str) -> str:
    """A class of `re` as ranges of code points, for `regex`, whose tables are of another version of Unicode."""
    found = "".join(map(chr, (code for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF)))
    ranges: list[list[int]] = []
    for code in map(ord, re.findall(pattern, found)):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in ranges) + "]"


CHOICES = thousand_choices()
# A name that begins with another one whole.
LONGER_CHOICE = next(each for each in CHOICES if each.rpartition(" ")[0] in CHOICES)
UNICODE_WORD = of_python(r"[\w\d\s]") + "{1,16}"
