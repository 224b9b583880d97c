"""Programs for the tests of ``/v1/programs``."""

import sys
import time
from dataclasses import dataclass
from typing import Literal

import pydantic

import lmc


class Item(pydantic.BaseModel):
    """A thing with a number."""

    name: str
    count: int = 1


@dataclass
class Answer:
    text: str
    total: int


@lmc.jit
def summarize(s, items: list[Item], style: Literal["short", "long"] = "short", extra: Item | None = None) -> Answer:
    """Write about items."""
    s += lmc.user(f"Write {style}: " + ", ".join(item.name for item in items))
    total = sum(item.count for item in items) + (extra.count if extra else 0)
    return Answer(s.gen("text", max_tokens=12, temperature=0.8), total)


@lmc.jit(seed=5)
def branches(s, topic):
    s += lmc.user(f"About {topic}")
    left, right = s.fork(2)
    left += lmc.user("Begin.")
    left.gen("part", max_tokens=8, temperature=0.9)
    right += lmc.user("Go on.")
    right.gen("part", max_tokens=8, temperature=0.9)
    s += lmc.assistant(lmc.gen("end", max_tokens=12, temperature=0.9))
    return {"parts": [left["part"], right["part"]], "end": s["end"]}


@lmc.jit
def failing(s, how: str):
    s += lmc.user("x")
    s.gen("y", max_tokens=2)
    if how == "raise":
        raise ValueError(f"no such thing: {s['y']}")
    if how == "exit":
        sys.exit(3)
    if how == "interrupt":
        raise KeyboardInterrupt(s["y"])
    return s.gen("z", max_tokens=int(how))


@lmc.jit
def quoting(s, texts: dict[str, str]):
    s += lmc.system(texts["system"])
    s += lmc.user(f"{texts['user']}")
    s += lmc.assistant(texts["assistant"])
    s += lmc.user("x")
    return s.gen("answer", max_tokens=12)


@lmc.tool
def rest(seconds: float) -> str:
    time.sleep(seconds)
    return "done"


@lmc.jit
def slow(s, rounds: int):
    s += lmc.user("Go on.")
    for _ in range(rounds):
        s += lmc.assistant(lmc.gen("a", max_tokens=64, min_tokens=64))
        s += lmc.user(rest(0.02))
    return s["a"]
