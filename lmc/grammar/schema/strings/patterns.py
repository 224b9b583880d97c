r"""``pattern``: a search in the characters of a string, read so that every validator agrees.

The specification asks for ECMA-262; validators use the regular expressions of Python or Rust, where ``\s``, ``\W``,
``$`` and some others mean other characters. A string is produced only where both readings take it, and kept out of a
negated pattern where either does.

Look-aheads at the very start, as in ``^(?=.*[0-9])(?!.*\s).{8,}$``, are patterns of their own.
"""

from __future__ import annotations

import contextlib
import re
from typing import NamedTuple

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.regex import search_to_node, without_match_to_node
from lmc.grammar.regex.sets import sets_in
from lmc.grammar.schema.documents.errors import json_pointer
from lmc.grammar.schema.shapes.shapes import TextRule
from lmc.grammar.schema.strings.alphabet import JSON
from lmc.ir.errors import ConstraintError

# What Python takes for less than ECMA-262 does: negated classes and case in Unicode; white space (U+FEFF) in any.
_NARROWER_IN_UNICODE = re.compile(r"\\[WDS]|\(\?[a-zA-Z]*i")
_CLASS = re.compile(r"\\[wds]")
_NARROWER = re.compile(r"\\s")
# What is not a plain character for both.
_DIFFERENT = re.compile(r"\\[a-zA-Z]|[.$]|\[\^|\[\]|\(\?[a-zA-Z]*i")
# Sets that are closed at once for ECMA-262, and begin with a bracket for all others.
_CLOSED = re.compile(r"\[\^?\]")


class _Part(NamedTuple):
    pattern: str
    is_negated: bool


def pattern_node(text: TextRule, arena: Arena) -> Node:
    """The contents of strings, between the quotes, that meet the pattern (or do not: it is negated).

    A negation is over all byte strings; the caller intersects it with what is meant. Raises ``ConstraintError`` for a
    pattern that is wrong or not regular, with its place in the schema and in the pattern.
    """
    parts = _split(text.text)
    try:
        nodes = [
            _avoiding(part.pattern, arena) if part.is_negated else _matching(part.pattern, arena) for part in parts
        ]
        if not text.is_negated:
            return arena.intersection(nodes)
        if len(parts) == 1 and not parts[0].is_negated:
            return _avoiding(parts[0].pattern, arena)
        return arena.union(
            _matching(part.pattern, arena) if part.is_negated else _avoiding(part.pattern, arena) for part in parts
        )
    except ConstraintError as error:
        where = json_pointer(text.pointer)
        cause = f"schema, #{where}: {error.cause}"
        position = error.position if len(parts) == 1 else None
        raise ConstraintError(cause, remedy=error.remedy, pointer=where, position=position) from None


def _matching(pattern: str, arena: Arena) -> Node:
    node = search_to_node(pattern, arena, JSON, ecma=True)
    if _CLOSED.search(pattern):
        with contextlib.suppress(ConstraintError):  # for others it may be no pattern at all
            return arena.intersection([node, search_to_node(pattern, arena, JSON, flags=re.UNICODE)])
    if _is_narrower_in_unicode(pattern):
        return arena.intersection([node, search_to_node(pattern, arena, JSON, flags=re.UNICODE)])
    if _NARROWER.search(pattern):
        return arena.intersection([node, search_to_node(pattern, arena, JSON)])
    return node


def _is_narrower_in_unicode(pattern: str) -> bool:
    if _NARROWER_IN_UNICODE.search(pattern):
        return True
    return any(each.startswith("^") and _CLASS.search(each) for each in sets_in(pattern))


def _avoiding(pattern: str, arena: Arena) -> Node:
    node = without_match_to_node(pattern, arena, JSON, ecma=True)
    if _DIFFERENT.search(pattern):
        other = without_match_to_node(pattern, arena, JSON, flags=re.UNICODE)
        return arena.intersection([node, other])
    return node


def _split(pattern: str) -> list[_Part]:
    """The pattern without look-aheads behind a leading ``^``, and these as patterns that begin there."""
    parts: list[_Part] = []
    rest = pattern[1:]
    while pattern.startswith("^") and rest.startswith(("(?=", "(?!")):
        end = _closing(rest)
        if end is None or _has_alternatives(rest):
            return [_Part(pattern, False)]
        parts.append(_Part(f"^(?:{rest[3:end].removeprefix('^')})", rest[2] == "!"))
        rest = rest[end + 1 :]
    return [*parts, _Part("^" + rest, False)] if parts else [_Part(pattern, False)]


def _closing(pattern: str) -> int | None:
    """The parenthesis that closes the first one."""
    depth = 0
    for at, character in _syntax(pattern):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return at
    return None


def _has_alternatives(pattern: str) -> bool:
    """Return True if a ``|`` is outside of all groups: a leading ``^`` then belongs to the first alternative."""
    depth = 0
    for _, character in _syntax(pattern):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            return True
    return False


def _syntax(pattern: str) -> list[tuple[int, str]]:
    """The characters of a pattern that are neither escaped nor in a class."""
    found: list[tuple[int, str]] = []
    at, in_class = 0, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 2
            continue
        if in_class or character == "[":
            in_class = character != "]"
        else:
            found.append((at, character))
        at += 1
    return found
