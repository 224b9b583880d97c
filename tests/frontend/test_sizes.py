"""Values too large for a graph: never worked out by a capture, and the same value or error as plain Python gives."""

# Programs as users write them.
# ruff: noqa: UP031

import time

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.module import print_module
from tests.frontend.harness import check

HUGE = 10**15
LARGE = 1 << 21


def repeats(s, a, n):
    s += "x" * HUGE


def repeats_a_list(s, a, n):
    return len([0] * HUGE)


def repeats_in_place(s, a, n):
    kept = [a]
    kept *= HUGE


def pads(s, a, n):
    return "a".zfill(HUGE)


def centers(s, a, n):
    return "a".center(HUGE)


def shifts(s, a, n):
    return 1 << (HUGE * 1000)


def formats(s, a, n):
    return "%*d" % (10**12, 3)


def repeats_what_is_known_late(s, a, n):
    return a * n


def pads_what_is_known_late(s, a, n):
    return a.zfill(n)


def decides_by_a_huge_text(s, a, n):
    if a * n:
        s += "y"


def writes_a_huge_number(s, a, n):
    return str(10**5000)


def represents_a_huge_number(s, a, n):
    s += repr(10**5000)


@pytest.mark.parametrize(
    "function",
    [
        repeats,
        repeats_a_list,
        repeats_in_place,
        pads,
        centers,
        shifts,
        formats,
        repeats_what_is_known_late,
        pads_what_is_known_late,
        decides_by_a_huge_text,
        writes_a_huge_number,
        represents_a_huge_number,
    ],
)
def test_what_python_cannot_make_raises_the_same(function):
    program = JittedFunction(function)
    check(program, ("abc", HUGE))
    with pytest.raises((MemoryError, OverflowError, ValueError)):
        program.function(_Sink(), "abc", HUGE)


class _Sink:
    def __iadd__(self, other):
        return self


def appends_large(s, a, n):
    s += "z" * LARGE
    return len(s.text())


def appends_large_part(s, a, n):
    s += f"{a}{'y' * LARGE}"
    return len(s.text())


def gives_large(s, a, n):
    return {"k": ["z" * LARGE]}


def gives_a_large_number(s, a, n):
    return 10**3000


def adds_a_large_number(s, a, n):
    return n + 10**3000


def raises_to_a_power(s, a, n):
    return (7**400_000) % 10


@pytest.mark.parametrize(
    "function",
    [appends_large, appends_large_part, gives_large, gives_a_large_number, adds_a_large_number, raises_to_a_power],
)
def test_what_is_too_large_for_a_graph_is_left_to_the_continuation(function):
    captured = check(JittedFunction(function), ("abc", 3))
    (found,) = captured.breaks
    assert "too large" in found.cause
    assert found.location is not None
    assert len(print_module(captured.module)) < 2000


def works_with_large_values(s, a, n):
    s += f"{len('x' * 100_000)} {pow(7, 10**9, 10)} {(7**1000) % 10} {2**n} {a.zfill(n)} {a * n}"
    return s.gen("x", max_tokens=2)


def test_values_that_are_merely_large_are_captured():
    assert check(JittedFunction(works_with_large_values), ("abc", 40)).breaks == ()


def test_a_capture_does_not_work_out_what_is_huge():
    def program(s, a, n):
        if 3 ** (n * 10**7):
            s += a

    built = JittedFunction(program)
    start = time.perf_counter()
    capture(built, bind(built, ("a", 1000), {}))
    assert time.perf_counter() - start < 5


def test_a_large_argument_is_not_written_into_the_graph():
    def program(s, a):
        return s.gen("x", max_tokens=2, stop=a)

    (found,) = check(JittedFunction(program), ("z" * LARGE,)).breaks
    assert "too large" in found.cause
