"""Agents, retries, votes and plans as engineers write them, short."""

# pyright: basic
# ruff: noqa: B007, B905, PLW2901, F841, UP042

import functools
import itertools
import json
import math
import textwrap
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

import lmc
from tests.frontend.corpus.cases import case


@lmc.tool(effect="reads")
def search(query: str) -> list[str]:
    return [f"{query} doc {i}" for i in range(len(query) % 3 + 1)]


@lmc.tool
def save(key: str, value: str) -> None:
    STORE[key] = value


STORE: dict = {}


class Sentiment(str, Enum):
    POS = "pos"
    NEG = "neg"


@dataclass
class Message:
    role: str
    text: str
    meta: dict[str, Any] = field(default_factory=dict)


class Memory:
    def __init__(self, limit: int = 3):
        self.limit = limit
        self.items: list[Message] = []
        self.dropped = 0

    def add(self, role: str, text: str) -> "Memory":
        self.items.append(Message(role, text))
        while len(self.items) > self.limit:
            self.items.pop(0)
            self.dropped += 1
        return self

    def render(self) -> str:
        return "\n".join(f"{m.role}: {m.text}" for m in self.items)

    def __len__(self):
        return len(self.items)


@case("fix the bug", 2)
def chat_memory(s, a: str, n: int):
    memory = Memory(limit=n + 1)
    for turn in range(n + 2):
        memory.add("user", f"{a} {turn}")
        s += lmc.user(memory.render())
        memory.add("assistant", s.gen("reply", max_tokens=4))
    return memory.render(), len(memory), memory.dropped


@case("fix the bug", 2)
def react(s, a: str, n: int):
    history: list[tuple[str, str]] = []
    for step in range(n + 1):
        s += lmc.user(f"Step {step}: {a}")
        action = s.gen("action", choices=["search", "finish"])
        if action == "finish":
            answer = s.gen("answer", max_tokens=5)
            return {"answer": answer, "steps": step, "history": history}
        query = s.gen("query", max_tokens=3).strip() or "nothing"
        docs = search(query)
        history.append((query, docs[0]))
        s += lmc.user("\n".join(f"- {d}" for d in docs))
    return {"answer": None, "steps": n, "history": history}


@case("fix the bug", 2)
def extract_retry(s, a: str, n: int):
    errors = []
    for attempt in range(3):
        s += lmc.user(f"JSON for {a}" + (f" (previous error: {errors[-1]})" if errors else ""))
        raw = s.gen("json", regex=r'\{"age": [0-9]{1,3}\}')
        try:
            data = json.loads(raw)
            if data["age"] > 400:
                raise ValueError(f"age {data['age']} too large")
        except (json.JSONDecodeError, KeyError) as e:
            errors.append(f"bad: {type(e).__name__}")
        except ValueError as e:
            errors.append(str(e))
        else:
            break
    else:
        data = None
    return data, errors


@case("fix the bug", 2)
def vote(s, a: str, n: int):
    branches = s.fork(3)
    for i, b in enumerate(branches):
        b += f"Voter {i}"
        b.gen("v", choices=["yes", "no", "maybe"])
    counts = Counter(branches["v"])
    winner, count = counts.most_common(1)[0]
    if count < 2:
        winner = s.gen("tie", choices=sorted(counts))
    return winner, dict(counts), count / 3


@case("fix the bug", 2)
def group_by(s, a: str, n: int):
    groups = defaultdict(list)
    for word in a.split():
        label = s.gen("label", choices=["noun", "verb"])
        groups[label].append(word)
    summary = {}
    for label, words in sorted(groups.items()):
        s += lmc.user(f"Summarize {label}: {', '.join(words)}")
        summary[label] = s.gen("sum", max_tokens=4).strip()
    return summary, {k: len(v) for k, v in groups.items()}


@case("fix the bug", 2)
def map_reduce(s, a: str, n: int):
    chunks = textwrap.wrap(a, 4)
    notes = []
    for c, b in zip(chunks, s.fork(len(chunks))):
        b += lmc.user(c)
        notes.append(b.gen("note", max_tokens=3))
    while len(notes) > 1:
        pairs = [notes[i : i + 2] for i in range(0, len(notes), 2)]
        notes = []
        for p in pairs:
            s += lmc.user(" + ".join(p))
            notes.append(s.gen("merged", max_tokens=3))
    return notes[0]


@case("fix the bug", 2)
def cache_dict(s, a: str, n: int):
    cache: dict[str, str] = {}
    hits = 0
    out = []
    for word in (a + " " + a).split():
        key = word.lower().strip(".,")
        if key in cache:
            hits += 1
        else:
            cache[key] = s.gen("def", max_tokens=2)
        out.append(f"{word}={cache[key]}")
    return out, hits


