"""Decoder layers as one call, where all of their parts are of the kinds in `fused_modules.py`."""

from typing import Any

import torch
from torch import nn

from lmc.runtime.kernels.decoder import LayerParts, NativeLayers
from lmc.runtime.local.modules.fused_modules import FusedAttention, FusedFeedForward, FusedNorm, PackedLinear

_NORMS_BEFORE = ("input_layernorm", "post_attention_layernorm")
_NORMS_AROUND = (*_NORMS_BEFORE, "pre_feedforward_layernorm", "post_feedforward_layernorm")


class FusedLayers(nn.Module):
    """Consecutive layers that are given the same angles: [1, T, hidden] → [1, T, hidden].

    Each is attention and feed-forward part with their norms and residuals, and `can_be_fused`.
    """

    def __init__(self, layers: list[Any]) -> None:
        super().__init__()
        attention: FusedAttention = layers[0].self_attn
        size = attention.output.in_features // attention.heads
        self.indices = [layer.self_attn.layer_idx for layer in layers]
        self._native = NativeLayers([_parts(layer) for layer in layers], attention.key_heads, size)

    def forward(
        self,
        hidden_states: torch.Tensor,
        *,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        lmc_step: Any,
        **_: Any,
    ) -> torch.Tensor:
        """Compute the layers and write the rows' keys and values to their pages."""
        cosines, sines = (each[0].to(hidden_states.dtype).contiguous() for each in position_embeddings)
        caches = [(lmc_step.keys[index], lmc_step.values[index]) for index in self.indices]
        states = hidden_states[0].contiguous()
        result = self._native.run(states, (cosines, sines), caches, lmc_step.batch, lmc_step.memory)
        return result.unsqueeze(0)


def can_be_fused(layer: Any) -> bool:
    """Return True if all parts of a decoder layer were replaced, by products of lmc's own."""
    norms = [module for name, module in layer.named_children() if name.endswith("norm")]
    return (
        isinstance(layer.self_attn, FusedAttention)
        and isinstance(layer.mlp, FusedFeedForward)
        and all(isinstance(norm, FusedNorm) for norm in norms)
        and all(each.packed is not None for each in _products(layer.self_attn, layer.mlp))
    )


def of_one_shape(layers: list[Any]) -> bool:
    """Return True if layers that can be fused have the same widths and heads."""
    shapes = {
        (
            attention.heads,
            attention.key_heads,
            *((each.in_features, each.out_features) for each in _products(attention, mlp)),
        )
        for attention, mlp in ((layer.self_attn, layer.mlp) for layer in layers)
    }
    return len(shapes) == 1


def _parts(layer: Any) -> LayerParts:
    attention: FusedAttention = layer.self_attn
    packed = [each.packed for each in _products(attention, layer.mlp)]
    projection, output, gate_up, down = (part for part in packed if part is not None)

    def norm(module: FusedNorm | None) -> Any:
        return None if module is None else module.part(projection.dtype)

    around = hasattr(layer, _NORMS_AROUND[-1])
    norms = [norm(getattr(layer, name)) for name in (_NORMS_AROUND if around else _NORMS_BEFORE)]
    return LayerParts(
        input_norm=norms[0],
        projection=projection,
        query_norm=norm(attention.query_norm),
        key_norm=norm(attention.key_norm),
        heads=attention.heads,
        form=attention.form,
        output=output,
        attention_norm=norms[1] if around else None,
        feed_norm=norms[2] if around else norms[1],
        gate_up=gate_up,
        down=down,
        last_norm=norms[3] if around else None,
    )


def _products(attention: FusedAttention, feed_forward: FusedFeedForward) -> tuple[PackedLinear, ...]:
    return attention.projection, attention.output, feed_forward.gate_up, feed_forward.down
