"""A chat over several turns: each answer continues one growing context, so nothing is computed twice.

lmc run examples/chat.py --input examples/data/chats.jsonl
"""

import json
from pathlib import Path

import lmc

CHATS = Path(__file__).parent / "data" / "chats.jsonl"


@lmc.jit
def chat(s, turns: list[str]):
    s += lmc.system("You remember what the user says.")
    answers = []
    for turn in turns:
        s += lmc.user(turn)
        answers.append(s.gen("answer", max_tokens=32))
    return answers


def main() -> None:
    for line in CHATS.read_text(encoding="utf-8").splitlines():
        turns = json.loads(line)["turns"]
        for turn, answer in zip(turns, chat(turns), strict=True):
            print(f"user: {turn}\nassistant: {answer}")
        print()


if __name__ == "__main__":
    main()
