from __future__ import annotations

import pytest

from lmc.ir.engine.toy import ToyEngine
from lmc.ir.semantics.interpreter import interpret
from lmc.passes import PassManager, parse_pipeline
from tests.passes.modules import module_of, ops, run


def _merges(first: str, second: str) -> bool:
    body = f"""
    %0 = lm.context : !ctx
    %1, %a = lm.gen %0 {{id = "f/a"{first}}} : !ctx, !text
    %2, %b = lm.gen %0 {{id = "f/b"{second}}} : !ctx, !text
    lm.return %0 (%a, %b) {{structure = "{{\\"list\\":[{{\\"leaf\\":0}},{{\\"leaf\\":1}}]}}"}}
    """
    return "(%a, %a)" in ops("cse", body)[-1]


@pytest.mark.parametrize(
    ("first", "second"), [("", ""), (', name = "x"', ', name = "y"'), ("", ", seed = 3"), ("", ", wave = 1")]
)
def test_greedy_generations_merge_whatever_they_are_called(first: str, second: str):
    assert _merges(first, second)


@pytest.mark.parametrize(
    "attribute",
    [
        "max_tokens = 3",
        "min_tokens = 1",
        'stop = ["a"]',
        "stop_token_ids = [1]",
        "top_p = 0.5",
        "top_k = 2",
        "min_p = 0.1",
        "frequency_penalty = 0.5",
        "presence_penalty = 0.5",
        "repetition_penalty = 1.5",
        "logit_bias = [[3, 1.0]]",
    ],
)
def test_generations_with_other_attributes_do_not_merge(attribute: str):
    assert not _merges("", f", {attribute}")


@pytest.mark.parametrize("temperature", ["0.1", "1.0", "1e-9"])
@pytest.mark.parametrize("seed", ["", ", seed = 5"])
def test_sampled_generations_never_merge(temperature: str, seed: str):
    assert not _merges(f", temperature = {temperature}{seed}", f", temperature = {temperature}{seed}")


def test_sampled_lists_never_merge():
    body = """
    %0 = lm.context : !ctx
    %a = lm.sample %0 {id = "f/a", n = 2, temperature = 1.0} : !list<!text>
    %b = lm.sample %0 {id = "f/b", n = 2, temperature = 1.0} : !list<!text>
    %c = py.call len (%a) : !int
    %d = py.call len (%b) : !int
    lm.return %0 (%c, %d) {structure = "{\\"list\\":[{\\"leaf\\":0},{\\"leaf\\":1}]}"}
    """
    lines, remarks = run("cse", body)
    assert sum("lm.sample" in line for line in lines) == 2
    assert [remark.kind for remark in remarks] == ["missed"]


def test_the_ids_that_are_left_draw_as_before():
    body = """
    %0 = lm.context : !ctx
    %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text
    %2, %b = lm.gen %0 {id = "f/b"} : !ctx, !text
    %3, %c = lm.gen %2 {id = "f/c", temperature = 1.0} : !ctx, !text
    lm.return %3 (%c) {structure = "{\\"leaf\\":0}"}
    """
    module = module_of(body, "%x: !text")
    merged = PassManager(parse_pipeline("cse")).run(module).module
    for run_seed in range(3):
        before = interpret(module, {"x": ""}, ToyEngine(), run_seed=run_seed)
        after = interpret(merged, {"x": ""}, ToyEngine(), run_seed=run_seed)
        assert after.value == before.value
        assert after.usage.calls == before.usage.calls - 1


def test_a_merged_sample_saves_its_calls():
    body = """
    %0 = lm.context : !ctx
    %a = lm.sample %0 {id = "f/a", n = 3} : !list<!text>
    %b = lm.sample %0 {id = "f/b", n = 3} : !list<!text>
    %c = py.call len (%b) : !int
    lm.return %0 (%c) {structure = "{\\"leaf\\":0}"}
    """
    assert [remark.saved_calls for remark in run("cse", body)[1]] == [3]
