"""``suppress``, ``bisect``, and orders of dataclasses."""

import bisect
from contextlib import suppress
from dataclasses import dataclass, field

from tests.frontend.corpus.cases import case


@dataclass(order=True)
class Scored:
    score: int
    text: str = field(compare=False)


@dataclass(order=True, frozen=True)
class Word:
    text: str
    number: int = 0


class Longer(Word):
    pass


@case("apple pie", 2)
def suppressed_exceptions(s, a: str, n: int):
    got = []
    for _ in range(2):
        with suppress(ValueError, KeyError):
            got.append(int(s.gen("v", regex="[0-9]|n")))
            if "e" in s.gen("w", max_tokens=2):
                raise KeyError("x")
            got.append("after")
    with suppress(IndexError):
        got.append(got[5])
    return got


@case("apple pie", 2)
def places_in_sorted_lists(s, a: str, n: int):
    xs = sorted(int(s.gen("v", regex="[0-9]")) for _ in range(3))
    i = bisect.bisect(xs, n)
    bisect.insort(xs, n)
    grades = "FDCBA"[bisect.bisect([60, 70, 80, 90], int(s.gen("g", regex="[5-9][0-9]")))]
    return xs, i, bisect.bisect_left(xs, 3), grades


@case("apple pie", 2)
def items_in_the_order_of_a_dataclass(s, a: str, n: int):
    cs = [Scored(int(s.gen("s", regex="[0-9]")), str(i)) for i in range(3)]
    best, worst = max(cs), min(cs)
    cs.sort()
    return [c.text for c in cs], best is cs[-1], best.text, worst.text, [c.text for c in sorted(cs, reverse=True)]


@case("apple pie", 2)
def the_largest_of_frozen_items(s, a: str, n: int):
    ds = [Word(s.gen("s", regex="[ab]"), i) for i in range(3)]
    es = [Longer(d.text) for d in ds]
    return sorted(ds), max(es).text, min(*ds).number, max(ds[:1]).text


@case("apple pie", 2)
def a_list_of_the_run_in_the_order_of_a_dataclass(s, a: str, n: int):
    cs = []
    for w in s.gen("t", max_tokens=12).split():
        cs.append(Scored(len(w), w))
    cs.sort(reverse=True)
    return [c.text for c in cs], max(cs).text if cs else ""
