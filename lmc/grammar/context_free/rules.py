"""A context-free grammar whose terminals are nodes: what can be said of its language, and the parts that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Node
from lmc.ir.cached import cached_property
from lmc.ir.errors import ConstraintError


@dataclass(frozen=True, slots=True)
class Repetition:
    """A symbol ``low`` to ``high`` times (None: without end); ``high`` is at least 1."""

    symbol: str | Node
    low: int
    high: int | None


Symbol = str | Node | Repetition
"""The name of a rule, a terminal, or one of them repeated."""

Alternative = tuple[Symbol, ...]


@dataclass(frozen=True)
class RuleSet:
    """The alternatives of every rule, by name; the language is that of ``start``.

    ``skipped`` may stand between any two terminals (None: nothing may). ``derivatives`` are those of the nodes' arena.
    """

    alternatives: dict[str, list[Alternative]]
    start: str
    derivatives: Derivatives = field(repr=False)
    skipped: Node | None = None

    def trimmed(self) -> RuleSet:
        """The same language without alternatives that have no text or can't be reached; empty: no rule is left."""
        productive = self._productive()

        def kept(alternative: Alternative) -> Iterator[Symbol]:
            """The symbols that have a text; one that has none is left out where it may be."""
            for symbol in alternative:
                if self._has_text(base(symbol), productive):
                    yield symbol

        found: dict[str, list[Alternative]] = {}
        waiting = [self.start] if self.start in productive else []
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            live = (each for each in self.alternatives[name] if self._is_live(each, productive))
            found[name] = [tuple(kept(each)) for each in live]
            inner = (base(symbol) for each in found[name] for symbol in each)
            waiting += [each for each in inner if isinstance(each, str)]
        skipped = self.skipped if self.skipped is not None and self.derivatives.is_live(self.skipped) else None
        return RuleSet(found, self.start, self.derivatives, skipped)

    def within(self, mask: int) -> RuleSet:
        """Trimmed rules without the terminals that have no text of bytes of a set alone."""
        derivatives, arena = self.derivatives, self.derivatives.arena
        texts = arena.repeat(arena.byte_set(mask), 0, None)

        def kept(node: Node) -> bool:
            try:
                return derivatives.is_live(arena.intersection([node, texts]))
            except ConstraintError:  # that can't be said within bounds
                return True

        gone = {node for node in self.terminals if not kept(node)}

        def replaced(symbol: Symbol) -> Symbol:
            if base(symbol) not in gone:
                return symbol
            return Repetition(arena.empty, symbol.low, symbol.high) if isinstance(symbol, Repetition) else arena.empty

        alternatives = {
            name: [tuple(map(replaced, each)) for each in found] for name, found in self.alternatives.items()
        }
        skipped = self.skipped if self.skipped is not None and kept(self.skipped) else None
        return RuleSet(alternatives, self.start, derivatives, skipped).trimmed()

    @property
    def is_empty(self) -> bool:
        """True if no alternative is left; of trimmed rules only."""
        return not self.alternatives

    @cached_property
    def terminals(self) -> list[Node]:
        """All terminals, each once, in the order of the rules."""
        nodes = (base(symbol) for name in self.alternatives for each in self.alternatives[name] for symbol in each)
        return list(dict.fromkeys(node for node in nodes if isinstance(node, Node)))

    @cached_property
    def users(self) -> dict[str, set[str]]:
        """The rules in whose alternatives each rule stands."""
        found: dict[str, set[str]] = {name: set() for name in self.alternatives}
        for name, alternatives in self.alternatives.items():
            for each in alternatives:
                for symbol in each:
                    inner = base(symbol)
                    if isinstance(inner, str):
                        found[inner].add(name)
        return found

    def settle(self, update: Callable[[str], Iterable[str]]) -> None:
        """Call ``update`` for every rule, and again for those that it names, until it names none."""
        waiting = dict.fromkeys(self.alternatives)
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            waiting.update(dict.fromkeys(update(name)))

    @cached_property
    def nullable(self) -> frozenset[str]:
        """Rules that have the empty text."""
        found: set[str] = set()

        def update(name: str) -> Iterable[str]:
            if name in found or not any(
                all(self._may_be_empty(symbol, found) for symbol in each) for each in self.alternatives[name]
            ):
                return ()
            found.add(name)
            return self.users[name]

        self.settle(update)
        return frozenset(found)

    def may_be_empty(self, symbol: Symbol) -> bool:
        """Return True if a symbol has the empty text."""
        return self._may_be_empty(symbol, self.nullable)

    @cached_property
    def first(self) -> dict[str, int]:
        """The bytes that the texts of each rule begin with, as sets (bit b: byte b)."""
        found = dict.fromkeys(self.alternatives, 0)

        def update(name: str) -> Iterable[str]:
            mask = found[name]
            for each in self.alternatives[name]:
                mask |= self._first_of(each, found)
            if mask == found[name]:
                return ()
            found[name] = mask
            return self.users[name]

        self.settle(update)
        return found

    def first_of(self, symbols: Iterable[Symbol]) -> int:
        """The bytes that the texts of a row of symbols begin with."""
        return self._first_of(symbols, self.first)

    def begins_with(self, node: Node) -> int:
        """The bytes that the texts of a terminal begin with."""
        mask = 0
        for own, _ in self.derivatives.arcs(node):
            mask |= own
        return mask

    def _productive(self) -> set[str]:
        found: set[str] = set()

        def update(name: str) -> Iterable[str]:
            if name in found or not any(self._is_live(each, found) for each in self.alternatives[name]):
                return ()
            found.add(name)
            return self.users[name]

        self.settle(update)
        return found

    def _is_live(self, alternative: Alternative, productive: set[str]) -> bool:
        return all(
            (isinstance(symbol, Repetition) and symbol.low == 0) or self._has_text(base(symbol), productive)
            for symbol in alternative
        )

    def _has_text(self, symbol: str | Node, productive: set[str]) -> bool:
        return symbol in productive if isinstance(symbol, str) else self.derivatives.is_live(symbol)

    def _may_be_empty(self, symbol: Symbol, nullable: Iterable[str]) -> bool:
        if isinstance(symbol, Repetition):
            return symbol.low == 0 or self._may_be_empty(symbol.symbol, nullable)
        return symbol in nullable if isinstance(symbol, str) else symbol.nullable

    def _first_of(self, symbols: Iterable[Symbol], first: dict[str, int]) -> int:
        mask = 0
        for symbol in symbols:
            inner = base(symbol)
            mask |= first[inner] if isinstance(inner, str) else self.begins_with(inner)
            if not self.may_be_empty(symbol):
                break
        return mask


def base(symbol: Symbol) -> str | Node:
    """The rule or terminal of a symbol, repeated or not."""
    return symbol.symbol if isinstance(symbol, Repetition) else symbol
