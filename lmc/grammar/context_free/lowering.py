"""From the syntax tree of a grammar to rules over nodes."""

from __future__ import annotations

import re

from lmc.grammar import regex
from lmc.grammar.automata.alphabets import UTF8
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Node
from lmc.grammar.context_free.gbnf import is_gbnf, read_gbnf
from lmc.grammar.context_free.reading import (
    Expression,
    Grammar,
    Literal,
    Name,
    Range,
    RuleChoice,
    RuleDefinition,
    RuleRepeat,
    RuleSequence,
    TerminalPattern,
    is_terminal,
    read_grammar,
    refusal,
)
from lmc.grammar.context_free.rules import Alternative, Repetition, RuleSet, Symbol
from lmc.ir.errors import ConstraintError

START = "start"
MAX_SYMBOLS = 50_000
MAX_INSTANCES = 1_000
MAX_DEPTH = 40  # of terminals in terminals, and of templates in arguments

_FLAGS = {"i": re.I, "m": re.M, "s": re.S, "u": re.U, "x": re.X}


def rules_of_grammar(text: str, arena: Arena) -> tuple[RuleSet, dict[Node, str]]:
    """The rules of a grammar in Lark's notation or in GBNF, and how its terminals are called there.

    Patterns are those of ``lmc/grammar/regex/README.md``. Raises ``ConstraintError`` for what is wrong or can't be
    kept, with the ``position`` in the text.
    """
    return _Lowering(read_gbnf(text) if is_gbnf(text) else read_grammar(text), arena).lower()


