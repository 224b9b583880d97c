"""Whole programs of lmc beside the same work done call by call on other engines.

python benchmarks/workloads.py [--write] [--dtype bfloat16] [--workload react] [--peer vllm] [--repeats 2]

Six shapes of five workloads (`peers/shapes.py`), the 124.6M random model of `engine.py`, greedy, stops off. lmc runs
the programs of `programs.py` through `Program.batch` at -O2. transformers and llama.cpp get one batch per program step
over all instances, vLLM each call as soon as those it needs are done. All get the same prompts, token for token up to
what the models say, and generates equally many tokens; a run that counts others fails.

The model says words only: the rows of its embedding for bytes and marks are 0, and every other entry of its
vocabulary is one word, which is again one token when it is read. Rows are kept in `build/benchmark/workloads.json`
as they come and not measured again while they are there; `--fresh` starts anew. Peers: see `engine.py`.
"""

import json
import math
import os
import random
import shlex
import statistics
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from benchmarks.engine import DTYPES, FOLDER, command_line, make_model, rows_kept
from benchmarks.peers.shapes import ALL_SHAPES, SHAPES, Call, Row, vocabulary
from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import ROOFLINE, Runners, peers, row_key, versions

STORE = "workloads.json"
WARM_UP = 1  # instances
MARKS = {"bos_token": "<s>", "eos_token": "</s>"}


