"""Plain functions that programs call without a state: parts of the program where they only work something out."""

# Programs as users write them.
# ruff: noqa: B006, PLW0603
# pyright: reportArgumentType=false, reportReturnType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalSubscript=false, reportConstantRedefinition=false, reportUnnecessaryComparison=false, reportCallIssue=false

import functools
import json
from typing import Any

from tests.frontend.corpus.cases import case
from tests.frontend.harness import effect

TITLE = "Notes"
SEEN: list[str] = []
COUNT = 0
DEPTHS = {"a": 1}


def clean(text):
    return text.strip().lower()


def render(notes, title=TITLE):
    lines = [f"{key}: {value}" for key, value in notes.items()]
    return f"{title}\n" + "\n".join(lines)


def missing(form, text):
    return [name for name, value in form.items() if not value or value not in text]


def first_of(parts, default=""):
    for part in parts:
        if part:
            return part
    return default


def sort_of(text):
    if "a" in text:
        return "with a"
    if len(text) > 3:
        return "long"
    return "short"


@case("  Word ")
def pure_helper(s, a: str):
    s += clean(a)
    x = s.gen("x", max_tokens=3)
    return clean(x), clean(clean(x) + "!")


@case("w")
def helper_of_own_dict(s, a: str):
    notes = {"first": a}
    notes["second"] = s.gen("x", max_tokens=3)
    s += render(notes)
    notes["third"] = "t"
    return s.gen("y", max_tokens=3), render(notes, title=a)


@case("w")
def helper_of_own_list(s, a: str):
    parts = [a, s.gen("x", max_tokens=3)]
    return first_of(parts), first_of([], "none"), parts


@case("w")
def helper_that_filters(s, a: str):
    form = {name: s.gen(name, max_tokens=3) for name in ("p", "q")}
    wrong = missing(form, a)
    s += f"{len(wrong)}"
    return s.gen("end", max_tokens=2), form


@case("w")
def helper_with_returns_in_arms(s, a: str):
    x = s.gen("x", max_tokens=3)
    return sort_of(x), sort_of(a), [sort_of(part) for part in (x, "a")]


def doubled(items):
    items.append("more")
    return len(items)


@case("w")
def helper_that_mutates_its_argument(s, a: str):
    mine = [a]
    again = mine
    count = doubled(mine)
    doubled(again)
    return count, mine, again


def keeps(items, kept=[]):
    kept.append(len(items))
    return len(kept)


def forget() -> tuple[str]:
    keeps.__defaults__[0].clear()
    return ("w",)


@case(make=forget)
def helper_with_a_mutable_default(s, a: str):
    first = keeps([a, "x"])
    items = [a]
    return first, keeps(items), len(items)


def prints(text):
    print(text, end="")
    effect("printed", text)
    return text + "!"


@case("w")
def helper_that_prints(s, a: str):
    s += prints(a)
    return prints(s.gen("x", max_tokens=2))


def counted(text):
    global COUNT
    COUNT += 1
    SEEN.append(text)
    effect("counted", COUNT)
    return f"{text}{COUNT}"


def reset() -> tuple[str]:
    global COUNT
    COUNT = 0
    SEEN.clear()
    return ("w",)


@case(make=reset)
def helper_that_writes_a_global(s, a: str):
    s += counted(a)
    return counted(s.gen("x", max_tokens=2))


def factorial(number):
    return 1 if number < 2 else number * factorial(number - 1)


def nested(text, depth):
    return text if not depth else f"({nested(text, depth - 1)})"


def endless(text):
    return endless(text) if text else text


@case("w")
def recursive_helpers(s, a: str):
    s += f"{factorial(4)}{factorial(12)}"
    return nested(s.gen("x", max_tokens=2), 3), nested(a, 2)


@case("w")
def endless_helper(s, a: str):
    s += a
    return endless(s.gen("x", max_tokens=2))


def make_adder(mark):
    def add(text):
        return text + mark

    return add


STAR = make_adder("*")
SHOUT = functools.partial(render, title="T")


@case("w")
def closures_as_helpers(s, a: str):
    return STAR(a), make_adder(a)("x"), STAR(s.gen("x", max_tokens=2)), SHOUT({"k": a})


def parsed(text):
    return json.loads(f'["{text}"]')[0]


@case("w")
def helper_that_parses(s, a: str):
    s += f"{parsed(a)}"
    return parsed("v")


