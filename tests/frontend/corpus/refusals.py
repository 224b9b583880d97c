"""More constructs, and what stays plain Python."""

# Programs as users write them.
# ruff: noqa: B007, SIM201
# pyright: reportMatchNotExhaustive=false, reportUnusedClass=false, reportUnusedVariable=false

import dataclasses

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.cases import case
from tests.frontend.corpus.host_functions import Item, record
from tests.frontend.harness import effect


@case("a", 2)
def matches(s, a: str, n: int):
    match n:
        case 1:
            s += "one"
        case 2 | 3:
            s += "few"
        case _:
            s += "many"
    match [1, "x"]:
        case [1, other]:
            s += str(other)
    return s.gen("g", max_tokens=2)


@case("a")
def match_into_symbols(s, a: str):
    match [a, "x"]:
        case ["a", other]:
            s += str(other)
    return s.gen("g", max_tokens=2)


@case("a")
def match_on_the_items_of_generated_text(s, a: str):
    match s.gen("x", max_tokens=2):
        case [first, *_]:
            return first
        case _:
            return 2


@case("a")
def match_on_generated(s, a: str):
    match s.gen("x", max_tokens=2):
        case "yes":
            return 1
        case _:
            return 2


@case(make=lambda: ((c for c in "abc"),), stops="going over a generator can't be captured yet")
def generator_argument(s, letters):
    for letter in letters:
        s += letter
    return s.gen("g", max_tokens=2)


@case("a")
def with_user_manager(s, a: str):
    with Manager(a) as m:
        s += str(m)
    return s.gen("g", max_tokens=2)


class Manager:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        effect("enter")
        return self.name

    def __exit__(self, *_):
        effect("exit")


@case("a", stops="`ClassDef` can't be captured yet")
def class_inside(s, a: str):
    class Local:
        pass

    s += a
    return s.gen("g", max_tokens=2)


@case("a", stops="the program asks for the names of its own frame")
def uses_locals(s, a: str):
    s += str(sorted(locals()))
    return s.gen("g", max_tokens=2)


@case("a")
def passes_state_on(s, a: str):
    helper(s, a)
    return s.gen("g", max_tokens=2)


def helper(s, a):
    s += a + " helped "
    s.gen("h", max_tokens=2)


@case("a")
def helper_calls_program(s, a: str):
    s += outer_greet(a)
    return s.gen("g", max_tokens=2)


@JittedFunction
def tail(s, a):
    s += a
    return s.gen("g", max_tokens=2)


def outer_greet(a):
    return tail(a) + "!"


@case("a")
def set_of_generated(s, a: str):
    x = s.gen("x", max_tokens=2)
    return len({x, a})


@case("a")
def identity(s, a: str):
    x = s.gen("x", max_tokens=2)
    n = record(x)
    return x is None, x is not None, a is a, n is None, f"{n}"


@case("a")
def any_over_generator(s, a: str):
    x = s.gen("x", max_tokens=2)
    return any(x == y for y in ("p", "q"))


@case("a")
def lookups(s, a: str):
    table = {"a": "found", "b": "other"}
    x = table[a]
    return x, a in table, a in ("a", "b"), a in {"a"}, ["zero", "one"][len(a)], "abc"[len(a) :]


@case("a")
def types_of_values(s, a: str, n: int = 1):
    x = s.gen("x", max_tokens=2)
    return (
        isinstance(x, str),
        isinstance(n, (int, float)),
        type(x) is str,
        callable(x),
        hasattr(x, "upper"),
        isinstance(x, int),
    )


@case("a")
def deletes_and_loops(s, a: str):
    out = []
    for i in range(5):
        if i == 1:
            continue
        for j in range(i):
            if j == 2:
                break
        else:
            out.append(f"{i}{a}")
            continue
        if i == 4:
            break
    x = a
    del x
    i = 10
    while True:
        i -= 1
        if i < 7:
            break
    return out, i


@case("a")
def named_with_slashes(s, a: str):
    s += a
    s.gen("a/b#1", max_tokens=2, temperature=1.0)
    s.gen("@x", max_tokens=2, temperature=1.0)
    s.gen("fork", max_tokens=2, temperature=1.0)
    f = s.fork(1)
    return f[0].gen("x", max_tokens=2, temperature=1.0), s["a/b#1"]


@case("a")
def many_concats(s, a: str):
    text = a
    for i in range(200):
        text = text + f" {i}"
    s += text
    total = ""
    for i in range(150):
        total += a
    return total, len(text)


@case("a", "b")
def bool_operators_on_symbols(s, a: str, b: str):
    x = a or b
    y = a and b
    s += x + y
    return (a == "a") and (b == "b"), not (a == b), a != b


@case("a")
def imports_inside(s, a: str):
    import json as j
    from math import floor

    s += j.dumps([a]) + str(floor(2.5))
    return s.gen("g", max_tokens=2)


@case("a")
def dataclass_field_read(s, a: str):
    for name in [field.name for field in dataclasses.fields(Item)]:
        s += a + name
    return s.gen("g", max_tokens=2)
