"""Programs that go on from live state: what they hold is the same objects, in the same state, as in plain Python."""

import ast
import functools
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.dialects.core_ops import BreakOp, GenOp
from tests.frontend.harness import FULL, check, effect
from tests.frontend.interpret.forced import check_breaks, statements_of
from tests.frontend.strategies import load

pytestmark = pytest.mark.slow("captures end before every statement")


@dataclass
class Node:
    text: str
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)


class Counter:
    def __init__(self):
        self.__count = 0

    def add(self, s, text):
        self.__count += len(text)
        s += text
        return self.__count


class Loud(Counter):
    def add(self, s, text):
        found = super().add(s, text + "!")
        s += "loud"
        return found


WORDS = ["one", "two", "three"]


def asked(s, text):
    s += text
    found = s.gen("asked", max_tokens=2)
    s += "."
    return found + "?"


def asked_twice(s, text):
    first = asked(s, text)
    s += first
    return asked(s, first)


@JittedFunction
def aliases(s, q: str):
    one = [q]
    other = one
    both: list[Any] = [one, other, {"k": one}]
    one.append(s.gen("x", max_tokens=2))
    other.append("z")
    both[2]["k"].append("w")
    return both, one is other, both[0] is both[2]["k"]


@JittedFunction
def cycles(s, q: str):
    root = Node(q)
    child = Node(s.gen("x", max_tokens=2), root)
    root.children.append(child)
    child.text += "!"
    s += child.text
    return root.children[0].parent is root, root.children[0].text


@JittedFunction
def closures(s, q: str):
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total

    add(1)
    twice = lambda n: add(n) + add(n)  # noqa: E731
    s += q
    x = s.gen("x", max_tokens=3)
    twice(len(x))
    total += 1
    return add(0), total


@JittedFunction
def iterators(s, q: str):
    it = iter([q, "b", "c", "d"])
    first = next(it)
    s += first
    for word in it:
        s += word
        if word == "b":
            s.gen("x", max_tokens=2)
            continue
        effect(word)
        break
    else:
        effect("never")
    return list(it), first


@JittedFunction
def handlers(s, q: str):
    found = []
    for word in [q, "1", "z"]:
        try:
            found.append(int(word))
            s += "number"
        except ValueError as error:
            s += "no number "
            found.append(str(error))
            error = "another"
            found.append(error)
        else:
            s += "one"
            s.gen("x", max_tokens=1)
        finally:
            s += "end"
            effect(word)
    return found, s.gen("y", max_tokens=2)


@JittedFunction
def pending(s, q: str):
    found = []
    for word in ["a", "b", "c"]:
        try:
            s += word
            if word == "a":
                continue
            if word == "c":
                return found, "returned"
            raise KeyError(word)
        except KeyError as error:
            found.append(repr(error))
            s.gen("x", max_tokens=1)
        finally:
            found.append(word)
            s += "finally"
    return found, "never"


@JittedFunction
def blocks(s, q: str):
    with s.user():
        s += q
        s += "?"
    with s.assistant():
        s += "It is "
        s.gen("x", max_tokens=2)
        s += "."
    return s["x"]


@JittedFunction
def helpers(s, q: str):
    word = asked_twice(s, q)
    s += word
    word = asked(s, "b")
    asked(s, "c")
    return asked(s, word)


@JittedFunction
def objects(s, q: str):
    counter = Loud()
    first = counter.add(s, q)
    second = counter.add(s, "b")
    return first, second, s.gen("x", max_tokens=2)


@JittedFunction
def branches(s, q: str):
    s += q
    states = s.fork(2)
    kept = s.copy()
    for number, state in enumerate(states):
        state.append(str(number))
        state.gen("x", max_tokens=2)
    kept += states[1]["x"]
    kept.gen("x", max_tokens=1)
    s += "".join(states["x"]) + kept.text()
    return s.gen("y", max_tokens=2)


@JittedFunction
def unknown_ways(s, q: str):
    s += q
    names = []
    while s.select("more", ["yes", "no"]) == "yes" and len(names) < 3:
        name = s.gen("name", max_tokens=2)
        names.append(name)
        s += name
    s += "else"
    match s.select("which", ["left", "right"]):
        case "left":
            s += "l"
            last = s.gen("last", max_tokens=1)
        case _:
            s += "r"
    try:
        s += last  # pyright: ignore[reportPossiblyUnboundVariable]
    except UnboundLocalError as error:
        s += str(error)
    return names


@JittedFunction
def containers(s, q: str):
    seen = {q}
    recent = deque([q], maxlen=2)
    join = functools.partial("{}{}".format, q)
    s += q
    seen.add("b")
    recent.append(s.gen("x", max_tokens=1))
    recent.append("c")
    s += join("d")
    return sorted(seen), list(recent)


