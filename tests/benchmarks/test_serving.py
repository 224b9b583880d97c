"""Both ways to send the requests of a benchmark give the same texts; the table says what they took."""

import asyncio

from benchmarks import serving
from benchmarks.serving import GROUP, PREFIX, SIDES, Measured, prompts_of


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
