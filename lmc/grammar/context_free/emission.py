"""Rules as text for llguidance, which reads a grammar notation near Lark's.

Nodes are over bytes, its patterns over characters. So every byte is one character there, U+0000 to U+00FF, and the
tokens it is given are written the same way (``as_characters``).
"""

from __future__ import annotations

import json

from lmc.grammar.automata.nodes import Kind, Node
from lmc.grammar.context_free.rules import Alternative, Repetition, RuleSet, Symbol, base
from lmc.ir.errors import ConstraintError

# llguidance's compiler follows references by recursion, on whatever stack the thread has.
MAX_DEPTH = 400

# It reads counts as signed numbers of 32 bits.
MAX_COUNT = 2**31 - 1

# Where bytes are forced, its masks would hold only the tokens that it prefers: here they are to hold all that may come.
_OPTIONS = '%llguidance {"no_forcing": true, "skip_repetition": "once"}'


def as_characters(data: bytes) -> bytes:
    """Bytes as the UTF-8 of the characters that stand for them."""
    return data.decode("latin-1").encode()


def emit(rules: RuleSet) -> str:
    """Return the text of trimmed rules. Raises ``ConstraintError`` for rules that nest too deeply or count too far."""
    return _Emission(rules).text()


class _Emission:
    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._names = {name: f"r{number}" for number, name in enumerate(rules.alternatives)}
        self._terms: dict[Node, str] = {}
        self._depths: dict[Node, int] = {}
        self._lines: list[str] = []

    def text(self) -> str:
        rules = self._rules
        _check_depth(rules)
        lines = [_OPTIONS, f"start: {self._names[rules.start]}"]
        for name, alternatives in rules.alternatives.items():
            lines.append(f"{self._names[name]}: {' | '.join(map(self._alternative, self._merged(alternatives)))}")
        if rules.skipped is not None:
            lines.append(f"%ignore {self._term(rules.skipped)}")
        return "\n".join([*lines, *self._lines, ""])

    def _merged(self, alternatives: list[Alternative]) -> list[Alternative]:
        """The same alternatives, those that are one terminal together as one: the lexer tells them apart."""
        nodes = [each[0] for each in alternatives if len(each) == 1 and isinstance(each[0], Node)]
        if len(nodes) < 2:
            return list(dict.fromkeys(alternatives))
        rest = [each for each in alternatives if len(each) != 1 or not isinstance(each[0], Node)]
        return [(self._rules.derivatives.arena.union(nodes),), *dict.fromkeys(rest)]

    def _alternative(self, alternative: Alternative) -> str:
        return " ".join(map(self._symbol, alternative)) or '""'

    def _symbol(self, symbol: Symbol) -> str:
        inner = base(symbol)
        text = self._names[inner] if isinstance(inner, str) else self._term(inner)
        return text + _repeats(symbol.low, symbol.high) if isinstance(symbol, Repetition) else text

    def _term(self, node: Node) -> str:
        """The name of a terminal, or its text where that is short. Iterative: nodes nest deeply."""
        stack = [node]
        while stack:
            top = stack[-1]
            parts = _flat(top)
            missing = [part for part in parts if part not in self._terms]
            if missing and top not in self._terms:
                stack += missing
                continue
            stack.pop()
            if top not in self._terms:
                depth = self._depths[top] = 1 + max((self._depths[part] for part in parts), default=0)
                if depth > MAX_DEPTH:
                    raise _too_deep("parts of a terminal nest")
                self._terms[top] = self._made(top, [self._terms[part] for part in parts])
        return self._terms[node]

    def _made(self, node: Node, parts: list[str]) -> str:
        match node.kind:
            case Kind.EPSILON:
                return '""'
            case Kind.LITERAL:
                return json.dumps(node.data.decode("latin-1"))
            case Kind.BYTE:
                return f"/[{_ranges(node.mask)}]/"
            case Kind.CONCAT:
                text = " ".join(parts)
            case Kind.UNION:
                text = " | ".join(parts)
            case Kind.REPEAT:
                text = parts[0] + _repeats(node.low, node.high)
            case _:
                raise AssertionError(f"no terminal of a grammar: {node!r}")
        name = f"T{len(self._lines)}"
        self._lines.append(f"{name}: {text}")
        return name


def _flat(node: Node) -> list[Node]:
    """The parts of a node; those of a concatenation all in one row."""
    if node.kind is not Kind.CONCAT:
        return list(node.parts)
    parts: list[Node] = []
    while node.kind is Kind.CONCAT:
        head, node = node.parts
        parts.append(head)
    return [*parts, node]


def _repeats(low: int, high: int | None) -> str:
    if low > MAX_COUNT:
        raise ConstraintError(f"a count of more than {MAX_COUNT}", remedy="ask for a smaller length or number of parts")
    if high is not None:
        high = min(high, MAX_COUNT)
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    return "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"


def _ranges(mask: int) -> str:
    """Return a byte set as the inside of a character class."""
    ranges: list[str] = []
    byte = 0
    while mask >> byte:
        if not mask >> byte & 1:
            byte += 1
            continue
        first = byte
        while mask >> byte & 1:
            byte += 1
        ranges.append(f"\\x{{{first:x}}}" if byte - first == 1 else f"\\x{{{first:x}}}-\\x{{{byte - 1:x}}}")
    return "".join(ranges)


def _check_depth(rules: RuleSet) -> None:
    """Raise ``ConstraintError`` where following references depth first, in order, goes too deep."""
    seen = {rules.start}
    stack = [iter(_references(rules, rules.start))]
    while stack:
        for reference in stack[-1]:
            if reference not in seen:
                seen.add(reference)
                stack.append(iter(_references(rules, reference)))
                break
        else:
            stack.pop()
        if len(stack) > MAX_DEPTH:
            raise _too_deep("rules refer to others")


def _too_deep(what: str) -> ConstraintError:
    return ConstraintError(
        f"{what} more than {MAX_DEPTH} deep",
        remedy="write it flatter: repeat with * or ~, and put fewer parts into others",
    )


def _references(rules: RuleSet, name: str) -> list[str]:
    found = (base(symbol) for each in rules.alternatives[name] for symbol in each)
    return [symbol for symbol in found if isinstance(symbol, str)]
