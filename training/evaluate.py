"""Grades the exported model through transformers: `python -m training.evaluate [--context 512] [--json]`.

Every family's held-out documents are about as long as the context; answers in its second half count.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from random import Random
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

from training.document import Split
from training.export import PACKAGE_FOLDER
from training.grading import Grade, grade
from training.packing import CHARACTERS_PER_TOKEN
from training.tasks import FAMILIES

DOCUMENTS = {512: 48, 2048: 16, 4096: 8}
METRICS_FILE = "metrics.json"


def summary(grades: list[Grade]) -> dict[str, float]:
    """Return accuracy (selected where there are choices, else written), its two parts and the number of answers."""
    selected = [one.selected for one in grades if one.selected is not None]
    right = [one.written if one.selected is None else one.selected for one in grades]
    result: dict[str, float] = {
        "accuracy": _share(right),
        "written": _share([one.written for one in grades]),
        "answers": len(grades),
    }
    if selected:
        result["selected"] = _share([bool(flag) for flag in selected])
    return result


def _share(flags: list[bool]) -> float:
    return round(sum(flags) / max(1, len(flags)), 4)


def evaluate(model: Any, tokenizer: Tokenizer, context: int, documents: int) -> dict[str, dict[str, float]]:
    """Grade every family at one context length."""
    characters = int(context * CHARACTERS_PER_TOKEN)
    results: dict[str, dict[str, float]] = {}
    for family, generate in FAMILIES.items():
        grades: list[Grade] = []
        for index in range(documents):
            document = generate(Random(f"evaluate/{family}/{context}/{index}"), Split.HELD_OUT, characters)
            grades += grade(model, tokenizer, document, context)
        results[family] = summary(grades)
    return results


def load(folder: Path) -> tuple[Any, Tokenizer]:
    """Load the weights through transformers in fp32, and the tokenizer with special-token parsing off."""
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return model, tokenizer


def main() -> None:
    """Parse the command line, grade, print; with --json also write the metrics file beside the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, choices=sorted(DOCUMENTS), action="append", help="default: all three")
    parser.add_argument("--documents", type=int, default=None, help="documents per family")
    parser.add_argument("--model", type=Path, default=PACKAGE_FOLDER)
    parser.add_argument("--json", action="store_true", help="print JSON and write the metrics file")
    arguments = parser.parse_args()
    model, tokenizer = load(arguments.model)
    path = arguments.model / METRICS_FILE
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results: dict[str, Any] = stored.get("contexts", {})
    for context in arguments.context or sorted(DOCUMENTS):
        results[str(context)] = evaluate(model, tokenizer, context, arguments.documents or DOCUMENTS[context])
    if arguments.json:
        metrics = {"parameters": sum(one.numel() for one in model.parameters()), "contexts": results}
        text = json.dumps({**stored, **metrics}, indent=2, sort_keys=True) + "\n"
        path.write_text(text, encoding="utf-8")
        print(text, end="")
        return
    for context, families in results.items():
        for family, numbers in families.items():
            print(context, family, *(f"{name}={value}" for name, value in numbers.items()))


if __name__ == "__main__":
    main()
