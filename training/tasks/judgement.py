"""Judging a short essay: on topic or not, one-line judgements, views joined into a verdict or a score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training.document import Document, Split
from training.phrasing import Phrasings
from training.tasks import essay

if TYPE_CHECKING:
    from random import Random

_SYSTEM = Phrasings(
    (
        "You grade essays.",
        "You judge essays.",
        "You are a fair judge.",
        "You are a strict teacher.",
        "You review short texts.",
    ),
    ("You are a judge of essays.", "You grade short texts."),
)
_ON_TOPIC = Phrasings(
    (
        "Is it on topic?",
        "Is the essay on topic?",
        "Does it keep to the topic?",
        "On topic?",
        "Does the text treat its topic?",
    ),
    ("Is the text on topic?", "Does the essay keep to its topic?"),
)
_JUDGE = Phrasings(
    (
        "Judge its {name}.",
        "Judge the {name}.",
        "How is its {name}?",
        "How good is the {name}?",
        "Rate the {name} of the essay.",
        "Say what you think of its {name}.",
    ),
    ("Judge the {name} of the essay.", "What do you think of its {name}?"),
)
_YES_NO = Phrasings(
    (
        "Is its {name} good?",
        "Is the {name} good?",
        "Does it have good {name}?",
        "Good {name}?",
        "Do you find its {name} good?",
    ),
    ("Is the {name} of the essay good?", "Would you say its {name} is good?"),
)
_VERDICT = Phrasings(
    ("", "", "", "\nVerdict?", "\nAccept, revise or reject?", "\nWhat is the verdict: accept, revise or reject?"),
    ("", "\nIs the verdict accept, revise or reject?"),
)
_QUALITY = Phrasings(
    ("\nIs the essay good or poor?", "\nGood or poor?", "\nFinal verdict, good or poor?"),
    ("\nIs it a good or a poor essay?", "\nVerdict, good or poor?"),
)
_SCORE = Phrasings(
    ("Score from 1 to 5?", "Give a score from 1 to 5.", "Grade it from 1 to 5.", "Score:"),
    ("Give it a score from 1 to 5.", "Which score from 1 to 5?"),
)
_COUNT = Phrasings(
    ("How many views are good?", "Count the good views.", "How many of them are good?"),
    ("How many good views are there?", "Count the views that are good."),
)
VERDICTS = ("accept", "revise", "reject")


def verdict(good: list[bool]) -> str:
    """Accept when two thirds of the views are good, reject when at most one third is."""
    share = sum(good) / len(good)
    if share > 0.65:
        return "accept"
    return "reject" if share < 0.35 else "revise"


def score(good: list[bool]) -> str:
    """Map the share of good views to 1 … 5."""
    return str(1 + int(4 * sum(good) / len(good) + 0.5))


def _views(rng: Random, count: int) -> tuple[str, list[bool]]:
    """Write joined views that need no essay."""
    chosen = rng.sample(essay.DIMENSIONS, count)
    bias = rng.choice((0.1, 0.5, 0.9))
    good = [rng.random() < bias for _ in chosen]
    return "\n".join(one.judgement(good=flag) for one, flag in zip(chosen, good, strict=True)), good


def _conclude(rng: Random, split: Split, document: Document, views: str, good: list[bool]) -> None:
    """Ask for the verdict over joined views, then for a score or a count."""
    head = rng.choice(("Views:\n", "Views:\n", "Judgements:\n", "The views are:\n"))
    if rng.random() < 0.7 or sum(good) * 2 == len(good):
        document.message("user", f"{head}{views}{_VERDICT.pick(rng, split)}")
        document.reply(verdict(good), VERDICTS)
    else:
        document.message("user", f"{head}{views}{_QUALITY.pick(rng, split)}")
        document.reply("good" if sum(good) * 2 > len(good) else "poor", ("good", "poor"))
    if rng.random() < 0.4:
        document.message("user", _SCORE.pick(rng, split))
        document.reply(score(good), ("1", "2", "3", "4", "5"))
    if rng.random() < 0.4:
        document.message("user", _COUNT.pick(rng, split))
        document.reply(str(sum(good)), tuple(str(number) for number in range(len(good) + 1)))


def _chat(rng: Random, split: Split, document: Document, length: int) -> None:
    if rng.random() < 0.8:
        document.message("system", _SYSTEM.pick(rng, split))
    while document.length < length:
        work = essay.write(rng, split)
        head = rng.choice(("Essay:\n", "Essay:\n", "Text:\n")) + work.text + "\n"
        if rng.random() < 0.6:
            document.message("user", f"{head}{_ON_TOPIC.pick(rng, split)}")
            document.reply("yes" if work.on_topic else "no", ("yes", "no"))
            head = ""
        lines: list[str] = []
        flags: list[bool] = []
        for dimension in rng.sample(essay.DIMENSIONS, rng.randrange(1, 6)):
            good = work.good[dimension.name]
            if rng.random() < 0.25:
                document.message("user", head + _YES_NO.pick(rng, split).format(name=dimension.name))
                document.reply("yes" if good else "no", ("yes", "no"))
            else:
                document.message("user", head + _JUDGE.pick(rng, split).format(name=dimension.name))
                document.reply(dimension.judgement(good=good))
            head = ""
            lines.append(dimension.judgement(good=good))
            flags.append(good)
        if len(flags) > 1 and rng.random() < 0.7:
            _conclude(rng, split, document, "\n".join(lines), flags)
        for _ in range(rng.randrange(3)):
            _conclude(rng, split, document, *_views(rng, rng.randrange(2, 6)))


def _raw(rng: Random, split: Split, document: Document, length: int) -> None:
    while document.length < length:
        work = essay.write(rng, split)
        document.text(f"Essay:\n{work.text}\n")
        if rng.random() < 0.6:
            document.text(f"Question: {_ON_TOPIC.pick(rng, split)}\nAnswer:")
            document.raw_reply("yes" if work.on_topic else "no", ("yes", "no"))
        chosen = rng.sample(essay.DIMENSIONS, rng.randrange(2, 6))
        for dimension in chosen:
            document.text(f"{dimension.name.capitalize()}:")
            document.raw_reply("good" if work.good[dimension.name] else "poor", ("good", "poor"))
        document.text("Verdict:")
        document.raw_reply(verdict([work.good[one.name] for one in chosen]), VERDICTS)
        document.text("\n")


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("judgement")
    if rng.random() < 0.75:
        _chat(rng, split, document, length)
    else:
        _raw(rng, split, document, length)
    return document
