"""Several turns: the user tells things about themselves and others, and asks for them later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training import words
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_SYSTEM = Phrasings(
    (
        "You are a friendly assistant.",
        "You remember what the user says.",
        "You are helpful and brief.",
        "You chat with the user.",
    ),
    ("You are a helpful, friendly assistant.", "You remember the user."),
)
_TELL_NAME = Phrasings(
    (
        "My name is {value}.",
        "I am {value}.",
        "Hello, my name is {value}.",
        "Hi, I am {value}.",
        "Call me {value}.",
        "Hello! I am called {value}.",
    ),
    ("Hi, my name is {value}.", "Hello, I am called {value}."),
)
_ASK_NAME = Phrasings(
    (
        "What is my name?",
        "Who am I?",
        "Do you remember my name?",
        "What am I called?",
        "Tell me my name.",
        "What did I say my name is?",
        "Do you still know my name?",
        "Remind me of my name.",
        "Could you say my name?",
    ),
    ("Can you tell me my name?", "Do you know what my name is?"),
)
_TELL = Phrasings(
    (
        "My {label} is {value}.",
        "My favorite {label} is {value}.",
        "The {label} I like best is {value}.",
        "I tell you that my {label} is {value}.",
        "Please remember: my {label} is {value}.",
        "Note that my {label} is {value}.",
    ),
    ("Please note that my {label} is {value}.", "Remember that my favorite {label} is {value}."),
)
_ASK = Phrasings(
    (
        "What is my {label}?",
        "What is my favorite {label}?",
        "Which {label} did I name?",
        "Do you remember my {label}?",
        "Tell me my {label}.",
        "What did I say about my {label}?",
        "Remind me of my {label}.",
        "Could you repeat my {label}?",
        "Say my {label}.",
    ),
    ("Can you tell me my {label}?", "Which is my {label}?"),
)
_CHANGE = Phrasings(
    (
        "I was wrong, my {label} is {value}.",
        "Now my {label} is {value}.",
        "No, my {label} is {value}.",
        "My {label} is now {value}.",
        "Update: my {label} is {value} now.",
        "Please correct that, my {label} is {value}.",
    ),
    ("Sorry, my {label} is now {value}.",),
)
_SMALL_TALK = (
    ("How are you?", "I am fine, thank you."),
    ("Thank you.", "You are welcome."),
    ("Thanks!", "You are welcome."),
    ("Can you help me?", "Yes, I can help you."),
    ("Who are you?", "I am a small language model."),
    ("What can you do?", "I can remember what you tell me."),
    ("Are you there?", "Yes, I am here."),
    ("Tell me something nice.", "You are doing well today."),
    ("Good morning.", "Good morning to you."),
    ("Nice weather today.", "Yes, it is nice."),
)
_BYE = (
    ("Goodbye.", "Goodbye, {name}."),
    ("Bye!", "Goodbye, {name}."),
    ("Say hello to me.", "Hello, {name}."),
    ("Greet me.", "Hello, {name}."),
)


def _drawers(rng: Random, split: Split) -> dict[str, Callable[[], str]]:
    lists = {
        "color": words.COLORS,
        "pet": words.ANIMALS,
        "food": words.FOODS,
        "job": words.JOBS,
        "sport": words.SPORTS,
        "language": words.LANGUAGES,
        "instrument": words.INSTRUMENTS,
    }
    drawers: dict[str, Callable[[], str]] = {
        label: (lambda options=options: words.open_pick(rng, options, split)) for label, options in lists.items()
    }
    for label in ("city", "town", "village", "country"):
        drawers[label] = lambda: words.city(rng, split)
    for label in ("friend", "brother", "sister", "teacher", "dog"):
        drawers[label] = lambda: words.first_name(rng, split)
    drawers["number"] = lambda: words.small_number(rng)
    drawers["code"] = lambda: words.code(rng)
    drawers[words.pick(rng, words.COMMON, split)] = lambda: words.any_word(rng, split)
    return drawers


def _chat(rng: Random, split: Split, document: Document, length: int) -> None:
    """One conversation: tell, small talk, ask; later statements replace earlier ones."""
    drawers = _drawers(rng, split)
    known: dict[str, str] = {}
    name = words.person(rng, split)
    if rng.random() < 0.9:
        document.message("user", _TELL_NAME.pick(rng, split).format(value=name))
        document.reply(f"Hello, {name}.")
        known["name"] = name
    start = document.length
    while document.length - start < length:
        draw = rng.random()
        if draw < 0.38 and len(known) < len(drawers):
            _tell(rng, split, document, drawers, known)
        elif draw < 0.5:
            question, answer = rng.choice(_SMALL_TALK)
            document.message("user", question)
            document.reply(answer)
        elif draw < 0.56 and "name" in known:
            question, answer = rng.choice(_BYE)
            document.message("user", question)
            document.reply(answer.format(name=name))
        elif known:
            _ask(rng, split, document, known)


def _tell(
    rng: Random, split: Split, document: Document, drawers: dict[str, Callable[[], str]], known: dict[str, str]
) -> None:
    label = rng.choice(list(drawers))
    value = drawers[label]()
    pattern = _CHANGE if label in known else _TELL
    document.message("user", pattern.pick(rng, split).format(label=label, value=value))
    document.reply(f"I will remember that your {label} is {value}.")
    known[label] = value


def _ask(rng: Random, split: Split, document: Document, known: dict[str, str]) -> None:
    label = rng.choice(list(known))
    pattern = _ASK_NAME if label == "name" else _ASK
    document.message("user", pattern.pick(rng, split).format(label=label))
    document.reply(f"Your {label} is {known[label]}.")


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("conversation")
    if rng.random() < 0.6:
        document.message("system", _SYSTEM.pick(rng, split))
    _chat(rng, split, document, length)
    return document
