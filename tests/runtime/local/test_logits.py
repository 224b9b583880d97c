"""Logits of every token of a text, in chunks over cached pages, against one call of transformers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmc.cache.memory import Slice
from lmc.cache.sequence import Sequence
from lmc.runtime.local.model import PagedModel
from lmc.runtime.local.modules.fusion import fuse
from tests.runtime.local.checkpoints import ARCHITECTURES, make_model

TOKENS = tuple(int(token) for token in np.random.default_rng(5).integers(3, 390, 70))
CHUNK = 9
ROPE: dict[str, dict[str, Any]] = {
    "linear": {"factor": 3.0},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 32},
}


def paged_logits(model: Any, tokens: tuple[int, ...]) -> torch.Tensor:
    """Logits [tokens, vocabulary] by our forward pass; `model` is taken apart for it."""
    fuse(model)
    paged = PagedModel(model, len(tokens))
    sequence = Sequence(tokens, capacity=len(tokens), first_wanted_row=0)
    sequence.pages[:] = np.random.default_rng(6).permutation(len(tokens))
    found: list[torch.Tensor] = []
    for start in range(0, len(tokens), CHUNK):
        end = min(start + CHUNK, len(tokens))
        logits, _ = paged.forward([Slice(sequence, start, end, sequence.pages[start:end])])
        found.append(logits.float())
    return torch.cat(found)


def plain_logits(model: Any, tokens: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].float()


def usual_error(logits: torch.Tensor, exact: torch.Tensor) -> float:
    """Root mean square error at the median token; where rounding chooses another expert, a token is far off in both."""
    return float((logits - exact).pow(2).mean(dim=1).sqrt().median())


def load(folder: Path, architecture: str, dtype: torch.dtype) -> Any:
    _, model_class = ARCHITECTURES[architecture]
    model = model_class.from_pretrained(folder, dtype=dtype, attn_implementation="eager")
    return model.eval().requires_grad_(requires_grad=False)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_float32_logits_to_1e_4(architecture: str, models: dict[str, Any], checkpoints: dict[str, Path]) -> None:
    expected = plain_logits(models[architecture], TOKENS)
    logits = paged_logits(load(checkpoints[architecture], architecture, torch.float32), TOKENS)
    difference = float((logits - expected).abs().max())
    print(f"{architecture}: {difference:.1e} of {float(expected.abs().max()):.0f}")
    assert difference < 1e-4


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bfloat16_logits_as_near_as_those_of_transformers(
    architecture: str, models: dict[str, Any], checkpoints: dict[str, Path]
) -> None:
    exact = plain_logits(models[architecture], TOKENS)
    folder = checkpoints[architecture]
    theirs = usual_error(plain_logits(load(folder, architecture, torch.bfloat16), TOKENS), exact)
    ours = usual_error(paged_logits(load(folder, architecture, torch.bfloat16), TOKENS), exact)
    print(f"{architecture}: off by {ours:.3f}, transformers by {theirs:.3f}, of {float(exact.std()):.2f}")
    assert ours < 1.35 * theirs


@pytest.mark.parametrize("rope", ROPE)
def test_stretched_rope(rope: str) -> None:
    settings: dict[str, Any] = {"rope_parameters": {"rope_type": rope, "rope_theta": 1e4, **ROPE[rope]}}
    expected = plain_logits(make_model("llama", **settings), TOKENS)
    assert torch.allclose(paged_logits(make_model("llama", **settings), TOKENS), expected, atol=1e-4)
