"""Functions and classes that the programs of the corpus use; what they do to the world goes to ``effect``."""

from dataclasses import dataclass

import pydantic

from lmc.frontend.tools.tools import tool
from tests.frontend.harness import effect


@dataclass
class Item:
    title: str
    count: int = 2


@dataclass(frozen=True)
class Config:
    length: int
    prefix: str


class Verdict(pydantic.BaseModel):
    score: int
    why: str


@tool(effect="reads")
def lookup(word: str) -> str:
    effect("lookup", word)
    return f"<{word}>"


@tool(effect="pure")
def length_of(word: str) -> int:
    return len(word)


@tool
async def record(word: str) -> None:
    effect("record", word)


@tool(effect="reads", retries=1, timeout=60)
def find(word: str) -> list[str]:
    return [word, word.upper()]


def shout(word: str) -> str:
    effect("shout", word)
    return word.upper()


def details(word):
    effect("details", word)
    return {"word": word, "n": len(word), "parts": list(word[:2])}
