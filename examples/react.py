"""An agent with a tool: think, look something up, read what came back, until the answer is known (ReAct).

python examples/react.py
lmc compile examples/react.py --breaks
lmc run examples/react.py --input examples/data/lookups.jsonl
"""

import json
from pathlib import Path

import lmc

DATA = Path(__file__).parent / "data"
FACTS: dict[str, str] = json.loads((DATA / "facts.json").read_text(encoding="utf-8"))
ROUNDS = 6


@lmc.tool(effect="reads")
def lookup(subject: str) -> str:
    return FACTS.get(subject, f"Nothing is known of {subject}.")


@lmc.jit
def answer(s, question: str) -> str | None:
    s += lmc.system("Use the tool lookup[x], then answer.")
    s += lmc.user(question)
    for _ in range(ROUNDS):
        s += "Thought:"
        s.gen("thought", max_tokens=48, stop="\n")
        s += "\n"
        if s.select("step", ["Action:", "Answer:"]) == "Answer:":
            return s.gen("answer", max_tokens=24, stop="\n").strip()
        action = s.gen("action", regex=r" lookup\[[\w ]{1,40}\]\n", max_tokens=64)
        subject = action.removeprefix(" lookup[").removesuffix("]\n")
        s += f"Observation: {lookup(subject)}\n"
    return None


def main() -> None:
    rows = [json.loads(line) for line in (DATA / "lookups.jsonl").read_text(encoding="utf-8").splitlines()]
    for row, result in zip(rows, answer.batch(rows), strict=True):
        print(f"{row['question']} {result.value or 'no answer'}")


if __name__ == "__main__":
    main()
