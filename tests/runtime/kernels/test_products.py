import ctypes
import platform
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmc.runtime.kernels import products
from lmc.runtime.kernels.layers import Activation
from lmc.runtime.kernels.native.build import SOURCES
from lmc.runtime.kernels.native.library import why_not
from lmc.toolchain import load_library

pytestmark = pytest.mark.skipif(why_not() is not None, reason="no C compiler")
DTYPES = [torch.float32, torch.bfloat16]
TILES = f"-include {Path(__file__).with_name('emulated_tiles.h')}"
# Options of the compiler: for this processor, for one with tiles (emulated), and for one with small vectors.
VARIANTS = ["", TILES, *(["-mno-avx512f -mno-avx2 -mno-avx"] if platform.machine() == "x86_64" else [])]


@pytest.fixture(scope="module", params=VARIANTS, ids=["own", "tiles", "small vectors"][: len(VARIANTS)])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", f"{shutil.which('cc') or 'gcc'} {request.param}")
        loaded = load_library(replace(SOURCES, files=("products.c", "pool.c")), tmp_path_factory.mktemp("cache"))
    loaded.lmc_packed_words.argtypes = (ctypes.c_int32,) * 4
    loaded.lmc_packed_words.restype = ctypes.c_int64
    return loaded


@pytest.fixture(autouse=True)
def kernels(compiled: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "library", lambda: compiled)


def close(result: torch.Tensor, expected: torch.Tensor) -> None:
    # The order of sums differs; what is rounded to bfloat16 differs by a bit of it, or of what it was added to.
    tolerance = 1e-5 if result.dtype == torch.float32 else 2e-2
    torch.testing.assert_close(result, expected, atol=tolerance, rtol=tolerance)


def some(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Numbers whose products of a row sum up to about 1."""
    return (torch.randn(shape) / shape[-1] ** 0.25).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 3, 4, 12, 13, 16, 33, 97, 200])
@pytest.mark.parametrize(("inputs", "outputs"), [(2, 1), (48, 31), (64, 96), (578, 100)])
def test_products(dtype: torch.dtype, rows: int, inputs: int, outputs: int) -> None:
    torch.manual_seed(0)
    states, weight, bias = some((rows, inputs), dtype), some((outputs, inputs), dtype), torch.randn(outputs).to(dtype)
    residual = torch.randn(rows, outputs).to(dtype)
    packed = products.pack(weight, bias)
    close(products.product(states, packed), products.product_reference(states, weight, bias))
    expected = products.product_reference(states, weight, bias, residual=residual)
    close(products.product(states, packed, residual), expected)
    close(products.product(states, products.pack(weight)), products.product_reference(states, weight))
    wide = products.product(states, products.pack(weight, bias, wide=True))
    assert wide.dtype == torch.float32
    torch.testing.assert_close(wide, products.product_reference(states.float(), weight.float(), bias.float()))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
@pytest.mark.parametrize(("rows", "inputs", "width"), [(1, 64, 16), (5, 48, 20), (40, 66, 33), (7, 20, 1)])
@pytest.mark.parametrize("biased", [False, True])
def test_gated_products(
    dtype: torch.dtype, activation: Activation, rows: int, inputs: int, width: int, biased: bool
) -> None:
    torch.manual_seed(0)
    states, weight = some((rows, inputs), dtype), some((2 * width, inputs), dtype)
    bias = torch.randn(2 * width).to(dtype) if biased else None
    result = products.product(states, products.pack(weight, bias, activation))
    assert result.shape == (rows, width)
    close(result, products.product_reference(states, weight, bias, activation))


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_inputs_are_summed_up_part_by_part(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for rows, inputs in ((2, 4102), (40, 2080)):
        states, weight = some((rows, inputs), dtype), some((40, inputs), dtype)
        expected = products.product_reference(states.double(), weight.double()).to(dtype)
        close(products.product(states, products.pack(weight)), expected)


@pytest.mark.parametrize("inputs", [768, 8192])
def test_float32_sums_are_as_near_as_those_of_torch(inputs: int) -> None:
    torch.manual_seed(1)
    states, weight = torch.randn(32, inputs), torch.randn(64, inputs)
    exact = states.double() @ weight.double().T
    ours = (products.product(states, products.pack(weight)) - exact).pow(2).mean().sqrt()
    theirs = (states @ weight.T - exact).pow(2).mean().sqrt()
    assert ours < 2 * theirs


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    states, weight = some((70, 128), dtype), products.pack(some((200, 128), dtype))
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5, 40):
            torch.set_num_threads(threads)
            results.append(products.product(states, weight))
    finally:
        torch.set_num_threads(before)
    close(results[0], results[1])
    assert all(torch.equal(results[1], other) for other in results[2:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_in_its_row(dtype: torch.dtype, bad: float) -> None:
    torch.manual_seed(0)
    states, weight = some((20, 64), dtype), some((33, 64), dtype)
    packed = products.pack(weight)
    healthy = products.product(states, packed)
    states[7, 5] = bad
    result = products.product(states, packed)
    assert not result[7].isfinite().any()
    assert torch.equal(result[:7], healthy[:7])
    assert torch.equal(result[8:], healthy[8:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_states_and_weights_may_lie_apart_in_memory(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    states, weight = some((64, 10), dtype).T, some((64, 30), dtype).T
    close(products.product(states, products.pack(weight)), products.product_reference(states, weight))


def test_what_can_not_be_packed_is_refused() -> None:
    with pytest.raises(ValueError, match="pairs of inputs; there are 5"):
        products.pack(torch.ones(4, 5, dtype=torch.bfloat16))
    with pytest.raises(ValueError, match="there are 3 outputs"):
        products.pack(torch.ones(3, 4), activation="silu")
    with pytest.raises(ValueError, match="type of the weights"):
        products.pack(torch.ones(4, 4), activation="silu", wide=True)


@pytest.mark.parametrize(
    "weight",
    [
        lambda: torch.ones(4, 5, dtype=torch.bfloat16),
        lambda: torch.ones(4, 4, dtype=torch.float16),
        lambda: torch.ones(4, 4, device="meta"),
    ],
)
def test_other_weights_are_left_to_torch(weight: Callable[[], torch.Tensor]) -> None:
    assert not products.pays(weight())


def test_without_a_compiler_products_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "why_not", lambda: "there is none")
    assert not products.pays(torch.ones(4, 4))
