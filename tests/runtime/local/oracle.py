"""transformers' own generation, and how two greedy runs are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

CLOSE_CALL = 1e-4  # a divergence counts as equal where the two best logits are nearer than this


@dataclass
class Agreement:
    """Counts over many comparisons; `close_calls` diverged at a decision that fp32 can't settle."""

    compared: int = 0
    close_calls: int = 0

    def check(self, model: Any, prompt: Sequence[int], ours: Sequence[int], max_tokens: int) -> None:
        """Compare one greedy generation (EOS not kept) with transformers' own."""
        expected, margins = generate(model, tuple(prompt), max_tokens)
        self.compared += 1
        for position, token in enumerate(expected):
            if position < len(ours) and ours[position] == token:
                continue
            assert margins[position] < CLOSE_CALL, (
                f"token {position}: {ours[position : position + 1]} where transformers gives {token}, "
                f"margin {margins[position]:.2e}"
            )
            self.close_calls += 1
            return
        assert len(ours) == len(expected)


@lru_cache(4096)
def generate(model: Any, prompt: tuple[int, ...], max_tokens: int) -> tuple[list[int], list[float]]:
    """Greedy tokens without EOS, and the margin between the two best logits at each of them. Don't change them."""
    ids = torch.tensor([list(prompt)])
    output = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=max_tokens,
        do_sample=False,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens = output.sequences[0, len(prompt) :].tolist()
    best = torch.stack([logits[0].topk(2).values for logits in output.logits])
    margins = (best[:, 0] - best[:, 1]).tolist()
    if tokens and tokens[-1] == model.config.eos_token_id:
        return tokens[:-1], margins[:-1]
    return tokens, margins


def sequence_logprobs(model: Any, prompt: Sequence[int], continuation: Sequence[int]) -> list[float]:
    """Log-probability of each token of a continuation, by one plain forward call."""
    ids = torch.tensor([[*prompt, *continuation]])
    with torch.no_grad():
        logprobs = torch.log_softmax(model(ids).logits[0].float(), dim=-1)
    return [float(logprobs[len(prompt) - 1 + index, token]) for index, token in enumerate(continuation)]
