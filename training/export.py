"""Writes a trained network as a transformers Llama folder: `python -m training.export RUN_FOLDER [FOLDER]`."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from training import checkpoint, recipe
from training.document import END_OF_TEXT, TURN_END
from training.model import Llama
from training.optimizer import Muon

if TYPE_CHECKING:
    from training.model import Shape

PACKAGE_FOLDER = Path("lmc") / "builtin_model"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def _views(model: Llama) -> dict[str, torch.Tensor]:
    """Return views of the parameters under transformers' names."""
    named: dict[str, torch.Tensor] = {
        "model.embed_tokens.weight": model.embedding,
        "model.norm.weight": model.final_norm,
    }
    for layer in range(model.shape.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        for index, kind in enumerate("qkv"):
            named[f"{prefix}self_attn.{kind}_proj.weight"] = model.qkv[layer, index]
        named[f"{prefix}self_attn.o_proj.weight"] = model.output[layer]
        named[f"{prefix}mlp.gate_proj.weight"] = model.gate_up[layer, 0]
        named[f"{prefix}mlp.up_proj.weight"] = model.gate_up[layer, 1]
        named[f"{prefix}mlp.down_proj.weight"] = model.down[layer]
        named[f"{prefix}input_layernorm.weight"] = model.attention_norm[layer]
        named[f"{prefix}post_attention_layernorm.weight"] = model.mlp_norm[layer]
    return named


def named_weights(model: Llama) -> dict[str, torch.Tensor]:
    """Return the weights under transformers' names, in bf16."""
    return {name: view.detach().bfloat16().contiguous() for name, view in _views(model).items()}


@torch.no_grad()
def read(model: Llama, folder: Path) -> None:
    """Fill the fp32 weights of `model` in place from a folder that `write` made.

    Raises ValueError where its tensors are not those of the model.
    """
    stored = load_file(folder / WEIGHTS_FILE)
    views = _views(model)
    found = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    wanted = {name: tuple(view.shape) for name, view in views.items()}
    if found != wanted:
        other = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        raise ValueError(
            f"{folder} holds a network of another shape, first in {other[0]}: train it from its first step"
        )
    for name, view in views.items():
        view.copy_(stored[name])


def _config(shape: Shape, tokenizer: Tokenizer) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": tokenizer.token_to_id(END_OF_TEXT),
        "dtype": "bfloat16",
        "eos_token_id": tokenizer.token_to_id(TURN_END),
        "head_dim": shape.head_size,
        "hidden_act": "silu",
        "hidden_size": shape.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate_size,
        "max_position_embeddings": shape.max_position_embeddings,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": shape.num_attention_heads,
        "num_hidden_layers": shape.num_hidden_layers,
        "num_key_value_heads": shape.num_attention_heads,
        "pad_token_id": tokenizer.token_to_id(END_OF_TEXT),
        "pretraining_tp": 1,
        "rms_norm_eps": shape.rms_norm_eps,
        "rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"},
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": shape.vocab_size,
    }


def write(model: Llama, run_folder: Path, folder: Path) -> None:
    """Write weights, configuration, generation defaults and tokenizer into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / WEIGHTS_FILE
    save_file(named_weights(model), weights, metadata={"format": "pt"})
    weights.chmod(0o644)
    for name in TOKENIZER_FILES:
        shutil.copyfile(run_folder / name, folder / name)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ends = [tokenizer.token_to_id(TURN_END), tokenizer.token_to_id(END_OF_TEXT)]
    generation: dict[str, object] = {
        "bos_token_id": tokenizer.token_to_id(END_OF_TEXT),
        "do_sample": False,
        "eos_token_id": ends,
        "pad_token_id": tokenizer.token_to_id(END_OF_TEXT),
    }
    _write_json(folder / "config.json", _config(model.shape, tokenizer))
    _write_json(folder / "generation_config.json", generation)


def _write_json(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def restored(plan: recipe.Recipe, run_folder: Path) -> tuple[Llama, int]:
    """Return the network of a run's checkpoint and the number of steps it was trained for."""
    model = Llama(plan.shape, plan.seed)
    muon = Muon(model.matrices(), plan.matrix_rate)
    adam = torch.optim.AdamW(model.others(), plan.other_rate)
    return model, checkpoint.load(run_folder / "state.safetensors", model, muon, adam)


def main() -> None:
    """Parse the command line and export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("folder", type=Path, nargs="?", default=PACKAGE_FOLDER)
    arguments = parser.parse_args()
    model, step = restored(recipe.FULL, arguments.run_folder)
    write(model, arguments.run_folder, arguments.folder)
    print(f"wrote {arguments.folder} after {step} steps")


if __name__ == "__main__":
    main()
