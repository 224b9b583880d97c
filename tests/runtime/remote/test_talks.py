"""Generated Python programs on chat models: eager mode, interpreter and executor send the same messages.

The provider is in this process: it gets what its API would be sent, and equal messages get equal answers.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given, note, settings

from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.constraints import compiler
from lmc.driver.targets.hosted import remote
from lmc.driver.targets.service import service
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.engine.protocol import Score, ScoreRequest
from lmc.ir.errors import ConstraintError, LoweringError
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.usage import Usage
from lmc.runtime.remote import engine
from lmc.runtime.remote.asking import Asked, Fetched, OnText, RemoteService, Reply
from tests.frontend.harness import ending
from tests.frontend.strategies import load
from tests.runtime.remote.hosted_runs import KEY_NAME, hosted
from tests.runtime.remote.providers import replies
from tests.runtime.remote.providers.hosted_models import MODELS
from tests.runtime.remote.talk_strategies import TALKS_HEADER, talk_arguments, talk_programs

FULL = os.environ.get("LMC_TEST_FULL") == "1"
TARGETS = {
    "quoted": ("openai:gpt-4.1", {"continuation": "turns"}),
    "continued": ("openai:gpt-4.1", {"capabilities": {"continuation": "exact"}}),
    "trimmed": ("anthropic:claude-haiku-4-5", {}),
}
_IDS = re.compile(r"'program/[^']*'")
COMPILE = compiler(ConstraintCache(), message_tokenizer())
SENT: dict[tuple[str, int], list[str]] = defaultdict(list)
"""The requests that were sent, by the id of their op and the number of the sample."""


class Answering:
    """A provider that answers with words that depend on the messages alone."""

    def __init__(self, service: RemoteService) -> None:
        self._quotes = service.capabilities.continuation == "turns"
        self._model = next(model for model in MODELS if model.name == service.model)

    async def generate(self, asked: Asked, on_text: OnText | None) -> Reply:
        messages = asked.messages(keeps_open=asked.continues and not self._quotes)
        schema = None if asked.form is None else asked.form.schema
        request = asked.request
        sent = [messages, schema, asked.stops, asked.max_tokens, request.sampling.temperature]
        SENT[request.op_id, request.number].append(json.dumps(sent))
        turns = tuple(replies.Turn(each["role"], each["content"]) for each in messages)
        told = replies.Asked("chat", self._model, turns, asked.max_tokens, asked.stops, schema)
        reply = replies.obedient(told).within(told)
        if on_text is not None:
            on_text(reply.text)
        end = "length" if reply.end == "length" else "eos" if reply.stop_text is None else "stop"
        return Reply(reply.text, end, Usage(1, 0, 1, 1), matched_stop=reply.stop_text)

    async def fetch(self, stored: str) -> Fetched:
        raise NotImplementedError

    async def score(self, request: ScoreRequest, timeout: float) -> Score:
        raise NotImplementedError

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def provider() -> Generator[None]:
    with hosted(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_protocol", Answering)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("talks")


def sent_by(run: Callable[[], Any]) -> tuple[tuple[Any, ...], dict[tuple[str, int], list[str]]]:
    """Return how a run ends, and what it sends."""
    SENT.clear()
    kind, *rest = ending(run)
    if kind == "raised":  # the graph names an op for all rounds of a loop, plain Python for one
        rest = [_IDS.sub("op", each) if isinstance(each, str) else each for each in rest]
    return (kind, *rest), dict(SENT)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=2000 if FULL else 100)
@given(source=talk_programs(), arguments=talk_arguments())
def test_all_ways_of_running_send_the_same_messages(name: str, folder: Any, source: str, arguments: tuple[Any, ...]):
    note(source)
    spec, settings = TARGETS[name]
    place = remote(spec, base_url="http://127.0.0.1:1", api_key_env=KEY_NAME, attempts=1, **settings)
    program = load(TALKS_HEADER + "@jit\n" + source, folder).program
    runners = {level: Runner(program, Options(place, level=level)) for level in ("O0", "O2")}

    def given() -> tuple[Any, dict[str, Any]]:
        return (*arguments[:3], list(arguments[3])), {}

    try:
        [(compiled, inputs)] = runners["O0"].place_all([given()])
    except (LoweringError, ConstraintError) as error:
        note(str(error))
        return  # the provider lacks what it needs

    def interpreted() -> Outcome:
        captured, model = compiled.captured, service().engines.engine(compiled.target)
        constraints = compiled.constraints(COMPILE)
        outcome = interpret(captured.module, inputs, model, hosts=captured.hosts, constraints=constraints)
        if outcome.live is None:
            return outcome
        return go_on(captured, bind(program, *given()), outcome.live, EagerSession(model, compile=COMPILE))

    end, asked = sent_by(lambda: runners["O0"].eager(given()))
    note(f"{end}")
    found, sent = sent_by(interpreted)
    assert found == end
    assert sent == asked or end[0] == "raised"
    for level, runner in runners.items():
        found, sent = sent_by(lambda runner=runner: runner.run(given()))
        assert found == end, level
        if end[0] == "gave":
            assert sent.items() <= asked.items(), "what nothing uses is not sent"
            assert level == "O2" or sent == asked
