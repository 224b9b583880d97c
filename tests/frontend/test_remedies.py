"""What a break advises can be done: it names what the user has written, and nothing of lmc's own."""

import copy
import functools
from typing import Any

import pytest

import lmc
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import CaptureError
from tests.frontend.harness import check

WORDS = ["b", "a"]
DECLARED = 'declare what it does (@lmc.tool(effect="reads") or "pure")'


class Kept:
    held: Any = None


KEPT = Kept()


def by_length(left, right):
    return len(left) - len(right)


exec("def keep(items):\n    KEPT.held = items\n    return items")  # has no source, so nothing is known of it
keep: Any = globals()["keep"]


def kept_by_the_user(s, words: list[str]):
    own = [s.gen("x", max_tokens=2)]
    return keep(own)


def ordered_by_a_comparison(s, words: list[str]):
    s.gen("x", max_tokens=2)
    return sorted(words, key=functools.cmp_to_key(by_length))


def ordered_by_a_comparison_of_its_own(s, words: list[str]):
    s.gen("x", max_tokens=2)
    return sorted(words, key=functools.cmp_to_key(lambda left, right: len(left) - len(right)))


def stored(s, words: list[str]):
    own = [s.gen("x", max_tokens=2)]
    KEPT.held = own
    return own[0]


def read_after_a_library(s, words: list[str]):
    first = WORDS[0]
    copy.copy(KEPT)
    return [first, hash(s.gen("x", max_tokens=2)) * 0]


IN_A_TOOL = "call it in a tool"
CASES = [
    (kept_by_the_user, "keep() takes a list of the program's own", DECLARED),
    (ordered_by_a_comparison, "what cmp_to_key() does is not known", IN_A_TOOL),
    (ordered_by_a_comparison_of_its_own, "what cmp_to_key() does is not known", IN_A_TOOL),
    (stored, "a Kept takes a list of the program's own", "store a text or a number"),
    (read_after_a_library, "what copy() does is not known", IN_A_TOOL),
]


@pytest.mark.parametrize(("body", "cause", "remedy"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_remedy_is_for_what_the_user_wrote(body, cause, remedy):
    (found,) = check(JittedFunction(body), (["v", "wo"],)).breaks
    assert cause in found.cause
    assert remedy in found.remedy
    assert str(found.location).rpartition(":")[0] == __file__


def test_a_break_for_an_error_keeps_the_remedy_of_the_error():
    @JittedFunction
    def program(s, n: int):
        s.gen("x", max_tokens=2)
        return s.fork(n - 2)

    (found,) = check(program, (1,)).breaks
    assert found.cause == "this raises CaptureError: fork(-1)"
    assert found.remedy == "fork into a whole number of branches, at least 0"
    with pytest.raises(CaptureError, match="at least 0"):
        lmc.jit(program.function).on("toy").run(1)
