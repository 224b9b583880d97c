"""Few-shot multiple choice: one prompt of worked examples shared by all questions, then a `select` over the letters.

lmc run examples/multiple_choice.py --input examples/data/questions.jsonl
"""

import json
from pathlib import Path

import lmc

DATA = Path(__file__).parent / "data"
EXAMPLES = (DATA / "few_shot.txt").read_text(encoding="utf-8")


@lmc.jit
def answer(s, passage: str, question: str, options: list[str]):
    s += EXAMPLES
    s += f"Passage: {passage}\nQuestion: {question}\n"
    s += f"A. {options[0]}\nB. {options[1]}\nC. {options[2]}\nD. {options[3]}\nAnswer:"
    letter = s.select("letter", [" A", " B", " C", " D"])
    return letter.strip()


def main() -> None:
    rows = [json.loads(line) for line in (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    key = json.loads((DATA / "answers.json").read_text(encoding="utf-8"))
    results = answer.batch(rows)
    for row, result, letter in zip(rows, results, key, strict=True):
        print(result.value, "right" if result.value == letter else "wrong", row["question"])
    right = sum(result.value == letter for result, letter in zip(results, key, strict=True))
    print(f"{right} of {len(rows)} right")


if __name__ == "__main__":
    main()
