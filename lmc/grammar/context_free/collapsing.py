"""Grammars that need no stack: rules that do not nest become one node, whose language is kept exactly."""

from __future__ import annotations

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.context_free.rules import Alternative, Repetition, RuleSet, base
from lmc.ir.errors import ConstraintError


def regular_node(rules: RuleSet) -> Node | None:
    """The node of trimmed, non-empty rules; None where they nest, or where something is ignored between terminals.

    A rule may refer to itself at one end of its alternatives, at the same end in all of them: that is a repetition.
    None too where the node would be too large: rules with many uses are expanded in each of them.
    """
    if rules.skipped is not None:
        return None
    try:
        return _node(rules, Arena())  # with a budget of its own
    except ConstraintError:
        return None


def _node(rules: RuleSet, arena: Arena) -> Node | None:
    made: dict[str, Node] = {}
    open_rules: set[str] = set()
    stack = [rules.start]
    while stack:
        name = stack[-1]
        inner = (base(symbol) for each in rules.alternatives[name] for symbol in each)
        missing = [each for each in inner if isinstance(each, str) and each != name and each not in made]
        if name in made or not missing:
            stack.pop()
            if name not in made:
                node = _solved(name, rules.alternatives[name], made, arena)
                if node is None:
                    return None
                made[name] = node
        elif open_rules.intersection(missing):
            return None
        else:
            open_rules.add(name)
            stack += missing
    return made[rules.start]


def _solved(name: str, alternatives: list[Alternative], made: dict[str, Node], arena: Arena) -> Node | None:
    """A rule whose other rules are made. After Arden: the texts of `A: A x | y` are those of `y x*`."""
    others: list[Node] = []
    repeated: list[Node] = []
    ends: set[bool] = set()
    for each in alternatives:
        if all(base(symbol) != name for symbol in each):
            others.append(_row(each, made, arena))
            continue
        for rest, at_start in ((each[1:], True), (each[:-1], False)):
            if each[0 if at_start else -1] == name and all(base(symbol) != name for symbol in rest):
                repeated.append(_row(rest, made, arena))
                ends.add(at_start)
                break
        else:
            return None
    if len(ends) > 1:
        return None
    more = arena.repeat(arena.union(repeated), 0, None)
    other = arena.union(others)
    return arena.concat(other, more) if ends == {True} else arena.concat(more, other)


def _row(alternative: Alternative, made: dict[str, Node], arena: Arena) -> Node:
    parts: list[Node] = []
    for symbol in alternative:
        inner = base(symbol)
        node = made[inner] if isinstance(inner, str) else inner
        parts.append(arena.repeat(node, symbol.low, symbol.high) if isinstance(symbol, Repetition) else node)
    return arena.concat(*parts)
