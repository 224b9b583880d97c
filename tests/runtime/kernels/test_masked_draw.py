"""Masked draws on a device, by definition and by Triton's kernel, against the engine's own sampler."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from lmc.runtime.kernels.choices import Choice
from lmc.runtime.kernels.masked_draw import UNCONSTRAINED, ConstraintTables, Drawn, Draws, Tables, draw_masked
from lmc.runtime.kernels.sampling import choose_tokens
from tests.runtime.kernels.drawing import differences, moved, some_draws, some_tables

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton has no wheel for this platform")
IMPLEMENTATIONS = ["reference", pytest.param("triton", marks=needs_triton)]
SIZE = 203


def allowed_by(tables: Tables, state: int) -> np.ndarray:
    words = tables.masks[tables.mask_of_state[state]]
    return np.array([bool(words[c >> 5] >> np.uint32(c & 31) & 1) for c in tables.class_of_token.tolist()])


def following(tables: Tables, state: int, token: int) -> int:
    kind = int(tables.class_of_token[token])
    words = tables.masks[tables.mask_of_state[state]]
    below = sum(bool(words[c >> 5] >> np.uint32(c & 31) & 1) for c in range(kind))
    return state + int(tables.next[tables.first_next[state] + below])


def drawn_by(implementation: Any, logits: torch.Tensor, draws: Draws, several: Sequence[Tables]) -> Drawn:
    """Drawn where the implementation runs: a compiled kernel on a GPU only."""
    compiled = implementation == "triton" and os.environ.get("TRITON_INTERPRET") != "1"
    device = "cuda" if compiled else "cpu"
    tables = ConstraintTables.of(several, device)
    drawn = draw_masked(logits.to(device), moved(draws, device), tables, implementation=implementation)
    return Drawn(*(each.cpu() for each in drawn))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_tokens_are_those_of_the_sampler_and_states_those_of_the_tables(implementation, seed):
    rng = np.random.default_rng(seed)
    several = [some_tables(rng, SIZE) for _ in range(3)]
    device = ConstraintTables.of(several, "cpu")
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
    draws = some_draws(rng, rows, numbers, SIZE)
    drawn = drawn_by(implementation, logits, draws, several)
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
    tables = some_tables(np.random.default_rng(1), SIZE)
    allowed = torch.from_numpy(allowed_by(tables, 0))
    logits = torch.zeros(3, SIZE, dtype=dtype)
    logits[0, 5] = torch.nan
    logits[1, allowed] = -torch.inf
    draws = some_draws(np.random.default_rng(2), 3, [0, 0, 0], SIZE)
    drawn = drawn_by(implementation, logits, draws, [tables])
    assert torch.isnan(drawn.highest[0])
    assert drawn.highest[1] == -torch.inf
    assert drawn.highest[2] == 0
    assert bool(allowed[int(drawn.tokens[2])])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_draws_follow_the_masked_distribution(implementation):
    rng = np.random.default_rng(3)
    tables = some_tables(rng, SIZE)
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
    drawn = drawn_by(implementation, logits.expand(rows, SIZE), draws, [tables])
    assert drawn.tokens.tolist() == np.searchsorted(edges, uniforms * edges[-1], side="right").tolist()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_no_rows_are_no_draws(implementation):
    rng = np.random.default_rng(0)
    drawn = drawn_by(
        implementation,
        torch.zeros(0, SIZE),
        some_draws(rng, 0, [], SIZE),
        [some_tables(np.random.default_rng(0), SIZE)],
    )
    assert [tuple(each.shape) for each in drawn] == [(0,)] * 3


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_differences_are_told_from_close_calls(implementation):
    rng = np.random.default_rng(4)
    several = [some_tables(rng, SIZE)]
    tables = ConstraintTables.of(several, "cpu")
    logits = torch.from_numpy(rng.normal(0, 3, (6, SIZE)).astype(np.float32))
    draws = some_draws(rng, 6, [0] * 6, SIZE)
    drawn = drawn_by(implementation, logits, draws, several)
    assert differences(logits, draws, tables, drawn) == (0, [])
    other = drawn.tokens.clone()
    other[2] = (other[2] + 1) % SIZE
    assert differences(logits, draws, tables, drawn._replace(tokens=other)) == (0, [2])
    assert differences(logits, draws, tables, drawn._replace(highest=drawn.highest + 1))[1] == [*range(6)]
    free = torch.tensor([UNCONSTRAINED], dtype=torch.int32)
    one, none = torch.ones(1), torch.zeros(1)
    flat = Draws(free, one, none.int(), one, none, torch.tensor([0.5], dtype=torch.float64))
    pair = torch.full((1, SIZE), -torch.inf)
    pair[0, 7:9] = 0.0  # the number lies on the border of the two
    for token in (7, 8):
        said = Drawn(torch.tensor([token]), none, free)
        assert differences(pair, flat, tables, said) == (int(token == 7), [])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [SIZE, 4097, 32_000, 128_256])
def test_on_a_gpu_the_kernel_draws_what_the_reference_draws(size, dtype):
    rng = np.random.default_rng(size)
    several = [some_tables(rng, size, states=50, most_classes=500) for _ in range(3)]
    tables = ConstraintTables.of(several, "cuda")
    rows = 24
    logits = torch.from_numpy(rng.normal(0, 3, (rows, size))).to(dtype).cuda()
    states = [int(each) for each in rng.integers(-1, 150, rows)]
    draws = moved(some_draws(rng, rows, states, size), "cuda")
    close, wrong = differences(logits, draws, tables, draw_masked(logits, draws, tables))
    assert wrong == []
    assert close <= 1


@pytest.mark.gpu
def test_on_a_gpu_draws_and_states_are_a_graph():
    """No draw asks the host for anything: a captured step gives what it gives outside, also with other inputs."""
    rng = np.random.default_rng(5)
    tables = ConstraintTables.of([some_tables(rng, 5000, states=50)], "cuda")
    draws = moved(some_draws(rng, 8, [*range(8)], 5000), "cuda")
    logits = torch.zeros(8, 5000, device="cuda")
    draw_masked(logits, draws, tables)  # compiled before it is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = draw_masked(logits, draws, tables)
    for _ in range(3):
        logits.copy_(torch.from_numpy(rng.normal(0, 3, (8, 5000)).astype(np.float32)))
        expected = draw_masked(logits, draws, tables)
        graph.replay()
        assert all(map(torch.equal, captured, expected))
        draws.states.copy_(captured.states)


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
