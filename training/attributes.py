"""What can be told of a person: attributes, how their values are drawn, told and asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import words
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from training.document import Split


@dataclass(frozen=True)
class Attribute:
    """One attribute of a person: its label, how values are drawn, how it is told and asked.

    `clauses` follow a name ("lives in {value}"); `questions` hold `{name}`.
    """

    label: str
    draw: Callable[[Random, Split], str]
    clauses: Phrasings
    questions: Phrasings


def _from(options: list[str]) -> Callable[[Random, Split], str]:
    return lambda rng, split: words.open_pick(rng, options, split)


PERSON_ATTRIBUTES = (
    Attribute(
        "city",
        words.city,
        Phrasings(
            (
                "lives in {value}",
                "has a home in {value}",
                "moved to {value}",
                "has a flat in {value}",
                "settled in {value}",
                "comes home to {value}",
                "rents a room in {value}",
                "stays in {value}",
                "calls {value} home",
            ),
            ("now lives in {value}", "has a small home in {value}"),
        ),
        Phrasings(
            (
                "Where does {name} live?",
                "In which city does {name} live?",
                "What is the home city of {name}?",
                "Name the city where {name} lives.",
                "Which city is the home of {name}?",
                "What is the city of {name}?",
                "Where is the home of {name}?",
                "Tell me where {name} lives.",
                "{name} lives in which city?",
                "What is the name of the city {name} lives in?",
            ),
            ("In what city does {name} live?", "Which city does {name} live in?"),
        ),
    ),
    Attribute(
        "job",
        _from(words.JOBS),
        Phrasings(
            (
                "works as a {value}",
                "is a {value}",
                "earns money as a {value}",
                "has a job as a {value}",
                "was trained as a {value}",
                "makes a living as a {value}",
                "spends the day working as a {value}",
                "took a post as a {value}",
                "became a {value}",
            ),
            ("works hard as a {value}", "has the job of a {value}"),
        ),
        Phrasings(
            (
                "What is the job of {name}?",
                "What does {name} work as?",
                "What job does {name} have?",
                "Which job does {name} do?",
                "How does {name} earn money?",
                "What work does {name} do?",
                "Tell me the job of {name}.",
                "What kind of work does {name} do?",
                "{name} has which job?",
                "What is {name} by trade?",
            ),
            ("Which job does {name} have?", "What does {name} do for a job?"),
        ),
    ),
    Attribute(
        "color",
        _from(words.COLORS),
        Phrasings(
            (
                "likes the color {value}",
                "loves {value} as a color",
                "always wears {value}",
                "picks {value} as a favorite color",
                "likes {value} more than any other color",
                "thinks {value} is the best color",
                "painted the door {value}",
                "has {value} as a favorite color",
            ),
            ("really likes the color {value}", "has the favorite color {value}"),
        ),
        Phrasings(
            (
                "Which color does {name} like?",
                "What is the favorite color of {name}?",
                "What color does {name} wear?",
                "Name the color that {name} likes.",
                "Tell me the favorite color of {name}.",
                "Which color does {name} love?",
                "{name} likes which color?",
            ),
            ("What color does {name} like?", "Which color is the favorite of {name}?"),
        ),
    ),
    Attribute(
        "pet",
        _from(words.ANIMALS),
        Phrasings(
            (
                "has a pet {value}",
                "keeps a {value}",
                "owns a {value} as a pet",
                "looks after a {value}",
                "lives with a {value}",
                "feeds a {value}",
                "has got a {value}",
                "takes care of a {value}",
            ),
            ("has a little pet {value}", "keeps a {value} as a pet"),
        ),
        Phrasings(
            (
                "Which pet does {name} have?",
                "What pet does {name} keep?",
                "What animal does {name} own?",
                "Which animal does {name} keep?",
                "What is the pet of {name}?",
                "Tell me which animal {name} has.",
                "{name} keeps which pet?",
                "What kind of animal does {name} have?",
            ),
            ("What pet does {name} have?", "Which animal is the pet of {name}?"),
        ),
    ),
    Attribute(
        "food",
        _from(words.FOODS),
        Phrasings(
            (
                "likes to eat {value}",
                "loves eating {value}",
                "eats {value} every day",
                "enjoys {value} for dinner",
                "likes {value} best of all food",
                "cooks {value} at home",
                "never says no to {value}",
                "always asks for {value}",
            ),
            ("mostly likes to eat {value}", "eats {value} for dinner"),
        ),
        Phrasings(
            (
                "What does {name} like to eat?",
                "What food does {name} like?",
                "Which food does {name} eat?",
                "What is the favorite food of {name}?",
                "Tell me what {name} likes to eat.",
                "What does {name} eat for dinner?",
                "{name} loves which food?",
            ),
            ("Which food does {name} like?", "What does {name} eat?"),
        ),
    ),
    Attribute(
        "instrument",
        _from(words.INSTRUMENTS),
        Phrasings(
            (
                "plays the {value}",
                "practises the {value}",
                "learned to play the {value}",
                "performs on the {value}",
                "can play the {value}",
                "takes lessons on the {value}",
                "is good at the {value}",
                "picked up the {value}",
            ),
            ("plays the {value} well", "has learned the {value}"),
        ),
        Phrasings(
            (
                "Which instrument does {name} play?",
                "What does {name} play?",
                "What is the instrument of {name}?",
                "Name the instrument of {name}.",
                "Tell me which instrument {name} plays.",
                "{name} plays which instrument?",
                "What instrument did {name} learn?",
            ),
            ("What instrument does {name} play?", "Which instrument is played by {name}?"),
        ),
    ),
    Attribute(
        "language",
        _from(words.LANGUAGES),
        Phrasings(
            (
                "speaks {value}",
                "learned {value} at school",
                "reads and writes {value}",
                "talks to friends in {value}",
                "is fluent in {value}",
                "can speak {value}",
                "grew up with {value}",
                "writes letters in {value}",
            ),
            ("speaks good {value}", "learned to speak {value}"),
        ),
        Phrasings(
            (
                "Which language does {name} speak?",
                "What language did {name} learn?",
                "What is the language of {name}?",
                "Name the language {name} speaks.",
                "Tell me which language {name} speaks.",
                "{name} speaks which language?",
                "In which language does {name} talk?",
            ),
            ("What language does {name} speak?", "Which language is spoken by {name}?"),
        ),
    ),
    Attribute(
        "year",
        lambda rng, _split: words.year(rng),
        Phrasings(
            (
                "was born in {value}",
                "has been alive since {value}",
                "came into the world in {value}",
                "was a baby in {value}",
                "first saw the light in {value}",
                "was born around {value}",
                "is a child of {value}",
                "came to be in {value}",
            ),
            ("was born in the year {value}", "was born back in {value}"),
        ),
        Phrasings(
            (
                "When was {name} born?",
                "In which year was {name} born?",
                "What is the birth year of {name}?",
                "Which year was {name} born in?",
                "Tell me when {name} was born.",
                "{name} was born when?",
                "What year was {name} born?",
            ),
            ("In what year was {name} born?", "Name the year {name} was born."),
        ),
    ),
    Attribute(
        "sport",
        _from(words.SPORTS),
        Phrasings(
            (
                "does {value} as a sport",
                "trains for {value}",
                "spends weekends on {value}",
                "joined a {value} club",
                "is fond of {value}",
                "practises {value}",
                "takes part in {value}",
                "has taken up {value}",
            ),
            ("often trains for {value}", "does the sport of {value}"),
        ),
        Phrasings(
            (
                "Which sport does {name} do?",
                "What sport does {name} train for?",
                "What is the sport of {name}?",
                "Name the sport of {name}.",
                "Tell me the sport of {name}.",
                "{name} does which sport?",
                "What sport is {name} fond of?",
            ),
            ("What sport does {name} do?", "Which sport does {name} train for?"),
        ),
    ),
    Attribute(
        "friend",
        words.first_name,
        Phrasings(
            (
                "has a friend called {value}",
                "is a friend of {value}",
                "often meets {value}",
                "is close friends with {value}",
                "knows {value} well",
                "goes out with a friend, {value}",
                "shares a flat with {value}",
                "grew up with a friend named {value}",
            ),
            ("has a good friend called {value}", "is an old friend of {value}"),
        ),
        Phrasings(
            (
                "Who is the friend of {name}?",
                "Which friend does {name} have?",
                "Who is a friend of {name}?",
                "Whom does {name} often meet?",
                "Tell me the friend of {name}.",
                "{name} is friends with whom?",
                "What is the name of the friend of {name}?",
            ),
            ("Who is {name} friends with?", "What friend does {name} have?"),
        ),
    ),
    Attribute(
        "vehicle",
        _from(words.VEHICLES),
        Phrasings(
            (
                "drives a {value}",
                "travels by {value}",
                "goes to work by {value}",
                "bought a {value} to get around",
                "owns a {value}",
                "gets around by {value}",
                "rides in a {value}",
                "arrived by {value}",
            ),
            ("often travels by {value}", "drives an old {value}"),
        ),
        Phrasings(
            (
                "What does {name} drive?",
                "How does {name} travel?",
                "Which vehicle does {name} use?",
                "What is the vehicle of {name}?",
                "Tell me what {name} drives.",
                "{name} drives what?",
                "By what does {name} get around?",
            ),
            ("What vehicle does {name} use?", "Which vehicle does {name} drive?"),
        ),
    ),
    Attribute(
        "age",
        lambda rng, _split: words.small_number(rng),
        Phrasings(
            (
                "is {value} years old",
                "turned {value} this year",
                "has the age of {value}",
                "is aged {value}",
                "has lived for {value} years",
                "will stay {value} years old until spring",
                "is now aged {value}",
                "reached the age of {value}",
            ),
            ("is just {value} years old", "turned {value} last week"),
        ),
        Phrasings(
            (
                "How old is {name}?",
                "What is the age of {name}?",
                "What age is {name}?",
                "How many years old is {name}?",
                "Tell me the age of {name}.",
                "{name} is how old?",
                "What is the age that {name} has?",
            ),
            ("Which age is {name}?", "Say how old {name} is."),
        ),
    ),
)
