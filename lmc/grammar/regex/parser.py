"""The parser of the regex dialect; see README.md of this package. It keeps a stack of its own and never recurses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from lmc.grammar.automata import charsets
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.regex.escapes import ECMA_LINE_TERMINATORS, IGNORE_CASE, UNICODE, folded, read_escape, read_set
from lmc.grammar.regex.syntax import (
    EMPTY,
    Alternation,
    Anchor,
    Characters,
    Composite,
    Concatenation,
    Item,
    Pattern,
    Repeat,
    Side,
    Text,
    refusal,
)
from lmc.ir.errors import ConstraintError

MAX_REPEAT = 2**32 - 2
"""The largest number in ``{m,n}``, as in `re`."""

Bounds = tuple[int, int | None]
"""The least and the greatest number of repetitions (None: without end)."""

_SIMPLE: dict[str, Bounds] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_BRACES = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")


def read_quantifier(pattern: str, start: int) -> tuple[Bounds | None, int]:
    """The quantifier at ``start`` and where the pattern goes on; None for a brace that is a character.

    Raises ``ConstraintError`` for bounds that are too large or the wrong way round, and for possessive ones.
    """
    bounds = _SIMPLE.get(pattern[start])
    end = start + 1
    if bounds is None:
        found = _BRACES.match(pattern, start)
        if found is None or found[0] == "{}":
            return None, end
        bounds, end = _bounds(found), found.end()
    following = pattern[end : end + 1]
    if following == "+":
        remedy = "leave out the last +: all matches count here, however they are found"
        raise refusal(pattern, start, end + 1 - start, "a possessive quantifier is not supported", remedy)
    return bounds, end + (following == "?")  # a lazy one has the same language


def _bounds(found: re.Match[str]) -> Bounds:
    low = _number(found, 1) or 0
    high = _number(found, 3) if found[2] else low
    if high is not None and high < low:
        raise _refusal(found, "a quantifier whose bounds are the wrong way round", "write the smaller one first")
    return low, high


def _number(found: re.Match[str], group: int) -> int | None:
    if not found[group]:
        return None
    digits = found[group].lstrip("0")
    if len(digits) > 10 or int(digits or "0") > MAX_REPEAT:
        raise _refusal(found, f"a quantifier above {MAX_REPEAT}", "lower the bound, or leave out the upper one")
    return int(digits or "0")


def _refusal(found: re.Match[str], problem: str, remedy: str) -> ConstraintError:
    return refusal(found.string, found.start(), len(found[0]), problem, remedy)


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


MULTILINE, DOT_ALL, VERBOSE = int(re.MULTILINE), int(re.DOTALL), int(re.VERBOSE)
FLAGS = IGNORE_CASE | MULTILINE | DOT_ALL | UNICODE | VERBOSE | int(re.ASCII)

MAX_NESTING = 10_000
"""Groups in groups."""

_RUN = re.compile(r"[^\\.\[{()*+?^$|]+")
_RUN_VERBOSE = re.compile(r"[^\\.\[{()*+?^$|\s#]+", re.ASCII)
_IGNORED = re.compile(r"(?:\s+|#[^\n]*)+", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")

_NOT_LINE_TERMINATOR = ~ECMA_LINE_TERMINATORS


def parse(pattern: str, *, flags: int = 0, ecma: bool = False) -> Pattern:
    """The syntax tree of a pattern. ``flags`` are those of `re`. Raises ``ConstraintError`` for what is refused."""
    if flags & ~FLAGS or (flags & int(re.ASCII) and flags & UNICODE):
        problem = f"flags {re.RegexFlag(flags)!r} for the pattern {pattern[:60]!r}"
        raise ConstraintError(problem, remedy="give I, M, S, X, and one of A (as without it) and U")
    return _Parser(pattern, flags, ecma).parse()


@dataclass(slots=True)
class _Group:
    """The state of an open group."""

    position: int
    flags: int  # of what surrounds it
    arms: list[Item]
    items: list[Item | str]


class _Parser:
    def __init__(self, pattern: str, flags: int, ecma: bool) -> None:
        self._pattern = pattern
        self._flags = flags
        self._ecma = ecma
        self._at = 0
        self._open: list[_Group] = []
        self._names: set[str] = set()
        # Of the innermost open group. A str is a run of characters whose last one a quantifier may still take.
        self._arms: list[Item] = []
        self._items: list[Item | str] = []
        self._repeated = False  # the last item ends in a quantifier
        self._composites: list[Composite] = []
        self._anchors: list[Anchor] = []

    def parse(self) -> Pattern:
        pattern = self._pattern
        surrogate = _SURROGATE.search(pattern)
        if surrogate is not None:
            raise self._surrogate(surrogate.start(), 1)
        handlers = self._handlers()
        while self._at < len(pattern):
            run = (_RUN_VERBOSE if self._flags & VERBOSE else _RUN).match(pattern, self._at)
            if run is not None:
                self._at = run.end()
                self._add_text(run[0])
                continue
            if self._flags & VERBOSE:
                ignored = _IGNORED.match(pattern, self._at)
                if ignored is not None:
                    self._at = ignored.end()
                    continue
            handlers[pattern[self._at]]()
        if self._open:
            position = self._open[-1].position
            remedy = r"close it with ), or write \( for the character"
            raise refusal(pattern, position, len(pattern) - position, "a group without its closing parenthesis", remedy)
        return Pattern(pattern, self._closed(), self._composites, self._anchors)

    def _handlers(self) -> dict[str, Callable[[], None]]:
        """Return the reader of each special character."""
        return {
            "\\": self._escape,
            "[": self._set,
            ".": self._dot,
            "(": self._open_group,
            ")": self._close_group,
            "|": self._bar,
            "^": self._start,
            "$": self._end,
            **dict.fromkeys("*+?{", self._quantifier),
        }

    def _add(self, item: Item | str) -> None:
        self._items.append(item)
        self._repeated = False

    def _add_text(self, text: str) -> None:
        if not self._flags & IGNORE_CASE:
            self._add(text)
            return
        for character in text:
            variants = _case_variants(character, self._flags)
            self._add(character if variants is None else variants)

    def _escape(self) -> None:
        start = self._at
        spelling = self._pattern[start : start + 2]
        if spelling in (r"\A", r"\Z", r"\z"):
            self._add_anchor(spelling, is_start=spelling == r"\A", side=Side.EDGE)
            return
        found, self._at = read_escape(self._pattern, start, self._flags, ecma=self._ecma, in_set=False)
        if isinstance(found, CharSet):
            self._add(Characters(found))
        elif _SURROGATE.match(found):
            raise self._surrogate(start, self._at - start)
        else:
            self._add_text(found)

    def _set(self) -> None:
        charset, self._at = read_set(self._pattern, self._at, self._flags, ecma=self._ecma)
        self._add(Characters(charset))

    def _dot(self) -> None:
        self._at += 1
        if self._flags & DOT_ALL:
            charset = charsets.ANY
        else:
            charset = _NOT_LINE_TERMINATOR if self._ecma else charsets.NOT_NEWLINE
        self._add(Characters(charset))

    def _start(self) -> None:
        self._add_anchor("^", is_start=True, side=Side.EDGE)

    def _end(self) -> None:
        self._add_anchor("$", is_start=False, side=Side.EDGE if self._ecma else Side.FINAL_NEWLINE)

    def _add_anchor(self, spelling: str, *, is_start: bool, side: Side) -> None:
        of_line = spelling in "^$" and bool(self._flags & MULTILINE)
        anchor = Anchor(is_start, side, of_line, self._at, spelling)
        self._at += len(spelling)
        self._anchors.append(anchor)
        self._add(anchor)

    def _bar(self) -> None:
        self._at += 1
        self._arms.append(self._sequence())
        self._items = []
        self._repeated = False

    def _open_group(self) -> None:
        start = self._at
        opening, self._at = read_opening(self._pattern, start, ecma=self._ecma)
        if opening is None:  # a comment
            return
        if opening.name is not None:
            if opening.name in self._names:
                remedy = "give each group a name of its own, or none: names mean nothing here"
                raise refusal(self._pattern, start, self._at - start, "two groups of one name", remedy)
            self._names.add(opening.name)
        if opening.is_global:
            self._set_global_flags(opening, start)
            return
        if len(self._open) == MAX_NESTING:
            remedy = "leave out groups that say nothing"
            raise refusal(self._pattern, start, 1, f"more than {MAX_NESTING} groups in each other", remedy)
        self._open.append(_Group(start, self._flags, self._arms, self._items))
        self._arms, self._items = [], []
        self._repeated = False
        self._flags = opening.applied_to(self._flags)

    def _set_global_flags(self, opening: Opening, start: int) -> None:
        if self._open or self._arms or self._items:
            remedy = "move them to the start, or write (?i:…) around what they are for"
            raise refusal(self._pattern, start, self._at - start, "flags that are not at the start", remedy)
        self._flags = opening.applied_to(self._flags)

    def _close_group(self) -> None:
        if not self._open:
            remedy = r"open it, or write \) for the character"
            raise refusal(self._pattern, self._at, 1, "a closing parenthesis without a group", remedy)
        self._at += 1
        inner = self._closed()
        group = self._open.pop()
        self._flags, self._arms, self._items = group.flags, group.arms, group.items
        if isinstance(inner, Anchor):  # in a group of its own it may be repeated
            inner = Concatenation((inner,))
            self._composites.append(inner)
        self._add(inner)

    def _closed(self) -> Item:
        """Return the contents of the parentheses, or of the whole pattern."""
        last = self._sequence()
        if not self._arms:
            return last
        alternation = Alternation((*self._arms, last))
        self._composites.append(alternation)
        return alternation

    def _sequence(self) -> Item:
        """The items of an arm as one; neighbouring texts become one."""
        items = self._items
        if len(items) == 1:
            only = items[0]
            return Text(only) if isinstance(only, str) else only
        joined: list[Item] = []
        run: list[str] = []
        for item in items:
            if isinstance(item, str):
                run.append(item)
            elif isinstance(item, Text):
                run.append(item.text)
            else:
                if run:
                    joined.append(Text("".join(run)))
                    run = []
                joined.append(item)
        if run:
            joined.append(Text("".join(run)))
        if len(joined) < 2:
            return joined[0] if joined else EMPTY
        sequence = Concatenation(tuple(joined))
        self._composites.append(sequence)
        return sequence

    def _quantifier(self) -> None:
        start = self._at
        bounds, end = read_quantifier(self._pattern, start)
        self._at = end
        if bounds is None:
            self._add_text("{")
            return
        if not self._items or isinstance(self._items[-1], Anchor):
            remedy = "put what is to be repeated before it, or a backslash for the character itself"
            raise refusal(self._pattern, start, end - start, "a quantifier with nothing to repeat", remedy)
        if self._repeated:
            remedy = "write parentheses around what the first one repeats"
            raise refusal(self._pattern, start, end - start, "a quantifier of a quantifier", remedy)
        self._repeat(*bounds)

    def _repeat(self, low: int, high: int | None) -> None:
        item = self._items.pop()
        if isinstance(item, str):
            if len(item) > 1:
                self._items.append(item[:-1])
            item = Text(item[-1])
        if high == 0:
            item = EMPTY
        elif (low, high) != (1, 1):
            item = Repeat(item, low, high)
            self._composites.append(item)
        self._add(item)
        self._repeated = True

    def _surrogate(self, at: int, length: int) -> ConstraintError:
        remedy = r"write the character itself, or \U and eight digits: UTF-8 has no surrogates"
        return refusal(self._pattern, at, length, "a surrogate alone is no character", remedy)


@lru_cache(maxsize=4096)
def _case_variants(character: str, flags: int) -> Characters | None:
    """The characters that are this one where case does not count; None where it is the only one."""
    charset = folded(CharSet.of(character), flags & (IGNORE_CASE | UNICODE))
    return Characters(charset) if len(charset) > 1 else None
