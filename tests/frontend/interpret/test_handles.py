"""Programs about handles: forms, states that move and are chosen in the run, names that only a run knows."""

# Programs as users write them.
# ruff: noqa: B007, B905, PLW2901
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportArgumentType=false

import pytest

import lmc
from lmc.frontend.capture import capture
from lmc.frontend.program import forms
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from tests.frontend.harness import check, effect

jit = JittedFunction
PROGRAMS = {}


def whole(function):
    PROGRAMS[function.__name__] = jit(function)
    return PROGRAMS[function.__name__]


@jit
def judge(s, t):
    s += t
    return s.gen("j", max_tokens=2, temperature=1.0)


@jit
def asks_behind_text(s, w):
    s += w
    try:
        s.user("go")
        s.gen("x", max_tokens=2)
        s.assistant("j")
    except lmc.CaptureError as e:
        return e.cause
    return s.text()


@whole
def maps_programs(s, a):
    s += a
    xs = s.gen("p", max_tokens=9).split("e")
    return forms.map(judge, xs), forms.map(lambda x: judge(x) + a, xs), judge(a)


@whole
def maps_on_branches(s, a):
    s += a
    xs = s.gen("p", max_tokens=9).split("e")

    def go(b, x):
        b += x
        if b.gen("q", max_tokens=2) > "m":
            return b.gen("r", max_tokens=1, temperature=1.0)
        return judge(x)

    return forms.map(go, xs, on=s), forms.map(go, ["u", "v"], on=s), forms.map(go, xs, on=s), s.text()


@whole
def races(s, a):
    s += a
    xs = s.gen("p", max_tokens=9).split("e")
    first = forms.race(judge, xs, good=lambda x: len(x) > 2, default="d")
    return first, forms.race(lambda b, x: b.gen(max_tokens=2), ["u", "v"], good=lambda x: "e" in x, on=s)


@whole
def conditions_and_loops(s, a):
    s += a
    x = s.gen("p", max_tokens=3)
    y = forms.cond(x > "m", lambda: s.gen("a", max_tokens=1), lambda: judge(x))
    known = forms.while_loop(lambda n, t: n < 3, lambda n, t: (n + 1, t + s.gen("w", max_tokens=1)), 0, "")
    found = forms.while_loop(
        lambda n, t: len(t) < 3 and n < 4, lambda n, t: (n + 1, t + s.gen("w", max_tokens=1)), 0, x
    )
    return y, known, found


@whole
def elements_collect(s, a):
    s += a
    out = []

    def go(x, y):
        out.append(x)
        effect("e", x)
        return x, y

    return forms.map(go, s.gen("p", max_tokens=9).split("e"), ["1", "2", "3"]), out


@whole
def misuse_in_the_run(s, a):
    s += a
    text = s.gen("x", max_tokens=1)
    found = "no"
    branch = s.copy()
    try:
        branch.user("hi")
    except lmc.CaptureError as e:
        found = e.cause
    return found, branch.text(), asks_behind_text(text), asks_behind_text("")


@whole
def a_copy_moves(s, a):
    s += a
    kept = s.copy()
    for letter in s.gen("x", max_tokens=3):
        kept = s.copy()
        kept += letter
        kept.gen("y", max_tokens=1, temperature=1.0)
    return kept.gen("y", max_tokens=2, temperature=1.0), kept.text(), kept["y"]


@whole
def three_states_rotate(s, a):
    s += a
    one, two, three = s.copy(), s.copy(), s.copy()
    for letter in s.gen("x", max_tokens=4):
        one += letter
        one.gen("y", max_tokens=1, temperature=1.0)
        one, two, three = two, three, one
        if letter > "m":
            one, two = two, one
    return one.text(), two.gen("y", max_tokens=1), three.text(), one is two


@whole
def copies_of_other_numbers(s, a):
    s += a
    if s.gen("x", max_tokens=2) > "m":
        t = s.copy()
        t.gen("y", max_tokens=1, temperature=1.0)
    else:
        s.copy()
        t = s.copy()
        t += "b"
    return t.gen("y", max_tokens=2, temperature=1.0), t.text(), t.copy().gen("z", max_tokens=1)


@whole
def one_of_a_list(s, a):
    s += a
    states = [s.copy() for _ in range(3)]
    i = s.gen("n", dtype=int, max_tokens=2) % 3
    states[i] += "one"
    states[i].gen("x", max_tokens=1, temperature=1.0)
    states[i - 1].append("two")
    before = [state.text() for state in states]
    t = states[i]
    t += "t"
    return before, [state.text() for state in states], t is states[i], t.fork(2)[1].gen("z", max_tokens=1)


@whole
def one_of_the_branches(s, a):
    s += a
    branches = s.fork(2)
    n = s.gen("n", dtype=int, max_tokens=2)
    out = []
    try:
        branches[n] += "u"
        out.append(branches[n].gen("x", max_tokens=1))
    except IndexError as e:
        out.append(str(e))
    try:
        [s, branches[0]][n].append("k")
    except IndexError as e:
        out.append(str(e))
    return out, [branch.text() for branch in branches], s.text()


@whole
def the_best_and_the_order(s, a):
    s += a
    branches = s.fork(3)
    for branch in branches:
        branch.gen("x", max_tokens=2, temperature=1.0)
    best = max(branches, key=lambda b: b["x"])
    best += "!"
    order = sorted(branches, key=lambda b: (len(b["x"]), b["x"]), reverse=True)
    order[0].gen("y", max_tokens=1)
    t = order[1].fork(2)[1]
    t += "t"
    return best.text(), [b.text() for b in branches], t.gen("z", max_tokens=1), order[2] is best, t.text()


@whole
def names_of_a_choice(s, a):
    s += a
    kind = s.select("k", ["red", "blue", "x"])
    s.gen(kind, max_tokens=2)
    s.gen(kind, max_tokens=1, temperature=1.0)
    try:
        red = s["red"]
    except KeyError:
        red = "none"
    return s[kind], red, s.get("blue", "-"), kind in s, "x" in s


@whole
def known_branches_with_unknown_items(s, a):
    s += a
    out = []
    for branch, item in zip(s.fork(3), s.gen("x", max_tokens=8).split("e")):
        branch += item
        out.append(branch.gen("y", max_tokens=1))
    out.append("end")
    for branch, item in zip(s.fork(0), s.gen("x", max_tokens=8).split("e")):
        out.append(item)
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_whole_and_equal(name: str):
    program = PROGRAMS[name]
    for text in ("abc", "q", "zz e", "m"):
        found = capture(program, bind(program, (text,), {}))
        assert not found.breaks
        check(program, (text,), captured=found)
