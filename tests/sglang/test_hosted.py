"""Programs of sglang's language on simulated providers."""

from typing import Any

import pytest

import lmc.sglang as sgl
from tests.runtime.remote.hosted_runs import hosted
from tests.runtime.remote.simulator import KEY, Simulator


@sgl.function
def conversation(s: Any, first: str, second: str):
    s += sgl.system("You are brief.")
    s += sgl.user(first)
    s += sgl.assistant(sgl.gen("a", max_tokens=64))
    s += sgl.user(second)
    s += sgl.assistant(sgl.gen("b", max_tokens=64, stop="\n"))


ROWS = [{"first": f"What is {number}?", "second": "Why?"} for number in range(4)]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_model_at_another_address(provider: str, monkeypatch: pytest.MonkeyPatch):
    """``base_url`` is how programs of sglang name a gateway or a server."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with hosted(), Simulator() as simulator:
        if provider == "openai":
            backend = sgl.OpenAI("gpt-4.1", base_url=f"{simulator.url}/v1")
        else:
            backend = sgl.Anthropic("claude-haiku-4-5", base_url=simulator.url)
        state = conversation.run("What is 0?", "Why?", backend=backend)
        assert state["a"] != state["b"]
        assert [each["content"] for each in state.messages()] == [
            *("You are brief.", "What is 0?", state["a"], "Why?", state["b"])
        ]
        stream = conversation.run("What is 0?", "Why?", backend=backend, stream=True)
        assert "".join(stream.text_iter("b")) == stream["b"]
        found = conversation.run_batch(ROWS, backend=backend, num_threads=2)
        assert len({each["b"] for each in found}) == len(ROWS)
        assert len(simulator.arrivals) == 2 * (1 + 1 + len(ROWS))
        assert all(each.finished for each in simulator.arrivals)
