"""Saves and restores the whole state of a training run: weights, both optimizers, the step. No pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetensors import safe_open
from safetensors.torch import save_file

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from training.model import Llama
    from training.optimizer import Muon


def save(path: Path, step: int, model: Llama, muon: Muon, adam: torch.optim.AdamW) -> None:
    """Write the state after `step` steps; an interrupted write leaves the former file."""
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        tensors[f"weight.{name}"] = parameter.detach()
        for key, value in {**muon.state.get(parameter, {}), **adam.state.get(parameter, {})}.items():
            tensors[f"state.{name}.{key}"] = value
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, metadata={"step": str(step)})
    partial.replace(path)


def load(path: Path, model: Llama, muon: Muon, adam: torch.optim.AdamW) -> int:
    """Restore the state in place; return the number of steps done."""
    with safe_open(path, framework="pt") as stored:
        keys = set(stored.keys())
        matrices = set(model.matrices())
        for name, parameter in model.named_parameters():
            parameter.data.copy_(stored.get_tensor(f"weight.{name}"))
            owner = muon if parameter in matrices else adam
            prefix = f"state.{name}."
            owner.state[parameter] = {
                key.removeprefix(prefix): stored.get_tensor(key) for key in keys if key.startswith(prefix)
            }
        return int(stored.metadata()["step"])
