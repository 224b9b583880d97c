"""Self-refine: draft a form, look for what can't be right, say so and let the model write it again.

python examples/self_refine.py
lmc run examples/self_refine.py --input examples/data/sentences.jsonl
"""

import json
from pathlib import Path

import lmc

FIELDS = ("name", "item", "city", "price", "date")
ROUNDS = 4
SENTENCES = Path(__file__).parent / "data" / "sentences.jsonl"


def fill_in(s, sentence: str, fields: list[str], temperature: float) -> dict[str, str]:
    """Ask for some fields of a sentence."""
    s += lmc.user(f"Sentence: {sentence}\nFill in the fields {', '.join(fields)}.")
    form = {}
    for field in fields:
        s += f"{field.capitalize()}:"
        form[field] = s.gen(field, max_tokens=24, stop="\n", temperature=temperature).strip()
        s += "\n"
    return form


def criticise(form: dict[str, str], sentence: str) -> list[str]:
    """The fields whose value does not stand in the sentence."""
    return [field for field, value in form.items() if not value or value not in sentence]


@lmc.jit
def refine(s, sentence: str) -> dict[str, object]:
    s += lmc.system("You fill in forms from text.")
    form = fill_in(s, sentence, list(FIELDS), temperature=1.0)
    wrong = criticise(form, sentence)
    rounds = 1
    while wrong and rounds < ROUNDS:
        form |= fill_in(s, sentence, wrong, temperature=0.5)
        wrong = criticise(form, sentence)
        rounds += 1
    return {"form": form, "rounds": rounds, "wrong": wrong}


def main() -> None:
    rows = [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    for row, result in zip(rows, refine.batch(rows), strict=True):
        print(row["sentence"])
        print("  " + json.dumps(result.value, ensure_ascii=False))


if __name__ == "__main__":
    main()
