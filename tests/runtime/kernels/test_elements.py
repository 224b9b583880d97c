"""The functions of native/elements.h, through a small library of their own."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lmc.runtime.kernels.native.build import SOURCES
from lmc.runtime.kernels.native.library import why_not
from lmc.toolchain import load_library

pytestmark = pytest.mark.skipif(why_not() is not None, reason="no C compiler")
SOURCE = """
#include "elements.h"
void exponentials(const float *from, float *to, int count) {
    for (int at = 0; at + LANES <= count; at += LANES) *(vector *)(to + at) = exponential(*(const vector *)(from + at));
}
void halves(const float *from, uint16_t *to, int count) {
    for (int at = 0; at < count; at++) to[at] = to_half(from[at]);
}
void stored(const float *from, uint16_t *to, int count) {
    for (int at = 0; at + LANES <= count; at += LANES) store(to, at, 1, *(const vector *)(from + at));
}
"""
# Every NaN with one bit of its payload set, and some with several; both signs.
PAYLOADS = [*(1 << bit for bit in range(23)), 0x400001, 0x7FFFFF, 0x0001FF, 0x4001FF]
NANS = np.array([0x7F800000 | low for low in PAYLOADS] + [0xFF800000 | low for low in PAYLOADS], np.uint32)
Run = Callable[[str, NDArray[np.float32], type], np.ndarray]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Calls a function of the library with as many numbers as fill its vectors."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "elements.h").write_bytes((SOURCES.folder / "elements.h").read_bytes())
    (source / "all.c").write_text(SOURCE)
    small = replace(SOURCES, folder=source, files=("all.c",), headers=("elements.h",))
    library = load_library(small, tmp_path / "cache")

    def call(name: str, numbers: NDArray[np.float32], result_type: type) -> np.ndarray:
        whole = np.resize(numbers, -(-numbers.size // 16) * 16)
        result = np.empty(whole.size, result_type)
        library[name](ctypes.c_void_p(whole.ctypes.data), ctypes.c_void_p(result.ctypes.data), whole.size)
        return result[: numbers.size]

    return call


def test_the_exponential_is_exact_to_float_and_keeps_every_nan(run: Run) -> None:
    numbers = np.concatenate([np.linspace(-87, 88, 1001), [0.0, -0.0]]).astype(np.float32)
    np.testing.assert_allclose(run("exponentials", numbers, np.float32), np.exp(numbers.astype(np.float64)), rtol=2e-7)
    assert not run("exponentials", np.array([-87.5, -1e30, -np.inf], np.float32), np.float32).any()
    assert np.isnan(run("exponentials", NANS.view(np.float32), np.float32)).all()


@pytest.mark.parametrize("name", ["halves", "stored"])
def test_bfloat16_is_rounded_to_even_and_keeps_every_nan(run: Run, name: str) -> None:
    numbers = np.array([1.0, 1.00390625, 1.01171875, -1.0039065, 3.4e38, np.inf, -0.0], np.float32)
    expected = np.array([0x3F80, 0x3F80, 0x3F82, 0xBF81, 0x7F80, 0x7F80, 0x8000], np.uint16)
    np.testing.assert_array_equal(run(name, numbers, np.uint16), expected)
    wide = run(name, NANS.view(np.float32), np.uint16).astype(np.uint32) << 16
    assert np.isnan(wide.view(np.float32)).all()
