"""The syntax after an opening parenthesis: names, flags, comments, and refused forms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmc.grammar.regex.syntax import refusal

_OPENING = re.compile(r"\(\?(?:P<(?P<name>[^>]*)>|(?P<flags>[a-zA-Z]*)(?P<off>-[a-zA-Z]*)?(?P<end>[:)]))")
_ECMA_NAME = re.compile(r"\(\?<(?![=!])(?P<name>[^>]*)>")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_BACK_REFERENCE = re.compile(r"\(\?P=[^)]*\)?")

_FLAGS = {letter: int(re.RegexFlag[letter.upper()]) for letter in "aimsux"}
_TYPE_FLAGS = _FLAGS["a"] | _FLAGS["u"]

_LOOK_REMEDY = "say with alternatives and sets what may stand there; what surrounds a place is not looked at"
_REFUSED = {
    "(?=": ("a look-ahead is not supported", _LOOK_REMEDY),
    "(?!": ("a look-ahead is not supported", _LOOK_REMEDY),
    "(?<=": ("a look-behind is not supported", _LOOK_REMEDY),
    "(?<!": ("a look-behind is not supported", _LOOK_REMEDY),
    "(?>": ("an atomic group is not supported", "write (?:…): all matches count here, however they are found"),
    "(?(": ("a conditional is not supported", "write both cases out, each with what comes before it"),
}


@dataclass(frozen=True, slots=True)
class Opening:
    """The start of a group, or flags for the rest of the pattern (``is_global``)."""

    name: str | None = None
    is_global: bool = False
    added: int = 0
    removed: int = 0

    def applied_to(self, flags: int) -> int:
        """The flags inside of it; ``a`` and ``u`` replace each other."""
        if self.added & _TYPE_FLAGS:
            flags &= ~_TYPE_FLAGS
        return (flags | self.added) & ~self.removed


_PLAIN = Opening()


def read_opening(pattern: str, start: int, *, ecma: bool) -> tuple[Opening | None, int]:
    """The opening at ``start``, None for a comment, and where the pattern goes on. Raises ``ConstraintError``."""
    if not pattern.startswith("?", start + 1):
        return _PLAIN, start + 1
    if pattern.startswith("(?:", start):
        return _PLAIN, start + 3
    named = _ECMA_NAME.match(pattern, start) if ecma else None
    found = named or _OPENING.match(pattern, start)
    if found is None:
        return None, _end_of_comment(pattern, start)
    name = found["name"]
    if name is None:
        return _flags(pattern, found), found.end()
    if not name.isidentifier():
        remedy = "a name has letters, digits and underscores, and begins with no digit"
        raise refusal(pattern, start, len(found[0]), "a group whose name is no identifier", remedy)
    return Opening(name), found.end()


def _end_of_comment(pattern: str, start: int) -> int:
    """The end of what is no group; raises for all but a comment."""
    comment = _COMMENT.match(pattern, start)
    if comment is not None:
        return comment.end()
    if pattern.startswith("(?#", start):
        raise refusal(pattern, start, len(pattern) - start, "a comment without its end", "close it with )")
    for spelling, (problem, remedy) in _REFUSED.items():
        if pattern.startswith(spelling, start):
            raise refusal(pattern, start, len(spelling), problem, remedy)
    reference = _BACK_REFERENCE.match(pattern, start)
    if reference is not None:
        remedy = "write out what may stand there: which text a group matched is beyond a regular language"
        raise refusal(pattern, start, len(reference[0]), "a back-reference is not regular", remedy)
    remedy = r"groups begin with (, (?:, (?P<name>, (?i: or (?#; write \( for the character"
    raise refusal(pattern, start, 4, "a group of an unknown kind", remedy)


def _flags(pattern: str, found: re.Match[str]) -> Opening:
    on, off, is_global = found["flags"], found["off"], found["end"] == ")"
    added, removed = _bits(pattern, found, on), _bits(pattern, found, (off or "")[1:])
    problem = None
    if added & _TYPE_FLAGS == _TYPE_FLAGS:
        problem = "flags a and u exclude each other"
    elif removed & _TYPE_FLAGS:
        problem = "flags a and u can't be taken back, only replaced by each other"
    elif added & removed:
        problem = "a flag is set and taken back"
    elif off == "-" or not (on or off):
        problem = "flags without a letter"
    elif is_global and off:
        problem = "flags can be taken back for a group only"
    if problem is not None:
        remedy = "write (?i) at the start of the pattern, or (?i:…) or (?-i:…) around a part of it"
        raise refusal(pattern, found.start(), len(found[0]), problem, remedy)
    return Opening(is_global=is_global, added=added, removed=removed)


def _bits(pattern: str, found: re.Match[str], letters: str) -> int:
    bits = 0
    for letter in letters:
        if letter not in _FLAGS:
            remedy = "flags are a, i, m, s, u and x"
            raise refusal(pattern, found.start(), len(found[0]), f"an unknown flag {letter}", remedy)
        bits |= _FLAGS[letter]
    return bits
