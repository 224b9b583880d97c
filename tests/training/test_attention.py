"""Blocked attention against torch's own: results and gradients."""

import pytest
import torch

from training.attention import BLOCK, causal_attention


@pytest.mark.parametrize("length", [1, 7, BLOCK, BLOCK + 1, 3 * BLOCK - 5])
def test_same_as_torch(length):
    generator = torch.Generator().manual_seed(length)
    inputs = tuple(torch.randn(3, 2, 3, length, 8, generator=generator).requires_grad_().unbind())
    query, key, value = inputs
    weight = torch.randn(2, 3, length, 8, generator=generator)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    actual = causal_attention(query, key, value)
    torch.testing.assert_close(actual, expected)
    for own, reference in zip(
        torch.autograd.grad(actual, inputs, weight), torch.autograd.grad(expected, inputs, weight), strict=True
    ):
        torch.testing.assert_close(own, reference, rtol=1e-4, atol=1e-5)
