"""Masked draws on a device, by definition and by Triton's kernel, against the engine's own sampler."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from lmc.runtime.kernels.choices import Choice
from lmc.runtime.kernels.masked_draw import UNCONSTRAINED, DeviceTables, Draws, Tables, draw_masked
from lmc.runtime.kernels.sampling import choose_tokens

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton has no wheel for this platform")
IMPLEMENTATIONS = ["reference", pytest.param("triton", marks=needs_triton)]
SIZE = 203


def some_tables(rng: np.random.Generator, states: int = 7) -> Tables:
    """An automaton at random in which each state allows something."""
    classes = int(rng.integers(2, 70))
    class_of_token = rng.integers(0, classes, SIZE)
    class_of_token[:classes] = np.arange(classes)
    kinds = int(rng.integers(1, states + 1))
    bits = rng.random((kinds, classes)) < rng.choice([0.05, 0.5, 0.95])
    bits[np.arange(kinds), rng.integers(0, classes, kinds)] = True
    padded = np.zeros((kinds, -(-classes // 32) * 32), np.uint8)
    padded[:, :classes] = bits
    mask_of_state = rng.integers(0, kinds, states)
    counts = bits.sum(axis=1)[mask_of_state]
    targets = [rng.integers(0, states, count) - state for state, count in enumerate(counts)]
    return Tables(
        class_of_token,
        np.packbits(padded, axis=1, bitorder="little").view(np.uint32),
        mask_of_state,
        np.cumsum(counts) - counts,
        np.concatenate(targets),
    )


def allowed_by(tables: Tables, state: int) -> np.ndarray:
    words = tables.masks[tables.mask_of_state[state]]
    return np.array([bool(words[c >> 5] >> np.uint32(c & 31) & 1) for c in tables.class_of_token.tolist()])


def following(tables: Tables, state: int, token: int) -> int:
    kind = int(tables.class_of_token[token])
    words = tables.masks[tables.mask_of_state[state]]
    below = sum(bool(words[c >> 5] >> np.uint32(c & 31) & 1) for c in range(kind))
    return state + int(tables.next[tables.first_next[state] + below])


def some_draws(rng: np.random.Generator, rows: int, states: list[int]) -> Draws:
    def pick(values, dtype):
        return torch.tensor(rng.choice(values, rows), dtype=dtype)

    return Draws(
        torch.tensor(states, dtype=torch.int32),
        pick([0.0, 0.4, 1.0, 2.5], torch.float32),
        pick([0, 0, 1, 3, 50, SIZE], torch.int32),
        pick([1.0, 1.0, 0.2, 0.9], torch.float32),
        pick([0.0, 0.0, 0.05, 0.5], torch.float32),
        torch.tensor(rng.random(rows)),
    )


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_tokens_are_those_of_the_sampler_and_states_those_of_the_tables(implementation, seed):
    rng = np.random.default_rng(seed)
    several = [some_tables(rng) for _ in range(3)]
    device = DeviceTables.of(several, "cpu")
    rows = 8
    logits = torch.from_numpy(rng.normal(0, 3, (rows, SIZE)).astype(np.float32))
    if seed % 2:
        logits = logits.round()  # many equal ones
    owners = rng.integers(-1, 3, rows)
    states = rng.integers(0, 7, rows)
    numbers = [
        UNCONSTRAINED if owner < 0 else device.first_state[owner] + int(state)
        for owner, state in zip(owners, states, strict=True)
    ]
    draws = some_draws(rng, rows, numbers)
    drawn = draw_masked(logits, draws, device, implementation=implementation)
    for row, (owner, state) in enumerate(zip(owners, states, strict=True)):
        masked = logits[row].numpy().copy()
        if owner >= 0:
            masked[~allowed_by(several[owner], state)] = -np.inf
        choice = Choice(
            temperature=float(draws.temperature[row]),
            top_k=int(draws.top_k[row]),
            top_p=float(draws.top_p[row]),
            min_p=float(draws.min_p[row]),
            uniform=float(draws.uniform[row]),
        )
        [chosen] = choose_tokens(masked[None], [choice], implementation="reference")
        token = int(drawn.tokens[row])
        assert (token, float(drawn.highest[row])) == (chosen.token, chosen.highest)
        if owner < 0:
            assert int(drawn.states[row]) == UNCONSTRAINED
        else:
            assert int(drawn.states[row]) == device.first_state[owner] + following(several[owner], state, token)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_logits_that_are_no_numbers_show(implementation, dtype):
    tables = some_tables(np.random.default_rng(1))
    device = DeviceTables.of([tables], "cpu")
    allowed = torch.from_numpy(allowed_by(tables, 0))
    logits = torch.zeros(3, SIZE, dtype=dtype)
    logits[0, 5] = torch.nan
    logits[1, allowed] = -torch.inf
    draws = some_draws(np.random.default_rng(2), 3, [0, 0, 0])
    drawn = draw_masked(logits, draws, device, implementation=implementation)
    assert torch.isnan(drawn.highest[0])
    assert drawn.highest[1] == -torch.inf
    assert drawn.highest[2] == 0
    assert bool(allowed[int(drawn.tokens[2])])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_draws_follow_the_masked_distribution(implementation):
    rng = np.random.default_rng(3)
    tables = some_tables(rng)
    logits = torch.from_numpy(rng.normal(0, 2, SIZE).astype(np.float32))
    masked = logits.double().masked_fill(~torch.from_numpy(allowed_by(tables, 2)), -torch.inf)
    edges = torch.softmax(masked, 0).cumsum(0).numpy()
    uniforms = (np.arange(32) + 0.5) / 32
    rows = len(uniforms)
    draws = Draws(
        torch.full((rows,), 2, dtype=torch.int32),
        torch.ones(rows),
        torch.zeros(rows, dtype=torch.int32),
        torch.ones(rows),
        torch.zeros(rows),
        torch.from_numpy(uniforms),
    )
    drawn = draw_masked(
        logits.expand(rows, SIZE), draws, DeviceTables.of([tables], "cpu"), implementation=implementation
    )
    assert drawn.tokens.tolist() == np.searchsorted(edges, uniforms * edges[-1], side="right").tolist()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_no_rows_are_no_draws(implementation):
    tables = DeviceTables.of([some_tables(np.random.default_rng(0))], "cpu")
    drawn = draw_masked(
        torch.zeros(0, SIZE), some_draws(np.random.default_rng(0), 0, []), tables, implementation=implementation
    )
    assert [tuple(each.shape) for each in drawn] == [(0,)] * 3


AHEAD_OF_TIME = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from lmc.runtime.kernels.masked_draw_triton import masked_draw_kernel

names = masked_draw_kernel.arg_names
kinds = {"logits": "*LOGITS", "uniforms": "*fp64", "row_stride": "i64", "size": "i32", "BLOCK": "constexpr"}
kinds |= dict.fromkeys(["temperatures", "top_ps", "min_ps", "out_highest"], "*fp32")
for logits in ("fp32", "bf16"):
    signature = {name: kinds.get(name, "*i32").replace("LOGITS", logits) for name in names}
    source = ASTSource(masked_draw_kernel, signature, constexprs={"BLOCK": 4096})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
    assert ".target sm_90" in made.asm["ptx"] and made.asm["cubin"]
"""


@needs_triton
def test_the_kernel_compiles_ahead_of_time_for_sm_90(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    script = tmp_path / "compile.py"  # Triton reads the source of what it compiles from a file
    script.write_text(AHEAD_OF_TIME)
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
