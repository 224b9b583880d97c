"""Terminals without an end: the lexer is greedy, so a terminal that takes all that may follow never ends."""

from __future__ import annotations

from collections.abc import Iterator

from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Node
from lmc.grammar.context_free.rules import Repetition, RuleSet, base

MAX_STATES = 2_000


def find_trap(rules: RuleSet) -> tuple[Node, int] | None:
    """A terminal that can't be left at one of its places, and the bytes (as a set) that would have to follow there.

    None: there is none, or none whose states can be searched within ``MAX_STATES``. Takes trimmed rules.
    """
    follows, ends = _follows(rules)
    for name, index, place in _places(rules):
        node = base(place[index])
        if isinstance(node, str):
            continue
        after = _after(rules, place, index)
        may_end = all(map(rules.may_be_empty, place[index + 1 :]))
        if may_end and ends[name]:
            continue
        if may_end:
            after |= follows[name]
        if rules.skipped is not None:
            after |= rules.begins_with(rules.skipped)
        if not _can_leave(node, after, rules.derivatives):
            return node, after
    return None


def _places(rules: RuleSet) -> Iterator[tuple[str, int, tuple[str | Node | Repetition, ...]]]:
    for name, alternatives in rules.alternatives.items():
        for place in alternatives:
            for index in range(len(place)):
                yield name, index, place


def _after(rules: RuleSet, place: tuple[str | Node | Repetition, ...], index: int) -> int:
    """The bytes that may follow a symbol within its alternative: the next ones, and itself where it repeats."""
    symbol = place[index]
    after = rules.first_of(place[index + 1 :])
    if isinstance(symbol, Repetition) and symbol.high != 1:
        after |= rules.first_of((symbol.symbol,))
    return after


def _follows(rules: RuleSet) -> tuple[dict[str, int], dict[str, bool]]:
    """The bytes that may follow each rule, and whether the output may end there."""
    follows = dict.fromkeys(rules.alternatives, 0)
    ends = {name: name == rules.start for name in rules.alternatives}

    def update(name: str) -> set[str]:
        changed: set[str] = set()
        for place in rules.alternatives[name]:
            for index, symbol in enumerate(place):
                inner = base(symbol)
                if not isinstance(inner, str):
                    continue
                mask, end = follows[inner] | _after(rules, place, index), ends[inner]
                if all(map(rules.may_be_empty, place[index + 1 :])):
                    mask |= follows[name]
                    end = end or ends[name]
                if (mask, end) != (follows[inner], ends[inner]):
                    follows[inner], ends[inner] = mask, end
                    changed.add(inner)
        return changed

    rules.settle(update)
    return follows, ends


def _can_leave(node: Node, after: int, derivatives: Derivatives) -> bool:
    """Return True if some text of the node may be followed by a byte that does not make it longer."""
    known = {node}
    waiting = [node]
    while waiting and len(known) <= MAX_STATES:
        state = waiting.pop()
        longer = 0
        for mask, target in derivatives.arcs(state):
            longer |= mask
            if target not in known:
                known.add(target)
                waiting.append(target)
        if state.nullable and after & ~longer:
            return True
    return bool(waiting)
