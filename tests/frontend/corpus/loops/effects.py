"""Tools, effects, exceptions and the user's own data in rounds: each happens once a round, in order."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

import json

from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.host_functions import details, find, length_of, lookup, record, shout
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect

SEEN = []
LIMIT = 3


def remember(word):
    SEEN.append(word)
    return len(SEEN)


def begin():
    SEEN.clear()


def things(word):
    return json.loads(json.dumps([word, word.upper(), "end"]))


def drop(items):
    if items:
        items.pop()
    return len(items)


@tool(effect="reads")
def seen_so_far() -> int:
    return len(SEEN)


@tool(effect="reads")
def split_up(word: str) -> list[str]:
    return word.split("e")


@tool(effect="pure")
def numbers(word: str) -> list[int]:
    return [len(part) for part in word.split(" ")]


@looped()
def effects_in_rounds(s, a: str):
    s += a
    effect("start")
    for index, letter in [(0, "k")]:
        effect(index, letter)
    for letter in s.gen("x", max_tokens=4):
        effect("round", letter)
        if letter == "e":
            effect("e")
        s += shout(letter)
    effect("after")
    return s.gen("y", max_tokens=2)


@looped()
def tools_of_each_kind_in_rounds(s, a: str):
    s += a
    n = 0
    x = s.gen("x", max_tokens=4)
    while n < 9 and length_of(x) > 1:
        s += lookup(x)
        record(x)
        n += length_of(x)
        for word in find(x):
            s += word
            effect(word)
        x = s.gen("x", max_tokens=4)
    return n, s.gen("y", max_tokens=2)


@looped()
def an_effect_in_the_condition(s, a: str):
    s += a
    n = 0
    while shout(s.gen("x", max_tokens=2)) != "E" and n < 3:
        n += 1
        effect(n)
    return n


@looped()
def what_a_tool_gives_ends_it(s, a: str):
    s += a
    x = s.gen("x", max_tokens=5)
    while x and "e" not in lookup(x):
        x = x[1:]
    return x


@looped()
def a_write_and_a_read_in_each_round(s, a: str):
    s += a
    begin()
    n = 0
    while n < 4:
        remember(s.gen("x", max_tokens=2))
        n = seen_so_far() + n
        s += str(n)
    return n


@looped()
def a_global_is_read_in_rounds_after_a_write(s, a: str):
    s += a
    begin()
    out = ""
    for letter in s.gen("x", max_tokens=3):
        remember(letter)
        out += SEEN[-1]
    return out


@looped()
def a_constant_global_ends_it(s, a: str):
    s += a
    n = 0
    while n < LIMIT and "e" not in s.gen("x", max_tokens=2):
        n += 1
    return n


@looped()
def over_what_a_tool_gives(s, a: str):
    s += a
    out = 0
    for number in numbers(s.gen("x", max_tokens=9)):
        out += number
    for word in split_up(s.gen("x", max_tokens=5)):
        record(word)
        out += length_of(word)
    return out


@looped()
def over_a_list_of_a_plain_function(s, a: str):
    s += a
    out = ""
    for word in things(s.gen("x", max_tokens=3)):
        s += f"{word}"
        out += f"{word}"
    return out


@looped()
def the_list_gone_over_is_changed(s, a: str):
    s += a
    items = find(s.gen("x", max_tokens=3))
    n = 0
    for word in items:
        n += 1
        effect(drop(items))
        s += word
    return n, s.gen("y", max_tokens=2)


@looped()
def a_list_of_a_tool_is_changed_in_rounds(s, a: str):
    s += a
    items = find(s.gen("x", max_tokens=3))
    n = 0
    while items and n < 5:
        n += 1
        effect("dropped", drop(items))
    return n, s.gen("y", max_tokens=2)


@looped()
def a_dict_of_a_plain_function_in_rounds(s, a: str):
    s += a
    n = 0
    for letter in s.gen("x", max_tokens=4):
        info = details(letter)
        if info["n"] == 1:
            n += 1
        s += info["word"]
    return n, s.gen("y", max_tokens=2)


@looped()
def an_exception_in_a_round(s, a: str):
    s += a
    for letter in s.gen("x", max_tokens=4):
        effect("round", letter)
        if letter == "e":
            raise ValueError(f"no {a}")
    return s.gen("y", max_tokens=2)


@looped()
def conversions_in_rounds(s, a: str):
    s += a
    total = 0
    for letter in s.gen("x", max_tokens=12):
        if letter.isdigit():
            total += int(letter)
    return total


@looped()
def a_conversion_that_may_raise_in_a_round(s, a: str):
    s += a
    total = 0
    for letter in s.gen("x", regex="[0-9][0-9a][0-9]"):
        effect(letter)
        total += int(letter)
    return total


@looped()
def a_try_around_int_in_rounds(s, a: str):
    s += a
    total = bad = 0
    for letter in s.gen("x", max_tokens=9):
        try:
            total += int(letter)
        except ValueError:
            bad += 1
    return total, bad


@looped(never=("n = -9",))
def an_exception_in_a_round_that_is_caught_there(s, a: str):
    s += a
    n = 0
    for letter in s.gen("x", max_tokens=4):
        try:
            n += {"a": 1}["b"]
        except KeyError:
            n += 2
        else:
            n = -9
        finally:
            effect("finally")
    return n


@looped()
def an_assert_in_rounds(s, a: str):
    s += a
    n = 0
    for letter in s.gen("x", max_tokens=4):
        assert letter != "e", "no e"
        n += 1
    return n


@looped()
def print_in_rounds(s, a: str):
    s += a
    for letter in s.gen("x", max_tokens=4):
        print(letter, end="")
    return s.gen("y", max_tokens=2)


@looped()
def division_by_what_rounds_count(s, a: str):
    s += a
    n = 3
    out = 0
    for letter in s.gen("x", max_tokens=5):
        n -= 1
        out += 6 // n
        effect(out)
    return out


@looped()
def an_item_that_may_not_be_there(s, a: str):
    s += a
    words = s.gen("x", max_tokens=6).split("e")
    out = ""
    index = 0
    while index < 2 and out != "e":
        out += words[index]
        effect(out)
        index += 1
    return out


@looped()
def a_call_before_in_and_behind(s, a: str):
    s += a
    shout("before")
    for letter in s.gen("x", max_tokens=3):
        shout(letter)
        for other in letter.upper():
            shout(other)
            shout("!")
    shout("behind")
    return s.gen("y", max_tokens=2)


@looped()
def a_generation_made_from_a_host_result(s, a: str):
    s += a
    word = s.gen("x", max_tokens=2)
    n = 0
    while n < 3 and "x" not in word:
        word = shout(word)
        s += word
        word = word + s.gen("x", max_tokens=2)
        n += 1
    return word
