import pytest
import torch

from lmc.runtime.kernels import layers
from lmc.runtime.kernels.native.library import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason="no C compiler")
DTYPES = [torch.float32, torch.bfloat16]


def close(result: torch.Tensor, expected: torch.Tensor) -> None:
    tolerance = 3e-6 if result.dtype == torch.float32 else 2e-2
    torch.testing.assert_close(result, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("plus_one", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (37, 20), (5, 3, 64), (200, 576)])
def test_rms_norm(dtype: torch.dtype, plus_one: bool, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    states, weight = torch.randn(shape).to(dtype), torch.randn(shape[-1]).to(dtype)
    result = layers.rms_norm(states, weight, 1e-5, plus_one=plus_one)
    close(result, layers.rms_norm_reference(states, weight, 1e-5, plus_one=plus_one))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "key_heads", "size", "rotated"), [(9, 3, 64, 64), (4, 2, 20, 10), (4, 1, 128, 32)])
@pytest.mark.parametrize("norms", [None, False, True])
def test_rotate_and_store(dtype, heads: int, key_heads: int, size: int, rotated: int, norms: bool | None) -> None:
    torch.manual_seed(0)
    rows, pages = 33, 100
    projected = torch.randn(rows, (heads + 2 * key_heads) * size).to(dtype)
    # Both halves of the angles differ: models with their own frequencies for each half are laid out so.
    angles = (torch.randn(rows, rotated).to(dtype), torch.randn(rows, rotated).to(dtype))
    slots = torch.randperm(pages)[:rows]
    norm = None if norms is None else torch.randn(size).to(dtype)
    results, caches = [], []
    for function in (layers.rotate_and_store, layers.rotate_and_store_reference):
        keys, values = (
            torch.zeros(pages, key_heads, size, dtype=dtype),
            torch.zeros(pages, key_heads, size, dtype=dtype),
        )
        query = function(
            projected,
            angles,
            slots,
            keys,
            values,
            heads=heads,
            query_norm=norm,
            key_norm=norm,
            epsilon=1e-6,
            plus_one=bool(norms),
        )
        results.append(query)
        caches.append((keys, values))
    tolerance = 5e-6 if dtype == torch.float32 else 6e-2
    torch.testing.assert_close(results[0], results[1], atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(caches[0][0], caches[1][0], atol=tolerance, rtol=tolerance)
    assert torch.equal(caches[0][1], caches[1][1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
def test_gate(dtype: torch.dtype, activation: layers.Activation) -> None:
    torch.manual_seed(0)
    gate_up = torch.randn(40, 2 * 100).to(dtype) * 5
    gate_up[0, :6] = torch.tensor([0.0, -0.0, 100.0, -100.0, 1e-30, -3e4]).to(dtype)
    close(layers.gate(gate_up, activation), layers.gate_reference(gate_up, activation))


def test_gate_keeps_nan() -> None:
    gate_up = torch.ones(1, 64)
    gate_up[0, 3] = float("nan")
    assert layers.gate(gate_up, "silu")[0, 3].isnan()
