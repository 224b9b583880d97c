"""Muon for the matrices inside the layers, AdamW for embedding and norms.

Muon: K. Jordan et al., 2024: momentum whose matrix is replaced by its nearest orthogonal one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import nn

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_NEWTON_STEPS = 5


def orthogonalized(matrices: torch.Tensor) -> torch.Tensor:
    """Bring all singular values of matrices [..., rows, columns] near one (Newton-Schulz iteration in bf16)."""
    a, b, c = _COEFFICIENTS
    current = matrices.flatten(0, -3).bfloat16()
    tall = current.size(-2) > current.size(-1)
    if tall:
        current = current.mT
    current = current / (current.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_NEWTON_STEPS):
        gram = current @ current.mT
        current = a * current + (b * gram + c * gram @ gram) @ current
    if tall:
        current = current.mT
    return current.reshape(matrices.shape).float()


class Muon(torch.optim.Optimizer):
    """Orthogonalized Nesterov momentum on stacks of matrices."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.5
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update every parameter that has a gradient; `closure`, if given, computes the loss first."""
        loss = None if closure is None else closure()
        for parameter in self.param_groups[0]["params"]:
            self.update(parameter)
        return loss

    @torch.no_grad()
    def update(self, parameter: nn.Parameter) -> None:
        """Update one parameter; different parameters may be updated by different threads."""
        if parameter.grad is None:
            return
        group = self.param_groups[0]
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        average = state["momentum"].lerp_(parameter.grad, 1 - group["momentum"])
        update = orthogonalized(parameter.grad.lerp(average, group["momentum"]))
        scale = max(1.0, parameter.size(-2) / parameter.size(-1)) ** 0.5
        parameter.mul_(1 - group["lr"] * group["decay"])
        parameter.add_(update, alpha=-group["lr"] * scale)
