"""State machines, documents, JSON and text as engineers write them, short."""

# pyright: basic
# ruff: noqa: B007, B905, C401, PTH119, E741

import copy
import json
import logging
import math
import os
import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Literal, Optional

from pydantic import BaseModel

import lmc
from tests.frontend.corpus.cases import case

log = logging.getLogger(__name__)


class State(Enum):
    ASK = auto()
    CHECK = auto()
    DONE = auto()


class Answer(BaseModel):
    label: Literal["a", "b"]
    why: str = "none"


@dataclass
class Doc:
    id: int
    text: str
    labels: set[str] = field(default_factory=set)
    parent: Optional["Doc"] = None

    @property
    def words(self):
        return self.text.split()

    def has(self, w):
        return w in self.words


class Registry:
    def __init__(self):
        self._tools = {}

    def register(self, name):
        def deco(fn):
            self._tools[name] = fn
            return fn

        return deco

    def call(self, name, *args, **kw):
        return self._tools[name](*args, **kw)

    def __contains__(self, name):
        return name in self._tools

    @property
    def names(self):
        return sorted(self._tools)


TOOLS = Registry()
LOOKED_UP = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"]}


@TOOLS.register("upper")
def upper(x, *, times=1):
    return x.upper() * times


@TOOLS.register("count")
def count(x):
    return len(x)


PROMPTS = {"start": "Begin with {topic}.", "next": "Continue after {last!r}."}
STOP = {"the", "a"}


@case("fix the bug", 2)
def fsm(s, a: str, n: int):
    state, trail = State.ASK, []
    while state is not State.DONE and len(trail) < 6:
        trail.append(state.name)
        if state is State.ASK:
            s += lmc.user(a)
            ans = s.gen("ans", max_tokens=3)
            state = State.CHECK
        elif state is State.CHECK:
            ok = s.gen("ok", choices=["yes", "no"])
            state = State.DONE if ok == "yes" else State.ASK
    return trail, state.name, ans


@case("fix the bug", 2)
def registry(s, a: str, n: int):
    out = []
    for _ in range(2):
        name = s.gen("tool", choices=TOOLS.names)
        out.append(TOOLS.call(name, a))
    if "upper" in TOOLS:
        out.append(TOOLS.call("upper", s.gen("w", max_tokens=1), times=2))
    return out


@case("fix the bug", 2)
def docs(s, a: str, n: int):
    docs = [Doc(i, t) for i, t in enumerate(a.split(" "))]
    for d in docs:
        s += lmc.user(d.text)
        for lab in s.gen("labels", max_tokens=6).split():
            d.labels.add(lab.strip(",."))
    index = defaultdict(list)
    for d in docs:
        for lab in sorted(d.labels):
            index[lab].append(d.id)
    return dict(index), [d.has("pie") for d in docs], [len(d.labels) for d in docs]


@case("fix the bug", 2)
def prompts(s, a: str, n: int):
    last = ""
    for i in range(3):
        key = "start" if not last else "next"
        s += lmc.user(PROMPTS[key].format(topic=a, last=last))
        last = s.gen("t", max_tokens=3)
        log.info("step %d: %s", i, last)
    words = [w for w in last.lower().split() if w not in STOP]
    return last, words


@case("fix the bug", 2)
def schema_list(s, a: str, n: int):
    answers = []
    for q in (a, "second"):
        s += lmc.user(q)
        answers.append(s.gen(schema=Answer))
    tally = Counter(x.label for x in answers)
    agree = len(set(x.label for x in answers)) == 1
    return tally.most_common(), agree, [x.why[:2] for x in answers]


@case("fix the bug", 2, stops="what finditer() does is not known to the capture")
def finditer(s, a: str, n: int):
    text = s.gen("t", max_tokens=16)
    spans = [(m.start(), m.group()) for m in re.finditer(r"\w+", text)]
    total = 0
    for m in re.finditer("[aeiou]", text):
        total += m.start()
    return spans, total


@case("fix the bug", 2)
def parse_kv(s, a: str, n: int):
    raw = s.gen("kv", regex="[a-z]=[0-9](;[a-z]=[0-9])?")
    kv = dict(item.split("=") for item in raw.split(";"))
    ints = {k: int(v) for k, v in kv.items()}
    return ints, max(ints, key=ints.get), sorted(ints.items(), key=lambda kv: (-kv[1], kv[0]))  # type: ignore[call-overload]


@case("fix the bug", 2)
def copying(s, a: str, n: int):
    base = {"xs": [1, 2], "name": a}
    other = copy.deepcopy(base)
    shallow = dict(base)
    other["xs"].append(len(s.gen("t", max_tokens=2)))
    shallow["xs"].append(7)
    return base, other, shallow