class _Lowering:
    def __init__(self, grammar: Grammar, arena: Arena) -> None:
        self._grammar = grammar
        self._arena = arena
        self._alternatives: dict[str, list[Alternative]] = {}
        self._waiting: list[tuple[str, RuleDefinition, dict[str, Expression]]] = []
        self._terminals: dict[str, Node] = {}
        self._open: list[str] = []
        self._names: dict[Node, str] = {}
        self._symbols = 0
        self._instances = 0

    def lower(self) -> tuple[RuleSet, dict[Node, str]]:
        grammar = self._grammar
        start = grammar.definitions.get(START)
        if start is None:
            remedy = f"call the rule of the whole output {START}"
            raise refusal(grammar.text, 0, f"there is no rule {START}", remedy)
        self._check_unused()
        skipped = [self._node(each) for each in grammar.ignored]
        self._rule(start, {}, start.position)
        while self._waiting:
            name, definition, bound = self._waiting.pop()
            self._alternatives[name] = self._lowered(definition.expression, bound, name)
        between = self._arena.repeat(self._arena.union(skipped), 1, None) if skipped else None
        return RuleSet(self._alternatives, START, Derivatives(self._arena), between), self._names

    def _check_unused(self) -> None:
        """Report errors in unreferenced rules, too. A template means nothing without its arguments."""
        for definition in self._grammar.definitions.values():
            if definition.parameters:
                continue
            if is_terminal(definition.name):
                self._terminal(definition)
            else:
                self._rule(definition, {}, definition.position)

    def _rule(self, definition: RuleDefinition, bound: dict[str, Expression], position: int, suffix: str = "") -> str:
        name = definition.name + suffix
        if name not in self._alternatives:
            self._count(position)
            self._alternatives[name] = []
            self._waiting.append((name, definition, bound))
        return name

    def _lowered(self, expression: Expression, bound: dict[str, Expression], owner: str) -> list[Alternative]:
        """The alternatives of an expression in the rule ``owner``."""
        parts = expression.alternatives if isinstance(expression, RuleChoice) else (expression,)
        found: list[Alternative] = []
        for part in parts:
            items = part.parts if isinstance(part, RuleSequence) else (part,)
            self._count(_position(part))
            found.append(tuple(symbol for item in items for symbol in self._symbol(item, bound, owner)))
        return found

    def _symbol(self, item: Expression, bound: dict[str, Expression], owner: str) -> Alternative:
        """The symbols of one item: one of them, or none for nothing at all."""
        self._count(_position(item))
        if isinstance(item, Name):
            return (self._named(item, bound, owner),)
        if isinstance(item, RuleSequence | RuleChoice):
            return (self._helper(item, bound, owner),)
        if not isinstance(item, RuleRepeat):
            return () if isinstance(item, Literal) and not item.text else (self._node(item),)
        inner = self._symbol(item.part, bound, owner)
        if item.high == 0 or not inner:
            return ()
        (symbol,) = inner
        if isinstance(symbol, Repetition):
            symbol = self._helper(item.part, bound, owner)
        return (Repetition(symbol, item.low, item.high),)

    def _helper(self, item: Expression, bound: dict[str, Expression], owner: str) -> str:
        """A rule of its own for a part of one."""
        name = f"{owner}.{len(self._alternatives)}"
        self._alternatives[name] = []
        self._alternatives[name] = self._lowered(item, bound, owner)
        return name

    def _named(self, item: Name, bound: dict[str, Expression], owner: str) -> Symbol:
        argument = bound.get(item.name)
        if argument is not None and not item.arguments:
            found = self._symbol(argument, {}, owner)
            return found[0] if found else self._arena.epsilon
        definition = self._definition(item)
        if is_terminal(definition.name):
            return self._terminal(definition)
        if not definition.parameters:
            return self._rule(definition, {}, item.position)
        arguments = tuple(_bound(each, bound) for each in item.arguments)
        instance = dict(zip(definition.parameters, arguments, strict=True))
        self._instances += 1
        if self._instances > MAX_INSTANCES or max(map(_depth, arguments), default=0) > MAX_DEPTH:
            problem = f"templates are used more than {MAX_INSTANCES} times, or {MAX_DEPTH} deep"
            raise refusal(self._grammar.text, item.position, problem, "write some of them out, without recursion")
        return self._rule(definition, instance, item.position, f"{{{', '.join(map(_spelled, arguments))}}}")

    def _definition(self, item: Name) -> RuleDefinition:
        text = self._grammar.text
        definition = self._grammar.definitions.get(item.name)
        if definition is None:
            kind = "terminal" if is_terminal(item.name) else "rule"
            raise refusal(text, item.position, f"there is no {kind} {item.name}", "define it, or correct the name")
        if len(item.arguments) != len(definition.parameters):
            problem = f"{item.name} takes {len(definition.parameters)} arguments, not {len(item.arguments)}"
            raise refusal(text, item.position, problem, "give one for each of its parameters")
        if definition.parameters and is_terminal(item.name):
            raise refusal(text, item.position, f"{item.name} is a template of terminals", "make it a rule")
        return definition

    def _terminal(self, definition: RuleDefinition) -> Node:
        known = self._terminals.get(definition.name)
        if known is not None:
            return known
        if definition.name in self._open:
            problem = f"the terminal {definition.name} refers to itself"
            raise refusal(self._grammar.text, definition.position, problem, "make it a rule: write it in small letters")
        if len(self._open) == MAX_DEPTH:
            problem = f"terminals refer to others more than {MAX_DEPTH} deep"
            raise refusal(self._grammar.text, definition.position, problem, "write some of them out")
        self._open.append(definition.name)
        node = self._terminals[definition.name] = self._node(definition.expression)
        self._names.setdefault(node, definition.name)
        self._open.pop()
        return node

    def _node(self, item: Expression) -> Node:
        """The node of an expression out of terminals only."""
        arena = self._arena
        match item:
            case Literal():
                return self._literal(item)
            case Range():
                return UTF8.encode(arena, CharSet(((ord(item.first), ord(item.last)),)))
            case TerminalPattern():
                return self._pattern(item)
            case RuleSequence():
                return arena.concat(*(self._node(each) for each in item.parts))
            case RuleChoice():
                return arena.union(self._node(each) for each in item.alternatives)
            case RuleRepeat():
                return arena.repeat(self._node(item.part), item.low, item.high)
            case Name():
                definition = self._definition(item)
                if not is_terminal(definition.name):
                    problem = f"{item.name} is a rule, and terminals are made of terminals only"
                    raise refusal(self._grammar.text, item.position, problem, "write the name of a terminal")
                return self._terminal(definition)

    def _literal(self, item: Literal) -> Node:
        if "i" not in item.flags:
            return self._arena.literal(item.text.encode())
        return regex.to_node(re.escape(item.text), self._arena, flags=int(re.I))

    def _pattern(self, item: TerminalPattern) -> Node:
        flags = 0
        for letter in item.flags:
            if letter not in _FLAGS:
                problem = f"the flag {letter} of a pattern"
                raise refusal(self._grammar.text, item.position, problem, f"there are {', '.join(_FLAGS)}")
            flags |= int(_FLAGS[letter])
        try:
            return regex.to_node(item.text, self._arena, flags=flags)
        except ConstraintError as error:
            position = item.position
            if error.position is not None and self._grammar.text.startswith("/" + item.text, item.position):
                position += 1 + error.position
            raise refusal(self._grammar.text, position, error.cause, error.remedy or "correct the pattern") from None

    def _count(self, position: int) -> None:
        self._symbols += 1
        if self._symbols > MAX_SYMBOLS:
            problem = f"the grammar has more than {MAX_SYMBOLS} symbols"
            raise refusal(self._grammar.text, position, problem, "give a smaller grammar")


def _bound(item: Expression, bound: dict[str, Expression]) -> Expression:
    """An argument of a template in a template: its parameters replaced by what they stand for."""
    if not isinstance(item, Name):
        return item
    if item.name in bound and not item.arguments:
        return bound[item.name]
    return Name(item.name, tuple(_bound(each, bound) for each in item.arguments), item.position)


def _depth(item: Expression) -> int:
    return 1 + max(map(_depth, item.arguments), default=0) if isinstance(item, Name) else 0


def _spelled(item: Expression) -> str:
    """An argument as a part of the name of what a template becomes; different ones are spelled differently."""
    if isinstance(item, Name):
        return item.name + (f"{{{', '.join(map(_spelled, item.arguments))}}}" if item.arguments else "")
    return repr(item)


def _position(item: Expression) -> int:
    while True:
        match item:
            case RuleSequence():
                if not item.parts:
                    return 0
                item = item.parts[0]
            case RuleChoice():
                item = item.alternatives[0]
            case RuleRepeat():
                item = item.part
            case _:
                return item.position
