"""Programs as people write them: answers decide what is asked next, and end up in lists, dicts and later prompts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

import lmc
from lmc.frontend.program.function import JittedFunction

LABELS = ["good", "bad"]


class Outline(BaseModel):
    """A text in points."""

    model_config = {"extra": "forbid"}

    title: str
    points: list[str]


@lmc.tool(effect="reads")
def look_up(subject: str) -> str:
    """Raises for short subjects."""
    if len(subject) % 2:
        raise LookupError(subject)
    return f"All about {subject}: " + "fact " * len(subject)


def ask(s: Any, question: str, **settings: Any) -> Any:
    """One question in a branch of its own."""
    branch = s.fork(1)[0]
    branch += lmc.user(question)
    return branch.gen("answer", **{"max_tokens": 6, **settings})


def label(s: Any, item: str) -> str:
    """A label for an item."""
    branch = s.fork(1)[0]
    branch += lmc.user(f"Is {item} good?")
    return branch.select("label", LABELS)


@lmc.jit
def chosen_list(s: Any, items: list[str]):
    """An answer decides which list an item gets into."""
    s += lmc.system("Sort.")
    good: list[str] = []
    bad: list[str] = []
    for item in items:
        (good if label(s, item) == "good" else bad).append(item)
    return good, [ask(s, f"Mend {item}.") for item in bad]


@lmc.jit
def arms_append(s: Any, items: list[str]):
    """The same with a condition."""
    s += lmc.system("Sort.")
    good: list[str] = []
    bad: list[str] = []
    for item in items:
        if label(s, item) == "good":
            good.append(item)
        else:
            bad.append(item)
    if bad:
        s += lmc.user("Bad ones: " + ", ".join(bad))
        s.gen("why", max_tokens=8)
    return [ask(s, f"Praise {item}.") for item in good]


@lmc.jit
def buckets(s: Any, items: list[str]):
    """Lists in a dict by an answer."""
    s += lmc.system("Sort.")
    good: list[str] = []
    found = {"good": good, "bad": []}
    for item in items:
        found[label(s, item)].append(item)
    return [ask(s, f"Praise {item}.") for item in good], len(found["bad"])


@lmc.jit
def grouped(s: Any, items: list[str]):
    """A ``defaultdict`` by an answer."""
    s += lmc.system("Sort.")
    found: defaultdict[str, list[str]] = defaultdict(list)
    for item in items:
        found[label(s, item)].append(item)
    praised = [ask(s, f"Praise {item}.") for item in found["good"]]
    return praised, [ask(s, f"Mend {item}.") for item in found["bad"]], len(found)


@lmc.jit
def votes(s: Any, question: str):
    """A majority of answers, and another question if they differ."""
    counts: dict[str, int] = {}
    for _ in range(3):
        answer = ask(s, question, choices=["a", "b"], temperature=1.0)
        counts[answer] = counts.get(answer, 0) + 1
    if len(counts) == 1:
        return ask(s, "All agree. Sure?")
    return [ask(s, f"Why {each}?") for each in counts]


@lmc.jit
def counted(s: Any, question: str):
    """The same with a ``Counter``."""
    answers = [ask(s, question, choices=["a", "b"], temperature=1.0) for _ in range(3)]
    winner, count = Counter(answers).most_common(1)[0]
    return ask(s, f"Only {count} say {winner}. Why?") if count < 3 else winner


@lmc.jit
def letters(s: Any, question: str):
    """Characters of an answer decide."""
    answer = ask(s, question)
    found = [", ".join(answer)]
    if answer and answer[-1] != "e":
        found.append(ask(s, "It does not end in e."))
    for letter in list(answer)[:4]:
        found.append(ask(s, f"What about {letter}?"))
    for number, letter in enumerate(answer):
        if number < 2:
            found.append(ask(s, f"{number}: {letter}?"))
    return found


@lmc.jit
def until_number(s: Any, question: str):
    """Ask again until the answer is a number."""
    s += lmc.user(question)
    for _ in range(3):
        answer = s.gen("number", max_tokens=4)
        try:
            return int(answer)
        except ValueError:
            s += lmc.user(f"{answer} is no number.")
    return None


@lmc.jit
def guarded_tool(s: Any, question: str):
    """A tool that fails, on a way that an answer decides."""
    s += lmc.user(question)
    notes = []
    for number in range(2):
        s += lmc.user(f"Look {number}?")
        if s.select("look", ["yes", "no"]) == "yes":
            try:
                notes.append(look_up(f"{question}{number}"))
            except LookupError:
                s += lmc.user("Nothing was found.")
                s.gen("sorry", max_tokens=6)
    s += lmc.user("Notes: " + "\n".join(notes))
    return s.gen("end", max_tokens=6)


@lmc.jit
def refined(s: Any, question: str):
    """A draft that is written again until it is long enough."""
    s += lmc.user(question)
    draft = s.gen("draft", max_tokens=10)
    while len(draft) < 12:
        s += lmc.user("Longer.")
        draft = s.gen("draft", max_tokens=10, temperature=1.0) + draft
    return draft


@lmc.jit
def first_lines(s: Any, question: str):
    """A few parts of an answer, each in a prompt."""
    parts = ask(s, question, max_tokens=20).split("e")[:3]
    return [ask(s, f"Explain {part.lower()[:10]}.") for part in parts]


@lmc.jit
def planned(s: Any, question: str):
    """The lines of a plan, each in a prompt; then all of them."""
    s += lmc.user(f"Plan: {question}")
    plan = s.gen("plan", max_tokens=20)
    head, _, rest = plan.partition("e")
    steps = [line.strip() for line in rest.replace("a", "an e").split("e") if line.strip()][:4]
    for step in steps:
        s += lmc.user(f"Do {step.removeprefix('t')} for {head}.")
        s.gen("done", max_tokens=6)
    s += lmc.user(f"Was it {'; '.join(sorted(rest.split()))}?")
    return s.gen("end", max_tokens=4)


@lmc.jit
def taken_apart(s: Any, question: str):
    """Parts of an answer, some of them together again."""
    head, mark, rest = ask(s, question, max_tokens=20).partition("e")
    words = "; ".join(sorted(rest.split()[:3]))
    last = rest.rsplit("a", 1)[-1].replace("o", "0o").removesuffix("t")
    return ask(s, f"{head.lstrip('t')}{mark}, {words}, {last}: {question}?")


@lmc.jit
def outlined(s: Any, question: str):
    """Fields of an instance in prompts."""
    outline = ask(s, question, schema=Outline, max_tokens=120)
    s += lmc.user(f"Title {outline.title}.")
    for point in outline.points:
        s += lmc.user(f"Write about {point}.")
        s.gen("part", max_tokens=6)
    return len(outline.points)


@lmc.jit
def scored(s: Any, items: list[str]):
    """The best of some by numbers."""
    scores = [ask(s, f"Score {item}.", dtype=int, max_tokens=3) for item in items]
    best = max(range(len(items)), key=lambda index: scores[index])
    return ask(s, f"Why is {items[best]} the best, with {scores[best]} of {sum(scores)}?")


@lmc.jit
def remembered(s: Any, items: list[str]):
    """The last answers alone."""
    memory: deque[str] = deque(maxlen=2)
    for item in items:
        memory.append(ask(s, f"{item}? Before: {' '.join(memory)}"))
    if "e" not in memory:
        memory.append(ask(s, f"No e in {memory}?"))
    return f"{memory}"


@lmc.jit
def different(s: Any, question: str):
    """As many different answers as there are."""
    answers = {ask(s, question, choices=["a", "b", "c"], temperature=1.0) for _ in range(4)}
    seen: list[str] = []
    for _ in range(4):
        answer = ask(s, question, choices=["a", "b", "c"], temperature=1.0)
        if answer not in seen:
            seen.append(answer)
    return [ask(s, f"Why {each}?") for each in seen], len(answers)


@lmc.jit
def own_choices(s: Any, question: str, items: list[str]):
    """Choices of the row, and of answers."""
    s += lmc.user(question)
    answers = [ask(s, f"{question} {number}", temperature=1.0) or "none" for number in range(2)]
    found = s.select("item", items)
    s += lmc.user(f"{found}? Which answer is best?")
    return s.select("best", [*dict.fromkeys(answers), "neither"])


@lmc.jit
def tone(s: Any, question: str):
    """A text that an answer chooses."""
    manner = "kindly, with all the details that there are" if label(s, question) == "good" else "briefly"
    s += lmc.user(f"{question} Answer {manner}.")
    return s.gen("answer", max_tokens=8) or "nothing"


@lmc.jit
def matched(s: Any, question: str):
    """A pattern that an answer may have."""
    answer = ask(s, question, max_tokens=12)
    found = re.search(r"[aeiou]+", answer)
    return ask(s, f"Why {found.group()}?") if found else None


@lmc.jit
def silent(s: Any, question: str):
    """No calls at all."""
    s += lmc.user(question)
    return s.text()


@lmc.jit
def by_row(s: Any, items: list[str]):
    """Rows with many items make other calls than rows with few."""
    if not items:
        return None
    s += lmc.user(f"{len(items)} items: {items}")
    if len(items) > 2:
        return [ask(s, item) for item in sorted(items)]
    return s.gen("answer", max_tokens=6)


@lmc.jit
def retried_tool(s: Any, question: str):
    """A tool that is asked in a loop without a bound, with another subject each time."""
    s += lmc.user(question)
    subject = question
    while True:
        try:
            found = look_up(subject)
            break
        except LookupError:
            s += lmc.user("Another subject?")
            subject = s.gen("subject", max_tokens=4, temperature=1.0)
    s += lmc.user(found)
    return s.gen("answer", max_tokens=6)


@lmc.jit
def nested(s: Any, question: str):
    """A jitted function that calls another one."""
    s += lmc.user(question)
    answer = s.gen("answer", max_tokens=6)
    return tone(s, answer)


QUESTIONS: Sequence[Mapping[str, Any]] = [
    {"question": text} for text in ["", "Why?", "What is it made of", "é 日本 \U0001f600", "none\n\n" * 20]
]
ITEMS: Sequence[Mapping[str, Any]] = [
    {"items": items} for items in ([], ["a"], ["bread", "wine", "stone"], ["é", "日本", "x" * 200, "b", "c"])
]
PROGRAMS: Mapping[str, tuple[JittedFunction, Sequence[Mapping[str, Any]]]] = {
    **{program.name: (program, ITEMS) for program in (chosen_list, arms_append, buckets, grouped, remembered, by_row)},
    "scored": (scored, ITEMS[1:]),
    "own_choices": (
        own_choices,
        [{**row, "items": ["x", "yy", "zzz"][: 1 + at % 3]} for at, row in enumerate(QUESTIONS)],
    ),
    **{
        program.name: (program, QUESTIONS)
        for program in (
            *(votes, counted, letters, until_number, guarded_tool, refined, first_lines, outlined, different, tone),
            *(matched, silent, retried_tool, nested, planned, taken_apart),
        )
    },
}
"""Programs with their rows."""
BOUNDED = ("first_lines", "taken_apart")
"""Programs that take answers apart, and whose prompts have a bound."""