@case("fix the bug", 2, stops="this raises CaptureError: a user message can't follow bare t")
def best_of(s, a: str, n: int):
    best, best_score = None, -math.inf
    for i in range(3):
        f = s.fork(1)[0]
        cand = f.gen("c", max_tokens=4, temperature=1.0)
        f += lmc.user("Score?")
        score = float(f.gen("score", regex="[0-9]\\.[0-9]"))
        if score > best_score:
            best, best_score = cand, score
    s += lmc.assistant(best)
    return best, best_score, s.gen("final", max_tokens=2)


@case("fix the bug", 2)
def budget_time(s, a: str, n: int):
    calls = 0
    answers = {}
    pending = deque([("root", 0)])
    while pending and calls < 4:
        name, depth = pending.popleft()
        s += lmc.user(f"{name} at {depth}")
        text = s.gen("x", max_tokens=4)
        calls += 1
        answers[name] = text
        if depth < 1:
            pending.extend((f"{name}.{i}", depth + 1) for i in range(2))
    return answers, calls, [n for n, _ in pending]


@case("fix the bug", 2)
def json_tools(s, a: str, n: int):
    calls = json.loads(s.gen("j", regex=r'\[\{"f": "(upper|count)", "x": "[a-c]"\}\]'))
    results = []
    for call in calls:
        match call:
            case {"f": "upper", "x": str(x)}:
                results.append(upper(x))
            case {"f": "count", "x": x}:
                results.append(count(x))
            case _:
                results.append(None)
    return results, json.dumps({"r": results, "n": n}, sort_keys=True)


@case("fix the bug", 2)
def two_lists(s, a: str, n: int):
    pros, cons = [], []
    for target, name in ((pros, "pro"), (cons, "con")):
        for _ in range(2):
            target.append(s.gen(name, max_tokens=2))
    verdict = "pro" if sum(map(len, pros)) >= sum(map(len, cons)) else "con"
    return {"pros": pros, "cons": cons, "verdict": verdict, "both": list(zip(pros, cons))}


@case("fix the bug", 2)
def dedupe(s, a: str, n: int):
    seen, out = set(), []
    for _ in range(4):
        idea = s.gen("idea", max_tokens=2, temperature=1.0).strip().lower()
        if not idea or idea in seen:
            continue
        seen.add(idea)
        out.append(idea)
        if len(out) == 2:
            break
    return out, len(seen), "none" if not out else out[-1]


@case("fix the bug", 2)
def opt_args(s, a: str, n: int, *rest: str, tone: str = "dry", **extra):
    s += lmc.user(f"{a} {tone} {len(rest)}")
    kw = {"max_tokens": 3, "temperature": 0.0} | ({"stop": "."} if n else {})
    return s.gen("x", **kw), rest, extra


@case("fix the bug", 2, stops="the result of add is known only when the program runs, but t")
def sliding(s, a: str, n: int):
    words = a.split()
    windows = [" ".join(words[max(0, i - 1) : i + 2]) for i in range(len(words))]
    outs = [s.gen(f"w{i}", max_tokens=2) if i < 3 else "" for i, w in enumerate(windows)]
    return list(zip(windows, outs)), "; ".join(o for o in outs if o)


@case("fix the bug", 2, stops="the order of a set differs from one run of Python to the nex")
def set_ops(s, a: str, n: int):
    want = {"x", "y"}
    got = set(s.gen("t", max_tokens=6).split())
    return sorted(want & got), sorted(want - got), want <= got, len(got | want), want.isdisjoint(got)


@case("fix the bug", 2, stops="`ClassDef` can't be captured yet")
def tree_rec(s, a: str, n: int):
    @dataclass
    class T:
        v: str
        kids: list

    def grow(depth):
        v = s.gen("v", max_tokens=1)
        return T(v, [grow(depth - 1) for _ in range(2)] if depth else [])

    def size(t):
        return 1 + sum(size(k) for k in t.kids)

    t = grow(1)
    return size(t), t.v, [k.v for k in t.kids]


@case("fix the bug", 2, stops="the attribute 'stem' of the result of Path() is known only w")
def path_read(s, a: str, n: int):
    p = Path("x") / "y.txt"
    return p.suffix, p.stem, s.gen(p.stem, max_tokens=2), os.path.basename("a/b.c")


