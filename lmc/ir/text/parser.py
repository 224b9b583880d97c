"""``.lmir`` text to a Module. Whatever the text, the only error is a ``ParseError`` that shows the place.

The grammar (``lmir.lark``) knows no op. What an op's operands and attributes mean follows from its class, so a new op
is parsed as soon as it is registered. Values must be defined above their use; all other rules are the verifier's.
"""

from __future__ import annotations

import importlib.resources
import re
from functools import cache

import lark
from lark import exceptions

from lmc.ir.core import Op
from lmc.ir.errors import ParseError, VerifyError
from lmc.ir.module import Module
from lmc.ir.text.diagnostics import SourceText, shown
from lmc.ir.text.reader import read_module
from lmc.ir.verify.verifier import verify

MAX_BYTES = 16 * 1024 * 1024
MAX_NESTING = 104
_BRACKETS = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|//[^\n]*|[\[({<\])}>]')
_READABLE = {
    "VALUE": "a value (%name)",
    "SYMBOL": "a symbol (@name)",
    "STRING": 'a string ("…")',
    "NUMBER": "a number",
    "WORD": "a word",
    "BARE_NAME": "a name",
    "SIMPLE_TYPE": "a type (!text)",
    "_LIST": "!list<…>",
    "_JSON": "!json<…>",
    "$END": "the end of the text",
    "NONE": "none",
    "TRUE": "true",
    "FALSE": "false",
    "INF": "inf",
    "MINUS_INF": "-inf",
    "NAN": "nan",
}


def parse(text: str, filename: str = "<text>") -> Module:
    """The module that ``text`` describes, not verified yet.

    Raises ``ParseError`` where the text is no module, is larger than ``MAX_BYTES`` or nested deeper than
    ``MAX_NESTING`` brackets.
    """
    return _read(SourceText(filename, text), {})


def parse_verified(text: str, filename: str = "<text>") -> Module:
    """The module that ``text`` describes, verified.

    Raises ``ParseError`` as ``parse`` does, and where an op breaks a rule of the IR; ``VerifyError`` where it is no
    single op that does.
    """
    source = SourceText(filename, text)
    places: dict[Op, lark.Token] = {}
    module = _read(source, places)
    try:
        verify(module)
    except VerifyError as error:
        name = places.get(error.op) if isinstance(error.op, Op) else None
        if name is None or name.start_pos is None:
            raise
        remedy = error.remedy or "see lmc/ir/dialects/core_ops.py for the rules of each op"
        raise source.error(error.cause, remedy=remedy, start=name.start_pos, end=name.end_pos) from None
    return module


def _read(source: SourceText, places: dict[Op, lark.Token]) -> Module:
    _check_size(source)
    _check_nesting(source)
    try:
        tree = _grammar().parse(source.text)
    except exceptions.UnexpectedInput as error:
        raise _syntax_error(source, error) from None
    return read_module(tree, source, places)


@cache
def _grammar() -> lark.Lark:
    definition = importlib.resources.files("lmc.ir.text").joinpath("lmir.lark").read_text(encoding="utf-8")
    return lark.Lark(definition, parser="lalr", lexer="contextual", maybe_placeholders=True)


def _check_size(source: SourceText) -> None:
    if len(source.text) * 4 <= MAX_BYTES or len(source.text.encode("utf-8", "surrogatepass")) <= MAX_BYTES:
        return
    raise source.error(
        f"the text is larger than {MAX_BYTES // 2**20} MiB", remedy="split the program into smaller ones", start=0
    )


def _check_nesting(source: SourceText) -> None:
    depth = 0
    for match in _BRACKETS.finditer(source.text):
        character = source.text[match.start()]
        if character in "[({<":
            depth += 1
        elif character in "])}>":
            depth -= 1
        if depth > MAX_NESTING:
            raise source.error(
                f"brackets are nested deeper than {MAX_NESTING}",
                remedy="flatten the type, the literal or the regions",
                start=match.start(),
            )


def _syntax_error(source: SourceText, error: exceptions.UnexpectedInput) -> ParseError:
    if isinstance(error, exceptions.UnexpectedToken):
        token = error.token
        expected = _readable(error.expected)
        if token.type == "$END":
            return source.error(
                "the text ends too early", remedy=f"continue with {expected}", start=len(source.text.rstrip())
            )
        start = token.start_pos or 0
        return source.error(
            f"{shown(token)!r} does not belong here", remedy=f"expected {expected}", start=start, end=token.end_pos
        )
    start = error.pos_in_stream or 0
    found = source.text[start : start + 1]
    if found == '"' or source.text[start : start + 2] in {'%"', '@"'}:
        return source.error(
            "this string does not end on its line", remedy='close it with "; write a line break as \\n', start=start
        )
    expected = (
        _readable(error.allowed or ()) if isinstance(error, exceptions.UnexpectedCharacters) else "something else"
    )
    return source.error(f"{shown(found)!r} does not belong here", remedy=f"expected {expected}", start=start)


def _readable(terminals: object) -> str:
    """Terminal names as a person would write them, sorted."""
    grammar = {terminal.name: terminal for terminal in _grammar().terminals}
    names: list[str] = []
    for name in terminals if isinstance(terminals, set | frozenset | list | tuple) else ():
        if name in _READABLE:
            names.append(_READABLE[name])
        elif name in grammar and not name.startswith("__"):
            names.append(f'"{grammar[name].pattern.value}"')
    return " or ".join(sorted(names)) or _READABLE["$END"]
