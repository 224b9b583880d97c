"""Which ops may have one id: those that no run comes to both of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
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


@dataclass
class Body:
    """Statements of a random module, and the number of flags, ops and generations so far."""

    flags: list[str]
    ops: int = 0

    def draw(self, draw: Any, depth: int) -> tuple[list[str], list[Any]]:
        """Draw a block: its lines, and the same as a tree (``"gen"``, ``"leave"``, a flag or a condition)."""
        lines: list[str] = []
        tree: list[Any] = []
        known = len(self.flags)
        for _ in range(draw(st.integers(1, 3))):
            self.ops += 1
            kind = draw(st.integers(0, 5 if depth else 1))
            if kind == 0:
                lines.append(GEN.format(f"g{self.ops}"))
                tree.append("gen")
            elif kind <= 2:
                first, second = (draw(st.sampled_from(self.flags)) for _ in "12")
                function = draw(st.sampled_from(["not", "and", "or"]))
                arguments = f"({first})" if function == "not" else f"({first}, {second})"
                lines.append(f"%f{self.ops} = py.call {function} {arguments} : !bool")
                tree.append((f"%f{self.ops}", function, first, second))
                self.flags.append(f"%f{self.ops}")
            else:
                self._condition(draw, depth, lines, tree)
        del self.flags[known:]
        return lines, tree

    def _condition(self, draw: Any, depth: int, lines: list[str], tree: list[Any]) -> None:
        flag, name = draw(st.sampled_from(self.flags)), f"%f{self.ops}"
        number = self.ops
        arms: list[str] = []
        trees: list[Any] = []
        for _ in range(2):
            body, inner = self.draw(draw, depth - 1)
            end = draw(st.sampled_from(["true", "false", *self.flags, RETURN]))
            arms.append("\n".join([*body, end if end is RETURN else f"cf.yield ({end})"]))
            trees.append((inner, end))
        if all(end is RETURN for _, end in trees):
            arms[1], trees[1] = "cf.yield (true)", ([], "true")
        lines.append(condition(flag, arms[0], arms[1], name, number))
        tree.append((name, "if", flag, trees))
        self.flags.append(name)


def ran(tree: list[Any], flags: dict[str, bool]) -> tuple[int, bool]:
    """Return how often a run with these flags generates, and whether it left the program."""
    count = 0
    for step in tree:
        if step == "gen":
            count += 1
            continue
        name, function, first, rest = step
        value = flags[first]
        if function == "if":
            inner, end = rest[0 if value else 1]
            times, left = ran(inner, flags)
            count += times
            if left or end is RETURN:
                return count, True
            flags[name] = {"true": True, "false": False}[end] if end in ("true", "false") else flags[end]
        else:
            flags[name] = not value if function == "not" else (all if function == "and" else any)((value, flags[rest]))
    return count, False


@settings(max_examples=settings.default.max_examples * 5)  # type: ignore[union-attr]
@given(st.data())
def test_a_module_is_refused_where_a_run_comes_to_an_id_twice(data: st.DataObject):
    lines, tree = Body(["%a", "%b"]).draw(data.draw, 3)
    most = max(ran(tree, {"%a": a, "%b": b})[0] for a in (True, False) for b in (True, False))
    if most > 1:
        with pytest.raises(VerifyError, match=r"two ops have the id 'p/x'"):
            check(*lines)
    else:
        check(*lines)
