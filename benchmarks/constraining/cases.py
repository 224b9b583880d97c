"""The constraints that are measured, each with outputs that meet it and with its language written out a second time.

`meaning` is a pattern of the `regex` package, written by hand: what the output may be, whoever compiles it. Masks are
checked against it (`constraining/meaning.py`), so it uses nothing whose sense differs from one dialect to the next.
"""

import re
from dataclasses import dataclass
from typing import Any

from benchmarks.constraining.patterns import (
    ASCII_WORD,
    CHARACTERS,
    CHARACTERS_UNICODE,
    CHOICES,
    CITIES,
    CITIES_UNICODE,
    EMAIL,
    LONGER_CHOICE,
    MOMENT,
    PLAIN_WORD,
    UNICODE_WORD,
    character_pattern,
    city_pattern,
)
from benchmarks.constraining.schemas import (
    BOUNDED,
    BOUNDED_MEANING,
    BOUNDED_OUTPUTS,
    NESTED,
    NESTED_MEANING,
    NESTED_OUTPUTS,
)


@dataclass(frozen=True)
class Case:
    """A constraint: one of ``regex`` (ours), ``choices``, ``schema``.

    ``peers`` is the regex in the dialect that the others share. ``agrees`` names those that
    have the same masks; what the others have is printed. ``ascii`` says that its table must be small.
    """

    name: str
    meaning: str
    examples: tuple[str, ...]
    regex: str | None = None
    peers: str | None = None
    choices: tuple[str, ...] | None = None
    schema: dict[str, Any] | None = None
    agrees: tuple[str, ...] = ("xgrammar",)
    ascii: bool = True

    def given(self) -> dict[str, Any]:
        """What `lmc.grammar.compile` is given."""
        given = {"regex": self.regex, "choices": self.choices, "schema": self.schema}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def for_peers(self) -> str:
        """The pattern that peers compile; only of a case with ``regex``."""
        pattern = self.peers or self.regex
        assert pattern is not None
        return pattern


CASES = (
    Case(
        "character",
        regex=character_pattern(PLAIN_WORD),
        peers=character_pattern(ASCII_WORD),
        meaning=character_pattern(ASCII_WORD),
        examples=CHARACTERS,
        agrees=("xgrammar", "outlines-core"),
    ),
    Case(
        "character, Unicode",
        regex="(?u)" + character_pattern(PLAIN_WORD),
        peers=character_pattern(PLAIN_WORD),
        meaning=character_pattern(UNICODE_WORD),
        examples=CHARACTERS_UNICODE,
        agrees=(),
        ascii=False,
    ),
    Case(
        "city",
        regex=city_pattern(PLAIN_WORD),
        peers=city_pattern(ASCII_WORD),
        meaning=city_pattern(ASCII_WORD),
        examples=CITIES,
        agrees=("xgrammar", "outlines-core"),
    ),
    Case(
        "city, Unicode",
        regex="(?u)" + city_pattern(PLAIN_WORD),
        peers=city_pattern(PLAIN_WORD),
        meaning=city_pattern(UNICODE_WORD),
        examples=CITIES_UNICODE,
        agrees=(),
        ascii=False,
    ),
    Case("e-mail", regex=EMAIL, meaning=EMAIL, examples=("mirabel.ashdown42@mail.example.org", "a@b-c.co")),
    Case("datetime", regex=MOMENT, meaning=MOMENT, examples=("2031-04-17T09:26:53Z", "1999-12-31T23:59:59.25+02:00")),
    Case(
        "choice of 1000",
        choices=CHOICES,
        meaning="|".join(map(re.escape, CHOICES)),
        examples=(CHOICES[0], CHOICES[500], LONGER_CHOICE),
    ),
    Case(
        "[a-z]{1,500}",
        regex="[a-z]{1,500}",
        meaning="[a-z]{1,500}",
        examples=("thequickbrownfoxjumpsoverthelazydog" * 14,),
    ),
    Case("nested schema", schema=NESTED, meaning=NESTED_MEANING, examples=NESTED_OUTPUTS, agrees=(), ascii=False),
    Case("bounded schema", schema=BOUNDED, meaning=BOUNDED_MEANING, examples=BOUNDED_OUTPUTS, agrees=(), ascii=False),
)
