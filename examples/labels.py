"""Labelled fields of a sentence: the labels are given, the model writes the values.

lmc run examples/labels.py --input examples/data/sentences.jsonl
"""

import json
from pathlib import Path

import lmc

FIELDS = ("name", "item", "city", "price", "date")
SENTENCES = Path(__file__).parent / "data" / "sentences.jsonl"


@lmc.jit
def label(s, sentence: str):
    s += lmc.system("You extract fields from text.")
    s += lmc.user(f"Sentence: {sentence}\nExtract the fields {', '.join(FIELDS)}.")
    for field in FIELDS:
        s += f"{field.capitalize()}:"
        s.gen(field, max_tokens=24, stop="\n")
        s += "\n"
    return {field: s[field].strip() for field in FIELDS}


def main() -> None:
    rows = [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    for row, result in zip(rows, label.batch(rows), strict=True):
        print(row["sentence"])
        print("  " + json.dumps(result.value, ensure_ascii=False))


if __name__ == "__main__":
    main()
