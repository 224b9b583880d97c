"""What goes over items whose number only a run decides: ``enumerate``, ``zip``, ``range``, comprehensions."""

# Programs as users write them.
# ruff: noqa: B007, B905, B020, C405, C416, E741, F841, PLW2901, RUF100, S101
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportIndexIssue=false

import pytest

from lmc import jit, tool
from tests.frontend.harness import check, check_whole, effect

HITS = []


@tool(effect="reads")
def search(text: str) -> list[str]:
    HITS[:] = [text + str(i) for i in range(len(text) % 4)]
    return HITS


def more(x):
    effect("more", x)
    if len(HITS) < 5:
        HITS.append(x + "!")


@jit
def goes_over_what_is_made_of_lists(s, q: str):
    s += q
    words = s.gen("x", max_tokens=6).split("e")
    out = []
    for i, w in enumerate(words, 1):
        out.append(f"{i}:{w}")
    for (i, w), v in zip(enumerate(words), out):
        s += f"{i}{w}{v}"
    for w in reversed(out):
        s += w
    for k, w in zip(["a", "b", "c"], words):
        out.append(k + w)
    n = s.gen("n", dtype=int)
    total = 0
    for i in range(n % 7):
        total += i
    for i in range(2, len(words)):
        total += i * 100
    return out, total, s.gen(max_tokens=2)


@jit
def a_list_that_rounds_change(s, q: str):
    s += q
    for x in search(q):
        s += x
        more(x)
    return s.gen(max_tokens=3)


@jit
def an_own_list_changed_in_its_round(s, q: str):
    s += q
    xs = s.gen("x", max_tokens=6).split("e")
    ys = list(xs)
    zs = [x for x in ["q"]]
    for x in ys:
        if len(zs) > 3:
            ys.append(x)
            break
        zs.append(x)
    return ys, zs


@jit
def an_enumeration_gone_over_twice(s, q: str):
    s += q
    e = enumerate(s.gen("x", max_tokens=6).split("e"))
    for i, x in e:
        s += x
    for i, x in e:
        s += "never"
    return s.gen(max_tokens=3)


@jit
def an_enumeration_zipped_with_itself(s, q: str):
    s += q
    e = enumerate(s.gen("x", max_tokens=6).split("e"))
    for (i, x), (j, y) in zip(e, e):
        s += x + y
    return s.gen(max_tokens=3)


@jit
def reads_what_rounds_may_have_bound(s, q: str):
    s += q
    for w in s.gen("x", max_tokens=6).split("e"):
        last = w
        if "t" in w:
            y = w
    s += last
    return s.gen(max_tokens=3)


@jit
def comprehensions(s, q: str):
    s += q
    words = s.gen("x", max_tokens=6).split("e")
    a = [w + q for w in words]
    b = [w for w in ["a", "b", q] if w in words[0] or "t" in w]
    c = [f"{i}{w}" for i, w in enumerate(words) if w if "t" in w]
    d = ", ".join(w.upper() for w in words if w)
    e = [[x + y for x in words] for y in ["p", "q"]]
    s += d
    g = [s.gen("k", max_tokens=1) for w in words]

    def inner():
        return [w + q for w in words]

    words = a
    return a, b, c, d, e, g, inner()


@jit
def asserts(s, q: str):
    s += q
    for w in s.gen("x", max_tokens=6).split("e"):
        if "t" in w:
            y = w
    s += y
    assert y, "empty"
    assert "q" not in y
    return s.gen(max_tokens=3)


@jit
def sets_of_generations(s, q: str):
    s += q
    xs = [s.gen("x", max_tokens=2) for _ in range(3)]
    if len(set(xs)) == 1:
        return xs[0]
    seen = set(xs)
    words = s.gen("w", max_tokens=5).split("e")
    return s.gen("y", max_tokens=2), sorted(seen), "t" in seen, len(set(words)), seen == set(xs)


@jit
def breaks_out_of_an_enumeration(s, q: str):
    s += q
    words = ["p", "q", "r"]
    for i, w in enumerate(words):
        s += w
        if "e" in s.gen("x", max_tokens=2):
            break
    for w in words:
        s += w
        if "t" in s.gen("x", max_tokens=2):
            break
    return w, s.gen(max_tokens=1)


INPUTS = ("hello", "x", "abc", "what is this", "t", "u", "yy", "")
WHOLE = (
    goes_over_what_is_made_of_lists,
    a_list_that_rounds_change,
    an_own_list_changed_in_its_round,
    reads_what_rounds_may_have_bound,
    comprehensions,
    asserts,
    sets_of_generations,
    breaks_out_of_an_enumeration,
)


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.name)
def test_every_number_of_items_is_that_of_plain_python(program):
    check_whole(program, INPUTS)


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        (an_enumeration_gone_over_twice, "is gone over again"),
        (an_enumeration_zipped_with_itself, "an iterator over items that only a run counts"),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_what_python_would_do_otherwise_ends_the_capture(program, cause):
    for text in INPUTS:
        (found,) = check(program, (text,)).breaks
        assert cause in found.cause
