"""Types whose values no schema describes."""

import datetime
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, Field

from tests.grammar.classes.class_cases import AWARE, NOON, Colour, Point, bounded


class Inner(BaseModel):
    where: list[pydantic.FilePath]


class Outer(BaseModel):
    inner: Inner


class Within(BaseModel):
    first: int = Field(validation_alias=pydantic.AliasPath("a", 0))


# name → type, part of the cause, part of the remedy
REFUSED: dict[str, tuple[Any, str, str]] = {
    "FutureDate": (pydantic.FutureDate, "in the past when it is read", "Field"),
    "FutureDatetime": (pydantic.FutureDatetime, "in the past when it is read", "Field"),
    "FilePath": (pydantic.FilePath, "which paths there are", "pathlib.Path"),
    "NewPath": (pydantic.NewPath, "which paths there are", "pathlib.Path"),
    "ImportString": (pydantic.ImportString, "what can be imported", "Literal"),
    "a field within": (Outer, "field inner.where: which paths there are", "pathlib.Path"),
    "a path of keys": (Within, "field first: it is read from within another value", "AliasChoices"),
    "a Literal of plain members": (Literal[Colour.RED], "none of the values that are listed", "derived from str"),
    "a Literal of bytes": (Literal[b"a"], "none of the values that are listed", "derived from str"),
    "keys of a Literal of numbers": (dict[Literal[1, 2], int], "no text stands for one of the keys", "IntEnum"),
    "keys that are tuples": (dict[tuple[int, int], int], "of type array: no text stands for one", "another type"),
    "keys that are None": (dict[None, int], "of type null: no text stands for one", "another type"),
    "keys of a union of such": (dict[tuple[int] | None, int], "no text stands for one", "another type"),
    "two keys that are numbers": (bounded(dict[float, int], min_length=2), "written in several ways", "str or int"),
    "two keys that are stripped": (
        bounded(dict[pydantic.constr(strip_whitespace=True), int], min_length=2),
        "written in several ways",
        "str or int",
    ),
    "a set of lists": (set[list[int]], "need a hash", "a list, or tuples"),
    "a set of models": (set[Point], "need a hash", "a frozen class"),
    "a set of tuples of lists": (set[tuple[int, list[int]]], "need a hash", "a list, or tuples"),
    "times with an offset": (
        bounded(datetime.time, ge=NOON.replace(tzinfo=AWARE.tzinfo)),
        "others than UTC",
        "without tzinfo",
    ),
    "a moment that is none in UTC": (
        bounded(datetime.datetime, ge=datetime.datetime(1, 1, 1, tzinfo=AWARE.tzinfo)),
        "is no date in UTC",
        "another bound",
    ),
    "a duration below zero": (bounded(datetime.timedelta, lt=datetime.timedelta(0)), "not negative", "wider bounds"),
    "a duration between seconds": (
        bounded(datetime.timedelta, gt=datetime.timedelta(seconds=1), lt=datetime.timedelta(seconds=1, microseconds=5)),
        "no whole number of seconds",
        "wider bounds",
    ),
    "sets in sets": (bounded(str, pattern="[a-z&&[^b]]"), "sets in sets", "write the set out"),
    "a bound on other types": (bounded(int | str, ge="a"), "a bound on a union", "the type that it is about"),
}
