"""Build of the compiled kernels: the C sources of this folder and their compiler options."""

from pathlib import Path

from lmc.toolchain import Sources

SOURCES = Sources(
    name="the kernels",
    folder=Path(__file__).parent,
    files=("pool.c", "attention.c", "layers.c", "products.c", "decoder.c", "sampling.c"),
    headers=(
        *("pool.h", "elements.h", "attention_call.h", "attention.h", "attention_weights.h", "attention_few.h"),
        *("attention_many.h", "activations.h", "layers.h", "products.h", "tiles.h", "selection.h"),
    ),
    options=("-O3", "-std=gnu11", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"),
    libraries=("-lm", "-lpthread"),
)
