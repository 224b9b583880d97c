"""Replaces modules of transformers' decoders by ones that do the same in fewer, larger operations, on the CPU.

They are those of `fused_modules.py`, and of `fused_layer.py` where all of a layer is known. A module that is not of the
form known here (`module_forms.py`) stays as transformers made it, which is said once. `benchmarks/engine.py` shows what
this buys.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from lmc.runtime.kernels import products
from lmc.runtime.kernels.native.library import why_not
from lmc.runtime.local.modules import module_forms
from lmc.runtime.local.modules.fused_layer import FusedLayers, can_be_fused, of_one_shape
from lmc.runtime.local.modules.fused_modules import (
    FusedAttention,
    FusedExperts,
    FusedFeedForward,
    FusedNorm,
    PackedLinear,
)

_ATTENTION = {
    "LlamaAttention",
    "MistralAttention",
    "Qwen2Attention",
    "Qwen3Attention",
    "Qwen3MoeAttention",
    "MixtralAttention",
    "Phi3Attention",
    "Gemma2Attention",
    "Gemma3Attention",
}
_FEED_FORWARD = {"LlamaMLP", "MistralMLP", "Qwen2MLP", "Qwen3MLP", "Qwen3MoeMLP", "Phi3MLP", "Gemma2MLP", "Gemma3MLP"}
_EXPERTS = {"MixtralExperts", "Qwen3MoeExperts"}
_LAYERS = {
    "LlamaDecoderLayer",
    "MistralDecoderLayer",
    "Qwen2DecoderLayer",
    "Qwen3DecoderLayer",
    "Phi3DecoderLayer",
    "Gemma2DecoderLayer",
    "Gemma3DecoderLayer",
}
# Decoders that hand the same angles to all layers, one after the other.
_DECODERS = {"LlamaModel", "MistralModel", "Qwen2Model", "Qwen3Model", "Phi3Model", "Gemma2Model"}
_DECODER_PARTS = {"embed_tokens", "layers", "norm", "rotary_emb"}


def fuse(model: PreTrainedModel) -> None:
    """Replace what can be replaced, in place; nothing on other devices or without a C compiler."""
    if model.device.type != "cpu" or model.dtype not in (torch.float32, torch.bfloat16):
        return
    reason = why_not()
    if reason is None:
        _replace_children(model)
        _replace_layers(model.get_decoder())
    else:
        _say_once(reason)


@cache
def _say_once(reason: str) -> None:
    warnings.warn(
        f"lmc runs without its compiled CPU kernels, several times slower: {reason}; install gcc or clang",
        RuntimeWarning,
        stacklevel=2,
    )


def _replace_children(parent: nn.Module) -> None:
    for name, module in list(parent.named_children()):
        kind = _known_kind(module, name)
        if kind is None:
            _replace_children(module)
        else:
            _replace(parent, name, module, kind)


def _replace(parent: nn.Module, name: str, module: nn.Module, kind: "_Kind") -> None:
    problem = kind.problem(module)
    if problem is None:
        setattr(parent, name, kind.fused(module))
    else:
        _say_left(type(module).__name__, problem)


def _replace_layers(decoder: Any) -> None:
    """Make one call of all layers, or of each that may be."""
    whole = [layer for layer in decoder.layers if type(layer).__name__ in _LAYERS and can_be_fused(layer)]
    problems = [module_forms.layer_problem(layer) for layer in whole]
    known = type(decoder).__name__ in _DECODERS and {name for name, _ in decoder.named_children()} == _DECODER_PARTS
    if known and len(whole) == len(decoder.layers) and not any(problems) and of_one_shape(whole):
        decoder.layers = nn.ModuleList([FusedLayers(whole)])
        return
    for index, layer in enumerate(decoder.layers):
        if layer in whole:
            _replace(decoder.layers, str(index), layer, _LAYER)


@cache
def _say_left(name: str, problem: str) -> None:
    warnings.warn(
        f"lmc runs {name} as transformers made it, slower: it {problem}, which lmc's own form of it has not",
        RuntimeWarning,
        stacklevel=2,
    )


def _known_kind(module: Any, name_in_parent: str) -> "_Kind | None":
    name = type(module).__name__
    if name in module_forms.NORMS:
        return _Kind(module_forms.norm_problem, FusedNorm)
    if name in _ATTENTION:
        return _Kind(module_forms.attention_problem, FusedAttention)
    if name in _FEED_FORWARD:
        return _Kind(module_forms.feed_forward_problem, FusedFeedForward)
    if name in _EXPERTS:
        return _Kind(module_forms.experts_problem, FusedExperts)
    if module_forms.is_plain_linear(module) and (module.weight.dtype == torch.bfloat16 or products.pays(module.weight)):
        return _Kind(lambda _: None, lambda linear: PackedLinear([linear], wide=name_in_parent == "lm_head"))
    return None


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of module: its replacement, and the reason against it."""

    problem: Callable[[Any], str | None]
    fused: Callable[[Any], nn.Module]


_LAYER = _Kind(module_forms.layer_problem, lambda layer: FusedLayers([layer]))
