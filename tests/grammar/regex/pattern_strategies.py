"""Random patterns with texts that tend to match, and the two questions that tests ask of a pattern."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.regex import search_to_node, to_node
from lmc.ir.errors import ConstraintError


def automaton(pattern: str, *, search: bool = False, flags: int = 0, ecma: bool = False) -> Automaton:
    """The automaton of a pattern, lazily."""
    arena = Arena()
    node = (search_to_node if search else to_node)(pattern, arena, flags=flags, ecma=ecma)
    return Automaton(node, arena)


def automaton_or_error(pattern: str, *, search: bool = False) -> Automaton | ConstraintError:
    try:
        return automaton(pattern, search=search)
    except ConstraintError as error:
        return error


def matches(pattern: str, text: str, *, search: bool = False, flags: int = 0, ecma: bool = False) -> bool:
    return automaton(pattern, search=search, flags=flags, ecma=ecma).matches(text.encode())


def refused(pattern: str, *, search: bool = False, flags: int = 0, ecma: bool = False) -> ConstraintError:
    """The error for a pattern that is refused."""
    with pytest.raises(ConstraintError) as caught:
        automaton(pattern, search=search, flags=flags, ecma=ecma)
    assert caught.value.remedy
    return caught.value


def compiled(pattern: str) -> re.Pattern[str]:
    """The oracle: classes and case are ASCII unless the pattern begins with `(?u)` or the like."""
    unicode = re.match(r"\(\?[a-z]*u[a-z]*\)", pattern) is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # `[[` may mean a nested set some day
        return re.compile(pattern, 0 if unicode else re.ASCII)


@dataclass(frozen=True)
class Example:
    """A pattern and a few texts that match it, or did before a flag or a repeat was put around it."""

    pattern: str
    texts: tuple[str, ...]


ATOMS = [
    Example(pattern, tuple(texts))
    for pattern, texts in {
        "a": ["a"],
        "k": ["k", "K", "\u212a"],
        "S": ["S", "s", "ſ"],
        "É": ["É", "é"],
        "ab": ["ab"],
        "x-1": ["x-1"],
        "€": ["€"],
        "😀": ["😀"],
        r"\n": ["\n"],
        r"\.": ["."],
        r"\x41\u00e9": ["Aé"],
        "{,": ["{,"],
        ".": ["a", "\n", "é", "\u2028", "\x00"],
        r"\d": ["0", "٣"],
        r"\D": ["a", "٣"],
        r"\w": ["a", "_", "é", "ª"],
        r"\W": ["-", "é", "\u0345"],
        r"\s": [" ", "\n", "\x1c", "\x85"],
        r"\S": ["a", "\x85"],
        "[abc]": ["b"],
        "[^a]": ["b", "\n", "😀"],
        "[a-z_]": ["q", "_", "Q", "\u212a"],
        "[^a-z]": ["0", "K", "ſ"],
        "[à-ý]": ["é", "É"],
        r"[\w.-]": ["x", "-", "ß"],
        r"[^\s\"]": ["x", '"'],
        r"[\u0400-\u04ff😀]": ["д", "Д", "😀"],
        r"[]\-^]": ["]", "^"],
        "(?:)": [""],
        r"[^\s\S]": ["", "a"],
    }.items()
]
QUANTIFIERS = {
    "*": (0, 1, 3),
    "+": (1, 2),
    "?": (0, 1, 2),
    "{2}": (1, 2, 3),
    "{1,2}": (0, 1, 2),
    "{,2}": (0, 2, 3),
    "{2,}": (1, 2, 4),
    "*?": (0, 2),
    "+?": (1, 3),
    "??": (0, 1),
    "{0}": (0, 1),
}
GROUPS = ["(", "(?:", "(?i:", "(?s:", "(?-i:", "(?is-x:", "(?#c)(?:"]
FLAGS = ["", "", "(?i)", "(?u)", "(?s)", "(?iu)", "(?is)", "(?m)"]


def _some(texts: list[str]) -> tuple[str, ...]:
    """A few of them, from all over. Short ones: `re` takes exponential time for nested repeats."""
    short = [text for text in texts if len(text) <= 12]
    return tuple(dict.fromkeys(short[:: max(1, len(short) // 4)]))[:5]


def _concatenated(parts: list[Example]) -> Example:
    texts = ["".join(each) for each in product(*(part.texts[:3] for part in parts))]
    return Example("".join(part.pattern for part in parts), _some(texts))


def _alternated(opening: str, arms: list[Example]) -> Example:
    texts = [text for arm in arms for text in arm.texts]
    return Example(f"{opening}{'|'.join(arm.pattern for arm in arms)})", _some(texts))


def _repeated(part: Example, quantifier: str) -> Example:
    texts = [text * count for text in part.texts for count in QUANTIFIERS[quantifier]]
    return Example(f"(?:{part.pattern}){quantifier}", _some(texts))


def _larger(parts: st.SearchStrategy[Example]) -> st.SearchStrategy[Example]:
    several = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        several.map(_concatenated),
        st.builds(_alternated, st.sampled_from(GROUPS), several),
        st.builds(_repeated, parts, st.sampled_from(list(QUANTIFIERS))),
    )


def _flagged(flags: str, example: Example) -> Example:
    return Example(flags + example.pattern, example.texts)


unflagged = st.recursive(st.sampled_from(ATOMS), _larger, max_leaves=8)
examples = st.builds(_flagged, st.sampled_from(FLAGS), unflagged)


def _anchored(example: Example, start: str, end: str, arms: bool) -> Example:
    middle = f"(?:{example.pattern}|b{end})" if arms else f"(?:{example.pattern})"
    return Example(start + middle + end, (*example.texts, "b"))


def _optional_ends(example: Example, start: str, end: str) -> Example:
    """As in a list: at the start or behind a comma, before a comma or at the end."""
    texts = tuple(f"{left}{text}{right}" for text in example.texts for left, right in ("  ", ", ", ",,", " ,"))
    return Example(f"({start}|,)(?:{example.pattern})(,|{end})", (*example.texts, *(text.strip(" ") for text in texts)))


_starts, _ends = st.sampled_from(["", "^", r"\A", "(?:^)", "^()"]), st.sampled_from(["", "$", r"\Z", "(?:$)", "$(?#c)"])
anchored = st.one_of(
    st.builds(_anchored, unflagged, _starts, _ends, st.booleans()),
    st.builds(_optional_ends, unflagged, st.sampled_from(["^", r"\A"]), st.sampled_from(["$", r"\Z"])),
)


def near(texts: tuple[str, ...]) -> list[str]:
    """At least 40 texts: those given and what is a small change away."""
    found: dict[str, None] = {}
    for text in [*texts, "", "a", "b"]:
        middle = len(text) // 2
        changed = [text, text[:-1], text[1:], text + text, text.swapcase(), text[:middle] + text[middle + 1 :]]
        changed += [text + more for more in ("\n", "a", "é", "\n\n")] + [more + text for more in ("\n", "b", "ſ")]
        changed += [text[:middle] + more + text[middle:] for more in ("\u2028", "0", "K")]
        found.update(dict.fromkeys(changed))
    count = 0
    while len(found) < 40:
        found[f"{'ab-é_ '[count % 6]}{count}"] = None
        count += 1
    return list(found)
