"""The parser of Lark's grammar notation: https://lark-parser.readthedocs.io/en/stable/grammar.html.

Syntax that shapes the parse tree (aliases, ``?``, ``!``, priorities) is read and has no meaning here: only the
texts of a grammar matter.
"""

from __future__ import annotations

import re
from typing import NoReturn

from lmc.grammar.context_free.common import COMMON
from lmc.grammar.context_free.scanning import Token, remedy_for, scan
from lmc.grammar.context_free.syntax import (
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
    refusal,
)

MAX_TEXT = 200_000
MAX_NESTING = 60
MAX_REPEATS = 100_000

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "b": "\b", "\\": "\\", '"': '"', "/": "/"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


def read_grammar(text: str) -> Grammar:
    """The syntax tree of a grammar. Raises ``ConstraintError`` for what is no Lark, or can't be kept."""
    if len(text) > MAX_TEXT:
        raise refusal(text, MAX_TEXT, f"it has more than {MAX_TEXT} characters", "give a smaller grammar")
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate is not None:
        raise refusal(text, surrogate.start(), "it holds half of a surrogate pair", "write whole characters")
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = scan(text)
        self._at = 0
        self._nesting = 0

    def read(self) -> Grammar:
        grammar = Grammar(self._text)
        while not self._is("END"):
            if self._take("NEWLINE"):
                continue
            if self._is("STATEMENT"):
                self._statement(grammar)
            else:
                definition = self._definition()
                self._add(grammar, definition)
            if not self._is("END"):
                self._need("NEWLINE", "the end of the line")
        return grammar

    def _definition(self) -> RuleDefinition:
        token = self._need("NAME", "a rule, a terminal or a statement")
        name = token.text.lstrip("!?")
        parameters: list[str] = []
        if self._take("{"):
            parameters.append(self._need("NAME", "the name of a parameter").text)
            while self._take(","):
                parameters.append(self._need("NAME", "the name of a parameter").text)
            self._need("}", "} after the parameters")
        if self._take("."):
            self._need("NUMBER", "a priority")
        self._need(":", f": after {name}")
        return RuleDefinition(name, tuple(parameters), self._choice(), token.position)

    def _add(self, grammar: Grammar, definition: RuleDefinition) -> None:
        if definition.name in grammar.definitions:
            remedy = "give it one definition, its alternatives separated by |"
            raise refusal(self._text, definition.position, f"{definition.name} is defined twice", remedy)
        grammar.definitions[definition.name] = definition

    def _statement(self, grammar: Grammar) -> None:
        token = self._next()
        if token.text == "%ignore":
            grammar.ignored.append(self._choice())
        elif token.text == "%import":
            self._import(grammar, token)
        else:
            remedy = "write every rule and terminal out; there are %ignore and %import common"
            raise refusal(self._text, token.position, f"{token.text} is not supported", remedy)

    def _import(self, grammar: Grammar, statement: Token) -> None:
        if self._is("."):
            self._refuse_import(statement)
        library = self._need("NAME", "the name of a library")
        if library.text != "common":
            self._refuse_import(statement)
        if self._take("."):
            names = [self._need("NAME", "the name of a terminal")]
            alias = self._need("NAME", "a name") if self._take("->") else names[0]
            self._add_common(grammar, names[0], alias)
            return
        self._need("(", "common.NAME or common (NAME, …)")
        while True:
            name = self._need("NAME", "the name of a terminal")
            self._add_common(grammar, name, name)
            if not self._take(","):
                break
        self._need(")", ") after the names")

    def _refuse_import(self, statement: Token) -> NoReturn:
        remedy = "copy its definitions into the grammar; only %import common is there"
        raise refusal(self._text, statement.position, "other files are not read", remedy)

    def _add_common(self, grammar: Grammar, name: Token, alias: Token) -> None:
        pattern = COMMON.get(name.text)
        if pattern is None:
            problem = f"common has no terminal {name.text}"
            raise refusal(self._text, name.position, problem, f"there are {', '.join(COMMON)}")
        if not is_terminal(alias.text):
            raise refusal(self._text, alias.position, f"{alias.text} names a terminal", "write it in capitals")
        self._add(grammar, RuleDefinition(alias.text, (), TerminalPattern(pattern, "", alias.position), alias.position))

    def _choice(self) -> Expression:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            problem = f"parentheses nest more than {MAX_NESTING} deep"
            raise refusal(self._text, self._tokens[self._at].position, problem, "make inner parts rules of their own")
        alternatives = [self._sequence()]
        while self._take_bar():
            alternatives.append(self._sequence())
        self._nesting -= 1
        return alternatives[0] if len(alternatives) == 1 else RuleChoice(tuple(alternatives))

    def _take_bar(self) -> bool:
        """Take a ``|``; return True if another alternative follows, here or in the next lines."""
        at = self._at
        while self._tokens[at].kind == "NEWLINE":
            at += 1
        if self._tokens[at].kind != "|":
            return False
        self._at = at + 1
        return True

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while not any(map(self._is, ("NEWLINE", "|", ")", "]", "->", "END"))):
            parts.append(self._repeated())
            self._skip_lines_in_group()
        if self._take("->"):
            self._need("NAME", "the name of an alias")
        self._skip_lines_in_group()
        return parts[0] if len(parts) == 1 else RuleSequence(tuple(parts))

    def _skip_lines_in_group(self) -> None:
        """A group may go on in the next line."""
        while self._nesting > 1 and self._take("NEWLINE"):
            pass

    def _repeated(self) -> Expression:
        part = self._atom()
        if self._take("*"):
            return RuleRepeat(part, 0, None)
        if self._take("+"):
            return RuleRepeat(part, 1, None)
        if self._take("?"):
            return RuleRepeat(part, 0, 1)
        if not self._take("~"):
            return part
        low = high = self._number()
        token = self._tokens[self._at]
        if self._take(".."):
            high = self._number()
        if high < low:
            raise refusal(self._text, token.position, f"repeats from {low} to {high}", "give the smaller number first")
        return RuleRepeat(part, low, high)

    def _number(self) -> int:
        token = self._need("NUMBER", "a number of repeats")
        if not 0 <= int(token.text) <= MAX_REPEATS:
            problem = f"{token.text} repeats"
            raise refusal(self._text, token.position, problem, f"give a number from 0 to {MAX_REPEATS}, or use *")
        return int(token.text)

    def _atom(self) -> Expression:
        for opening, closing in (("(", ")"), ("[", "]")):
            if self._take(opening):
                self._skip_lines()
                inside = self._choice()
                self._need(closing, closing)
                return inside if opening == "(" else RuleRepeat(inside, 0, 1)
        token = self._next()
        if token.kind == "STRING":
            literal = self._literal(token)
            return self._range(literal) if self._take("..") else literal
        if token.kind == "PATTERN":
            text, _, flags = token.text[1:].rpartition("/")
            return TerminalPattern(text, flags, token.position)
        if token.kind != "NAME":
            self._at -= 1
            self._need("NAME", "a rule, a terminal, a text or a pattern")
        arguments: list[Expression] = []
        if self._take("{"):
            arguments.append(self._atom())
            while self._take(","):
                arguments.append(self._atom())
            self._need("}", "} after the arguments")
        return Name(token.text.lstrip("!?"), tuple(arguments), token.position)

    def _skip_lines(self) -> None:
        while self._take("NEWLINE"):
            pass

    def _range(self, first: Literal) -> Range:
        last = self._literal(self._need("STRING", "the last character of the range"))
        for end in (first, last):
            if len(end.text) != 1 or end.flags:
                problem = f"{end.text!r} is no end of a range"
                raise refusal(self._text, end.position, problem, 'give single characters: "a".."z"')
        if first.text > last.text:
            problem = f"the range from {first.text!r} to {last.text!r} is empty"
            raise refusal(self._text, first.position, problem, "give the lower character first")
        return Range(first.text, last.text, first.position)

    def _literal(self, token: Token) -> Literal:
        quoted, _, flags = token.text[1:].rpartition('"')

        def unescape(match: re.Match[str]) -> str:
            number = match[1] or match[2] or match[3]
            if number is None and match[4] in _ESCAPES:
                return _ESCAPES[match[4]]
            code = int(number, 16) if number else -1
            if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
                position = token.position + 1 + match.start()
                remedy = "write a backslash as two, or use a pattern: /\\d/"
                raise refusal(self._text, position, f"{match[0]} is no character", remedy)
            return chr(code)

        return Literal(_ESCAPE.sub(unescape, quoted), flags, token.position)

    def _is(self, kind: str) -> bool:
        return self._tokens[self._at].kind == kind

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "END":
            self._at += 1
        return token

    def _take(self, kind: str) -> bool:
        if not self._is(kind):
            return False
        self._at += 1
        return True

    def _need(self, kind: str, what: str) -> Token:
        token = self._tokens[self._at]
        if token.kind != kind:
            found = {"END": "the end", "NEWLINE": "the end of the line"}.get(token.kind, repr(token.text))
            remedy = remedy_for(token.text)
            raise refusal(self._text, token.position, f"{found} where {what} should be", remedy)
        self._at += 1
        return token
