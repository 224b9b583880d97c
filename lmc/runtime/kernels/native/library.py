"""The compiled library, loaded once per process."""

import ctypes
from functools import lru_cache

import torch

from lmc.runtime.kernels.native.build import SOURCES
from lmc.toolchain import NativeBuildError, load_library

TYPES = {torch.float32: 0, torch.bfloat16: 1}
# Functions of a structure and a number of threads that give nothing back.
_CALLS = (
    *("lmc_attention", "lmc_rms_norm", "lmc_rotate_and_store", "lmc_gate", "lmc_pack", "lmc_product"),
    *("lmc_decoder_layers", "lmc_sample"),
)


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The compiled kernels.

    Raises:
        NativeBuildError: see `load_library`.
    """
    loaded = load_library(SOURCES)
    for name in _CALLS:
        function = getattr(loaded, name)
        function.argtypes = (ctypes.c_void_p, ctypes.c_int32)
        function.restype = None
    loaded.lmc_attention_scratch.argtypes = (ctypes.c_int32,) * 4
    loaded.lmc_attention_scratch.restype = ctypes.c_int64
    loaded.lmc_packed_words.argtypes = (ctypes.c_int32,) * 4
    loaded.lmc_packed_words.restype = ctypes.c_int64
    loaded.lmc_sample_scratch.argtypes = (ctypes.c_int64,)
    loaded.lmc_sample_scratch.restype = ctypes.c_int64
    return loaded


@lru_cache(maxsize=1)
def why_not() -> str | None:
    """Why there is no library here, or None where there is one."""
    try:
        library()
    except NativeBuildError as error:
        return str(error)
    return None
