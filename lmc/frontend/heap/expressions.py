"""Values that follow from a program's arguments alone, as guards and saved plans write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmc.frontend.heap.sizes import grows
from lmc.ir.builtins import builtins


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A value computed from the arguments alone: a parameter, or a pure builtin applied to expressions and literals."""

    function: str
    operands: tuple[Any, ...] = ()
    keywords: tuple[str, ...] = ()


class MissingInputError(Exception):
    """An argument that a value follows from was not given."""


class OutsizedError(Exception):
    """A value that follows from the arguments would be far larger than they are."""


def parameter(name: str) -> Expression:
    """The argument called ``name``."""
    return Expression("", (name,))


def evaluate(root: Expression, inputs: Mapping[str, Any], known: dict[Expression, Any]) -> Any:
    """Return the value of ``root`` for ``inputs``; ``known`` caches. Never recursive.

    Raises what the builtins raise, ``MissingInputError`` and ``OutsizedError``.
    """
    stack = [root]
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        if not node.function:
            if node.operands[0] not in inputs:
                raise MissingInputError(node.operands[0])
            known[node] = inputs[node.operands[0]]
            continue
        missing = [entry for entry in node.operands if isinstance(entry, Expression) and entry not in known]
        if missing:
            stack.extend(missing)
            continue
        builtin = builtins.lookup(node.function)
        assert builtin is not None, node.function
        values = [known[entry] if isinstance(entry, Expression) else entry for entry in node.operands]
        if grows(node.function, tuple(values)):
            raise OutsizedError(node.function)
        split = len(values) - len(node.keywords)
        known[node] = builtin.run(*values[:split], **dict(zip(node.keywords, values[split:], strict=True)))
    return known[root]
