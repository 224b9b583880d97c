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


@pytest.mark.parametrize("dtype", DTYPES)
def test_norm_weights_and_angles_of_another_type_are_converted(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    other = torch.bfloat16 if dtype == torch.float32 else torch.float32
    states, weight = torch.randn(9, 64).to(dtype), torch.randn(64).to(other)
    close(layers.rms_norm(states, weight, 1e-5), layers.rms_norm_reference(states, weight.to(dtype), 1e-5))
    projected, angles = torch.randn(9, 4 * 64).to(dtype), torch.randn(2, 64, 9).to(other).transpose(1, 2)
    given = (projected.T.contiguous().T, (angles[0], angles[1]), torch.arange(9, dtype=torch.int32))
    plain = (projected, (angles[0].to(dtype), angles[1].to(dtype)), torch.arange(9))
    caches = torch.zeros(4, 9, 1, 64, dtype=dtype)
    query = layers.rotate_and_store(*given, caches[0], caches[1], heads=2, query_norm=weight, key_norm=weight)
    norm = weight.to(dtype)
    expected = layers.rotate_and_store_reference(*plain, caches[2], caches[3], heads=2, query_norm=norm, key_norm=norm)
    tolerance = 5e-6 if dtype == torch.float32 else 6e-2
    torch.testing.assert_close(query, expected, atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(caches[:2], caches[2:], atol=tolerance, rtol=tolerance)


def test_gate_takes_any_strides() -> None:
    gate_up = torch.randn(128, 5).T
    close(layers.gate(gate_up, "silu"), layers.gate_reference(gate_up, "silu"))


@pytest.mark.parametrize("cache", [torch.zeros(9, 1, 64, dtype=torch.bfloat16), torch.zeros(9, 1, 128)[..., ::2]])
def test_caches_that_the_kernel_cannot_write_to_are_refused(cache: torch.Tensor) -> None:
    angles = (torch.ones(3, 64), torch.ones(3, 64))
    good = torch.zeros(9, 1, 64)
    for keys, values, name in ((cache, good, "key_cache"), (good, cache, "value_cache")):
        with pytest.raises(ValueError, match=rf"{name} must be contiguous and torch.float32.* with strides"):
            layers.rotate_and_store(torch.randn(3, 192), angles, torch.arange(3), keys, values, heads=1)
