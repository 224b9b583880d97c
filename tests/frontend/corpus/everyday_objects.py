"""Classes, orders, tables and parsing as engineers write them, short."""

# pyright: basic
# ruff: noqa: B905, DTZ007, UP031

import bisect
import functools
import heapq
import itertools
import json
import operator
import random
import re
import statistics
import string
from collections import ChainMap, Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import NamedTuple

from pydantic import BaseModel, Field

import lmc
from tests.frontend.corpus.cases import case


class Step(NamedTuple):
    thought: str
    action: str
    score: float = 0.0


class Person(BaseModel):
    name: str = Field(max_length=4)
    age: int = Field(ge=0, le=99)


class Base:
    prefix = "base"

    def __init__(self, name, **options):
        self.name = name
        self.options = {"temperature": 0.0, **options}
        self._log = []

    @property
    def title(self):
        return f"{self.prefix}:{self.name}".upper()

    def run(self, s, q):
        s.append(lmc.user(f"[{self.title}] {q}"))
        out = s.gen(max_tokens=3, temperature=self.options["temperature"])
        self._log.append(out)
        return self.post(out)

    def post(self, out):
        return out.strip()

    @classmethod
    def make(cls, name):
        return cls(name, temperature=1.0)

    @staticmethod
    def join(parts):
        return " / ".join(parts)

    def __repr__(self):
        return f"<{type(self).__name__} {self.name} {len(self._log)}>"


class Critic(Base):
    prefix = "critic"

    def post(self, out):
        return super().post(out)[::-1]


@dataclass(order=True)
class Cand:
    score: int
    text: str = field(compare=False)

    def __post_init__(self):
        self.text = self.text.strip()


class BudgetError(Exception):
    def __init__(self, used, limit):
        super().__init__(f"{used} > {limit}")
        self.used, self.limit = used, limit


@contextmanager
def section(log, name):
    log.append(f"<{name}>")
    try:
        yield log
    finally:
        log.append(f"</{name}>")


@case("fix the bug", 2)
def agents(s, a: str, n: int):
    team = [Base("w"), Critic.make("c"), Critic("d", style="x")]
    text = a
    for agent in team * 2:
        text = agent.run(s, text) or "empty"
    return text, [repr(t) for t in team], Base.join(t.title for t in team)


@case("fix the bug", 2)
def heap_search(s, a: str, n: int):
    heap = [(0, 0, a)]
    seen = set()
    count = itertools.count(1)
    out = []
    while heap and len(out) < 3:
        cost, _, node = heapq.heappop(heap)
        if node in seen:
            continue
        seen.add(node)
        out.append(node)
        s += lmc.user(f"Expand {node}")
        for part in s.gen("next", max_tokens=6).split():
            heapq.heappush(heap, (cost + len(part), next(count), part))
    return out, len(seen)


@case("fix the bug", 2)
def candidates(s, a: str, n: int):
    cands = []
    for b in s.fork(3):
        t = b.gen("t", max_tokens=3, temperature=1.0)
        sc = int(b.gen("s", regex="[0-9]"))
        cands.append(Cand(sc, t))
    cands.sort(reverse=True)
    top = max(cands)
    return [c.text for c in cands], top.score, top is cands[0], heapq.nlargest(2, (c.score for c in cands))


@case("fix the bug", 2)
def budgeted(s, a: str, n: int):
    used = 0

    def charge(t, limit=6):
        nonlocal used
        used += len(t)
        if used > limit:
            raise BudgetError(used, limit)
        return t

    parts = []
    try:
        for _ in range(4):
            parts.append(charge(s.gen("p", max_tokens=3)))
    except BudgetError as e:
        return {"parts": parts, "used": e.used, "over": e.used - e.limit, "why": str(e)}
    return {"parts": parts, "used": used}


@case("fix the bug", 2)
def with_sections(s, a: str, n: int):
    log = []
    with section(log, "outer"):
        for w in a.split():
            with section(log, w), suppress(ValueError):
                v = float(s.gen("v", regex="[0-9]\\.[0-9]|n"))
                log.append(f"{v:.1f}")
    return log


@case("fix the bug", 2)
def people(s, a: str, n: int):
    people = [s.gen(f"p{i}", schema=Person) for i in range(2)]
    by_name = {p.name: p for p in people}
    adults = [p for p in people if p.age >= 18]
    oldest = max(people, key=operator.attrgetter("age"))
    return (
        sorted(by_name),
        len(adults),
        oldest.name,
        sum(p.age for p in people) / len(people),
        [p.model_dump() for p in adults],
    )


@case("fix the bug", 2)
def steps(s, a: str, n: int):
    trace: list[Step] = []
    while True:
        th = s.gen("th", max_tokens=2)
        ac = s.gen("ac", choices=["go", "stop"])
        trace.append(Step(th, ac, score=len(th) / 2))
        if trace[-1].action == "stop" or len(trace) >= 3:
            break
    best = sorted(trace, key=lambda st: (-st.score, st.thought))[0]
    return best.thought, [t._asdict() for t in trace], trace[0]._replace(action="x").action


@case("fix the bug", 2, stops="what finditer() does is not known to the capture")
def regexes(s, a: str, n: int):
    text = s.gen("t", max_tokens=16)
    nums = [int(x) for x in re.findall(r"\d+", text)]
    words = {m.group(0).lower(): m.start() for m in re.finditer(r"[a-z]+", text)}
    clean = re.sub(r"[^\w\s]", "", text)
    m = re.match(r"(?P<first>\w+)\s*(?P<rest>.*)", text)
    first = m.group("first") if m else None
    return nums, words, clean, first, text.title().split(maxsplit=1)


