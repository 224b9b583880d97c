"""The modules that take the place of transformers' own on the CPU; `fusion.py` chooses them.

Projections of the same input become one matrix product, whose weights are laid out once and whose originals are freed:
by `lmc/runtime/kernels/products.py` where that is fastest, else in bf16 the way oneDNN wants them. Normalization,
rotary embedding, the store into pages and the gate are single passes in C.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lmc.runtime.kernels import layers, products
from lmc.runtime.kernels.decoder import NormPart
from lmc.runtime.kernels.forms import AttentionForm
from lmc.runtime.kernels.paged_attention import paged_attention
from lmc.runtime.local.modules import module_forms


class PackedLinear(nn.Module):
    """The products of one input with several weight matrices, side by side: [..., in] → [..., sum of outs].

    All of them have a bias, or none has. With an activation the first half of the outputs are gates of the others:
    [..., in] → [..., half of the outs]. The weights are kept in one layout only; `packed` is the kernels' own.
    With `wide` the results may be float32, which saves rounding them.
    """

    def __init__(
        self, parts: list[nn.Linear], activation: layers.Activation | None = None, *, wide: bool = False
    ) -> None:
        super().__init__()
        self._activation: layers.Activation | None = activation
        weight = torch.cat([part.weight for part in parts]) if len(parts) > 1 else parts[0].weight.detach()
        biases: list[Any] = [part.bias for part in parts]
        self.out_features, self.in_features = weight.shape
        self.bias = None if biases[0] is None else torch.cat(biases).detach()
        self.weight = weight
        self.packed: products.PackedWeight | None = None
        self._reordered: torch.Tensor | None = None
        if products.pays(weight):
            self.packed = products.pack(weight, self.bias, activation, wide=wide)
            self.weight = weight.new_empty(0)
        elif weight.dtype == torch.bfloat16 and torch.backends.mkldnn.is_available():
            self._reordered = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
            self.weight = weight.new_empty(0)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        if self.packed is not None:
            rows = products.product(states.flatten(0, -2), self.packed)
            return rows.view(*states.shape[:-1], self.packed.width)
        if self._reordered is None:
            result = functional.linear(states, self.weight, self.bias)
        else:
            result = torch.ops.mkldnn._linear_pointwise(states, self._reordered, self.bias, "none", [], "")
        if self._activation is None:
            return result
        return layers.gate(result.flatten(0, -2), self._activation).view(*states.shape[:-1], -1)


class FusedNorm(nn.Module):
    """RMS normalization."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight = norm.weight
        self.epsilon = module_forms.epsilon(norm)
        self.plus_one = module_forms.NORMS[type(norm).__name__]

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Normalize the last dimension."""
        return layers.rms_norm(states, self.weight, self.epsilon, plus_one=self.plus_one)

    def part(self, dtype: torch.dtype) -> NormPart:
        """Return the parameters of the norm for `NativeLayer`."""
        return NormPart(self.weight.detach().to(dtype).contiguous(), self.epsilon, self.plus_one)


class FusedFeedForward(nn.Module):
    """down(activation(gate(x)) × up(x))."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        separate = ("gate_proj", "up_proj") if hasattr(module, "gate_proj") else ("gate_up_proj",)
        self.gate_up = PackedLinear([getattr(module, name) for name in separate], _activation(module))
        self.down = PackedLinear([module.down_proj])

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Compute [..., hidden] → [..., hidden]."""
        return self.down(self.gate_up(states))


class FusedExperts(nn.Module):
    """The experts of a mixture: rows are sorted by expert, and each expert sees all of its rows at once."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        chosen = _activation(module)
        self.gate_up = nn.ModuleList(PackedLinear([_as_linear(weight)], chosen) for weight in module.gate_up_proj)
        self.down = nn.ModuleList(PackedLinear([_as_linear(weight)]) for weight in module.down_proj)

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
                gated = self.gate_up[expert](states[rows[own]])
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
        self.key_heads = int(module.config.num_key_value_heads)
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