@lru_cache(maxsize=1)
def tokenizer() -> tokenizers.Tokenizer:
    """Two marks, 256 bytes, and whole words that take the space before them along."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = [*MARKS.values(), *alphabet, *(f"Ġ{word}" for word in vocabulary())]
    model = models.BPE(vocab={entry: index for index, entry in enumerate(entries)}, merges=[], ignore_merges=True)
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in MARKS.values()])
    return made


def make_words_model(folder: Path) -> Path:
    """The model of `engine.py` with this tokenizer; it can say words only."""
    if (folder / "config.json").exists():
        return folder
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

    model: Any = LlamaForCausalLM.from_pretrained(make_model(FOLDER / "model"))
    words = len(vocabulary())
    with torch.no_grad():
        model.model.embed_tokens.weight[:-words] = 0  # tied: their logits are 0, and some word's is always larger
    PreTrainedTokenizerFast(tokenizer_object=tokenizer(), **MARKS).save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def make_small_model(folder: Path) -> Path:
    """Save a small model that can say words only: 4.7 million parameters in 6 layers, 8.2 million in its embedding."""
    if (folder / "config.json").exists():
        return folder
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=tokenizer().get_vocab_size(),
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        initializer_range=0.08,
        bos_token_id=0,
        eos_token_id=1,
    )
    model: Any = LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight[: -len(vocabulary())] = 0  # no byte and no mark is ever the likeliest
    PreTrainedTokenizerFast(tokenizer_object=tokenizer(), **MARKS).save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Work:
    """What every engine has to do for a batch of rows."""

    calls: int
    prompt_tokens: int
    new_tokens: int


def work_of(workload: str, rows: list[Row], texts: dict[str, list[int]]) -> Work:
    """Count the calls of ``rows``; puts the tokens of every text they need into ``texts``."""
    calls = calls_of(workload, rows, texts)
    return Work(len(calls), sum(len(call.prompt) for call in calls), sum(call.new_tokens for call in calls))


def calls_of(workload: str, rows: list[Row], texts: dict[str, list[int]]) -> list[Call]:
    """The calls of ``rows`` where every token of an answer is 0; puts the tokens of their texts into ``texts``."""

    def encode(text: str) -> list[int]:
        if text not in texts:
            texts[text] = tokenizer().encode(text, add_special_tokens=False).ids
        return texts[text]

    calls: list[Call] = []
    for row in rows:
        program = ALL_SHAPES[workload].calls(row, encode)
        step = next(program, None)
        while step is not None:
            calls += step
            try:
                step = program.send([[0] * call.new_tokens for call in step])
            except StopIteration:
                step = None
    return calls


def batches_of(workload: str, instances: int, repeats: int) -> list[list[Row]]:
    """One row to warm up with, then a batch of others for each repeat."""
    shape = SHAPES[workload]
    return [
        shape.rows(random.Random(f"{workload}/{number}"), instances if number else WARM_UP)
        for number in range(1 + repeats)
    ]


def measure(runners: Runners, peer: str, dtype: str, workload: str, instances: int, repeats: int) -> dict[str, Any]:
    """Run a workload on one engine: seconds of each repeat, and the work that was done."""
    texts: dict[str, list[int]] = {}
    batches = batches_of(workload, instances, repeats)
    works = [work_of(workload, rows, texts) for rows in batches]
    job = {
        "model": str(make_words_model(FOLDER / "words").resolve()),
        "dtype": dtype,
        "device": "cpu",
        "threads": os.cpu_count(),
        "workload": workload,
        "texts": texts,
        "batches": batches,
    }
    answer = runners.run(peer, job)
    for kind in ("prompt_tokens", "new_tokens"):
        expected = [getattr(work, kind) for work in works[1:]]
        if answer[kind] != expected:
            raise SystemExit(f"{peer} did other work in {workload}: {kind} {answer[kind]}, to be {expected}")
    return {"seconds": answer["seconds"], "instances": instances, "work": [vars(work) for work in works[1:]]}


def main() -> None:
    parser = command_line(__doc__, "workload", list(SHAPES), repeats=2)
    parser.add_argument("--instances", type=int, help="default: as many as the workload's shape says")
    options = parser.parse_args()
    store = FOLDER / STORE
    kept = rows_kept(store, options.fresh)
    names = options.peer or list(peers())
    lines: list[list[str]] = []
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for dtype in options.dtype or DTYPES:
        with Runners() as runners:
            for peer in names:
                for workload in options.workload or SHAPES:
                    instances = options.instances or SHAPES[workload].instances
                    key = row_key(peer, dtype, workload, instances, options.repeats)
                    if key not in kept:
                        kept[key] = measure(runners, peer, dtype, workload, instances, options.repeats)
                        store.write_text(json.dumps(kept))
                    found.setdefault(f"{dtype}/{workload}", {})[peer] = kept[key]
                    print(f"{dtype} {workload} {peer}: {statistics.median(kept[key]['seconds']):.2f} s", flush=True)
        for workload in options.workload or SHAPES:
            lines.append(row(dtype, workload, found[f"{dtype}/{workload}"], names))
            print(" | ".join(lines[-1]), flush=True)
    about = f"{machine()}, {processor()}; {versions(names)}; median of {options.repeats}, seconds. "
    about += f"The best peer is that of {', '.join(name for name in names if name not in ('lmc', ROOFLINE))}.\n\n"
    text = table(head(names), lines) + "\n" + means(found)
    print(text)
    if options.write:
        write_section("workloads", shlex.join(["python", *sys.argv]), about + text)


def head(names: list[str]) -> list[str]:
    return ["dtype", "workload", "instances", "calls", "tokens in prompts", "generated", *names, "best peer / lmc"]


def row(dtype: str, workload: str, answers: dict[str, dict[str, Any]], names: list[str]) -> list[str]:
    """One line of the table; the work is that of the first repeat, others differ by a few tokens."""
    any_answer = answers[names[0]]
    ratio = speed_up(answers)
    return [
        dtype,
        workload,
        str(any_answer["instances"]),
        *(f"{count:,}" for count in any_answer["work"][0].values()),
        *(f"{statistics.median(answers[name]['seconds']):.2f}" for name in names),
        "" if ratio is None else f"{ratio:.2f}",
    ]


def speed_up(answers: dict[str, dict[str, Any]]) -> float | None:
    """Seconds of the best peer over those of lmc; None where either was not measured."""
    seconds = {name: statistics.median(answer["seconds"]) for name, answer in answers.items() if name != ROOFLINE}
    ours = seconds.pop("lmc", None)
    return min(seconds.values()) / ours if ours and seconds else None


def means(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Geometric means over the workloads of each dtype; the two kinds of chat count as one workload together."""
    lines: list[str] = []
    for dtype in DTYPES:
        ratios: dict[str, list[float]] = {}
        for key, answers in found.items():
            ratio = speed_up(answers)
            if key.startswith(f"{dtype}/") and ratio is not None:
                ratios.setdefault(key.removesuffix("_short").removesuffix("_long"), []).append(math.log(ratio))
        if ratios:
            mean = math.exp(statistics.fmean(map(statistics.fmean, ratios.values())))
            lines.append(f"Geometric mean over {len(ratios)} workloads, best peer / lmc, {dtype}: {mean:.2f}.\n")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
