"""Replaces modules of transformers' decoders by ones that do the same in fewer, larger operations, on the CPU.

Projections of the same input become one matrix product; in bf16 its weights are laid out once the way oneDNN wants
them, and the originals are freed. Normalization, rotary embedding, the store into pages and the gate are single passes
in C (`lmc/runtime/kernels/layers.py`). A module that is not of the form known here (`module_forms.py`) stays as
transformers made it, which is said once.
`benchmarks/engine.py` shows what this buys.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from lmc.runtime.kernels import layers
from lmc.runtime.kernels.forms import AttentionForm
from lmc.runtime.kernels.native.library import why_not
from lmc.runtime.kernels.paged_attention import paged_attention
from lmc.runtime.local import module_forms

# Norms that transformers writes the usual way, and those whose weight is stored less one.
_NORMS = {
    "LlamaRMSNorm": False,
    "MistralRMSNorm": False,
    "Qwen2RMSNorm": False,
    "Qwen3RMSNorm": False,
    "Qwen3MoeRMSNorm": False,
    "MixtralRMSNorm": False,
    "Phi3RMSNorm": False,
    "Gemma2RMSNorm": True,
    "Gemma3RMSNorm": True,
}
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


def fuse(model: PreTrainedModel) -> None:
    """Replace what can be replaced, in place; nothing on other devices or without a C compiler."""
    if model.device.type != "cpu" or model.dtype not in (torch.float32, torch.bfloat16):
        return
    reason = why_not()
    if reason is None:
        _replace_children(model)
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
        kind = _known_kind(module)
        if kind is None:
            _replace_children(module)
            continue
        problem = kind.problem(module)
        if problem is None:
            setattr(parent, name, kind.fused(module))
        else:
            _say_left(type(module).__name__, problem)


@cache
def _say_left(name: str, problem: str) -> None:
    warnings.warn(
        f"lmc runs {name} as transformers made it, slower: it {problem}, which lmc's own form of it has not",
        RuntimeWarning,
        stacklevel=2,
    )


def _known_kind(module: Any) -> "_Kind | None":
    name = type(module).__name__
    if name in _NORMS:
        return _Kind(module_forms.norm_problem, FusedNorm)
    if name in _ATTENTION:
        return _Kind(module_forms.attention_problem, FusedAttention)
    if name in _FEED_FORWARD:
        return _Kind(module_forms.feed_forward_problem, FusedFeedForward)
    if name in _EXPERTS:
        return _Kind(module_forms.experts_problem, FusedExperts)
    if module_forms.is_plain_linear(module) and module.weight.dtype == torch.bfloat16:
        return _Kind(lambda _: None, lambda linear: PackedLinear([linear]))
    return None


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a module is replaced, and how to find out why it can't be."""

    problem: Callable[[Any], str | None]
    fused: Callable[[Any], nn.Module]


class PackedLinear(nn.Module):
    """The products of one input with several weight matrices, side by side: [..., in] → [..., sum of outs].

    All of them have a bias, or none has. In bf16 the weights are kept in oneDNN's own layout only.
    """

    def __init__(self, parts: list[nn.Linear]) -> None:
        super().__init__()
        weight = torch.cat([part.weight for part in parts]) if len(parts) > 1 else parts[0].weight.detach()
        biases: list[Any] = [part.bias for part in parts]
        self.out_features, self.in_features = weight.shape
        self.bias = None if biases[0] is None else torch.cat(biases).detach()
        self.weight = weight
        self._packed: torch.Tensor | None = None
        if weight.dtype == torch.bfloat16 and torch.backends.mkldnn.is_available():
            self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
            self.weight = weight.new_empty(0)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        if self._packed is None:
            return functional.linear(states, self.weight, self.bias)
        return torch.ops.mkldnn._linear_pointwise(states, self._packed, self.bias, "none", [], "")


class FusedNorm(nn.Module):
    """RMS normalization."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight = norm.weight
        self.epsilon = float(getattr(norm, "variance_epsilon", None) or norm.eps)
        self.plus_one = _NORMS[type(norm).__name__]

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Normalize the last dimension."""
        return layers.rms_norm(states, self.weight, self.epsilon, plus_one=self.plus_one)


