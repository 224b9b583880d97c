"""Cities and the pages about them: what is known, how it is drawn and told.

The keys of a sheet are those of SGLang's benchmark json_city, whose regex accepts every sheet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import words
from training.characters import fitting
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

    from training.document import Split
    from training.objects import Value

_SIGHTS = words.split_words(
    "Tower Bridge Park Market Hall Museum Gate Lake Garden Castle Square Temple Library Harbour Theatre Palace "
    "Fountain Church Mill Hill Arch Station Wall Zoo"
)
_ADJECTIVES = words.split_words(
    "Old New Great Royal Grand Upper Lower White Red Green Little Long High Stone Golden North"
)

_TOLD = {
    "country": Phrasings(
        (
            "{name} is a city in {value}.",
            "{name} lies in {value}.",
            "The country of {name} is {value}.",
            "{name} is one of the cities of {value}.",
            "{name} belongs to {value}.",
            "In {value} lies the city of {name}.",
            "{name} is found in {value}.",
            "{name} is a town in the west of {value}.",
            "{value} is the country of {name}.",
        ),
        ("{name} is a large city in {value}.", "The city of {name} lies in {value}."),
    ),
    "latitude": Phrasings(
        (
            "Its latitude is {value}.",
            "The latitude of {name} is {value}.",
            "{name} lies at latitude {value}.",
            "On the map {name} has the latitude {value}.",
            "Latitude: {value}.",
            "{name} stands at {value} degrees of latitude.",
            "{value} is the latitude of {name}.",
            "The latitude was measured as {value}.",
        ),
        ("{name} has a latitude of {value}.", "Maps show {name} at latitude {value}."),
    ),
    "population": Phrasings(
        (
            "It has a population of {value}.",
            "The population of {name} is {value}.",
            "{name} has {value} people.",
            "{value} people live in {name}.",
            "At the last count {name} had {value} people.",
            "{name} is home to {value} people.",
            "Population: {value}.",
            "The population was counted as {value}.",
            "A population of {value} lives there.",
        ),
        ("{name} has a population of {value}.", "The number of people in {name} is {value}."),
    ),
    "landmarks": Phrasings(
        (
            "Its landmarks are {value}.",
            "The landmarks of {name} are {value}.",
            "Visitors come to see {value}.",
            "{name} is known for {value}.",
            "Known landmarks are {value}.",
            "Most guests of {name} visit {value}.",
            "The top landmarks: {value}.",
            "Do not miss {value}.",
            "Among the sights are {value}.",
        ),
        ("The best known landmarks of {name} are {value}.", "Guests like to see {value}."),
    ),
    "river": Phrasings(
        (
            "The river {value} runs through {name}.",
            "{name} stands on the river {value}.",
            "The river of {name} is the {value}.",
            "Its river is called {value}.",
            "Boats go to {name} on the {value}.",
            "Bridges cross the {value}, the river of {name}.",
        ),
        ("The river at {name} is the {value}.",),
    ),
    "mayor": Phrasings(
        (
            "The mayor of {name} is {value}.",
            "Its mayor is {value}.",
            "{value} is the mayor of {name}.",
            "{name} is led by its mayor, {value}.",
            "The mayor is called {value}.",
            "{value} became mayor of {name}.",
        ),
        ("{value} was made mayor of {name}.",),
    ),
    "founded": Phrasings(
        (
            "{name} was founded in {value}.",
            "It was founded in {value}.",
            "Since {value} {name} has been a city.",
            "The founding of {name} was in {value}.",
            "In {value} people founded {name}.",
            "{name} goes back to {value}, when it was founded.",
        ),
        ("The year {name} was founded is {value}.",),
    ),
    "language": Phrasings(
        (
            "People in {name} speak {value}.",
            "Its language is {value}.",
            "The language of {name} is {value}.",
            "{value} is spoken in {name}.",
            "Schools in {name} teach in {value}.",
        ),
        ("The people of {name} talk in {value}.",),
    ),
    "airport code": Phrasings(
        (
            "The airport code of {name} is {value}.",
            "Its airport has the code {value}.",
            "{value} is the code of its airport.",
            "Planes to {name} carry the airport code {value}.",
            "Airport code: {value}.",
        ),
        ("The airport of {name} has the code {value}.",),
    ),
}
_FILLERS = Phrasings(
    (
        "The {place} was built of {material}.",
        "Every {month} there is a {thing} fair.",
        "Many work as a {job} here.",
        "The trade in {material} made the town rich.",
        "A train goes to {other} twice a day.",
        "The twin town is {other}.",
        "The road to {other} is long.",
        "In the {place} hangs an old {thing}.",
        "The local dish is {food}.",
        "The winters are mild and the summers are dry.",
        "A {job} from {other} painted the {place}.",
        "Once a fire burned down the {place}.",
        "Children learn to make a {thing} at school.",
        "The market sells {food} and {material}.",
        "Its flag shows a {animal}.",
        "In {other} they tell jokes about the town.",
        "The {animal} is a common sight in the streets.",
    ),
    (
        "The old {place} is made of {material}.",
        "People like {food} here.",
        "A bus goes to {other}.",
        "One can buy a {thing} in the {place}.",
    ),
)
_MONTHS = words.split_words("January April May June July October")


@dataclass(frozen=True)
class City:
    """One city; texts hold letters, digits and spaces only and at most sixteen of them."""

    name: str
    country: str
    latitude: float
    population: int
    landmarks: tuple[str, ...]
    river: str
    mayor: str
    founded: int
    language: str
    code: str

    def sheet(self) -> dict[str, Value]:
        """Return the object in the benchmark's order of keys."""
        return {
            "name": self.name,
            "country": self.country,
            "latitude": self.latitude,
            "population": self.population,
            "top 3 landmarks": list(self.landmarks),
        }

    def fields(self) -> dict[str, Value]:
        """Return every field by its label."""
        return {
            **self.sheet(),
            "river": self.river,
            "mayor": self.mayor,
            "founded": self.founded,
            "language": self.language,
            "airport code": self.code,
        }


