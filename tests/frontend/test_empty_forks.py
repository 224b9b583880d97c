"""A fork into no branches is an empty list, in every way of running it."""

import pytest

import lmc
from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from tests.driver.levels import check_levels
from tests.frontend.harness import at_the_end, check


@tool(effect="reads")
def found(count: int) -> list[str]:
    return ["one", "two"][:count]


def known(s, count: int):
    s += "Chunks: "
    branches = s.fork(0)
    for branch in branches:
        branch.gen("j", max_tokens=2)
    return [len(branches), branches["j"], list(branches), branches[1:], s.gen("x", max_tokens=2)]


def from_the_arguments(s, words: list[str]):
    branches = s.fork(len(words))
    for branch, word in zip(branches, words, strict=True):
        branch += word  # noqa: PLW2901
        branch.gen("j", max_tokens=2)
    return "-".join(branches["j"]) + s.gen("x", max_tokens=2)


def from_a_tool(s, count: int):
    words = found(count)
    branches = s.fork(len(words))
    for branch, word in zip(branches, words, strict=True):
        branch += word  # noqa: PLW2901
        branch.gen("j", max_tokens=2)
    s += "+".join(branches["j"])
    s += f" {len(words)} "
    return s.gen("x", max_tokens=2)


def behind_a_condition(s, count: int):
    number = count if s.select("more", ["yes", "no"]) == "yes" else 0
    branches = s.fork(number)
    for index, branch in enumerate(branches):
        branch += f"{index}"  # noqa: PLW2901
        branch.gen("j", max_tokens=2)
    return [branches["j"], s.fork(0)["j"], s.gen("x", max_tokens=2)]


def what_the_last_round_bound(s, count: int):
    words = found(count)
    last = "none"
    for branch, word in zip(s.fork(len(words)), words, strict=True):
        last = branch.gen("j", max_tokens=2) + word
    return last + s.gen("x", max_tokens=2)


def what_no_round_bound(s, count: int):
    words = found(count)
    for branch, word in zip(s.fork(len(words)), words, strict=True):  # noqa: B007
        branch.gen("j", max_tokens=2)
    s += "end"
    return word + s.gen("x", max_tokens=2)  # pyright: ignore[reportPossiblyUnboundVariable]


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    "body", [known, from_the_arguments, from_a_tool, behind_a_condition, what_the_last_round_bound, what_no_round_bound]
)
def test_an_empty_fork_is_an_empty_list(body, ends):
    program = JittedFunction(body)
    for count in (0, 1, 2):
        given = (["v", "w"][:count],) if body is from_the_arguments else (count,)
        captured = check(program, given, stop_before=at_the_end if ends else None)
        assert bool(captured.breaks) == ends
        if not ends:
            check_levels(captured, lambda given=given: given)


def test_a_capture_for_some_chunks_holds_for_none():
    program = JittedFunction(from_a_tool)
    captured = capture(program, bind(program, (2,), {}))
    assert captured.matches(bind(program, (0,), {}))
    check(program, (0,), captured=captured)


def test_a_branch_of_none_is_an_index_error():
    @lmc.jit(target="toy")
    def program(s):
        return s.fork(0)[0]

    for run in (program.eager, program.run):
        with pytest.raises(IndexError, match="the fork has 0 branches, none at 0"):
            run()
