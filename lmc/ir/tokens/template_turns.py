"""Chat templates that render each message by itself, found by their syntax."""

from __future__ import annotations

from collections.abc import Iterable, Set

import jinja2
from jinja2 import nodes

_PURE = (
    *(nodes.Output, nodes.TemplateData, nodes.If, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Name),
    *(nodes.Compare, nodes.Operand, nodes.BinExpr, nodes.UnaryExpr, nodes.Concat, nodes.CondExpr, nodes.Filter),
    *(nodes.Test, nodes.Call, nodes.Keyword, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair),
)
"""Syntax that sets nothing, so that its text depends on the names in it alone."""
_RAISES = "raise_exception"


def renders_by_turn(environment: jinja2.Environment, source: str, variables: Set[str]) -> bool:
    """Return True if the text of messages is surely that of each message alone, one after the other.

    Such a template is constant text, one loop over the messages whose body reads the message and ``variables`` only,
    and the prompt of a generation where ``add_generation_prompt`` holds. Then the text of a longer conversation is that
    of a shorter one and what follows it. False: it may be something else, such as one that reads ``loop.first``.
    """
    body = environment.parse(source).body
    places = [place for place, node in enumerate(body) if isinstance(node, nodes.For)]
    if len(places) != 1:
        return False
    (place,) = places
    loop, after = body[place], body[place + 1 :]
    assert isinstance(loop, nodes.For)
    target, items = loop.target, loop.iter
    if not isinstance(target, nodes.Name) or not isinstance(items, nodes.Name) or items.name != "messages":
        return False
    if loop.test is not None or loop.else_ or loop.recursive or len(after) > 1:
        return False
    opening = after[0] if after else None
    if opening is not None:
        if not isinstance(opening, nodes.If) or opening.elif_ or opening.else_:
            return False
        if not (isinstance(opening.test, nodes.Name) and opening.test.name == "add_generation_prompt"):
            return False
    outside = [*body[:place], *(opening.body if opening is not None else ())]
    return _reads_only(outside, variables) and _reads_only(loop.body, {*variables, target.name})


def _reads_only(found: Iterable[nodes.Node], names: Set[str]) -> bool:
    """Return True if the text of nodes depends on values of these names alone."""
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _PURE):
            return False
        if isinstance(node, nodes.Name) and (node.ctx != "load" or node.name not in {*names, _RAISES}):
            return False
        if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.node.name != _RAISES:
            return False
        waiting += node.iter_child_nodes()
    return True
