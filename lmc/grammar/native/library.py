"""The C sources of this folder as functions, compiled at first use."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

from lmc.toolchain import NativeBuildError, Sources, load_library

SOURCES = Sources(
    name="the walks of vocabularies",
    folder=Path(__file__).parent,
    files=("trie.c", "walk.c", "states.c", "intern.c", "functions.c", "parts.c", "table.c"),
    headers=("trie.h", "intern.h", "functions.h", "parts.h"),
    options=("-O3", "-std=gnu11", "-shared", "-fPIC"),
)
_POINTER, _COUNT, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_SIGNATURES = {
    "lmc_trie_build": (_COUNT, _POINTER, _POINTER, _POINTER, _COUNT, _POINTER, _POINTER, _POINTER),
    "lmc_trie_subtrees": (None, _POINTER, _COUNT, _POINTER, _POINTER, _POINTER),
    "lmc_trie_walk": (_COUNT, _POINTER, _INT),
    "lmc_byte_classes": (_INT, _POINTER, _COUNT, _POINTER),
    "lmc_number_states": (_COUNT, _POINTER, _POINTER, _INT, _COUNT, _POINTER, _POINTER),
    "lmc_columns": (None, _POINTER, _POINTER, _INT, _POINTER, _COUNT, _POINTER, _POINTER),
    "lmc_functions": (_POINTER, *(_POINTER,) * 4, _COUNT, _COUNT, *(_POINTER,) * 3),
    "lmc_functions_count": (_COUNT, _POINTER),
    "lmc_functions_equal": (_INT, _POINTER, _POINTER, _POINTER),
    "lmc_functions_free": (None, _POINTER),
    "lmc_table": (_POINTER, _POINTER, _POINTER, _INT, _INT, _POINTER, _COUNT, _COUNT, _POINTER),
    "lmc_table_sizes": (None, _POINTER, _POINTER),
    "lmc_table_copy": (None, _POINTER, _COUNT, _POINTER),
    "lmc_table_free": (None, _POINTER),
    "lmc_shapes_hold": (_INT, *(_POINTER,) * 7, _COUNT, _COUNT),
}


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The compiled functions, or None where there is no compiler: then numpy does the same, slower."""
    try:
        loaded = load_library(SOURCES)
    except NativeBuildError:
        return None
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, tuple(arguments)
    return loaded
