"""Characters of a school of magic: what a sheet holds, how it is drawn and told.

The keys and the closed lists are those of SGLang's benchmark json_character, so that its regex accepts every sheet;
names, woods and the like are made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import words
from training.document import Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from training.objects import Value

HOUSES = ("Gryffindor", "Slytherin", "Ravenclaw", "Hufflepuff")
BLOOD = ("Pure-blood", "Half-blood", "Muggle-born")
OCCUPATIONS = ("student", "teacher", "auror", "ministry of magic", "death eater", "order of the phoenix")
LONGEST = 16
_WOODS = words.split_words(
    "oak ash elm holly willow maple cherry walnut yew cedar hazel pine birch rowan vine ebony larch beech apple pear "
    "plum hawthorn cypress laurel alder poplar spruce acacia chestnut"
)
_PARTS = words.split_words("feather hair scale horn tooth claw bone heart whisker shell")
_BEASTS = words.split_words("phoenix unicorn dragon griffin basilisk kelpie raven wyvern sphinx kneazle mermaid giant")
_FEARS = words.split_words(
    "snake spider storm wolf ghost mummy moon clown bat shark crowd dark fire mirror needle tower thunder rat flood"
)

_TOLD = {
    "house": Phrasings(
        (
            "{name} belongs to {value}.",
            "{name} was sorted into {value}.",
            "The house of {name} is {value}.",
            "{value} is the house of {name}.",
            "{name} wears the colors of {value}.",
            "{name} sleeps in the tower of {value}.",
            "The hat put {name} into {value}.",
            "At school {name} was in {value}.",
            "{name} plays for {value}.",
            "{name} comes from house {value}.",
        ),
        ("{name} is a member of {value}.", "The hat sent {name} to {value}."),
    ),
    "blood status": Phrasings(
        (
            "{name} is {value}.",
            "The blood status of {name} is {value}.",
            "By birth {name} is {value}.",
            "{name} was born {value}.",
            "{name} counts as {value}.",
            "They call {name} {value}.",
            "{value} is what {name} is by blood.",
            "The family makes {name} {value}.",
        ),
        ("As to blood, {name} is {value}.", "{name} is known to be {value}."),
    ),
    "occupation": Phrasings(
        (
            "The occupation of {name} is {value}.",
            "{name} has the occupation {value}.",
            "Occupation of {name}: {value}.",
            "{value} is the occupation of {name}.",
            "In the files {name} stands as {value}.",
            "The work of {name}: {value}.",
            "The list of posts has {name} under {value}.",
            "{name} is listed as {value}.",
        ),
        ("For occupation {name} has {value}.", "The register gives {name} as {value}."),
    ),
    "wand": Phrasings(
        (
            "The wand of {name} is {wood} with a core of {core}, {length} inches long.",
            "{name} has a wand of {wood}, core {core}, length {length}.",
            "{name} carries a wand of {length} inches, made of {wood} around {core}.",
            "The wand is {wood} and {core}, {length} inches.",
            "{name} bought a wand: {wood}, {core}, {length} inches.",
            "Of {wood} is the wand of {name}, the core is {core}, it measures {length} inches.",
            "A wand of {wood}, {length} inches, holds {core} for {name}.",
            "{length} inches of {wood} with {core} inside: that is the wand of {name}.",
            "Around {core} the wand of {name} has {length} inches of {wood}.",
        ),
        (
            "{name} owns a wand of {wood} with {core}, {length} inches long.",
            "The wand of {name} has the wood {wood}, the core {core} and {length} inches.",
        ),
    ),
    "Alive": Phrasings(
        (
            "{name} is alive.",
            "{name} still lives.",
            "{name} is alive and well.",
            "{name} lives to this day.",
            "{name} did not die.",
            "Alive is {name} still.",
            "{name} survived the war.",
        ),
        ("{name} is still alive.", "As of now {name} lives."),
    ),
    "Deceased": Phrasings(
        (
            "{name} is dead.",
            "{name} died long ago.",
            "{name} is deceased.",
            "{name} fell in the war.",
            "{name} died in the war.",
            "{name} lives no more.",
            "{name} has died.",
        ),
        ("{name} died years ago.", "By now {name} is deceased."),
    ),
    "patronus": Phrasings(
        (
            "The patronus of {name} is a {value}.",
            "{name} has the patronus {value}.",
            "{name} calls a {value} as patronus.",
            "A {value} is the patronus of {name}.",
            "The patronus of {name}: {value}.",
            "Out of the wand of {name} comes a {value}.",
            "{name} is guarded by a silver {value}.",
            "The patronus takes the form of a {value}.",
        ),
        ("{name} casts a {value} as patronus.", "As patronus {name} has a {value}."),
    ),
    "bogart": Phrasings(
        (
            "The bogart of {name} is a {value}.",
            "{name} has the bogart {value}.",
            "{name} fears a {value}.",
            "Before {name} a bogart turns into a {value}.",
            "The bogart of {name}: {value}.",
            "A {value} is what the bogart shows {name}.",
            "{name} is afraid of a {value}.",
            "The bogart becomes a {value} for {name}.",
        ),
        ("For {name} the bogart takes the form of a {value}.", "{name} is most afraid of a {value}."),
    ),
}


@dataclass(frozen=True)
class Character:
    """One character; every text holds letters, digits and spaces only and at most LONGEST of them."""

    name: str
    house: str
    blood: str
    occupation: str
    wood: str
    core: str
    length: float
    alive: str
    patronus: str
    bogart: str

    def sheet(self) -> dict[str, Value]:
        """Return the object in the benchmark's order of keys."""
        return {
            "name": self.name,
            "house": self.house,
            "blood status": self.blood,
            "occupation": self.occupation,
            "wand": {"wood": self.wood, "core": self.core, "length": self.length},
            "alive": self.alive,
            "patronus": self.patronus,
            "bogart": self.bogart,
        }


