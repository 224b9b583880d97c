"""Programs with constraints: what is refused, what is forced, what stays typed in a saved plan."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, field_validator

import lmc


class Inner(BaseModel):
    word: Literal["a", "b"]


class Verdict(BaseModel):
    score: int = Field(ge=0, le=9)
    share: float = Field(ge=0, le=1, multiple_of=1)
    inner: Inner


class Letters(BaseModel):
    text: Annotated[str, StringConstraints(to_lower=True, pattern="^[A-Z]{3}$")]


class Numbers(BaseModel):
    whole: int = Field(ge=0, le=99)
    is_odd: bool
    words: list[Literal["a", "b"]]


class Strict(BaseModel):
    n: Literal[1, 2]

    @field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        return value + 10


@lmc.jit
def judged(s: lmc.State, essay: str) -> Verdict:
    s += lmc.user(essay)
    verdict = s.gen("verdict", schema=Verdict)
    s += lmc.user(f"{verdict.score} of {verdict.share} and {verdict.inner.word}: why?")
    s.gen("why", regex="[a-z]{2,5}", temperature=1.0)
    s.gen("sure", dtype=bool)
    return verdict


@lmc.jit
def printed(s: lmc.State, essay: str) -> str:
    s += essay
    verdict = s.gen("verdict", schema=Verdict)
    s += f"{verdict.inner}"
    return "done"


@lmc.jit
def lowered(s: lmc.State, essay: str) -> str:
    s += essay
    s += s.gen("letters", schema=Letters).text
    return "done"


@lmc.jit
def compared(s: lmc.State, essay: str) -> bool:
    s += essay
    verdict: Any = s.gen("verdict", schema=Verdict)
    return verdict == {"score": 1}


@lmc.jit
def handed_on(s: lmc.State, essay: str) -> list[object]:
    s += essay
    first, second = s.gen("numbers", schema=Numbers, n=2, temperature=1.0)
    s += f"{first.whole} {len(second.words)} {first.is_odd}"
    return [first, (second, first.whole), {"words": second.words}]


@lmc.jit
def plain(s: lmc.State, essay: str) -> list[object]:
    s += essay
    words = s.gen("words", schema=list[Literal["a", "b"]])
    s += f"{words}"
    return [words, s.gen("parsed", schema={"type": "object", "properties": {"a": {"type": "boolean"}}})]


@lmc.jit
def strict(s: lmc.State, essay: str) -> Strict:
    s += essay
    return s.gen("strict", schema=Strict)


@lmc.jit
def forced(s: lmc.State, essay: str) -> str:
    s += essay
    s.gen("free", max_tokens=3)
    s.gen("forced", choices=["ok"])
    s += "."
    return s.gen("more", regex="x|y")


@lmc.jit
def refused(s: lmc.State, essay: str) -> str:
    s += essay
    s.gen("first", max_tokens=3)
    s.gen("second", regex="a[^\\s\\S]")
    return s.gen("third", regex="(")


@lmc.jit
def cut_off(s: lmc.State, essay: str) -> str:
    s += essay
    return s.gen("word", regex="[ab]{60,99}", max_tokens=60, stop="zz")


@lmc.jit
def no_room(s: lmc.State, essay: str) -> str:
    s += essay
    s.gen("first", max_tokens=3)
    return s.gen("word", regex="[ab]{20,99}", max_tokens=7)


@lmc.jit
def no_room_in_samples(s: lmc.State, essay: str) -> list[str]:
    s += essay
    return s.gen("words", choices=["yesterday", "tomorrow"], max_tokens=7, n=2)


@lmc.jit
def refused_unread(s: lmc.State, essay: str) -> str:
    s += essay
    for branch in s.fork(2):
        branch.gen("nobody", regex="(")
    return "done"


@lmc.jit
def misspelt(s):
    s += "x"
    return s.gen("word", schema={"type": "string", "maxLenght": 3, "maxLength": 2})