@case("fix the bug", 2)
def any_all(s, a: str, n: int):
    rs = [s.gen("r", choices=["pass", "fail"]) for _ in range(3)]
    i = next((i for i, r in enumerate(rs) if r == "fail"), None)
    return all(r == "pass" for r in rs), any(r == "fail" for r in rs), i, rs.index("pass") if "pass" in rs else -1


@case("fix the bug", 2)
def ternaries(s, a: str, n: int):
    x = s.gen("x", dtype=int, max_tokens=2)
    y = "neg" if x < 0 else "zero" if not x else "pos"
    z = x or 5
    d = divmod(abs(x), 3)
    return y, z, d, f"{x:+d} {x / 2:.2f}", -3 <= x < 10, min(x, 3, n), round(x * 1.5)


@case("fix the bug", 2)
def strip_fence(s, a: str, n: int):
    t = "```json\n" + s.gen("t", max_tokens=4) + "\n```"
    if t.startswith("```"):
        t = t.split("\n", 1)[1].rsplit("```", 1)[0]
    lines = [l.strip() for l in t.splitlines() if l.strip()]
    return t, lines, len(lines) and lines[0][:1].isalpha()


@case('{"f": "up", "x": "a", "ys": {"deep": 3}}')
def mapping_patterns_of_json(s, a: str):
    got = json.loads(s.gen("j", regex=r'(\{"f": "(up|b)", "x": (1|"c")\}|\[1\]|\{\}|2)'))
    out, counts = [], {}
    for call in (got, json.loads(a), json.loads("[]"), json.loads("{}"), {"f": a}):
        match call:
            case {"ys": {"deep": int(v)}, "f": f} if v > 2:
                out.append((f, v))
            case {"f": "up", "x": str(q)}:
                out.append(q)
            case {"f": f, "x": int(q)}:
                out.append((f, q + 1))
            case {"f": other}:
                out.append(other)
            case {}:
                out.append("a dict")
            case _:
                out.append(None)
    for letter in s.gen("t", max_tokens=8):
        counts[letter] = counts.get(letter, 0) + 1
    match counts:
        case {"e": v, "a": w}:
            out.append(v + w)
        case {" ": v}:
            out.append(v)
        case {}:
            out.append(len(counts))
    return out


@case("red,green", 2)
def lists_joined_and_repeated(s, colours: str, n: int):
    names = colours.split(",") + []  # noqa: RUF005
    names.append("blue")
    slots = [None] * n
    for i in range(n):
        slots[i] = s.gen(max_tokens=2)
    twice = 2 * names
    twice.append("end")
    shared = [[]] * n
    if shared:
        shared[0].append(len(twice))
    return names, slots, twice, shared, n * ["x"], [1] + names  # noqa: RUF005


@lmc.tool(effect="reads")
def near(word: str) -> list[str]:
    return [word[:2], word[2:4], word]


def titled(first, *rest):
    return first + ": " + ", ".join(rest)


@case([{"t": "a b", "n": 1}, {"t": "c", "n": 2}], "d")
def rows_that_an_answer_keeps(s, rows: list[dict], q: str):
    kept = [r for r in rows if s.gen(choices=["yes", "no"], temperature=1.0) == "yes"]
    s += "\n".join(r["t"] for r in kept)
    return len(rows), [r["n"] for r in kept]


@case("d")
def many_rows_that_an_answer_keeps(s, q: str):
    rows = [{"t": q + t, "n": i} for i, t in enumerate("abcdefgh")]
    kept = [r for r in rows if s.gen(choices=["yes", "no"], temperature=1.0) == "yes"]
    for r in kept:
        r["seen"] = True
    return kept, rows, [r is rows[0] for r in kept]


@case([{"t": "a b", "n": 1}, {"t": "c", "n": 2}], stops="it holds a container that the program did not make itself")
def rows_of_the_caller_are_given_back(s, rows: list[dict]):
    return [r for r in rows if s.gen(choices=["yes", "no"], temperature=1.0) == "yes"]


@case("abcd")
def copies_of_an_answer(s, q: str):
    answer = json.loads(s.gen(schema=LOOKED_UP, max_tokens=30))
    first, second = {**answer, "q": q}, dict(answer, n=q)
    answer["z"] = 1
    both = {"n": None, **answer, **second}
    return first, second, both, [*answer], (*answer, q), len({*near(q), q}), [q, *near(q)]


@case("abcd", stops="takes apart what it gives")
def columns_of_collected_rows(s, q: str):
    rows = []
    for word in near(q):
        rows.append((word, s.gen(max_tokens=2)))
    names, values = zip(*rows)
    s += titled("names", *near(q))
    return list(names), values, titled(q, "x", *near(q))
