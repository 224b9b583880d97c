"""Answers of several branches pasted into one prompt: vote, pick the best, list, merge."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from training import words
from training.document import Document, Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random

_SYSTEM = Phrasings(
    ("You combine answers.", "You sum up the work of others.", "You are the chair."),
    ("You combine the work of others.",),
)
_VOTE = Phrasings(
    (
        "Which answer is most common?",
        "Take a vote.",
        "What do most of them say?",
        "Which answer wins the vote?",
        "Give the majority answer.",
        "Vote for one answer.",
        "Which answer comes up most?",
        "Count the votes: who wins?",
        "What is the majority view?",
        "Name the most frequent answer.",
        "Say what most of them say.",
    ),
    ("Which answer do most of them give?", "Give the most common answer."),
)
_BEST = Phrasings(
    (
        "Which one is best?",
        "Pick the best one.",
        "Which has the highest score?",
        "Choose the one with the best score.",
        "Name the winner.",
        "Who has the most points?",
        "Which scored highest?",
        "Take the one with the top score.",
        "Say which one is the best.",
    ),
    ("Pick the one with the highest score.", "Which one has the best score?"),
)
_MERGE = Phrasings(
    (
        "Join them into one line.",
        "Sum up in one line.",
        "Write a summary.",
        "Put them together.",
        "Summarize the answers.",
        "Give all of them in one line.",
        "List them with commas.",
        "Join all in a line.",
        "Sum up what they say.",
    ),
    ("Sum them up in one line.", "Join the answers."),
)
_NTH = Phrasings(
    (
        "What does {who} say?",
        "Repeat what {who} says.",
        "Give the answer of {who}.",
        "What did {who} answer?",
        "{who}?",
        "Say what {who} says.",
    ),
    ("What is the answer of {who}?",),
)
_HEADS = ("Answers:", "Views:", "Branches:", "Results:", "Drafts:", "Votes:")
_LABELS = ("{n}. ", "- ", "Answer {n}: ", "Branch {n}: ", "Draft {n}: ", "")


def _value(rng: Random, split: Split) -> str:
    draw = rng.random()
    if draw < 0.3:
        return words.city(rng, split)
    if draw < 0.5:
        return words.first_name(rng, split)
    if draw < 0.6:
        return words.small_number(rng)
    return words.any_word(rng, split)


def _vote(rng: Random, split: Split) -> list[tuple[str, str]]:
    """A majority among three to seven answers."""
    count = rng.randrange(3, 8)
    winner, *others = words.distinct(4, lambda: _value(rng, split))
    votes = [winner] * (count // 2 + 1) + [rng.choice(others) for _ in range(count - count // 2 - 1)]
    assert Counter(votes).most_common(1)[0][0] == winner
    rng.shuffle(votes)
    label = rng.choice(_LABELS)
    listing = "\n".join(label.format(n=index + 1) + vote for index, vote in enumerate(votes))
    return [(f"{rng.choice(_HEADS)}\n{listing}\n{_VOTE.pick(rng, split)}", winner)]


def _best(rng: Random, split: Split) -> list[tuple[str, str]]:
    """Candidates with one-digit scores."""
    count = rng.randrange(2, 6)
    names = words.distinct(count, lambda: _value(rng, split))
    scores = rng.sample(range(10), count)
    form = rng.choice(
        ("{name}: {score}", "{name}: score {score}", "{name} (score {score})", "{name} has {score} points")
    )
    listing = "\n".join(form.format(name=name, score=score) for name, score in zip(names, scores, strict=True))
    winner = names[scores.index(max(scores))]
    return [(f"{rng.choice(_HEADS)}\n{listing}\n{_BEST.pick(rng, split)}", winner)]


def _merge(rng: Random, split: Split) -> list[tuple[str, str]]:
    """One line out of several answers, then single answers again."""
    values = words.distinct(rng.randrange(2, 6), lambda: _value(rng, split))
    label = rng.choice(_LABELS[:5])
    listing = "\n".join(label.format(n=index + 1) + value for index, value in enumerate(values))
    turns = [(f"{rng.choice(_HEADS)}\n{listing}\n{_MERGE.pick(rng, split)}", ", ".join(values))]
    return turns + _single(rng, split, label, values)


def _single(rng: Random, split: Split, label: str, values: list[str]) -> list[tuple[str, str]]:
    if "Answer" not in label and "Branch" not in label and "Draft" not in label:
        return []
    places = rng.sample(range(len(values)), rng.randrange(len(values)))
    kind = label.split(" ", maxsplit=1)[0].lower()
    return [(_NTH.pick(rng, split).format(who=f"{kind} {place + 1}"), values[place]) for place in places]


def _reports(rng: Random, split: Split) -> list[tuple[str, str]]:
    """Notes of named people: say who said what."""
    names = words.distinct(rng.randrange(2, 7), lambda: words.first_name(rng, split))
    values = words.distinct(len(names), lambda: _value(rng, split))
    listing = "\n".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
    turns = [(f"{rng.choice(_HEADS)}\n{listing}\n{_MERGE.pick(rng, split)}", ", ".join(values))]
    for place in rng.sample(range(len(names)), rng.randrange(1, len(names))):
        turns.append((_NTH.pick(rng, split).format(who=names[place]), values[place]))
    return turns


def generate(rng: Random, split: Split, length: int) -> Document:
    """Write a document of about `length` characters."""
    document = Document("joining")
    chat = rng.random() < 0.65
    if chat and rng.random() < 0.5:
        document.message("system", _SYSTEM.pick(rng, split))
    while document.length < length:
        episode = rng.choice((_vote, _vote, _best, _merge, _reports))
        for prompt, answer in episode(rng, split):
            if chat:
                document.message("user", prompt)
                document.reply(answer)
            else:
                document.text(f"{prompt}\nAnswer:")
                document.raw_reply(answer)
        if not chat:
            document.text("\n")
    return document
