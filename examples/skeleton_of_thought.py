"""Skeleton of thought: the points first, all at once; then each point is written out in a branch of its own.

How many points there are is known only when the first answer is there.

python examples/skeleton_of_thought.py
lmc run examples/skeleton_of_thought.py --input examples/data/dinners.jsonl
"""

import json
from pathlib import Path

from pydantic import BaseModel, Field

import lmc

DINNERS = Path(__file__).parent / "data" / "dinners.jsonl"


class Dinner(BaseModel):
    name: str = Field(min_length=1, max_length=24)
    friends: list[str] = Field(min_length=1, max_length=6)


@lmc.jit
def invite(s, notes: str, dishes: str) -> str:
    s += lmc.user(f"Text: {notes}\nGive an object with the keys name, friends.")
    dinner = s.gen("dinner", schema=Dinner, max_tokens=200)

    branches = s.fork(len(dinner.friends))
    for branch, friend in zip(branches, dinner.friends, strict=True):
        branch += lmc.user(f"{dishes}\nWhat is {friend}?")
        branch.gen("dish", max_tokens=12, stop="\n")

    lines = [f"Dinner at {dinner.name}'s"]
    for branch, friend in zip(branches, dinner.friends, strict=True):
        lines.append(f"- {friend} brings {branch['dish']}")
    return "\n".join(lines)


def main() -> None:
    rows = [json.loads(line) for line in DINNERS.read_text(encoding="utf-8").splitlines()]
    for result in invite.batch(rows):
        print(result.value, end="\n\n")


if __name__ == "__main__":
    main()
