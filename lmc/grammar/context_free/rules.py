"""A context-free grammar whose terminals are nodes: what can be said of its language, and the parts that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from lmc.grammar.automata.building import Arena
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


MAX_STATES = 2_000


def find_trap(rules: RuleSet) -> tuple[Node, int] | None:
    """A terminal that can't be left at one of its places, and the bytes (as a set) that would have to follow there.

    The lexer is greedy, so a terminal that takes all that may follow never ends.

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
