"""A decoder layer as one call, where all of its parts are of the kinds in `fused_modules.py`."""

from typing import Any

import torch
from torch import nn

from lmc.runtime.kernels.decoder import LayerParts, NativeLayer
from lmc.runtime.local.fused_modules import FusedAttention, FusedFeedForward, FusedNorm, PackedLinear

_NORMS_BEFORE = ("input_layernorm", "post_attention_layernorm")
_NORMS_AROUND = (*_NORMS_BEFORE, "pre_feedforward_layernorm", "post_feedforward_layernorm")


class FusedLayer(nn.Module):
    """Attention and feed-forward part with their norms and residuals: [1, T, hidden] → [1, T, hidden]."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        attention: FusedAttention = layer.self_attn
        feed_forward: FusedFeedForward = layer.mlp
        parts = [each.packed for each in _products(attention, feed_forward)]
        projection, output, gate_up, down = (part for part in parts if part is not None)

        def norm(module: FusedNorm | None) -> Any:
            return None if module is None else module.part(projection.dtype)

        around = hasattr(layer, _NORMS_AROUND[-1])
        norms = [norm(getattr(layer, name)) for name in (_NORMS_AROUND if around else _NORMS_BEFORE)]
        self.layer_idx = attention.layer_idx
        self._repeats = attention.heads // attention.key_heads
        self._native = NativeLayer(
            LayerParts(
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
            ),
            attention.key_heads,
            output.inputs // attention.heads,
        )

    def forward(
        self,
        hidden_states: torch.Tensor,
        *,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        lmc_step: Any,
        **_: Any,
    ) -> torch.Tensor:
        """Compute the layer and write the rows' keys and values to their pages."""
        cosines, sines = (each[0].to(hidden_states.dtype).contiguous() for each in position_embeddings)
        plan = lmc_step.batch.plan(self._repeats, self._native.parts.form.window)
        caches = (lmc_step.keys[self.layer_idx], lmc_step.values[self.layer_idx])
        states = hidden_states[0].contiguous()
        return self._native.run(states, (cosines, sines), caches, plan, lmc_step.memory).unsqueeze(0)


def can_be_fused(layer: Any) -> bool:
    """Whether all parts of a decoder layer were replaced, by products of lmc's own."""
    norms = [module for name, module in layer.named_children() if name.endswith("norm")]
    return (
        isinstance(layer.self_attn, FusedAttention)
        and isinstance(layer.mlp, FusedFeedForward)
        and all(isinstance(norm, FusedNorm) for norm in norms)
        and all(each.packed is not None for each in _products(layer.self_attn, layer.mlp))
    )


def _products(attention: FusedAttention, feed_forward: FusedFeedForward) -> tuple[PackedLinear, ...]:
    return attention.projection, attention.output, feed_forward.gate_up, feed_forward.down
