"""What a break advises can be done: it names what the user has written, and nothing of lmc's own."""

import collections
import copy
import functools
import heapq
import random
from typing import Any

import pytest
from lmc.frontend.growing import TYPED_LIST

import lmc
from lmc.frontend.function import JittedFunction
from lmc.ir.errors import CaptureError
from tests.frontend.harness import check

WORDS = ["b", "a"]
DECLARED = 'declare it (@lmc.tool(effect="reads") or "pure")'


class Kept:
    held: Any = None


KEPT = Kept()
calls = 0


def by_length(left, right):
    return len(left) - len(right)


def keep(items):
    global calls  # noqa: PLW0603 - so that it is called as it is
    calls += 1
    return items


def table(number: int):
    global calls  # noqa: PLW0603
    calls += 1
    return {"one": number, "two": 2}


def changed_by_a_library(s, words: list[str]):
    heap = [len(s.gen("x", max_tokens=2))]
    heapq.heappush(heap, 1)
    return heap


def shuffled(s, words: list[str]):
    own = [*WORDS, s.gen("x", max_tokens=2)]
    random.shuffle(own)
    return len(own)


def copied_deeply(s, words: list[str]):
    own = [s.gen("x", max_tokens=2)]
    return copy.deepcopy(own)


def kept_by_the_user(s, words: list[str]):
    own = [s.gen("x", max_tokens=2)]
    return keep(own)


def ordered_by_a_comparison(s, words: list[str]):
    s.gen("x", max_tokens=2)
    return sorted(words, key=functools.cmp_to_key(by_length))


def ordered_by_a_comparison_of_its_own(s, words: list[str]):
    s.gen("x", max_tokens=2)
    return sorted(words, key=functools.cmp_to_key(lambda left, right: len(left) - len(right)))


def counted(s, words: list[str]):
    s.gen("x", max_tokens=2)
    return dict(collections.Counter(word for word in words))


def items_of_a_result(s, words: list[str]):
    found = []
    for key, _ in table(1).items():
        found.append(key)
    return [found, hash(s.gen("x", max_tokens=2)) * 0]


def stored(s, words: list[str]):
    own = [s.gen("x", max_tokens=2)]
    KEPT.held = own
    return own[0]


def read_after_a_library(s, words: list[str]):
    first = WORDS[0]
    copy.copy(KEPT)
    return [first, hash(s.gen("x", max_tokens=2)) * 0]


WRAPPED = 'in a function of your own, declared (@lmc.tool(effect="reads") or "pure")'
CASES = [
    (changed_by_a_library, "heappush() takes a list of the program's own", f"do heappush() {WRAPPED}"),
    (shuffled, "shuffle() takes a list of the program's own", f"do shuffle() {WRAPPED}"),
    (copied_deeply, "deepcopy() takes a list of the program's own", f"do deepcopy() {WRAPPED}"),
    (kept_by_the_user, "keep() takes a list of the program's own", DECLARED),
    (ordered_by_a_comparison, "sorted() orders by the result of cmp_to_key()", "order by a lambda of the program"),
    (
        ordered_by_a_comparison_of_its_own,
        "cmp_to_key() takes a function that is made in the program",
        "do cmp_to_key() in a function of your own outside of the program",
    ),
    (counted, "Counter() takes a generator that is made in the program", "pass a list of it: [*items]"),
    (
        items_of_a_result,
        "the result of the call of the attribute 'items' of the result of table() is gone over",
        TYPED_LIST,
    ),
    (stored, "an object from outside the program takes a list of the program's own", "store a text or a number"),
    (read_after_a_library, "copy() may change data that the program has read", f"do copy() {WRAPPED}"),
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


def test_a_break_for_an_error_of_the_user_asks_for_no_change():
    @JittedFunction
    def program(s):
        s.gen("x", max_tokens=2)
        return {}["k"]

    (found,) = check(program).breaks
    assert found.remedy == "nothing has to change: the program raises this when it runs"
