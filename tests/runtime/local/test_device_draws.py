"""Draws on a device against those of the host, for everything that a device draws; a CPU stands for it."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from lmc import grammar
from lmc.ir.engine.protocol import Request, SamplingParams
from lmc.runtime.local.sampling import device_draws
from lmc.runtime.local.sampling.device_draws import DeviceDraws, draws_on
from lmc.runtime.local.sampling.sampler import Draw, DrawnToken, draw_tokens
from tests.runtime.local.conftest import OpenEngine
from tests.runtime.local.outcomes import run

VOCABULARY = grammar.Vocabulary([bytes([byte]) for byte in range(256)] + [b"", b"ab", b"12"], eos_id=256)
SIZE = VOCABULARY.size + 5  # as a model whose embeddings are padded
PATTERNS = ("[ab]{1,9}", r"\d+(\.\d\d)?", "(?i)yes|no", "x*")


def constraint(pattern: str):
    made = grammar.compile(regex=pattern, tokenizer=VOCABULARY)
    made.build()
    return made


def draw_of(state, sampling: SamplingParams, seed: int) -> Draw:
    mask = None if state is None else state.mask()
    return Draw(sampling, seed, 3, mask=mask, state=state)


def some_draws(rng: np.random.Generator, rows: int) -> list[Draw]:
    constraints = [constraint(pattern) for pattern in PATTERNS]
    draws: list[Draw] = []
    for row in range(rows):
        sampling = SamplingParams(
            temperature=float(rng.choice([0.0, 0.7, 1.5])),
            top_k=int(rng.choice([0, 3])),
            top_p=float(rng.choice([1.0, 0.8])),
            min_p=float(rng.choice([0.0, 0.1])),
        )
        chosen = int(rng.integers(-1, len(constraints)))
        draws.append(draw_of(None if chosen < 0 else constraints[chosen].start(), sampling, row))
    return draws


INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@pytest.mark.parametrize(
    ("implementation", "device"),
    [
        ("reference", "cpu"),
        pytest.param("triton", "cpu", marks=pytest.mark.skipif(not INTERPRETED, reason="kernels are compiled here")),
        pytest.param("reference", "cuda", marks=pytest.mark.gpu),
        pytest.param("triton", "cuda", marks=pytest.mark.gpu),
    ],
)
def test_tokens_are_those_of_the_host(implementation, device):
    if implementation == "triton":
        pytest.importorskip("triton")
    rng = np.random.default_rng(0)
    draws = some_draws(rng, 24)
    logits = torch.from_numpy(rng.normal(0, 3, (24, SIZE)).astype(np.float32))
    on_device = DeviceDraws(torch.device(device), implementation)
    there = logits.to(device)
    assert on_device.choose(there, draws) is not None
    assert draw_tokens(there, draws, on_device) == draw_tokens(logits, draws)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_generations_are_drawn_on_the_device_and_drafts_change_nothing(open_engine: OpenEngine, device: str):
    """Greedy and fp32, so that only close calls could differ; sampled ones are whole outputs at least."""
    engine = open_engine(device=device)
    on_device = engine._worker._on_device or DeviceDraws(torch.device(device))
    engine._worker._on_device = on_device
    made = grammar.compile(regex=r"The quick (brown|red) fox, [a-z]{1,9}, \d{1,3} dogs\.", tokenizer=engine.tokenizer)
    made.build()
    for sampling in (SamplingParams(max_tokens=80), SamplingParams(max_tokens=80, temperature=1.0, top_p=0.9)):
        requests = [Request((9, 8, 7 + seed), sampling, seed, constraint=made) for seed in range(8)]
        off, exact = (run(engine, [replace(each, jump_forward=mode) for each in requests]) for mode in ("off", "exact"))
        assert all(made.matches(each[1]) for each in (*off, *exact))
        assert not sampling.greedy or sum(map(tuple.__eq__, off, exact)) >= 7
    assert [table.index for table in on_device._held] == [made.build()]


def test_later_states_and_further_constraints_find_their_tables(monkeypatch):
    monkeypatch.setattr(device_draws, "MAX_CONSTRAINTS", 2)
    rng = np.random.default_rng(1)
    on_device = DeviceDraws(torch.device("cpu"), "reference")
    states = [constraint(pattern).start() for pattern in PATTERNS]
    for step in range(12):
        held = [states[step % 4], states[(step + 1) % 4]]
        logits = torch.from_numpy(rng.normal(0, 3, (2, SIZE)).astype(np.float32))
        draws = [draw_of(state, SamplingParams(), step) for state in held]
        found = draw_tokens(logits, draws, on_device)
        assert found == draw_tokens(logits, draws)
        for place, each in zip((step % 4, (step + 1) % 4), found, strict=True):
            assert isinstance(each, DrawnToken)
            if each.token != 256 and not states[place].complete:
                states[place] = states[place].advance(each.token)
            states[place] = constraint(PATTERNS[place]).start() if states[place].complete else states[place]


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(logprobs=0), SamplingParams(frequency_penalty=0.5), SamplingParams(logit_bias=((97, 1.0),))],
)
def test_what_a_device_does_not_know_is_drawn_by_the_host(sampling):
    on_device = DeviceDraws(torch.device("cpu"))
    state = constraint("[ab]+").start()
    logits = torch.zeros(2, SIZE)
    draws = [draw_of(state, sampling, 0), draw_of(None, SamplingParams(), 0)]
    assert on_device.choose(logits, draws) is None
    assert draw_tokens(logits, draws, on_device) == draw_tokens(logits, draws)


def test_a_constraint_without_an_index_is_drawn_under_by_the_host():
    state = grammar.compile(regex="[ab]+", tokenizer=VOCABULARY).start()
    on_device = DeviceDraws(torch.device("cpu"))
    draws = [draw_of(state, SamplingParams(), 0)]
    assert on_device.choose(torch.zeros(1, SIZE), draws) is None
    [drawn] = draw_tokens(torch.zeros(1, SIZE), draws, on_device)
    assert isinstance(drawn, DrawnToken)
    assert drawn.token in (97, 98, 257)


def test_a_cpu_needs_no_tables():
    assert draws_on(torch.device("cpu")) is None