@case("fix the bug", 2)
def nonlocal_counter(s, a: str, n: int):
    total = 0
    log = []

    def ask(q, *, temp=0.0):
        nonlocal total
        s.append(lmc.user(q))
        t = s.gen(max_tokens=3, temperature=temp)
        total += len(t)
        log.append((q, len(t)))
        return t

    first = ask(a)
    second = ask(first, temp=1.0) if "e" in first else ask(a.upper())
    return first, second, total, log


@case("fix the bug", 2)
def generator_fn(s, a: str, n: int):
    def words():
        for w in a.split():
            if len(w) < 2:
                continue
            yield w
        yield "end"

    res = [s.gen(w, max_tokens=2) for w in words()]
    pairs = list(itertools.pairwise(res))
    return ["|".join(p) for p in pairs], functools.reduce(lambda x, y: x + len(y), res, 0)


@case("fix the bug", 2)
def walrus_while(s, a: str, n: int):
    lines = []
    while (line := s.gen("line", max_tokens=3, stop="\n")) and len(lines) < 3:
        if not line.strip():
            continue_ = False
            break
        lines.append(line.strip())
    return lines, line


@case("fix the bug", 2)
def match_it(s, a: str, n: int):
    cmd = s.gen("cmd", regex="(add|del) [a-z]{1,3}|quit")
    match cmd.split():
        case ["add", x]:
            return "added " + x
        case ["del", x] if len(x) > 1:
            return "deleted " + x
        case ["quit"]:
            return "bye"
        case [verb, *rest]:
            return f"unknown {verb} {rest}"


@case("fix the bug", 2)
def scores(s, a: str, n: int):
    vals = []
    for crit in ("clarity", "depth", "style"):
        s += lmc.user(f"Score {crit}")
        vals.append(int(s.gen(crit, regex="[0-9]")))
    mean = sum(vals) / len(vals)
    var = sum((v - mean) ** 2 for v in vals) / len(vals)
    best = max(zip(("clarity", "depth", "style"), vals), key=lambda t: t[1])
    return round(mean, 2), math.sqrt(var), best[0], sorted(vals, reverse=True), min(vals) < 3


@case("fix the bug", 2)
def finally_log(s, a: str, n: int):
    log = []

    def run(k):
        try:
            log.append(f"start {k}")
            v = int(s.gen("n", regex="[0-9a]"))
            return 10 // v
        except ZeroDivisionError:
            log.append("zero")
            return -1
        finally:
            log.append(f"end {k}")

    out = []
    for k in range(3):
        try:
            out.append(run(k))
        except ValueError as e:
            out.append(str(e)[:20])
    return out, log


@case("fix the bug", 2)
def enum_use(s, a: str, n: int):
    found = [Sentiment(s.gen("s", choices=[e.value for e in Sentiment])) for _ in range(2)]
    return [f.name for f in found], found.count(Sentiment.POS), found[0] is found[1]


@case("fix the bug", 2)
def saves(s, a: str, n: int):
    for i, w in enumerate(a.split(), start=1):
        v = s.gen("v", max_tokens=3)
        if "e" in v:
            save(f"{i}:{w}", v)
    return sorted(STORE)


@case("fix the bug", 2)
def plan_execute(s, a: str, n: int):
    plan = deque(s.gen("plan", max_tokens=8).split()[:4])
    done: dict[str, str] = OrderedDict()
    while plan:
        step = plan.popleft()
        if step in done:
            continue
        s += lmc.user(step)
        result = s.gen("r", max_tokens=3)
        done[step] = result
        if "a" in result and len(done) < 3:
            plan.append(result.strip()[:2] or "x")
    return list(done.items())


@case("fix the bug", 2)
def tournament(s, a: str, n: int):
    names = [f"c{i}" for i in range(4)]
    rounds = 0
    while len(names) > 1:
        rounds += 1
        nxt = []
        for x, y in zip(names[::2], names[1::2]):
            s += lmc.user(f"{x} or {y}?")
            nxt.append(s.gen("w", choices=[x, y]))
        names = nxt
    return names[0], rounds


@case("fix the bug", 2)
def msgs(s, a: str, n: int):
    convo = [Message("user", a)]
    for m in convo:
        s += lmc.user(m.text)
        if len(convo) < 3:
            convo.append(Message("assistant", s.gen("t", max_tokens=2), {"n": len(convo)}))
    last = replace(convo[-1], role="system")
    return [asdict(m) for m in convo], last.role
