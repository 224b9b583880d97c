"""Names, strings, numbers and types of ``.lmir`` text, from the tokens of its grammar."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lark import Token, Tree

from lmc.ir.core import Attribute
from lmc.ir.errors import ParseError
from lmc.ir.text.diagnostics import SourceText, shown
from lmc.ir.types import SIMPLE_TYPES, Type, json_of, list_of

Node = Tree[Token]
Branch = Token | Node

_MAX_NUMBER_LENGTH = 1300
_MAX_CODE_POINT = 0x10FFFF
_CONSTANTS = {"none": None, "true": True, "false": False, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\."
)
_SHORT_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class LiteralReader:
    """Reads the small pieces of one text; every method raises ``ParseError`` with the place in ``source``."""

    source: SourceText

    def error(self, token: Token, cause: str, remedy: str) -> ParseError:
        """An error about ``token``."""
        return self.source.error(cause, remedy=remedy, start=token.start_pos or 0, end=token.end_pos)

    def name(self, token: Token) -> str:
        """The name in ``%name`` or ``@name``, quoted or not."""
        return self.string(token, 1) if token[1:2] == '"' else str(token[1:])

    def string(self, token: Token, start: int = 0) -> str:
        """The text of a string whose opening quote is at ``start`` of the token."""
        inner = str(token[start + 1 : -1])
        if "\\" not in inner:
            return inner
        return _ESCAPE.sub(lambda match: self._unescape(token, start + 1, match), inner)

    def number(self, token: Token) -> int | float:
        """A whole number or a float."""
        if len(token) > _MAX_NUMBER_LENGTH:
            raise self.error(token, "this number is too long", f"use at most {_MAX_NUMBER_LENGTH} characters")
        if token.lstrip("-").isdigit():
            return int(token)
        number = float(token)
        if math.isinf(number):
            raise self.error(token, "this number is too large for a float", "write inf or -inf if that is meant")
        return number

    def literal(self, branch: Branch) -> Attribute:
        """An attribute. Recursion is as deep as tuples are nested, which the parser has bounded."""
        if isinstance(branch, Tree):
            if branch.data == "tuple":
                return tuple(self.literal(entry) for entry in children(branch))
            return _CONSTANTS[str(branch.children[0])]
        if branch.type == "NUMBER":
            return self.number(branch)
        return self.name(branch) if branch.type == "SYMBOL" else self.string(branch)

    def type(self, node: Node) -> Type:
        """A type."""
        depth = 0
        while node.data == "list_type":
            node = cast("Node", node.children[0])
            depth += 1
        kind = self._element_type(node)
        for _ in range(depth):
            kind = list_of(kind)
        return kind

    def _element_type(self, node: Node) -> Type:
        token = cast("Token", node.children[0])
        if node.data == "json_type":
            return json_of(self.string(token) if token.type == "STRING" else str(token))
        found = SIMPLE_TYPES.get(token[1:])
        if found is None:
            known = ", ".join(f"!{name}" for name in SIMPLE_TYPES)
            raise self.error(token, f"unknown type {shown(token)}", f"use {known}, !list<…> or !json<…>")
        return found

    def _unescape(self, token: Token, offset: int, match: re.Match[str]) -> str:
        escape = match.group()
        if escape[1] in _SHORT_ESCAPES:
            return _SHORT_ESCAPES[escape[1]]
        if len(escape) == 12:  # two UTF-16 halves, as JSON writes characters beyond U+FFFF
            return chr(0x10000 + ((int(escape[2:6], 16) & 0x3FF) << 10) + (int(escape[8:], 16) & 0x3FF))
        if len(escape) > 2 and (code := int(escape[2:], 16)) <= _MAX_CODE_POINT:
            return chr(code)
        start = (token.start_pos or 0) + offset + match.start()
        raise self.source.error(
            f"unknown escape {shown(escape)}",
            remedy='use \\" \\\\ \\n \\r \\t \\b \\f \\/ \\uHHHH or \\UHHHHHHHH (H: a hexadecimal digit)',
            start=start,
            end=start + len(escape),
        )


def children(node: Branch | None) -> list[Branch]:
    """The children of ``node`` without the placeholders of what the text left out; none of None."""
    held = [] if node is None or isinstance(node, Token) else node.children
    return [child for child in cast("list[Branch | None]", held) if child is not None]


def nodes(branches: Iterable[Branch]) -> Sequence[Node]:
    """``branches`` where the grammar has rules only, no terminals."""
    return cast("Sequence[Node]", [*branches])


def token_of(branch: Any) -> Token:
    """``branch`` where the grammar has a terminal."""
    return cast("Token", branch)
