"""Fill in the sheet of a character: JSON of one form, which a regular expression says.

Most of the sheet has to be as it is (keys, quotes, line breaks, the rest of a name once it is clear which), so the
engine drafts it and computes many tokens in one pass: lmc compile examples/character.py --remarks

lmc run examples/character.py --input examples/data/characters.jsonl
"""

import json
from pathlib import Path

import lmc

CHARACTERS = Path(__file__).parent / "data" / "characters.jsonl"
ANY = r"[\w ]{1,24}"
SHEET = rf"""\{{
    "name": "{ANY}",
    "house": "(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)",
    "blood status": "(Pure-blood|Half-blood|Muggle-born)",
    "occupation": "(student|teacher|auror|ministry of magic|death eater|order of the phoenix)",
    "wand": \{{
        "wood": "{ANY}",
        "core": "{ANY}",
        "length": [0-9]{{1,2}}\.[0-9]{{1,2}}
    \}},
    "alive": "(Alive|Deceased)",
    "patronus": "{ANY}",
    "bogart": "{ANY}"
\}}"""


@lmc.jit
def character(s, name: str, text: str):
    s += lmc.user(f"Text:\n{text}\nFill in the sheet of the character {name} as JSON.")
    return json.loads(s.gen("sheet", regex=SHEET, max_tokens=300))


def main() -> None:
    rows = [json.loads(line) for line in CHARACTERS.read_text(encoding="utf-8").splitlines()]
    for result in character.batch(rows):
        print(json.dumps(result.value))


if __name__ == "__main__":
    main()
