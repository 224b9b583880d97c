"""Which ops may have one id: those that no run comes to both of."""

from __future__ import annotations

import pytest

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
