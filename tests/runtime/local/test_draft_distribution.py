"""The distribution of drafted generations is that of masked decoding, token by token, computed and not sampled.

A token is the inverse of a cumulative distribution at a number in [0, 1) that belongs to its position. So each output
is a box of such numbers, whose volume is its probability. The tree of all outputs is followed by the definition; then
the engine is asked for what it says at two opposite corners of each box.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lmc.ir.engine.protocol import EngineInfo, Request, SamplingParams
from lmc.runtime.local.engine import LocalEngine
from lmc.runtime.local.sampling import sampler
from lmc.runtime.local.sampling.drafting import DraftLength
from lmc.runtime.local.sampling.sampler import Draw
from tests.ir.constraints_for_tests import Run, TemplateConstraint, TemplateState
from tests.runtime.local.prefix_model import PrefixModel
from tests.runtime.local.small_model import END, SMALL_TOKENS, small_logits_after, small_tokenizer
from tests.runtime.local.test_sampler import plain_probabilities

PROMPT = (1, 3)
MARGIN = 4e-7  # from the sides of a box; what a draw is decided by is exact to 2e-7
CONSTRAINTS = {
    "one text": ("abcabcab",),
    "forks": ("ab", (b"cabca", b"bca", b""), "cab", Run(b"ab", 0, 1)),
    "loops": (Run(b"a", 0, 2), "bcabc", (b"a", b"cc")),
}
SAMPLINGS = (
    SamplingParams(max_tokens=40, temperature=1.0),
    SamplingParams(max_tokens=40, temperature=1.7, top_p=0.85),
    SamplingParams(max_tokens=40, temperature=0.8, repetition_penalty=1.4, presence_penalty=0.5, min_tokens=5),
)


def outputs(
    state: TemplateState,
    sampling: SamplingParams,
    said: tuple[int, ...] = (),
    box: tuple[tuple[float, float], ...] = (),
) -> Iterator[tuple[tuple[int, ...], tuple[tuple[float, float], ...]]]:
    """Every output after `said` with its box, by the definition of masked decoding."""
    if state.complete:
        yield said, box
        return
    logits = small_logits_after((*PROMPT, *said)).numpy()
    allowed = [token for token in state.allowed if token != END or len(said) >= sampling.min_tokens]
    logits[np.setdiff1d(np.arange(logits.size), allowed or state.allowed)] = -np.inf
    history = (np.array(PROMPT), list(said))
    reached = np.append(0, plain_probabilities(logits, Draw(sampling, 0, 0, (), *history)).cumsum())
    for token in np.flatnonzero(np.diff(reached)):
        side = (float(reached[token]), float(reached[token + 1]))
        if token == END:
            yield said, (*box, side)
        else:
            yield from outputs(state.advance(int(token)), sampling, (*said, int(token)), (*box, side))


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["plain", "top-p", "penalties"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_each_output_has_the_probability_of_masked_decoding(
    monkeypatch: pytest.MonkeyPatch, name: str, sampling: SamplingParams
) -> None:
    words = small_tokenizer()
    constraint = TemplateConstraint(words, *CONSTRAINTS[name])
    found = list(outputs(constraint.start(), sampling))
    volumes = [np.prod([high - low for low, high in box]) for _, box in found]
    assert sum(volumes) == pytest.approx(1.0, abs=1e-9)
    assert len(found) > 20
    texts = [words.decode(said) for said, _ in found]
    assert len(set(texts)) < len(texts)  # what has several tokenizations
    beyond = [0.5] * 40  # of rows that a draft goes on with where the output took another way
    corners = [
        [low + MARGIN if at_low else high - MARGIN for low, high in box] + beyond
        for _, box in found
        for at_low in (True, False)
    ]
    monkeypatch.setattr(DraftLength, "limit", lambda _: 40)  # however the last ones fared
    monkeypatch.setattr(sampler, "uniform", lambda seed, position: corners[seed][position])
    model: Any = PrefixModel(small_logits_after, kv_tokens=4000, vocabulary_size=len(SMALL_TOKENS))
    with LocalEngine(model, words, EngineInfo("exhaustive", 200, 4000), max_running=50) as engine:
        handles = [
            engine.submit(Request(PROMPT, sampling, seed, constraint=constraint)) for seed in range(len(corners))
        ]
        said = [handle.future.result(60).token_ids for handle in handles]
        assert engine.statistics.drafted_tokens > engine.statistics.accepted_tokens > len(found)
    wide = [min(high - low for low, high in box) > 2 * MARGIN for _, box in found]
    for index, (tokens, _) in enumerate(found):
        assert not wide[index] or said[2 * index] == said[2 * index + 1] == tokens
    narrow = sum(volume for volume, is_wide in zip(volumes, wide, strict=True) if not is_wide)
    assert narrow < 1e-6
