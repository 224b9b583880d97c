"""Definitions that refer to each other: those without a finite value are left out, the others are what is referred to.

A definition may be another one, or that or something else (``anyOf`` of references): then it takes over what the other
one is. So none begins with a reference, and a derivative of a reference comes to an end.
"""

from __future__ import annotations

from collections.abc import Mapping

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Kind, Node


def linked(root: Node, definitions: Mapping[int, Node], arena: Arena) -> tuple[Node, list[int]]:
    """Return ``root`` with references that are defined, and the numbers of the definitions that no string meets.

    ``definitions`` are certain nodes of ``arena``, as is ``root``. The result is the empty node where it has no string.
    """
    finite = _finite(definitions)
    dropped = frozenset(arena.reference(number) for number in definitions if number not in finite)
    alternatives = {number: _alternatives(definitions[number]) for number in finite}
    trimmed: dict[Node, Node] = {}
    for number in finite:
        parts = [part for each in _same_value(number, alternatives) for part in alternatives[each]]
        own = [part for part in parts if part.kind is not Kind.REFERENCE]
        arena.reference(number).resolved = _without(dropped, arena.union(own), arena, trimmed)
    return _without(dropped, root, arena, trimmed), [number for number in definitions if number not in finite]


def _alternatives(node: Node) -> tuple[Node, ...]:
    return node.parts if node.kind is Kind.UNION else (node,)


def _same_value(number: int, alternatives: Mapping[int, tuple[Node, ...]]) -> list[int]:
    """The definitions that a value of one may meet instead, itself first."""
    found = {number: None}
    waiting = [number]
    while waiting:
        for part in alternatives[waiting.pop()]:
            if part.kind is Kind.REFERENCE and part.state in alternatives and part.state not in found:
                found[part.state] = None
                waiting.append(part.state)
    return list(found)


def _finite(definitions: Mapping[int, Node]) -> dict[int, None]:
    """The definitions that have a string: the least fixed point."""
    found: dict[int, None] = {}
    while True:
        known: dict[Node, bool] = {}
        more = [number for number, node in definitions.items() if number not in found and _ends(node, found, known)]
        if not more:
            return found
        found.update(dict.fromkeys(more))


def ends(node: Node) -> bool:
    """Return whether a node has a string without any reference."""
    return _ends(node, {}, {})


def _ends(node: Node, finite: Mapping[int, None], known: dict[Node, bool]) -> bool:
    """Return whether a node has a string, where of the references only those to ``finite`` have one.

    Iterative: nodes nest deeply.
    """
    stack = [node]
    while stack:
        top = stack[-1]
        parts: tuple[Node, ...] = () if top.kind is Kind.STATE else top.parts
        missing = [part for part in parts if part not in known]
        if missing and top not in known:
            stack += missing
            continue
        stack.pop()
        match top.kind:
            case Kind.EMPTY:
                known[top] = False
            case Kind.REFERENCE:
                known[top] = top.state in finite
            case Kind.CONCAT:
                known[top] = all(known[part] for part in parts)
            case Kind.UNION:
                known[top] = any(known[part] for part in parts)
            case Kind.REPEAT:
                known[top] = not top.low or known[top.parts[0]]
            case _:
                known[top] = True
    return known[node]


def _without(dropped: frozenset[Node], node: Node, arena: Arena, made: dict[Node, Node]) -> Node:
    """The same without these references. Iterative: nodes nest deeply."""
    if not dropped:
        return node
    stack = [node]
    while stack:
        top = stack[-1]
        parts: tuple[Node, ...] = () if top.kind is Kind.STATE else top.parts
        missing = [part for part in parts if part not in made]
        if missing and top not in made:
            stack += missing
            continue
        stack.pop()
        kept = [made[part] for part in parts]
        if top in dropped:
            made[top] = arena.empty
        elif all(part is own for part, own in zip(kept, parts, strict=True)):
            made[top] = top
        elif top.kind is Kind.CONCAT:
            made[top] = arena.concat(*kept)
        elif top.kind is Kind.UNION:
            made[top] = arena.union(kept)
        else:
            made[top] = arena.repeat(kept[0], top.low, top.high)
    return made[node]
