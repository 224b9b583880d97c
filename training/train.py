"""Trains the built-in model: `python -m training.train [--smoke] [--from FOLDER] [--out FOLDER]`. Run again to resume.

With `--from` it goes on from an exported network by `recipe.CONTINUED`, which adds the families that came later.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from pathlib import Path

# Spinning OpenMP threads stall every parallel region when anything else runs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from tokenizers import Tokenizer

from training import checkpoint, export, packing, parallel, probe, recipe, tokenizer
from training.document import Split
from training.export import PACKAGE_FOLDER, TOKENIZER_FILES
from training.model import Llama
from training.optimizer import Muon

CHECKPOINT_EVERY = 100
PROBE_EVERY = 150


def _tokenizer(out: Path, plan: recipe.Recipe) -> Tokenizer:
    path = out / "tokenizer.json"
    if not path.exists():
        built = tokenizer.build(plan.shape.vocab_size, plan.tokenizer_documents)
        tokenizer.save(built, out, plan.shape.max_position_embeddings)
    return Tokenizer.from_file(str(path))


def _keep_tokenizer(out: Path, source: Path) -> None:
    """Start from the tokenizer of `source` where it has one: token ids stay what they are when tasks change."""
    out.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        if (source / name).exists() and not (out / name).exists():
            shutil.copyfile(source / name, out / name)


def run(
    plan: recipe.Recipe,
    out: Path,
    *,
    source: Path | None = None,
    stop_after: int | None = None,
    probe_every: int = PROBE_EVERY,
) -> Llama:
    """Train, or go on from the checkpoint in `out`, up to `stop_after` steps or the end of the plan.

    The first step starts from new weights, or from those of the exported network in the folder `source`.
    Writes state.safetensors, tokenizer files and log.jsonl (one object per logged step) into `out`.
    """
    out.mkdir(parents=True, exist_ok=True)
    vocabulary = _tokenizer(out, plan)
    model = Llama(plan.shape, plan.seed)
    muon = Muon(model.matrices(), plan.matrix_rate, decay=plan.matrix_decay)
    adam = torch.optim.AdamW(model.others(), plan.other_rate, betas=(0.9, 0.95), weight_decay=0.0)
    state = out / "state.safetensors"
    if source is not None and not state.exists():
        export.read(model, source)
    done = checkpoint.load(state, model, muon, adam) if state.exists() else 0
    last = min(plan.total_steps, stop_after or plan.total_steps)
    with parallel.pool() as pool, (out / "log.jsonl").open("a", encoding="utf-8") as log:
        for step in range(done, last):
            started = time.monotonic()
            stage, rows, length = plan.at(step)
            batch = packing.training_batch(vocabulary, plan.seed, step, rows, length, stage)
            factor = plan.rate_factor(step)
            muon.param_groups[0]["lr"] = plan.matrix_rate * factor
            adam.param_groups[0]["lr"] = plan.other_rate * factor
            losses = parallel.backward(model, batch, pool)
            list(pool.map(muon.update, (model.gate_up, model.qkv, model.down, model.output)))
            adam.step()
            model.zero_grad()
            line: dict[str, object] = {
                "step": step + 1,
                "length": length,
                "loss": round(losses.weighted, 4),
                "answer_loss": round(losses.answer, 4),
                "tokens_per_second": round(rows * length / (time.monotonic() - started)),
            }
            if (step + 1) % probe_every == 0:
                line["held_out"] = probe.accuracies(model, vocabulary, 6, 1100, Split.HELD_OUT)
                line["seen"] = probe.accuracies(model, vocabulary, 6, 1100, Split.TRAIN)
            if (step + 1) % 10 == 0 or step + 1 == last:
                log.write(json.dumps(line) + "\n")
                log.flush()
            if (step + 1) % CHECKPOINT_EVERY == 0 or step + 1 == last:
                checkpoint.save(state, step + 1, model, muon, adam)
    return model


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a tiny network for two minutes at most")
    parser.add_argument("--out", type=Path, default=None, help="folder for checkpoints and the log")
    parser.add_argument(
        "--from", dest="source", type=Path, default=None, help="folder of an exported network to go on from"
    )
    arguments = parser.parse_args()
    if arguments.smoke and arguments.source:
        parser.error("--smoke trains a tiny network from its first step: leave out --from")
    name = "smoke" if arguments.smoke else "continued" if arguments.source else "builtin"
    out = arguments.out or Path("build") / name
    if not arguments.smoke:
        _keep_tokenizer(out, arguments.source or PACKAGE_FOLDER)
    plan = recipe.SMOKE if arguments.smoke else recipe.CONTINUED if arguments.source else recipe.FULL
    run(plan, out, source=arguments.source)


if __name__ == "__main__":
    main()
