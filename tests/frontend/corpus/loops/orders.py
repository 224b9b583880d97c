"""Passes and the executor: what may move out of rounds, what is dropped in them, what must stay in order."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, E741, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from tests.frontend.corpus.host_functions import find, lookup, record
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.corpus.loops.effects import begin, drop, remember, seen_so_far, split_up
from tests.frontend.harness import effect


@looped()
def exceptions_come_in_order(s, a: str):
    s += a
    out = 0
    for l in s.gen("x", max_tokens=5):
        effect("a", l)
        out += 1 // (len(l.replace("e", "")))
        s.gen("y", max_tokens=1)
        effect("b", l)
    return out


@looped()
def int_raises_after_write(s, a: str):
    s += a
    n = len(s.gen("x", max_tokens=2))
    while n < 6:
        record("w" + str(n))
        n += 1
        k = int(s.gen("x", regex="[0-9e]")) if n > 3 else 0
        record(str(k))
    return n


@looped()
def breaks_inside_arms_with_effects(s, a: str):
    s += a
    for l in s.gen("x", max_tokens=5):
        record(l)
        if "t" in l:
            record("t")
            if len(a) > 3:
                break
            s += "more"
        v = s.fork(2)
        v[0].gen("f", max_tokens=2)
        v[1].gen("f", max_tokens=2, temperature=1.0)
        s += v[0]["f"]
        record(v[1]["f"])
    else:
        record("else")
    record("end")
    return s.gen("x", max_tokens=2)


@looped()
def invariant_prefix_in_loop(s, a: str):
    s += a * 20
    x = s.gen("x", max_tokens=5)
    out = ""
    for l in x:
        t = s.copy()
        t += "the same for each round, and long enough to be a prefix: "
        t += l
        out += t.gen("y", max_tokens=2)
        for m in x[:2]:
            u = t.copy()
            u += "again the same " * 3
            u += m
            out += u.gen("z", max_tokens=1, temperature=1.0)
    return out


@looped()
def prefix_in_arm_of_loop(s, a: str):
    s += a * 9
    p = s.copy()
    p += "a long shared prefix for all the rounds of it "
    out = ""
    for l in s.gen("x", max_tokens=5):
        if l == "e":
            out += p.gen("y", max_tokens=1)
        else:
            q = p.copy()
            q += l
            out += q.gen("y", max_tokens=1)
            if l == "t":
                return out
    return out, p.gen("y", max_tokens=1)


@looped()
def cse_in_rounds(s, a: str):
    s += a
    out = ""
    for l in s.gen("x", max_tokens=4):
        t, u = s.copy(), s.copy()
        t += l
        u += l
        out += t.gen("p", max_tokens=2) + u.gen("q", max_tokens=2) + t.gen("r", max_tokens=2, temperature=1.0)
        out += lookup(l) + lookup(l)
    return out


@looped()
def unused_in_rounds(s, a: str):
    s += a
    n = 0
    dead = ""
    for l in s.gen("x", max_tokens=4):
        t = s.copy()
        t += l
        t.gen("p", max_tokens=2)
        dead = dead + l
        k = int("3") + n
        n += 1
        lookup(l)
        split_up(l)
    return n


@looped()
def loop_in_fork_branches(s, a: str):
    s += a
    vs = s.fork(3)
    for i, v in enumerate(vs):
        v += str(i)
        while "e" not in v.gen("t", max_tokens=1, temperature=1.0) and len(v.text()) < len(a) + 12:
            v += "."
        if i == 1:
            record(v.text())
    return [v.text() for v in vs]


@looped()
def writes_and_reads(s, a: str):
    s += a
    begin()
    x = s.gen("x", max_tokens=4)
    n = seen_so_far()
    for l in x:
        if l in "et":
            remember(l)
            if seen_so_far() > 1:
                break
        else:
            s += str(seen_so_far())
        record(str(seen_so_far()))
    return seen_so_far(), n, s.text()


@looped()
def early_return_then_effects(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    for l in x:
        if l == "e":
            record("ret")
            return l
        for m in x:
            if m == "t":
                record("inner")
                return m + l
            record(m)
    record("after")
    if "s" in x:
        return "s"
    for l in x:
        record("late" + l)
    return s.gen("y", max_tokens=2)


@looped()
def schema_in_rounds(s, a: str):
    s += a
    t = 0
    while t < 9 and s.gen("go", regex="[0-3]", temperature=1.0) != "0":
        t += 1
        if s.gen("k", choices=["a", "b"]) == "a":
            s += "A"
        v = s.gen("v", regex="[a-c]{1,2}", temperature=1.0)
        if v[0] == "c":
            continue
        s += v
    return t, s.text()


@looped()
def a_list_with_two_names_grows(s, a: str):
    s += a
    xs = []
    ys = xs
    for l in s.gen("x", max_tokens=3):
        ys.append(l)
    xs.append("end")
    return xs, ys, len(xs), xs is ys


@looped()
def a_list_moves_on(s, a: str):
    s += a
    xs = ["k", "l", "m"]
    for l in s.gen("x", max_tokens=4):
        xs.append(l)
        del xs[0]
    del xs[-1]
    return xs


@looped()
def effects_see_a_list_that_grows(s, a: str):
    s += a
    xs = ["k"]
    for l in s.gen("x", max_tokens=3):
        xs.append(l)
        effect(len(xs))
    effect(",".join(xs))
    return s.gen("y", max_tokens=2)


@looped()
def an_enumerated_list_shrinks(s, a: str):
    s += a
    items = find(s.gen("x", max_tokens=3))
    out = ""
    for i, w in enumerate(items):
        out += f"{i}{w}"
        if i == 0:
            effect(drop(items))
    for v, w in zip(find("q"), s.gen("y", max_tokens=3)):
        out += v + w
    return out, items


@looped()
def two_lists_one_of_which_shrinks(s, a: str):
    s += a
    xs = find(s.gen("x", max_tokens=3))
    ys = find("b")
    out = ""
    for v, w in zip(xs, ys):
        out += v + w
        effect(drop(ys))
    return out, xs, ys


@looped()
def a_list_in_two_loops_shrinks(s, a: str):
    s += a
    xs = find(s.gen("x", max_tokens=3))
    out = ""
    for v in xs:
        for w in xs:
            out += v + w
            if w == "" or (len(xs) > 1 and "e" in w):
                effect(drop(xs))
    return out, xs


@looped()
def the_best_of_a_list_that_grew(s, a: str):
    s += a
    xs = []
    while len(xs) < 5:
        y = s.gen("y", max_tokens=1, temperature=1.0)
        if y in xs:
            break
        xs.append(y)
    best = None
    for i, x in enumerate(xs):
        if best is None or x > best:
            best = x
            at = i
    return xs, best, at


@looped()
def a_name_deleted_in_some_round(s, a: str):
    s += a
    last = "k"
    for l in s.gen("x", max_tokens=2):
        if l == "e":
            del last
            break
    return last


@looped()
def a_name_that_may_be_unbound_is_changed(s, a: str):
    s += a
    for l in s.gen("x", max_tokens=1):
        last = l
    last += "k"
    effect(last)
    return last
