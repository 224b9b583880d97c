"""The Llama architecture as a lean training module: bf16 arithmetic, fp32 master weights, fused projections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from training.attention import causal_attention
from training.initial import initialize

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Shape:
    """Sizes of the network, named as in transformers' LlamaConfig."""

    vocab_size: int = 2048
    hidden_size: int = 256
    intermediate_size: int = 768
    num_hidden_layers: int = 5
    num_attention_heads: int = 4
    max_position_embeddings: int = 4096
    rope_theta: float = 500_000.0
    rms_norm_eps: float = 1e-5

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads


class _Rotate(torch.autograd.Function):
    """Rotary embedding; its gradient is the rotation back."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotated(states, cos, sin)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _rotated(gradients[0], cos, -sin), None, None


def _rotated(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = states.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Llama(nn.Module):
    """Weights of every layer are stacked by kind, so that the optimizer works on few large tensors."""

    def __init__(self, shape: Shape, seed: int) -> None:
        super().__init__()
        self.shape = shape
        layers, hidden, inner = shape.num_hidden_layers, shape.hidden_size, shape.intermediate_size
        self.embedding = nn.Parameter(torch.empty(shape.vocab_size, hidden))
        self.qkv = nn.Parameter(torch.empty(layers, 3, hidden, hidden))
        self.output = nn.Parameter(torch.empty(layers, hidden, hidden))
        self.gate_up = nn.Parameter(torch.empty(layers, 2, inner, hidden))
        self.down = nn.Parameter(torch.empty(layers, hidden, inner))
        self.attention_norm = nn.Parameter(torch.empty(layers, hidden))
        self.mlp_norm = nn.Parameter(torch.empty(layers, hidden))
        self.final_norm = nn.Parameter(torch.empty(hidden))
        initialize(self, seed)
        angles = shape.rope_theta ** (-torch.arange(0, shape.head_size, 2).float() / shape.head_size)
        table = torch.outer(torch.arange(shape.max_position_embeddings).float(), angles)
        self.cos, self.sin = table.cos().bfloat16(), table.sin().bfloat16()

    def matrices(self) -> Iterator[nn.Parameter]:
        """Yield the stacked weight matrices inside the layers."""
        yield from (self.qkv, self.output, self.gate_up, self.down)

    def others(self) -> Iterator[nn.Parameter]:
        """Yield the embedding and the norms."""
        yield from (self.embedding, self.attention_norm, self.mlp_norm, self.final_norm)

    def hidden(self, tokens: torch.Tensor) -> torch.Tensor:
        """Run tokens [rows, length] through all layers; return final states [rows, length, hidden] in bf16."""
        shape = self.shape
        rows, length = tokens.shape
        cos = self.cos[:length, None, :]
        sin = self.sin[:length, None, :]
        qkv, output, gate_up, down = (stack.bfloat16() for stack in self.matrices())
        attention_norm, mlp_norm = self.attention_norm.bfloat16(), self.mlp_norm.bfloat16()
        states = functional.embedding(tokens, self.embedding.bfloat16())
        heads = shape.num_attention_heads
        for layer in range(shape.num_hidden_layers):
            normed = functional.rms_norm(states, (shape.hidden_size,), attention_norm[layer], shape.rms_norm_eps)
            projected = functional.linear(normed, qkv[layer].flatten(0, 1)).view(
                rows, length, 3 * heads, shape.head_size
            )
            query_key = _Rotate.apply(projected[:, :, : 2 * heads], cos, sin).transpose(1, 2)
            value = projected[:, :, 2 * heads :].transpose(1, 2)
            mixed = causal_attention(query_key[:, :heads], query_key[:, heads:], value)
            states = states + functional.linear(mixed.transpose(1, 2).reshape(rows, length, -1), output[layer])
            normed = functional.rms_norm(states, (shape.hidden_size,), mlp_norm[layer], shape.rms_norm_eps)
            gate, up = functional.linear(normed, gate_up[layer].flatten(0, 1)).chunk(2, dim=-1)
            states = states + functional.linear(functional.silu(gate) * up, down[layer])
        return functional.rms_norm(states, (shape.hidden_size,), self.final_norm.bfloat16(), shape.rms_norm_eps)

    def loss(self, tokens: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, float, int]:
        """Return the weighted loss sum over `tokens` [rows, length + 1], the plain one over answer tokens, their count.

        The vocabulary projection runs only at positions with a weight.
        """
        states = self.hidden(tokens[:, :-1])
        counted = weights > 0
        logits = functional.linear(states[counted], self.embedding.bfloat16()).float()
        losses = functional.cross_entropy(logits, tokens[:, 1:][counted], reduction="none")
        own = weights[counted]
        answers = losses.detach()[own >= 1]
        return (losses * own).sum(), answers.sum().item(), answers.numel()