@case("fix the bug", 2)
def dates(s, a: str, n: int):
    d = s.gen("d", regex="202[0-9]-0[1-9]-[12][0-9]")
    day = datetime.strptime(d, "%Y-%m-%d").date()
    due = day + timedelta(days=n)
    return due.isoformat(), due.weekday(), (due - date(2020, 1, 1)).days, f"{day:%d %b}"


@case("fix the bug", 2)
def table(s, a: str, n: int):
    grid = [["" for _ in range(2)] for _ in range(2)]
    for r, row in enumerate(grid):
        for c, _ in enumerate(row):
            s += lmc.user(f"cell {r},{c}")
            grid[r][c] = s.gen("cell", max_tokens=2)
    transposed = list(map(list, zip(*grid)))
    flat = list(itertools.chain.from_iterable(grid))
    return transposed, flat, [max(map(len, col)) for col in transposed]


@case("fix the bug", 2)
def rubric(s, a: str, n: int):
    weights = {"a": 2, "b": 1, "c": 3}
    got = {k: int(s.fork(1)[0].gen(k, regex="[0-5]")) for k in weights}
    total = sum(weights[k] * v for k, v in got.items())
    grade = "A" if total >= 20 else "B" if 10 <= total < 20 else "C"
    worst = min(got, key=got.get)  # type: ignore[call-overload]
    return total, grade, worst, statistics.median(got.values()), {v: k for k, v in got.items()}


@case("fix the bug", 2)
def recursion(s, a: str, n: int):
    def split(text, depth=0):
        if depth == 2 or len(text) < 3:
            return [s.gen("leaf", max_tokens=2) + text]
        mid = len(text) // 2
        return split(text[:mid], depth + 1) + split(text[mid:], depth + 1)

    return split("abcdefgh")


@case("fix the bug", 2)
def counters(s, a: str, n: int):
    total = Counter()
    for _ in range(3):
        total.update(s.gen("t", max_tokens=6).split())
        total["calls"] += 1
    common = [w for w, c in total.most_common() if c > 1]
    return common, total["none"], sum(total.values()), +total == total


@case("fix the bug", 2, stops="the method 'safe_substitute' of the result of Template() can")
def templ(s, a: str, n: int):
    t = string.Template("Hello $name, $x")
    first = t.safe_substitute(name=s.gen("n", max_tokens=2))
    table = "{:<8}|{:>5}|{:^5}".format(first[:8], n, "m")
    return first, table, "%s-%d" % (a, n), first.partition(","), f"{a!r:>10}", f"{n:03d}"


@case("fix the bug", 2)
def until_ok(s, a: str, n: int):
    for attempt in itertools.count():
        v = s.gen("v", max_tokens=2, temperature=1.0)
        ok = any(ch in v for ch in "aeiou") and not v.isupper()
        if ok or attempt >= 2:
            break
        s += "again"
    return attempt, ok, v


@case("fix the bug", 2)
def inventory(s, a: str, n: int):
    state = {"hp": 10, "items": [], "pos": (0, 0)}
    moves = {"n": (0, 1), "s": (0, -1), "e": (1, 0)}
    for _ in range(3):
        m = s.gen("m", choices=[*moves, "take"])
        if m == "take":
            state["items"].append(s.gen("item", max_tokens=2))
            state["hp"] -= 1
        else:
            dx, dy = moves[m]
            x, y = state["pos"]
            state["pos"] = (x + dx, y + dy)
        if state["hp"] <= 8:
            del state["items"][0]
            break
    return state


@case("fix the bug", 2)
def deep(s, a: str, n: int):
    data = {"users": [{"name": w, "tags": set()} for w in a.split()]}
    for u in data["users"]:
        for t in s.gen("tags", max_tokens=6).split():
            u["tags"].add(t.lower())
        u["n"] = len(u["tags"])
    biggest = max(data["users"], key=lambda u: u["n"])
    return biggest["name"], [sorted(u["tags"]) for u in data["users"]], json.dumps([u["n"] for u in data["users"]])


@case("fix the bug", 2, stops="the method 'get' of the result of ChainMap() can't be captured yet")
def chainmap(s, a: str, n: int):
    opts = ChainMap({"a": s.gen("x", max_tokens=2)}, {"b": "d", "a": "z"})
    merged = {**opts, "c": n}
    return merged["a"], sorted(merged), opts.get("q", "none")


@functools.lru_cache
def shorten(t):
    return t[:3]


@case("fix the bug", 2)
def cached(s, a: str, n: int):
    return [shorten(s.gen("x", max_tokens=2)) for _ in range(2)] + [shorten(a)]


@case("fix the bug", 2, stops="the result of random.Random.choice() is known only when the ")
def sampled(s, a: str, n: int):
    rng = random.Random(n)
    order = ["x", "y", "z"]
    rng.shuffle(order)
    pick = rng.choice(order)
    return order, pick, s.gen(pick, max_tokens=2), s[pick]


@case("fix the bug", 2)
def longest(s, a: str, n: int):
    drafts = [b.gen("d", max_tokens=4, temperature=1.0) for b in s.fork(n + 1)]
    uniq = list(dict.fromkeys(d.strip() for d in drafts))
    by_len = sorted(uniq, key=len)
    i = bisect.bisect_left([len(u) for u in by_len], 3)
    return by_len[i:], len(uniq), by_len[-1] if by_len else None
