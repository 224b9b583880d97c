"""Which ops may have one id: those that no run comes to both of."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lmc.ir.errors import VerifyError
from lmc.ir.text.parser import parse
from lmc.ir.verify.verifier import verify

GEN = '%{0}, %{0}_t = lm.gen %0 {{id = "p/x", name = "x"}} : !ctx, !text'
RETURN = 'lm.return %0 () {structure = "{\\"literal\\":1}"}'


def condition(flag: str, then: str, otherwise: str, results: str = "", number: int = 0) -> str:
    """A ``cf.cond``; its regions end in what they are given."""
    head = f"{results} = cf.cond" if results else "cf.cond"
    types = " : " + ", ".join(["!bool"] * len(results.split(","))) if results else ""
    return (
        f'{head} {flag} {{id = "p/@cf.cond#{number}"}}{types} ^then() {{\n{then}\n}} ^otherwise() {{\n{otherwise}\n}}'
    )


FIRST = condition("%a", GEN.format("g") + "\ncf.yield (true)", "cf.yield (false)", "%x")


def check(*lines: str) -> None:
    body = "\n".join(lines)
    verify(parse(f"module @p {{\nfunc @p(%a: !bool, %b: !bool) {{\n%0 = lm.context : !ctx\n{body}\n{RETURN}\n}}\n}}\n"))


def under(flag: str, number: int) -> str:
    """An op of the same id where ``flag`` is true (0) or false (1)."""
    arms = [GEN.format("h") + "\ncf.yield ()", "cf.yield ()"]
    return condition(flag, arms[number], arms[1 - number], number=1)


@pytest.mark.parametrize(
    ("between", "flag", "number"),
    [
        ("", "%a", 1),
        ("", "%x", 1),
        ("%n = py.call not (%a) : !bool", "%n", 0),
        ("%n = py.call not (%x) : !bool\n%m = py.call and (%b, %n) : !bool", "%m", 0),
        ("%n = py.call or (%b, %x) : !bool", "%n", 1),
        ("%k = py.call choose (%x, 1, 2) : !int\n%n = py.call eq (%k, 1) : !bool", "%n", 1),
    ],
)
def test_ops_under_flags_that_contradict_each_other_may_have_one_id(between: str, flag: str, number: int):
    check(FIRST, between, under(flag, number))


@pytest.mark.parametrize(
    ("between", "flag", "number"),
    [
        ("", "%a", 0),
        ("", "%b", 0),
        ("", "%b", 1),
        ("", "%x", 0),
        ("%n = py.call and (%b, %x) : !bool", "%n", 1),
        ("%n = py.call or (%b, %x) : !bool", "%n", 0),
    ],
)
def test_ops_that_a_run_may_come_to_both_of_have_ids_of_their_own(between: str, flag: str, number: int):
    with pytest.raises(VerifyError, match=r"two ops have the id 'p/x'"):
        check(FIRST, between, under(flag, number))


def test_behind_a_region_that_leaves_the_program_its_ids_are_free():
    leaves = condition("%a", GEN.format("g") + "\n" + RETURN, "cf.yield ()")
    check(leaves, GEN.format("h"))
    check(condition("%b", leaves + "\ncf.yield ()", "cf.yield ()", number=1), GEN.format("h"))


def test_regions_of_one_op_exclude_each_other_however_deep():
    deep = condition("%b", GEN.format("g") + "\ncf.yield ()", "cf.yield ()", number=1)
    both = condition("%a", deep + "\ncf.yield ()", GEN.format("h") + "\ncf.yield ()")
    check(both)
    with pytest.raises(VerifyError, match=r"two ops have the id 'p/x'"):
        check(both, GEN.format("k"))


def test_a_region_that_leaves_further_in_excludes_what_comes_behind_all_of_it():
    inner = condition("%b", GEN.format("g") + "\ncf.yield (true)", "cf.yield (false)", "%y")
    leaves = condition("%y", RETURN, "cf.yield ()", number=1)
    check(condition("%a", f"{inner}\n{leaves}\ncf.yield ()", "cf.yield ()", number=2), GEN.format("h"))


LEAVES = RETURN
LOOP = """{0}, {0}x = cf.loop (true, {1}) {{id = "p/@cf.loop#{2}"}} : !bool, !bool ^condition(
{0}c: !bool, {0}p: !bool) {{
cf.condition {0}c ({0}p, {0}c)
}} ^body({0}q: !bool, {0}u: !bool) {{
{3}
}}"""


@dataclass
class Body:
    """Statements of a random module: the flags that are known, the number of statements, whether there are loops."""

    flags: list[str]
    has_loops: bool
    count: int = 0

    def draw(self, draw: Any, depth: int) -> tuple[list[str], list[Any]]:
        """Draw a block: its lines, and the same as a tree."""
        lines: list[str] = []
        tree: list[Any] = []
        known = len(self.flags)
        for _ in range(draw(st.integers(1, 3))):
            self.count += 1
            name = f"%f{self.count}"
            kind = draw(st.integers(0, 5 if depth else 1))
            if kind == 0:
                lines.append(GEN.format(f"g{self.count}"))
                tree.append(("gen", name))
            elif kind <= 2:
                first, second = (draw(st.sampled_from(self.flags)) for _ in "12")
                function = draw(st.sampled_from(["not", "and", "or"]))
                arguments = f"({first})" if function == "not" else f"({first}, {second})"
                lines.append(f"{name} = py.call {function} {arguments} : !bool")
                tree.append((function, name, first, second))
                self.flags.append(name)
            elif kind == 5 and self.has_loops:
                self._loop(draw, depth, lines, tree)
            else:
                self._condition(draw, depth, lines, tree)
        del self.flags[known:]
        return lines, tree

    def _condition(self, draw: Any, depth: int, lines: list[str], tree: list[Any]) -> None:
        flag, name, number = draw(st.sampled_from(self.flags)), f"%f{self.count}", self.count
        arms: list[str] = []
        trees: list[Any] = []
        for _ in range(2):
            body, inner = self.draw(draw, depth - 1)
            end = draw(st.sampled_from(["true", "false", *self.flags, LEAVES]))
            arms.append("\n".join([*body, end if end is LEAVES else f"cf.yield ({end})"]))
            trees.append((inner, end))
        if all(end is LEAVES for _, end in trees):
            arms[1], trees[1] = "cf.yield (true)", ([], "true")
        lines.append(condition(flag, arms[0], arms[1], name, number))
        tree.append(("if", name, flag, trees))
        self.flags.append(name)

    def _loop(self, draw: Any, depth: int, lines: list[str], tree: list[Any]) -> None:
        first, name, number = draw(st.sampled_from(self.flags)), f"%f{self.count}", self.count
        self.flags.append(f"{name}q")
        body, inner = self.draw(draw, depth - 1)
        ends = [draw(st.sampled_from(["true", "false", *self.flags])) for _ in "12"]
        self.flags.pop()
        lines.append(LOOP.format(name, first, number, "\n".join([*body, f"cf.yield ({ends[0]}, {ends[1]})"])))
        tree.append(("loop", name, first, (inner, ends)))
        self.flags.append(name)


Place = tuple[str, tuple[tuple[str, int], ...]]


def ran(tree: list[Any], flags: dict[str, bool], rounds: tuple[tuple[str, int], ...], places: list[Place]) -> bool:
    """Run with these flags; return whether the program goes on. ``places`` gets each generation with its rounds."""
    constants = {"true": True, "false": False}
    for kind, name, *rest in tree:
        if kind == "gen":
            places.append((name, rounds))
        elif kind == "if":
            inner, end = rest[1][0 if flags[rest[0]] else 1]
            if not ran(inner, flags, rounds, places) or end is LEAVES:
                return False
            flags[name] = constants[end] if end in constants else flags[end]
        elif kind == "loop":
            first, (inner, ends) = rest
            flags[name], goes_on, number = flags[first], True, 0
            while goes_on:
                flags[f"{name}q"] = flags[name]
                if number == 5 or not ran(inner, flags, (*rounds, (name, number)), places):
                    return False  # five rounds of two flags: it never ends
                goes_on, flags[name] = (constants[end] if end in constants else flags[end] for end in ends)
                number += 1
        else:
            values = [flags[each] for each in rest]
            flags[name] = not values[0] if kind == "not" else all(values) if kind == "and" else any(values)
    return True


def collide(left: Place, right: Place) -> bool:
    """Return whether two generations are different ops in the same rounds of the loops that they share."""
    shared = {loop for loop, _ in left[1]} & {loop for loop, _ in right[1]}
    return left[0] != right[0] and all(each in right[1] for each in left[1] if each[0] in shared)


@settings(max_examples=settings.default.max_examples * 3)  # type: ignore[union-attr]
@pytest.mark.parametrize("has_loops", [False, True])
@given(st.data())
def test_a_module_is_refused_where_a_run_comes_to_an_id_twice(has_loops: bool, data: st.DataObject):
    lines, tree = Body(["%a", "%b"], has_loops).draw(data.draw, 3)
    is_bad = False
    for a, b in ((True, True), (True, False), (False, True), (False, False)):
        places: list[Place] = []
        ran(tree, {"%a": a, "%b": b}, (), places)
        is_bad = is_bad or any(collide(left, right) for left, right in itertools.combinations(set(places), 2))
    if is_bad:
        with pytest.raises(VerifyError, match=r"two ops have the id 'p/x'"):
            check(*lines)
    else:
        with contextlib.suppress(VerifyError):  # of flags it knows what follows step by step, not by cases
            check(*lines)
            event("accepted")


def test_behind_a_loop_that_an_id_ends_it_is_free():
    ends = condition("%q", GEN.format("g") + "\ncf.yield (true)", "cf.yield (false)", "%y")
    body = f"{ends}\n%n = py.call not (%y) : !bool\ncf.yield (%n, %y)"
    loop = LOOP.format("%", "%a", 2, body)
    check(loop.replace("%, %x", "%l, %x"), under("%l", 1))
    with pytest.raises(VerifyError, match=r"two ops have the id 'p/x'"):
        check(loop.replace("%, %x", "%l, %x"), under("%l", 0))