def number_in(text):
    try:
        return int(text)
    except ValueError:
        return 0


@case("7")
def helper_with_a_try(s, a: str):
    x = s.gen("x", max_tokens=2)
    return number_in(a) + 1, number_in(x), number_in("3")


def strict(text):
    if not text.startswith("("):
        raise ValueError("no bracket")
    return text[1:]


@case("w")
def helper_that_raises(s, a: str):
    s += a
    return strict(s.gen("x", max_tokens=2))


@case("w")
def helper_that_raises_at_once(s, a: str):
    s += a
    s.gen("x", max_tokens=2)
    return strict("plain")


@case("w")
def helper_that_raises_in_a_try(s, a: str):
    try:
        found = strict("plain")
    except ValueError:
        found = "none"
    s += found
    return s.gen("x", max_tokens=2)


def words_of(text):
    return [word.upper() for word in text.split()]


@case("one two three")
def helper_that_goes_over_words(s, a: str):
    s += " ".join(words_of(a))
    return s.gen("x", max_tokens=2), len(words_of(a))


def pairs(text):
    yield text
    yield text + "?"


@case("w")
def generator_helper(s, a: str):
    s += a
    return f"{pairs(a) is None}"


def options(*parts, mark="-", **more):
    return mark.join(parts) + "".join(f"{key}={value}" for key, value in more.items())


@case("w")
def helper_with_stars(s, a: str):
    extra = {"k": a}
    return options(a, "x"), options(*[a, a], mark="+", **extra), options()


@case("w")
def helper_called_wrongly(s, a: str):
    s += a
    return clean(a, a)


def merged(left, right):
    return {**left, **right, "n": len(left)}


@case("w")
def helper_that_makes_a_dict(s, a: str):
    found = merged({"a": a}, {"b": s.gen("x", max_tokens=2)})
    found["c"] = "c"
    return found, merged(found, found)["n"]


def itself(value):
    return value


@case("w")
def helper_that_gives_back_its_argument(s, a: str):
    mine = [a]
    same = itself(mine)
    same.append("x")
    return mine, same, mine is same


def remembers(value):
    SEEN.append(value)
    return len(SEEN)


@case(make=reset, stops="might change or keep")
def helper_that_keeps_its_argument(s, a: str):
    mine = [a]
    remembers(mine)
    mine.append("later")
    return f"{SEEN}"


def reads_a_global(text):
    return f"{TITLE}{DEPTHS['a']}{text}"


@case("w")
def helper_that_reads_globals(s, a: str):
    s += reads_a_global(a)
    return s.gen("x", max_tokens=2)


@case("w")
def helper_in_an_arm_and_a_loop(s, a: str):
    x = s.gen("x", max_tokens=2)
    notes = {"n": x}
    if x > "m":
        s += render(notes)
    while x < "q" and len(x) < 9:
        x = clean(x + s.gen("y", max_tokens=2))
    return clean(x), len(notes)


class Sorter:
    level = 2

    def key(self, text):
        return f"{text}{self.level}"

    def __call__(self, text):
        effect("called", text)
        return text


SORTER = Sorter()


@case("w")
def method_as_a_helper(s, a: str):
    s += SORTER.key(a)
    return SORTER.key(s.gen("x", max_tokens=2)), SORTER(a)


@case("w")
def helper_with_a_lambda(s, a: str):
    return applied(lambda text: text + a, "x"), list(map(clean, [a, " B "])), sorted(words_of("b a"))


def applied(function, value):
    return function(value)


def long_work(count):
    total = 0
    for index in range(count):
        total += index % 3
    return total


@case("w")
def helper_that_takes_long(s, a: str):
    s += f"{long_work(20_000)}"
    return s.gen("x", max_tokens=2)


def stamped(value: Any, log=effect):
    log("stamped", value)
    return value


@case("w")
def helper_with_a_function_as_default(s, a: str):
    return stamped(a), stamped(s.gen("x", max_tokens=2))


def noted(notes):
    effect("noted", len(notes))
    for key, value in notes.items():
        effect(key, value)
    return len(notes)


@case("w")
def helper_with_effects_on_own_dict(s, a: str):
    notes = {"a": a, "b": s.gen("x", max_tokens=2)}
    count = noted(notes)
    effect("after")
    return count, s.gen("y", max_tokens=2)