@JittedFunction
def sees_its_names(s, q: str):
    x = s.gen("x", max_tokens=1)
    y = x + q  # pyright: ignore[reportUnusedVariable]
    return sorted(locals())


@JittedFunction
def copies_in_rounds(s, q: str):
    """The ids in a round are numbered on a copy whose own number only a run knows."""
    kept: set[str] = set()
    for part in q.split("-"):
        turn = s.copy()
        for level in (1, 2):
            turn += f"{part}{level}"
            said = turn.gen("said", max_tokens=3)
            if said in kept or len(said) > 1:
                continue
            kept.add(said)
    return sorted(kept)


PROGRAMS = {
    each.name: each
    for each in (
        aliases,
        cycles,
        closures,
        iterators,
        handlers,
        pending,
        blocks,
        helpers,
        objects,
        branches,
        copies_in_rounds,
        unknown_ways,
        containers,
        sees_its_names,
    )
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("text", ["a", "q"])
def test_a_break_before_any_statement_changes_nothing(name: str, text: str):
    assert check_breaks(PROGRAMS[name], lambda: (text,), {}, 1_000 if FULL else 6) > 1


def test_a_break_in_an_arm_leaves_the_other_one_in_the_graph():
    line = unknown_ways_nodes()[0].lineno
    bound = bind(unknown_ways, ("a",), {})
    found = capture(unknown_ways, bound, stop_before=lambda node: node is not None and node.lineno == line)
    assert [entry.location.line for entry in found.breaks if entry.location] == [line]
    assert not isinstance(found.module.main.body.terminator, BreakOp)


def unknown_ways_nodes() -> list[ast.stmt]:
    """The statements of the first arm of its ``match``."""
    match = next(node for node in statements_of(unknown_ways, lambda: ("a",), {}) if isinstance(node, ast.Match))
    return match.cases[0].body


def test_going_back_costs_what_was_changed(tmp_path):
    _calls_of_capture(10, tmp_path)
    calls = [_calls_of_capture(count, tmp_path) for count in (100, 200)]
    assert calls[1] < 2.3 * calls[0]


def _calls_of_capture(count: int, folder: Any) -> int:
    """Return how many functions of Python's are called to capture so many statements."""
    body = "".join(f"    x{index} = s.gen('x', max_tokens=1)\n    s += x{index}\n" for index in range(count))
    header = "from lmc.frontend.program.function import JittedFunction as jit\n@jit\ndef program(s, q: str):\n"
    program = load(f"{header}{body}    return q\n", folder).program
    bound = bind(program, ("a",), {})
    calls = 0

    def counted(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counted)
    try:
        capture(program, bound)
    finally:
        sys.setprofile(None)
    return calls


def test_a_variable_that_a_later_function_would_share_is_no_free_name_of_a_continuation(tmp_path):
    source = """
@jit
def program(s, a: str):
    t = s.gen("h", max_tokens=4)
    if "t" in a:
        m = t
        def shared():
            return m
        s += shared()
    try:
        return m
    except UnboundLocalError as error:
        return str(error)
"""
    program = load(source, tmp_path, "from lmc.frontend.program.function import JittedFunction as jit").program
    for text in ("t", "x"):
        assert check_breaks(program, lambda text=text: (text,), {}, 100)


@JittedFunction
def an_iterator_of_a_list_from_outside(s, q: str):
    s += q
    first = s.gen("x", max_tokens=2)
    rest = iter(WORDS)
    s += next(rest)
    second = s.gen("y", max_tokens=2)
    return eval("first"), first, second, list(rest)


@JittedFunction
def branches_that_only_a_run_counts(s, q: str):
    s += q
    first = s.gen("x", max_tokens=2)
    branches = s.fork(len(first))
    for branch in branches:
        branch.append(q)
        if branch.gen("y", max_tokens=2) == q:
            break
    return list(branches["y"])


@JittedFunction
def an_iterator_in_an_arm(s, q: str):
    s += q
    if "e" in s.gen("x", max_tokens=2, temperature=1.0):
        s.gen("y", max_tokens=2)
        rest = iter(WORDS)
        s += next(rest)
        s += eval("q") + next(rest)
    return s.gen("z", max_tokens=2)


MOVED = an_iterator_of_a_list_from_outside, branches_that_only_a_run_counts, an_iterator_in_an_arm


@pytest.mark.parametrize("program", MOVED, ids=lambda program: program.name)
@pytest.mark.parametrize("text", ["a", "hello", "q"])
def test_a_break_moves_back_to_where_all_that_is_live_can_be_handed_over(program, text):
    captured = check(program, (text,))
    assert captured.breaks
    assert any(isinstance(op, GenOp) and op.id.endswith("/x") for op in captured.module.functions[0].body.ops)
