"""Multi-chain reasoning: several chains read and answer on their own, drawn at random, then a vote where they differ.

python examples/multi_chain.py
lmc run examples/multi_chain.py --input examples/data/questions.jsonl
"""

import json
from pathlib import Path

import lmc

DATA = Path(__file__).parent / "data"
CHAINS = 5
LETTERS = ("A", "B", "C", "D")


@lmc.jit
def answer(s, passage: str, question: str, options: list[str]) -> str:
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=True))

    chains = s.fork(CHAINS)
    for chain in chains:
        chain += lmc.system("You answer questions about the passage.")
        chain += lmc.user(f"Text: {passage}\n{question}\n{listed}")
        letter = chain.gen("letter", choices=LETTERS, temperature=1.0)
        chain += lmc.user(f"What stands at {letter}?")
        chain.gen("answer", max_tokens=16, stop="\n")

    answers = chains["answer"]
    if len(set(answers)) == 1:
        return answers[0]
    s += lmc.system("You combine the work of others.")
    s += lmc.user("Answers:\n" + "\n".join(f"{n}. {text}" for n, text in enumerate(answers, 1)) + "\nTake a vote.")
    return s.gen("vote", max_tokens=16, stop="\n")


def main() -> None:
    rows = [json.loads(line) for line in (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    key = json.loads((DATA / "answers.json").read_text(encoding="utf-8"))
    right = 0
    for row, result, letter in zip(rows, answer.batch(rows), key, strict=True):
        wanted = row["options"][LETTERS.index(letter)]
        right += result.value == wanted
        print(f"{row['question']} {result.value} ({wanted})")
    print(f"{right} of {len(rows)} right")


if __name__ == "__main__":
    main()