class FusedFeedForward(nn.Module):
    """down(activation(gate(x)) × up(x))."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        separate = ("gate_proj", "up_proj") if hasattr(module, "gate_proj") else ("gate_up_proj",)
        self.gate_up = PackedLinear([getattr(module, name) for name in separate])
        self.down = PackedLinear([module.down_proj])
        self.activation: layers.Activation = _activation(module)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Compute [..., hidden] → [..., hidden]."""
        rows = self.gate_up(states).flatten(0, -2)
        return self.down(layers.gate(rows, self.activation)).view(states.shape)


class FusedExperts(nn.Module):
    """The experts of a mixture: rows are sorted by expert, and each expert sees all of its rows at once."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.gate_up = nn.ModuleList(PackedLinear([_as_linear(weight)]) for weight in module.gate_up_proj)
        self.down = nn.ModuleList(PackedLinear([_as_linear(weight)]) for weight in module.down_proj)
        self.activation: layers.Activation = _activation(module)

    def forward(self, states: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Mix [T, hidden] by the `chosen` experts [T, k] and their `weights` [T, k]."""
        experts, order = chosen.flatten().sort(stable=True)
        rows = order // chosen.shape[1]
        shares = weights.flatten()[order].unsqueeze(1)
        result = torch.zeros_like(states)
        first = 0
        for expert, count in enumerate(torch.bincount(experts, minlength=len(self.gate_up)).tolist()):
            if count and expert < len(self.gate_up):
                own = slice(first, first + count)
                gated = layers.gate(self.gate_up[expert](states[rows[own]]), self.activation)
                result.index_add_(0, rows[own], (self.down[expert](gated) * shares[own]).to(result.dtype))
            first += count
        return result


def _as_linear(weight: torch.Tensor) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    linear.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    return linear


class FusedAttention(nn.Module):
    """Projections, norms of query and key, rotary embedding and paged attention of one layer."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.layer_idx = int(module.layer_idx)
        self.heads = int(module.config.num_attention_heads)
        separate = ("q_proj", "k_proj", "v_proj") if hasattr(module, "q_proj") else ("qkv_proj",)
        self.projection = PackedLinear([getattr(module, name) for name in separate])
        self.output = PackedLinear([module.o_proj])
        # Some modules hold their window, the others leave it to the model's configuration.
        window = module.sliding_window if hasattr(module, "sliding_window") else _configured_window(module.config)
        softcap = getattr(module, "attn_logit_softcapping", None)
        self.form = AttentionForm(float(module.scaling), window or 0, softcap or 0.0)
        query_norm, key_norm = getattr(module, "q_norm", None), getattr(module, "k_norm", None)
        self.query_norm = None if query_norm is None else FusedNorm(query_norm)
        self.key_norm = None if key_norm is None else FusedNorm(key_norm)

    def forward(
        self,
        hidden_states: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        *,
        lmc_step: Any,
        **_: Any,
    ) -> tuple[torch.Tensor, None]:
        """Compute [1, T, hidden] → [1, T, hidden] and write the rows' keys and values to their pages."""
        keys, values = lmc_step.keys[self.layer_idx], lmc_step.values[self.layer_idx]
        cosines, sines = position_embeddings
        query = layers.rotate_and_store(
            self.projection(hidden_states[0]),
            (cosines[0], sines[0]),
            lmc_step.batch.slots,
            keys,
            values,
            heads=self.heads,
            query_norm=None if self.query_norm is None else self.query_norm.weight,
            key_norm=None if self.key_norm is None else self.key_norm.weight,
            epsilon=0.0 if self.query_norm is None else self.query_norm.epsilon,
            plus_one=self.query_norm is not None and self.query_norm.plus_one,
        )
        mixed = paged_attention(query, keys, values, lmc_step.batch, self.form)
        return self.output(mixed.flatten(1)).unsqueeze(0), None


def _activation(module: Any) -> layers.Activation:
    found = module_forms.activation(module)
    assert found is not None  # as `module_forms` has checked
    return found


def _configured_window(config: Any) -> int | None:
    return getattr(config, "sliding_window", None) if config.model_type in ("mistral", "mixtral", "phi3") else None
