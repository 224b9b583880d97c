"""Tokens per second of the local engine beside other engines: same weights, same prompts, same output lengths.

python benchmarks/engine.py [--write] [--dtype bfloat16] [--case shared] [--peer vllm] [--repeats 3]

Random weights of a Llama of 124.6 million parameters, greedy, stops off. Every engine runs in a process of its own, one
after the other, warmed up by a batch that is not counted; every repeat has new prompts, so that nothing but what they
share among themselves is cached. The last column counts generations with exactly the tokens of transformers. Rows are
kept in `build/benchmark/engine.json` as they come and not measured again while they are there, unless the case or the
code has changed; `--fresh` starts anew.

A peer runs where its environment is: `LMC_BENCH_VLLM=PATH/bin/python`, `LMC_BENCH_LLAMA_CPP=PATH/bin/python`. One that
is not there is left out; README.md says how to make them.
"""

import argparse
import json
import os
import random
import shlex
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import ROOFLINE, Runners, peers, row_key, versions

FOLDER = Path("build/benchmark")
VOCABULARY = 32_000


@dataclass(frozen=True)
class Case:
    """`requests` prompts of `shared` common and `own` other tokens, `new` tokens each."""

    requests: int
    shared: int
    own: int
    new: int = 64

    def batch(self, seed: str) -> list[list[int]]:
        """Prompts of random tokens."""
        rng = random.Random(seed)
        stem = [rng.randrange(2, VOCABULARY) for _ in range(self.shared)]
        return [stem + [rng.randrange(2, VOCABULARY) for _ in range(self.own)] for _ in range(self.requests)]


CASES = {
    "shared": Case(32, 512, 16),
    "private": Case(32, 0, 528),
    "batch 1": Case(1, 0, 528),
    "batch 8": Case(8, 0, 528),
}
WARM_UP = Case(2, 16, 16, 4)
DTYPES = ("bfloat16", "float32")


def make_model(folder: Path) -> Path:
    """Save the random model once."""
    if (folder / "config.json").exists():
        return folder
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        initializer_range=0.08,  # wide enough that outputs are no single repeated token
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = {letter: index for index, letter in enumerate(["<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    marks = {"bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks).save_pretrained(folder)
    return folder


def measure(runners: Runners, peer: str, dtype: str, case: Case, repeats: int, device: str = "cpu") -> dict[str, Any]:
    """Run one engine; seconds and tokens of each repeat."""
    batches = [WARM_UP.batch("warm up"), *(case.batch(f"{case}/{number}") for number in range(repeats))]
    job = {
        "model": str(make_model(FOLDER / "model").resolve()),
        "dtype": dtype,
        "device": device,
        "threads": os.cpu_count(),
        "new_tokens": case.new,
        "batches": batches,
    }
    return runners.run(peer, job)


def agreement(one: list[list[list[int]]], other: list[list[list[int]]]) -> float:
    """Share of generations that are equal."""
    pairs = [(a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def command_line(description: str | None, part: str, choices: Sequence[str], repeats: int) -> argparse.ArgumentParser:
    """The options that benchmarks against peers have in common; `part` names what a row is about."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--fresh", action="store_true", help="forget rows measured before")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="default: both")
    parser.add_argument(f"--{part}", choices=choices, action="append", help="default: all")
    parser.add_argument("--peer", choices=list(peers()), action="append", help="default: all")
    parser.add_argument("--repeats", type=int, default=repeats)
    return parser


def rows_kept(store: Path, fresh: bool) -> dict[str, Any]:
    """Rows measured before, by what they measured."""
    store.parent.mkdir(parents=True, exist_ok=True)
    return json.loads(store.read_text()) if store.exists() and not fresh else {}


def main() -> None:
    options = command_line(__doc__, "case", list(CASES), repeats=3).parse_args()
    store = FOLDER / "engine.json"
    kept = rows_kept(store, options.fresh)
    chosen = options.peer or list(peers())
    lines: list[list[str]] = []
    for dtype in options.dtype or DTYPES:
        with Runners() as runners:
            for peer in chosen:
                for name in options.case or CASES:
                    key = row_key(peer, dtype, CASES[name], options.repeats)
                    if key not in kept:
                        kept[key] = measure(runners, peer, dtype, CASES[name], options.repeats)
                        store.write_text(json.dumps(kept))
                    print(" | ".join(row(dtype, name, peer, kept, options.repeats)), flush=True)
        lines += [row(dtype, name, peer, kept, options.repeats) for name in options.case or CASES for peer in chosen]
    head = ["dtype", "case", "engine", "tokens/s", "lmc / engine", "generations as transformers"]
    text = table(head, lines)
    print(text)
    if options.write:
        about = f"{machine()}, {processor()}; {versions(chosen)}; median of {options.repeats}.\n\n"
        write_section("engine", shlex.join(["python", *sys.argv]), about + text)


def row(dtype: str, name: str, peer: str, kept: dict[str, Any], repeats: int) -> list[str]:
    """One line of the table."""

    def rate(other: str) -> float | None:
        found = kept.get(row_key(other, dtype, CASES[name], repeats))
        return None if found is None else CASES[name].requests * CASES[name].new / statistics.median(found["seconds"])

    own, ours = rate(peer), rate("lmc")
    answers = kept[row_key(peer, dtype, CASES[name], repeats)]["tokens"]
    base = None if peer == ROOFLINE else kept.get(row_key("transformers", dtype, CASES[name], repeats))
    same = agreement(answers, base["tokens"]) if base else None
    return [
        dtype,
        name,
        peer,
        f"{own:.0f}",
        "" if ours is None or own is None else f"{ours / own:.2f}",
        "" if same is None else f"{same:.0%}",
    ]


if __name__ == "__main__":
    main()
