from __future__ import annotations

import pytest

from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import GenOp, SelectOp
from lmc.ir.ids import count_holes, fill_holes
from lmc.ir.semantics.ops import runtime_id
from lmc.ir.types import CTX, INT
from tests.ir.region_ops import make

C, N, M = Value("c", CTX), Value("n", INT), Value("m", INT)


@pytest.mark.parametrize(
    ("template", "numbers", "filled"),
    [
        ("f/x", (), "f/x"),
        ("f/x*", (0,), "f/x"),
        ("f/x*", (1,), "f/x#1"),
        ("f/view$/x", (0,), "f/view0/x"),
        ("f/view$/x*", (3, 2), "f/view3/x#2"),
        ("*$*", (0, 0, 12), "0#12"),
        ("f/2%2A%24", (), "f/2%2A%24"),
    ],
)
def test_holes_take_numbers_in_order(template: str, numbers: tuple[int, ...], filled: str):
    assert count_holes(template) == len(numbers)
    assert fill_holes(template, numbers) == filled


def test_the_id_of_a_run_is_filled_from_values():
    environment = {N: 2, M: 0}
    assert runtime_id(make(GenOp, context=C, id="f/x"), {}) == "f/x"
    assert runtime_id(make(GenOp, context=C, id="f/x*", occurrences=(N,)), environment) == "f/x#2"
    assert runtime_id(make(SelectOp, context=C, id="$/x*", occurrences=(N, M)), environment) == "2/x"
