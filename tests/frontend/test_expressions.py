"""Values that follow from arguments, as guards write them."""

import pytest

from lmc.frontend.heap.expressions import Expression, MissingInputError, evaluate, parameter


def test_expressions_are_evaluated_without_recursion():
    expression = parameter("a")
    for _ in range(50_000):
        expression = Expression("add", (expression, 1))
    assert evaluate(expression, {"a": 1}, {}) == 50_001


def test_expressions_need_their_inputs():
    with pytest.raises(MissingInputError):
        evaluate(Expression("len", (parameter("a"),)), {}, {})