def _landmark(rng: Random, split: Split) -> str:
    sight = rng.choice(_SIGHTS)
    if rng.random() < 0.35:
        return f"{rng.choice(_ADJECTIVES)} {sight}"
    return f"{words.made_word(rng, split).capitalize()} {sight}"


def draw(rng: Random, split: Split) -> City:
    """Draw a city."""
    sign = -1 if rng.random() < 0.35 else 1
    return City(
        name=fitting(lambda: words.city(rng, split)),
        country=fitting(lambda: words.made_word(rng, split).capitalize()),
        latitude=sign * rng.randrange(100, 9000) / 100,
        population=rng.randrange(1, 10 ** rng.choice((1, 2, 2, 2, 3))) * 10 ** rng.randrange(2, 5)
        + rng.randrange(1000),
        landmarks=tuple(words.distinct(3, lambda: fitting(lambda: _landmark(rng, split)))),
        river=fitting(lambda: words.made_word(rng, split).capitalize()),
        mayor=fitting(lambda: words.person(rng, split)),
        founded=rng.randrange(800, 2000),
        language=fitting(lambda: words.open_pick(rng, words.LANGUAGES, split)),
        code="".join(rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(3)),
    )


def _filler(rng: Random, split: Split) -> str:
    return _FILLERS.pick(rng, split).format(
        place=rng.choice(words.PLACES),
        material=rng.choice(words.MATERIALS),
        month=rng.choice(_MONTHS),
        thing=rng.choice(words.OBJECTS),
        job=rng.choice(words.JOBS),
        other=words.city(rng, split),
        food=rng.choice(words.FOODS),
        animal=rng.choice(words.ANIMALS),
    )


def page(rng: Random, split: Split, city: City, length: int, *, everything: bool) -> str:
    """Write a page of about `length` characters: the fields of the sheet, or all, in sentences among others."""
    first, second, third = (f"the {name}" if rng.random() < 0.5 else name for name in city.landmarks)
    values: dict[str, object] = {
        "country": city.country,
        "latitude": city.latitude,
        "population": city.population,
        "landmarks": f"{first}, {second} and {third}",
    }
    if everything:
        values |= {"river": city.river, "mayor": city.mayor, "founded": city.founded}
        values |= {"language": city.language, "airport code": city.code}
    told = {label: _TOLD[label].pick(rng, split).format(name=city.name, value=value) for label, value in values.items()}
    opening = told.pop("country")
    sentences = list(told.values())
    if rng.random() < 0.6:
        rng.shuffle(sentences)
    size = len(opening) + sum(map(len, sentences))
    while size < length:
        sentences.insert(rng.randrange(len(sentences) + 1), _filler(rng, split))
        size += 40
    joint = "\n" if rng.random() < 0.2 else " "
    return joint.join((opening, *sentences))


def listing(rng: Random, city: City) -> str:
    """Write the fields of the sheet as `key: value`, in lines or in one line."""
    pairs = [
        ("name", city.name),
        ("country", city.country),
        ("latitude", str(city.latitude)),
        ("population", str(city.population)),
        ("landmarks", ", ".join(city.landmarks)),
    ]
    return rng.choice(("\n", "\n", "; ")).join(f"{key}: {value}" for key, value in pairs)
