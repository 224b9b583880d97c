"""Constraints of `lmc.grammar` on the engine: what they give in all modes."""

import json
import os
from dataclasses import replace
from typing import Any

import pytest

from lmc import grammar
from lmc.ir.engine.protocol import JUMP_FORWARD, JumpForward, Request, SamplingParams
from lmc.ir.errors import ConstraintError
from tests.runtime.local.conftest import OpenEngine
from tests.runtime.local.outcomes import run

SCHEMA = {
    "type": "object",
    "properties": {
        "the name": {"type": "string", "maxLength": 9},
        "dogs": {"type": "array", "items": {"enum": ["lazy", "quick"]}, "maxItems": 3},
        "brown": {"type": "boolean"},
    },
    "required": ["the name", "dogs", "brown"],
    "additionalProperties": False,
}
FULL = os.environ.get("LMC_TEST_FULL") == "1"
LARK = 'start: "The quick (" start ")" | "brown" " fox"?'


every_source = pytest.mark.parametrize(
    "source",
    [
        {"regex": r"The quick (brown|red|grey)? fox jumps over \d{1,3} lazy dogs\."},
        {"choices": ["yes", "no", "The quick brown fox", "The lazy dog", ""]},
        {"schema": SCHEMA},
        {"grammar": LARK},
    ],
    ids=lambda source: next(iter(source)),
)


@every_source
def test_compiled_constraints_are_kept_in_all_modes(open_engine: OpenEngine, source: dict[str, Any]) -> None:
    engine = open_engine(deterministic=True)
    constraint = grammar.compile(**source, tokenizer=engine.tokenizer)
    sampling = SamplingParams(max_tokens=90, temperature=1.0, logprobs=0)
    requests = [Request((9, 8, 7 + seed), sampling, seed, constraint=constraint) for seed in range(8)]
    found = {mode: run(engine, [replace(each, jump_forward=mode) for each in requests]) for mode in JUMP_FORWARD}
    assert found["exact"] == found["off"]
    whole = 0
    for mode in JUMP_FORWARD:
        for outcome in found[mode]:
            if outcome[0] is ConstraintError:
                assert "max_tokens" in outcome[1]
                continue
            whole += 1
            assert constraint.matches(outcome[1])
            if mode == "canonical":
                assert outcome[0] == engine.tokenizer.encode(outcome[1])
            if "schema" in source:
                assert {*json.loads(outcome[1])} == {"the name", "dogs", "brown"}
    assert whole >= 12


@every_source
@pytest.mark.parametrize("mode", JUMP_FORWARD)
def test_what_may_be_cut_is_the_beginning_of_the_whole(
    open_engine: OpenEngine, source: dict[str, Any], mode: JumpForward
) -> None:
    """Also within a code point: the texts of the regex and of the choices have some that take several tokens."""
    if "regex" in source:
        source = {"regex": r"[\s\S]{9,}"}
    if "choices" in source:
        source = {"choices": ["日本語 été", "日本 😀😀😀", "The quick brown fox"]}
    engine = open_engine(deterministic=True)
    constraint = grammar.compile(**source, tokenizer=engine.tokenizer)
    for seed in range(4 if FULL else 2):
        sampling = SamplingParams(max_tokens=40, temperature=1.0, logprobs=0)
        request = Request((9, 8, 7), sampling, seed, constraint=constraint, jump_forward=mode, may_be_cut=True)
        lengths = range(1, 40)
        shorter = [replace(request, sampling=replace(sampling, max_tokens=length)) for length in lengths]
        whole, *cut = run(engine, [request, *shorter])
        for length, found in zip(lengths, cut, strict=True):
            assert whole[1].startswith(found[1])
            assert found[0] == whole[0][:length] or mode == "canonical"
            assert found[3] == "length" if length < len(whole[0]) else found[1] == whole[1]
        stops = {whole[1][place : place + size] for place in (1, 3, 4, 7, 12) for size in (1, 2, 3)} - {""}
        asked = [replace(request, sampling=replace(sampling, stop=(stop,))) for stop in sorted(stops)]
        for stop, found in zip(sorted(stops), run(engine, asked), strict=True):
            assert found[1] == whole[1].partition(stop)[0]
            assert found[3] == "stop"
