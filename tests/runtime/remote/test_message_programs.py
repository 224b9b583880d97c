"""Random modules on messages, with a provider that gives the same answers: all ways of running them agree."""

import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.backend.lower import lower
from lmc.ir.dialects.core_ops import GenOp
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.errors import JournalError, LmcError, LoweringError
from lmc.ir.module import Module
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.types import CTX, TEXT
from lmc.passes import PassContext, pipeline
from lmc.runtime.executor import Executor
from lmc.runtime.journal.engine import JournaledEngine
from lmc.runtime.journal.journal import RunJournal
from lmc.runtime.remote.engine import RemoteEngine
from tests.program_strategies import Author, Program
from tests.runtime.journal.journals import begun, resumed
from tests.runtime.remote.hosted_runs import hosted, simulated_engines
from tests.runtime.remote.simulator import Simulator

FULL = os.environ.get("LMC_TEST_FULL") == "1"
SPECS = {
    "chat": ("openai:gpt-4.1", "/v1", {"continuation": "turns"}),
    "responses": ("openai:gpt-5.6", "/v1", {"api": "responses", "continuation": "turns"}),
    "messages": ("anthropic:claude-haiku-4-5", "", {}),
}


class Talker(Author):
    """Writes messages and generations behind them: forks, turns that are continued, and texts of answers in others."""

    @property
    def steps(self) -> list[Callable[[], None]]:
        asks = [self.message, self.generate] * 4
        return [*asks, self.new_context, self.extend, self.transcript, self.concat, self.py_call, self.host_call]

    def generate(self) -> None:
        before = self.context()
        if self.modes[before] == "empty":
            return
        sampling = {"max_tokens": self.draw(st.integers(1, 30)), "stop": self.draw(st.sampled_from([(), (" ", "ar")]))}
        context, _ = self.emit(GenOp, CTX, TEXT, context=before, **self.id(), **sampling)
        self.modes[context] = "chat"

    def extend(self) -> None:
        if any(mode == "chat" for mode in self.modes.values()):
            super().extend()

    def context(self) -> Any:
        chats = [context for context, mode in self.modes.items() if mode == "chat"]
        return self.draw(st.sampled_from(chats if chats and self.draw(st.integers(0, 4)) else list(self.modes)))


@st.composite
def talks(draw: st.DrawFn) -> Program:
    author = Talker(draw)
    author.message()
    author.generate()
    for _ in range(draw(st.integers(2, 14))):
        draw(st.sampled_from(author.steps))()
    return author.program()


@pytest.fixture(scope="module")
def simulator() -> Generator[Simulator]:
    with hosted(), Simulator() as found:
        yield found


@pytest.fixture(scope="module")
def engines(simulator: Simulator) -> Generator[dict[str, tuple[Target, RemoteEngine]]]:
    with simulated_engines(simulator, SPECS, attempts=1) as made:
        yield made


def ended(run: Callable[[], Outcome]) -> tuple[Any, ...]:
    try:
        outcome = run()
    except JournalError:
        raise
    except LmcError as error:
        return type(error), error.cause
    return repr((outcome.value, outcome.variables)), outcome.text, [dict(each) for each in outcome.messages]


@pytest.mark.parametrize("api", SPECS)
@settings(max_examples=150 if FULL else 12)
@given(program=talks(), cut=st.integers(1, 30))
def test_all_ways_of_running_agree(
    simulator: Simulator, engines: dict[str, tuple[Target, RemoteEngine]], api: str, program: Program, cut: int
):
    place, engine = engines[api]
    try:
        lower(program.module, place)
    except LoweringError:
        return  # the provider lacks what it needs
    optimized = (
        pipeline("O2", verify_each=True)
        .run(program.module, PassContext(capabilities=place.capabilities, width=4))
        .module
    )

    def sent() -> Counter[str]:
        bodies = [each.body for each in simulator.arrivals if each.body]
        simulator.arrivals.clear()
        return Counter(json.dumps(each.get("messages", each.get("input"))) for each in bodies)

    def executed(module: Module, engine: Engine) -> tuple[Any, ...]:
        executor = Executor(engine, lower(module, place), program.hosts)
        return ended(lambda: asyncio.run(executor.run(program.inputs)))

    simulator.arrivals.clear()
    expected = ended(lambda: interpret(program.module, program.inputs, engine, hosts=program.hosts))
    asked = sent()
    assert executed(program.module, engine) == expected
    assert sent() == asked
    assert executed(optimized, engine) == expected
    needed = sent()
    assert needed <= asked, "what nothing uses is not sent"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "j")
        with suppress(JournalError), begun(path, commits=cut) as broken:
            executed(optimized, JournaledEngine(engine, broken))
        before = sent()
        with resumed(path) as journal:
            assert isinstance(journal, RunJournal)
            assert executed(optimized, JournaledEngine(engine, journal)) == expected
        assert {*(before + sent())} == {*needed}
