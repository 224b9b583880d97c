"""Calls of the user's own functions."""

# Programs as users write them.
# pyright: reportIndexIssue=false

import json
import math
import re
from typing import Any

from tests.frontend.corpus.cases import case
from tests.frontend.corpus.host_functions import Item, Verdict, details, length_of, lookup, record, shout
from tests.frontend.harness import effect


@case("w")
def tools(s, a: str):
    found = lookup(a)
    s += f"{found} {length_of(found)} {found.upper()}"
    record(found)
    x = s.gen("x", max_tokens=3)
    record(x)
    return [lookup(x), length_of(word=x) + 1]


@case("w")
def undeclared_functions(s, a: str):
    loud = shout(a)
    s += loud
    s += f"{loud:>4}"
    again = shout(s.gen("x", max_tokens=3))
    return loud, again.lower(), f"{again}"


@case("word")
def unknown_results(s, a: str):
    found = details(a)
    s += f"{found['word']} {found['n']} {found['parts'][0]}"
    s += found["word"]
    return found, found["n"], found.get("missing", "none")


@case("word")
def mutable_result_is_read_in_order(s, a: str):
    pile = make_pile()
    before = f"{pile}"
    push(a)
    return before, f"{pile}"


PILE: list[Any] = []


def make_pile():
    PILE.clear()
    return PILE


def push(x):
    PILE.append(x)
    effect("push", x)


@case("word")
def mutable_result_before_a_break(s, a: str):
    pile = make_pile()
    before = len(pile)
    push(a)
    s += f"{before}{len(pile)}"
    hash(s.gen("x", max_tokens=2))
    push("later")
    return before, list(pile)


@case("w")
def library_calls(s, a: str):
    s += json.dumps({"a": a, "n": [1, 2]})
    s += re.sub(r"w+", "v", a)
    s += str(math.sqrt(4))
    return json.loads('{"x": [1]}')["x"][0], re.findall("w", a)


@case("w")
def makes_objects(s, a: str):
    s += a
    x = s.gen("x", max_tokens=2)
    return Item(x, 3), Verdict(score=1, why=x), Item(title=a).title


@case("w")
def prints(s, a: str):
    print(end="")
    effect("literal", [1, {"a": a}], (a, 2))
    return s.gen("g", max_tokens=2)


@case("w", stops="might change or keep")
def passes_its_list(s, a: str):
    xs = [a]
    effect(xs)
    xs.append("more")
    return s.gen("g", max_tokens=2), xs
