"""People and things with attributes: the facts that prompts state and questions ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import words
from training.attributes import PERSON_ATTRIBUTES, Attribute
from training.document import Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random


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
        "{name} has {value} as {label}.",
        "The {label} is {value} for {name}.",
        "It is {name} that has the {label} {value}.",
        "The {label} {name} has is {value}.",
        "With {name} the {label} is {value}.",
        "To {name} belongs the {label} {value}.",
        "The {label} that {name} got is {value}.",
        "By {name} stands the {label} {value}.",
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
        "{name} {first} and {second}, too.",
        "We heard that {name} {first} and {second}.",
        "{name} not only {first} but {second}.",
        "{name} both {first} and {second}.",
        "{name} {first}, and then {name} {second}.",
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
        "They wrote that {name} {first}.",
        "Some say that {name} {first}.",
        "One thing is sure: {name} {first}.",
        "Everyone knows {name} {first}.",
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
_KINDS = (
    "the",
    "a new",
    "some",
    "that fine",
    "one big",
    "the nice",
    "small",
    "plain",
    "famous",
    "dear",
    "this",
    "real",
)
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
    draw = rng.random() if split is Split.TRAIN else 1.0
    value = f"{rng.choice(_KINDS)} {fact.value}" if 0.15 < draw < 0.45 else fact.value
    clause = fact.attribute.clauses.pick(rng, split).format(value=value)
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
