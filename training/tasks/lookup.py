"""Answering by looking things up, in the ReAct form: Thought, Action, Observation, Answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training import words
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

_SYSTEM = Phrasings(
    (
        "Answer with the tool lookup.",
        "Use lookup[x] to find facts, then answer.",
        "You can use lookup[x]. Think, act, then answer.",
        "Solve the question with Thought, Action and Observation steps.",
        "Find the answer with lookup[x].",
        "You have one tool, lookup[x].",
        "Think, then call lookup[x].",
        "Work step by step with the tool lookup[x].",
        "Facts come from lookup[x] only.",
    ),
    ("Use the tool lookup[x], then answer.", "Think, use lookup[x] to find facts, then answer."),
)
_CHAIN = Phrasings(
    (
        "What is the {last} of the {inner}?",
        "Find the {last} of the {inner}.",
        "Which {last} has the {inner}?",
        "Name the {last} of the {inner}.",
        "Look up the {last} of the {inner}.",
        "I want to know the {last} of the {inner}.",
        "Say which is the {last} of the {inner}.",
        "Give me the {last} of the {inner}.",
        "Please say the {last} of the {inner}.",
        "Search for the {last} of the {inner}.",
        "Do you know the {last} of the {inner}?",
        "We need the {last} of the {inner}.",
        "The {last} of the {inner}, please.",
        "Try to learn the {last} of the {inner}.",
        "What would be the {last} of the {inner}?",
    ),
    ("Tell me the {last} of the {inner}.", "Find out the {last} of the {inner}."),
)
_OBSERVATION = Phrasings(
    (
        "The {relation} of {subject} is {value}.",
        "{subject} has the {relation} {value}.",
        "{value} is the {relation} of {subject}.",
        "{subject}: {relation} {value}.",
        "The {relation} of {subject} is {value}. The {other} of {subject} is {noise}.",
        "The {other} of {subject} is {noise}. The {relation} of {subject} is {value}.",
        "{subject} has the {other} {noise} and the {relation} {value}.",
        "{subject} has the {relation} {value}, the {other} is {noise}.",
        "{subject}: {other} {noise}, {relation} {value}.",
        "{subject}: {relation} {value}, {other} {noise}.",
        "The {relation} of {subject} is {value} and the {other} is {noise}.",
        "The {other} of {subject} is {noise} and the {relation} is {value}.",
        "{value} is the {relation} of {subject}, {noise} the {other}.",
        "For {subject} the {relation} is {value} and the {other} {noise}.",
        "{subject} has {noise} as {other} and {value} as {relation}.",
        "About {subject}: the {other} is {noise}. The {relation} is {value}.",
        "{subject} has the {other} {noise}; the {relation} of {subject} is {value}.",
        "We know of {subject} the {relation} {value}.",
    ),
    (
        "{subject} has the {relation} {value} and the {other} {noise}.",
        "The {other} of {subject} is {noise}, the {relation} is {value}.",
    ),
)
_FIRST = (
    "The {relation} of {subject} is {value}",
    "The {relation} of {subject} was {value}",
    "{subject} has {value} as {relation}",
    "{subject} has {value} for a {relation}",
    "{subject} got the {relation} {value}",
    "{value} is the {relation} of {subject}",
    "For {subject} the {relation} is {value}",
    "As to {subject}: the {relation} is {value}",
    "{subject}: {relation} {value}",
    "With {subject} goes the {relation} {value}",
    "The {relation} {subject} has is {value}",
)
_SECOND = (
    "the {relation} {value}",
    "the {relation} was {value}",
    "{value} as {relation}",
    "{relation} {value}",
    "{value} is the {relation}",
    "for the {relation} it is {value}",
    "its {relation} is {value}",
    "a {relation}, {value}",
)
_BETWEEN = (", ", " and ", "; ", ", and ", " while ", ", but ", " with ", " beside ", " (", " - ", ", also ")
_RELATIONS = words.split_words(
    "city country river owner color teacher friend brother sister mother father capital founder author leader "
    "boss king queen home school team club street mayor song book boat horse dog cook guide neighbor painter "
    "builder year price number"
)


def _episode(rng: Random, split: Split, document: Document) -> None:
    """Write one question, its steps and its answer."""
    hops = rng.choice((1, 1, 2, 2, 3, 4))
    relations = words.distinct(
        hops, lambda: words.pick(rng, _RELATIONS, split) if rng.random() < 0.8 else words.made_word(rng, split)
    )
    subject = words.person(rng, split)
    inner = " of the ".join(reversed(relations[:-1]))
    inner = f"{inner} of {subject}" if inner else subject
    question = _CHAIN.pick(rng, split).format(last=relations[-1], inner=inner)
    question = question.replace(f"the {subject}", subject) if not relations[:-1] else question
    document.text(f"Question: {question}\nThought:")
    for relation in relations:
        document.answer(f" I need the {relation} of {subject}.\nAction: lookup[{subject}]\n")
        value = _value(rng, split, relation)
        other = words.pick(rng, _RELATIONS, split)
        while other == relation:
            other = words.pick(rng, _RELATIONS, split)
        noise = _value(rng, split, other)
        if split is Split.TRAIN and rng.random() < 0.6:
            observation = _composed(rng, subject, {relation: value, other: noise})
        else:
            observation = _OBSERVATION.pick(rng, split).format(
                relation=relation, subject=subject, value=value, other=other, noise=noise
            )
        document.text(f"Observation: {observation}\nThought:")
        subject = value
    document.answer(f" I know the answer.\nAnswer: {subject}")


def _composed(rng: Random, subject: str, facts: dict[str, str]) -> str:
    """Word two facts in an order, two forms and a link drawn at random; none of the held-out phrasings can come out."""
    (first, value), (second, other) = rng.sample(list(facts.items()), 2)
    link = rng.choice(_BETWEEN)
    head = rng.choice(_FIRST).format(relation=first, subject=subject, value=value)
    tail = rng.choice(_SECOND).format(relation=second, value=other)
    return f"{head}{link}{tail}{')' if link == ' (' else ''}."


def _value(rng: Random, split: Split, relation: str) -> str:
    if relation in ("year", "number", "price"):
        return words.year(rng) if relation == "year" else words.small_number(rng)
    return words.city(rng, split) if rng.random() < 0.4 else words.person(rng, split)


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("lookup")
    chat = rng.random() < 0.45
    if chat:
        document.message("system", _SYSTEM.pick(rng, split))
    elif rng.random() < 0.5:
        document.text(f"{_SYSTEM.pick(rng, split)}\n\n")
    while document.length < length:
        if chat:
            _chat_episode(rng, split, document)
        else:
            _episode(rng, split, document)
            document.answer("\n", graded=False)
            document.text("\n")
    return document


def _chat_episode(rng: Random, split: Split, document: Document) -> None:
    """The question is a user message; the trace, observations included, is one assistant turn."""
    steps = Document("lookup")
    _episode(rng, split, steps)
    head, *rest = steps.segments
    question = head.text.removeprefix("Question: ").removesuffix("\nThought:")
    document.message("user", rng.choice(("", "Question: ")) + question)
    document.start_turn("assistant")
    document.text("Thought:")
    for segment in rest:
        document.segments.append(segment)
        document.length += len(segment.text)
    document.end_turn(learned=True)
