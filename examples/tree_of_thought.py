"""Tree of thought: reach a number from others by adding and multiplying, as few thoughts as possible kept at each step.

The model does the sums, each in a branch of its own; the program drops dead ends and goes on from the best thoughts.

python examples/tree_of_thought.py
lmc run examples/tree_of_thought.py --input examples/data/countdowns.jsonl
"""

import json
from pathlib import Path

import lmc

COUNTDOWNS = Path(__file__).parent / "data" / "countdowns.jsonl"
SIGNS = ("+", "*")
KEPT = 2
LARGEST = 9  # the built-in model knows sums of single digits


def grow(state, value: int, number: int, steps: list[str]) -> list[tuple[lmc.State, int, list[str]]]:
    """Every thought that may follow: what is known then, its value, and the steps to it."""
    thoughts = []
    branches = state.fork(len(SIGNS))
    for branch, sign in zip(branches, SIGNS, strict=True):
        branch += lmc.user(f"What is {value} {sign} {number}?")
        result = branch.gen("result", dtype=int, max_tokens=3)
        thoughts.append((branch, result, [*steps, f"{value} {sign} {number} = {result}"]))
    return thoughts


@lmc.jit
def reach(s, numbers: list[int], target: int) -> dict[str, object]:
    s += lmc.system("You do sums.")
    kept = [(s, numbers[0], [])]
    for number in numbers[1:]:
        thoughts = []
        for state, value, steps in kept:
            if 0 <= value <= LARGEST:
                thoughts += grow(state, value, number, steps)
        if not thoughts:
            break
        kept = sorted(thoughts, key=lambda thought: abs(target - thought[1]))[:KEPT]
    _, value, steps = kept[0]
    return {"reached": value == target, "steps": steps}


def main() -> None:
    rows = [json.loads(line) for line in COUNTDOWNS.read_text(encoding="utf-8").splitlines()]
    for row, result in zip(rows, reach.batch(rows), strict=True):
        print(f"{row['target']} from {row['numbers']}:", result.value)


if __name__ == "__main__":
    main()
