"""Programs give the same on a server as on its model in this process: at all levels, and eagerly."""

import json
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import lmc
from lmc import builtin_model
from lmc.driver import Options, Runner, close_engine
from lmc.ir.engine.toy import toy_tokenizer
from tests.examples.cases import EXAMPLES
from tests.examples.test_examples import FULL, TARGETS, facts
from tests.runtime.server.servers import Served, served

QUICK = ("judge",)
"""Examples that run on the built-in model in make test; make test-full runs all."""
SERVED = {"toy": ("--model", "toy"), "builtin": ("--model", "builtin", "--deterministic", "--kv-tokens", "8000")}
CASES = [(name, model) for name in EXAMPLES for model in SERVED if model == "toy" or FULL or name in QUICK]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[[str], tuple[Served, Path]]]:
    """Start the server of a model at its first use; gives it and the folder of its tokenizer."""
    folder = tmp_path_factory.mktemp("toy")
    toy = toy_tokenizer()
    (folder / "tokenizer.json").write_text(toy.definition)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": toy.chat_template}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": list(toy.eos_ids)}))
    folders = {"toy": folder, "builtin": builtin_model.path()}
    started: dict[str, Served] = {}
    stack = ExitStack()

    def start(model: str) -> tuple[Served, Path]:
        if model not in started:
            started[model] = stack.enter_context(served(*SERVED[model]))
        return started[model], folders[model]

    with stack:
        yield start


@pytest.mark.parametrize(("name", "model"), CASES)
def test_examples_on_tokens(name: str, model: str, servers: Callable[[str], tuple[Served, Path]]):
    server, folder = servers(model)
    # The server of the built-in model names its folder; the toy has none.
    target = f"server:{server.url}" if model == "builtin" else lmc.remote(f"server:{server.url}", tokenizer=str(folder))
    example = EXAMPLES[name]
    local = TARGETS[model]
    hosted = replace(local.without_engine(), target=target)
    for row in example.rows if FULL else example.rows[:1]:
        for seed in (0, 3) if FULL or model == "toy" else (0,):
            expected = facts(Runner(example.program, replace(local, seed=seed)).run(((), row)))
            runner = Runner(example.program, replace(hosted, seed=seed))
            assert facts(runner.eager(((), row))) == expected, "eager"
            for level in ("O0", "O1", "O2") if seed == 0 and FULL else ("O0", "O2") if seed == 0 else ("O2",):
                found = Runner(example.program, replace(hosted, seed=seed, level=level)).run(((), row))
                assert facts(found) == expected, level
    close_engine(hosted)


SAME = {
    "structured": "exact",
    "parameters": ["temperature", "top_p", "top_k", "min_p", "min_tokens", "repetition_penalty"],
}
MESSAGES = {**SAME, "continuation": "exact"}


@lmc.jit
def talk(s, topic: str):
    s += lmc.system("You answer in a line.")
    s += lmc.user(f"What is {topic}?")
    first = s.gen("first", max_tokens=24, stop="\n")
    s += lmc.user("And why <|im_end|>?")
    s += "Because "
    s += "it "
    views = s.fork(2)
    for view in views:
        view.gen("why", max_tokens=12, temperature=0.8)
    return first, [view["why"] for view in views], s.gen("number", regex="[0-9]{1,3}")


@pytest.mark.parametrize("model", SERVED)
def test_a_program_on_messages(model: str, servers: Callable[[str], tuple[Served, Path]]):
    """The server renders the messages with the template that the model has here."""
    server, _ = servers(model)
    hosted = Options(lmc.remote(f"server:{server.url}", api="chat", capabilities=MESSAGES), seed=4)
    local = replace(TARGETS[model], seed=4)
    expected = Runner(talk, local).run((("rain",), {}))
    for found in (
        Runner(talk, hosted).eager((("rain",), {})),
        *(Runner(talk, replace(hosted, level=level)).run((("rain",), {})) for level in ("O0", "O2")),
    ):
        assert (found.value, found.messages) == (expected.value, expected.messages)
    streamed = list(
        talk.on(lmc.remote(f"server:{server.url}", api="chat", capabilities=MESSAGES), seed=4).stream("rain")
    )
    assert "".join(each.text for each in streamed if each.name == "first") == expected.value[0]
    close_engine(hosted)


@lmc.jit
def tale(s, hero: str):
    s += f"Once {hero} "
    s.gen("a", max_tokens=12, stop="e")
    s += " and"
    return s["a"], s.gen("b", max_tokens=8)


def test_a_program_on_text(servers: Callable[[str], tuple[Served, Path]]):
    """The toy's tokens are bytes, so text has the same tokens there as here."""
    server, _ = servers("toy")
    hosted = Options(lmc.remote(f"server:{server.url}", api="completions", capabilities={"contexts": "text", **TEXT}))
    expected = Runner(tale, Options("toy")).run((("Ada",), {}))
    for found in (Runner(tale, hosted).eager((("Ada",), {})), Runner(tale, hosted).run((("Ada",), {}))):
        assert found.value == expected.value
    close_engine(hosted)


TEXT = {"scores": False, "parameters": ["temperature"], "logprobs": -1}
