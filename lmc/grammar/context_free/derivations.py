"""Texts of a grammar: the shortest one, one that shows what it looks like, and how long they can be."""

from __future__ import annotations

import random
from collections.abc import Iterable

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.nodes import Node, longest_length
from lmc.grammar.context_free.rules import Alternative, Repetition, RuleSet, Symbol, base
from lmc.grammar.facts import Sampler
from lmc.ir.cached import cached_property

_DEPTH = 6  # of rules in rules, from where on an example takes the shortest way
_REPEATS = 2


class Derivations:
    """Asks trimmed, non-empty rules. Not safe for threads."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._automata: dict[Node, Automaton] = {}
        self._shortest_of: dict[Node, bytes] = {}

    def shortest(self) -> bytes:
        """A text as short as any, in bytes."""
        return self._write(self._rules.start, None, 0)

    def example(self, seed: int = 0, *, spaced: bool = False) -> bytes:
        """A text with several of the rules in it. ``spaced``: what is ignored stands between its terminals."""
        return self._write(self._rules.start, random.Random(seed), 0, spaced=spaced)  # noqa: S311 - no secret

    @cached_property
    def longest(self) -> int | None:
        """No text has more bytes than this; None: there is no bound, or none that is seen from the rules."""
        rules = self._rules
        if rules.skipped is not None:
            return None
        known: dict[str, int | None] = {}
        open_rules: set[str] = set()
        stack = [rules.start]
        while stack:
            name = stack[-1]
            parts = [base(symbol) for each in rules.alternatives[name] for symbol in each]
            missing = [part for part in parts if isinstance(part, str) and part not in known]
            if name in known or not missing:
                stack.pop()
                if name not in known:
                    known[name] = _largest([self._length(each, known) for each in rules.alternatives[name]])
            elif open_rules.intersection(missing) or name in missing:
                return None  # a rule within itself
            else:
                open_rules.add(name)
                stack += missing
        return known[rules.start]

    @cached_property
    def only(self) -> bytes | None:
        """The text, where there is but one and the rules show it."""
        longest, shortest = self.longest, self.shortest()
        if longest != len(shortest):
            return None
        for alternatives in self._rules.alternatives.values():
            symbols = [symbol for each in alternatives for symbol in each]
            if len(set(alternatives)) > 1 or any(
                isinstance(each, Repetition) and each.low != each.high for each in symbols
            ):
                return None
            nodes = (base(symbol) for symbol in symbols)
            if not all(self._is_single(node) for node in nodes if isinstance(node, Node)):
                return None
        return shortest

    @cached_property
    def _costs(self) -> tuple[dict[str, int], dict[str, Alternative]]:
        """Bytes of a shortest text of every rule, and the alternative that has it."""
        costs: dict[str, int] = {}
        chosen: dict[str, Alternative] = {}

        def update(name: str) -> Iterable[str]:
            before = costs.get(name)
            for each in self._rules.alternatives[name]:
                cost = self._cost(each, costs)
                if cost is not None and cost < costs.get(name, cost + 1):
                    costs[name], chosen[name] = cost, each
            return self._rules.users[name] if costs.get(name) != before else ()

        self._rules.settle(update)
        return costs, chosen

    def _cost(self, alternative: Alternative, costs: dict[str, int]) -> int | None:
        total = 0
        for symbol in alternative:
            low = symbol.low if isinstance(symbol, Repetition) else 1
            inner = base(symbol)
            cost = costs.get(inner) if isinstance(inner, str) else len(self._shortest(inner))
            if low and cost is None:
                return None
            total += low * (cost or 0)
        return total

    def _write(self, start: Symbol, chance: random.Random | None, depth: int, *, spaced: bool = False) -> bytes:
        """A text of a symbol: a shortest one without ``chance``. Iterative: shortest ways may be long."""
        _, chosen = self._costs
        written: list[bytes] = []
        stack: list[tuple[Symbol, int]] = [(start, depth)]
        while stack:
            symbol, depth = stack.pop()
            if isinstance(symbol, Repetition):
                count = symbol.low
                if chance is not None and depth < _DEPTH:
                    most = symbol.low + _REPEATS if symbol.high is None else min(symbol.high, symbol.low + _REPEATS)
                    count = chance.randint(symbol.low, most)
                stack += [(symbol.symbol, depth)] * count
            elif isinstance(symbol, str):
                alternative = chosen[symbol]
                if chance is not None and depth < _DEPTH:
                    alternative = chance.choice(self._rules.alternatives[symbol])
                stack += [(each, depth + 1) for each in reversed(alternative)]
            else:
                written.append(self._shortest(symbol) if chance is None else self._sampled(symbol, chance))
        between = b""
        if spaced and self._rules.skipped is not None:
            between = (
                b" " if self._automaton(self._rules.skipped).matches(b" ") else self._shortest(self._rules.skipped)
            )
        return between.join(written)

    def _length(self, alternative: Alternative, known: dict[str, int | None]) -> int | None:
        total = 0
        for symbol in alternative:
            inner = base(symbol)
            length = known[inner] if isinstance(inner, str) else longest_length(inner)
            high = symbol.high if isinstance(symbol, Repetition) else 1
            if length is None or (high is None and length):
                return None
            total += length * (high or 0)
        return total

    def _is_single(self, node: Node) -> bool:
        automaton = self._automaton(node)
        end = automaton.run(automaton.forced_bytes(0))
        return automaton.accepting(end) and not automaton.arcs(end)

    def _shortest(self, node: Node) -> bytes:
        found = self._shortest_of.get(node)
        if found is None:
            found = self._shortest_of[node] = self._automaton(node).shortest() or b""
        return found

    def _sampled(self, node: Node, chance: random.Random) -> bytes:
        return Sampler(self._automaton(node), chance).sample() or self._shortest(node)

    def _automaton(self, node: Node) -> Automaton:
        automaton = self._automata.get(node)
        if automaton is None:
            automaton = self._automata[node] = Automaton(node, self._rules.derivatives.arena)
        return automaton


def _largest(lengths: list[int | None]) -> int | None:
    known = [length for length in lengths if length is not None]
    return max(known) if len(known) == len(lengths) else None
