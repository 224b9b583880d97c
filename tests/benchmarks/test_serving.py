"""Both ways to send the requests of a benchmark give the same texts; the table says what they took."""

import asyncio

from benchmarks import serving
from benchmarks.engine import CASES as SHAPES
from benchmarks.serving import GROUP, PREFIX, SIDES, Measured, prompts_of
from lmc.ir.engine.toy import ToyEngine


def test_prompts_of_a_group_share_a_prefix_and_are_mixed():
    prompts = prompts_of(3 * GROUP)
    heads = [prompt.split()[:PREFIX] for prompt in prompts]
    assert len({tuple(head) for head in heads}) == 3
    assert sum(head == before for head, before in zip(heads[1:], heads, strict=False)) < 2 * GROUP
    assert len(set(prompts)) == 3 * GROUP


def test_both_ways_give_the_same():
    with serving.serving("--model", "toy") as server:
        assert server.model == "toy"
        bodies = [
            {"model": "toy", "prompt": prompt, "max_tokens": 5, "temperature": 0} for prompt in ("One", "Two", "Three")
        ] * 20
        found = [asyncio.run(send(server, bodies)) for send in SIDES.values()]
    assert found[0] == found[1]
    tokens, cached, texts = found[0]
    assert len(texts) == 60
    assert tokens > cached == 0


def test_the_table_has_medians_and_says_how_many_texts_are_equal():
    runs = {
        "one": [Measured(1000, 890, 2.0, 1.0, ("a", "b")), Measured(1000, 870, 4.0, 1.5, ("a", "b"))],
        "other": [Measured(1000, 100, 8.0, 3.0, ("a", "c"))],
    }
    text = serving.batch_table("small", 2, runs)
    assert "Equal texts in all runs: 1 of 2." in text
    assert "| one | 1,000 | 880 (88%) | 3.0 | 1.2 |" in text
    assert "| other | 1,000 | 100 (10%) | 8.0 | 3.0 |" in text


def test_whole_answers_streams_and_the_engine_give_the_same():
    engine, prompts = ToyEngine(), [[65 + row, 66, 67] for row in range(40)]
    with serving.serving("--model", "toy") as server:
        endpoint, latencies = serving.Endpoint(server.url, server.model), serving.Latencies()
        _, whole = serving.served(endpoint, prompts, 6)
        _, streamed = serving.served(endpoint, prompts, 6, latencies)
    assert serving.directly(engine, prompts, 6)[1] == whole == streamed
    assert len(latencies.first) == 40
    assert len(latencies.gaps) > 40
    assert min(latencies.first) > 0


def test_the_table_of_throughput_has_ratios_within_repeats():
    sides = {
        serving.ENGINE: serving.Side([9.0, 10.0], texts=[["a"], ["b"]]),
        serving.OURS: serving.Side([10.0, 10.0], serving.Latencies([0.1, 0.3], [0.02]), [["a"], ["b"]]),
        serving.THEIRS: serving.Side([15.0, 20.0], serving.Latencies([0.5], [0.04]), [["a"], ["c"]]),
    }
    text = serving.throughput_table("shared", SHAPES["shared"], "words", sides)
    tokens = serving.REQUESTS * SHAPES["shared"].new
    assert f"| engine, in process | {(tokens / 9 + tokens / 10) / 2:,.0f} | 0.95 |  |  |  | 2 |" in text
    assert f"| lmc serve | {tokens / 10:,.0f} | 1.00 | 200 | 300 | 20 | 2 |" in text
    assert "| 1.75 | 500 | 500 | 40 | 1 |" in text
