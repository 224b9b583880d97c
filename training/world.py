"""People and things with attributes: the facts that prompts state and questions ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import words
from training.document import Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


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

_LINKED = Phrasings(
    (
        "The {label} of {name} is {value}.",
        "{name} has the {label} {value}.",
        "For {name} the {label} is {value}.",
        "{value} is the {label} of {name}.",
        "{name} got the {label} {value}.",
        "{name}: {label} {value}.",
        "The {label} for {name} was {value}.",
        "When it comes to the {label}, {name} has {value}.",
        "About {name}: the {label} is {value}.",
    ),
    ("The {label} that belongs to {name} is {value}.", "As for {name}, the {label} is {value}."),
)
_LINKED_QUESTION = Phrasings(
    (
        "What is the {label} of {name}?",
        "Which {label} does {name} have?",
        "Name the {label} of {name}.",
        "What {label} does {name} have?",
        "Tell me the {label} of {name}.",
        "Give the {label} of {name}.",
        "The {label} of {name} is what?",
        "{name} has which {label}?",
        "Can you name the {label} {name} has?",
    ),
    ("Which is the {label} of {name}?", "Please name the {label} of {name}."),
)
_PAIRED = Phrasings(
    (
        "{name} {first} and {second}.",
        "{name}, who {first}, {second}.",
        "{name} {first}. {name} also {second}.",
        "{name} {first}; {name} {second}.",
        "{name} {first} while {name} {second}.",
        "They say {name} {first} and also {second}.",
    ),
    ("{name} {first} but also {second}.", "It is said that {name} {first} and {second}."),
)
_SINGLE = Phrasings(
    (
        "{name} {first}.",
        "{name} {first}.",
        "We know that {name} {first}.",
        "I heard that {name} {first}.",
        "Our friend {name} {first}.",
        "It is true that {name} {first}.",
    ),
    ("People say that {name} {first}.",),
)


_LEADS = (
    "Tell me: ",
    "Next question: ",
    "By the text: ",
    "Say: ",
    "Now: ",
    "Do you know? ",
    "Quick: ",
    "And: ",
    "Then: ",
)
_MANNERS = ("still", "always", "usually", "proudly", "gladly", "already", "also", "quietly", "once", "indeed", "later")
_CLOSES = (" these days", " for sure", " again", " too", " as before", " with joy", " this time", " indeed")


@dataclass(frozen=True)
class Fact:
    """One stated fact: `name` has `value` for `label`; `attribute` is None for made-up labels."""

    name: str
    label: str
    value: str
    attribute: Attribute | None

    def question(self, rng: Random, split: Split) -> str:
        """Ask for the value."""
        if self.attribute is None or rng.random() < 0.15:
            question = _LINKED_QUESTION.pick(rng, split).format(label=self.label, name=self.name)
        else:
            question = self.attribute.questions.pick(rng, split).format(name=self.name)
        return rng.choice(_LEADS) + question if split is Split.TRAIN and rng.random() < 0.25 else question


def _clause(rng: Random, split: Split, fact: Fact) -> str:
    """Word one fact without the name; in training at times with a filler before or after it."""
    assert fact.attribute is not None
    clause = fact.attribute.clauses.pick(rng, split).format(value=fact.value)
    draw = rng.random() if split is Split.TRAIN else 1.0
    if draw < 0.2:
        return f"{rng.choice(_MANNERS)} {clause}"
    return clause + rng.choice(_CLOSES) if draw < 0.3 else clause


def tell(rng: Random, split: Split, facts: list[Fact]) -> list[str]:
    """Tell the facts of one person in sentences of one or two facts each."""
    sentences: list[str] = []
    queue = list(facts)
    while queue:
        fact = queue.pop()
        if fact.attribute is None or rng.random() < 0.1:
            sentences.append(_LINKED.pick(rng, split).format(label=fact.label, name=fact.name, value=fact.value))
            continue
        first = _clause(rng, split, fact)
        if queue and queue[-1].attribute is not None and rng.random() < 0.45:
            other = queue.pop()
            second = _clause(rng, split, other)
            sentences.append(_PAIRED.pick(rng, split).format(name=fact.name, first=first, second=second))
        else:
            sentences.append(_SINGLE.pick(rng, split).format(name=fact.name, first=first))
    return sentences


def person_facts(rng: Random, split: Split, name: str, count: int) -> list[Fact]:
    """Draw facts with different labels about one person or thing."""
    facts: list[Fact] = []
    if rng.random() < 0.2:
        labels = words.distinct(count, lambda: words.pick(rng, words.COMMON, split))
        return [Fact(name, label, words.any_word(rng, split), None) for label in labels]
    for attribute in rng.sample(PERSON_ATTRIBUTES, min(count, len(PERSON_ATTRIBUTES))):
        facts.append(Fact(name, attribute.label, attribute.draw(rng, split), attribute))
    return facts


def passage(rng: Random, split: Split, people: int, facts_each: int) -> tuple[str, list[Fact]]:
    """Tell facts about several people; return the text and the facts."""
    names = words.distinct(people, lambda: words.person(rng, split))
    facts: list[Fact] = []
    groups: list[list[str]] = []
    for name in names:
        own = person_facts(rng, split, name, facts_each)
        facts += own
        groups.append(tell(rng, split, own))
    if rng.random() < 0.5:
        sentences = [sentence for group in groups for sentence in group]
        rng.shuffle(sentences)
    else:
        sentences = [sentence for group in groups for sentence in group]
    joint = "\n" if rng.random() < 0.2 else " "
    return joint.join(sentences), facts


def distractors(rng: Random, split: Split, fact: Fact, facts: list[Fact], count: int) -> list[str]:
    """Draw wrong values for a fact: values of the same kind in the text first, then new ones."""
    same = list(dict.fromkeys(f.value for f in facts if f.label == fact.label and f.value != fact.value))
    other_kind = [other.value for other in facts if other.label != fact.label and other.value != fact.value]
    rng.shuffle(same)
    wrong = same[: rng.randrange(count + 1)]
    while len(wrong) < count:
        # A short list may have too few held-out words: wrong answers then come from either side.
        side = split if rng.random() < 0.5 else Split.TRAIN
        if fact.attribute is None or (other_kind and rng.random() < 0.15):
            value = rng.choice(other_kind) if other_kind and rng.random() < 0.6 else words.any_word(rng, side)
        else:
            value = fact.attribute.draw(rng, side)
        if value != fact.value and value not in wrong:
            wrong.append(value)
    return wrong