def fitting(draw: Callable[[], str]) -> str:
    """Draw from a zero-argument callable until the text has at most LONGEST ASCII letters, digits and spaces."""
    while True:
        text = draw()
        if len(text) <= LONGEST and all(part.isascii() and part.isalnum() for part in text.split(" ")):
            return text


def _core(rng: Random, split: Split) -> str:
    beast = words.open_pick(rng, _BEASTS, split)
    return f"{beast} {rng.choice(_PARTS)}"


def draw(rng: Random, split: Split) -> Character:
    """Draw a character."""
    return Character(
        name=fitting(lambda: words.person(rng, split)),
        house=rng.choice(HOUSES),
        blood=rng.choice(BLOOD),
        occupation=rng.choice(OCCUPATIONS),
        wood=fitting(lambda: words.open_pick(rng, _WOODS, split)),
        core=fitting(lambda: _core(rng, split)),
        length=(rng.randrange(50, 200) * 10 + rng.choice((0, 0, 0, 5))) / 100,
        alive=rng.choice(("Alive", "Deceased")),
        patronus=fitting(lambda: words.open_pick(rng, words.ANIMALS, split)),
        bogart=fitting(lambda: words.open_pick(rng, rng.choice((_FEARS, words.OBJECTS)), split)),
    )


def tell(rng: Random, split: Split, character: Character) -> str:
    """Tell everything about a character in sentences, in any order."""
    wand: dict[str, object] = {"wood": character.wood, "core": character.core, "length": character.length}
    facts: list[tuple[str, dict[str, object]]] = [
        ("house", {"value": character.house}),
        ("blood status", {"value": character.blood}),
        ("occupation", {"value": character.occupation}),
        ("wand", wand),
        (character.alive, {}),
        ("patronus", {"value": character.patronus}),
        ("bogart", {"value": character.bogart}),
    ]
    if rng.random() < 0.6:
        rng.shuffle(facts)
    return " ".join(_TOLD[label].pick(rng, split).format(name=character.name, **values) for label, values in facts)


def listing(rng: Random, character: Character) -> str:
    """Write everything as `key: value`, in lines or in one line."""
    pairs = [
        ("name", character.name),
        ("house", character.house),
        ("blood status", character.blood),
        ("occupation", character.occupation),
        ("wand wood", character.wood),
        ("wand core", character.core),
        ("wand length", str(character.length)),
        (
            "alive",
            rng.choice(("yes", character.alive)) if character.alive == "Alive" else rng.choice(("no", "Deceased")),
        ),
        ("patronus", character.patronus),
        ("bogart", character.bogart),
    ]
    if rng.random() < 0.4:
        head, *rest = pairs
        rng.shuffle(rest)
        pairs = [head, *rest]
    sign = rng.choice((": ", ": ", " = ", " - "))
    return rng.choice(("\n", "\n", "; ", ", ")).join(f"{key}{sign}{value}" for key, value in pairs)
