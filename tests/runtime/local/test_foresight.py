"""An engine finds as much in its cache as the simulator, which is told how every prompt begins."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import lmc
from lmc.backend.schedule.schedule import Room, schedule_batch
from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.cache.simulation.simulator import simulate
from lmc.cache.trace import TraceRequest, read_trace
from lmc.driver.compile.compile import compile_program
from lmc.driver.compile.compiled import Compiled
from lmc.frontend.program.arguments import bind
from lmc.ir.engine.protocol import Generation, Handle, Request
from lmc.ir.engine.target import Target
from lmc.ir.semantics.context import Context
from lmc.ir.tokens.tokens import common_length
from lmc.passes.pipelines import PipelineOptions
from lmc.runtime.executor import Executor, Finished, Instance
from lmc.runtime.local import LocalEngine
from tests.runtime.local.conftest import OpenEngine

Row = dict[str, str]
ANSWER = 4
_rng = random.Random(1)


def _words(count: int) -> str:
    return " ".join("".join(_rng.choices("abcdefgh", k=3)) for _ in range(count))


def two_stages(s: Any, question: str, document: str) -> Any:
    first, second = s.fork(2)
    first.append(question)
    rewritten = first.gen("rewritten", max_tokens=ANSWER, min_tokens=ANSWER)
    second.append(document)
    second.append(rewritten)
    return second.gen("answer", max_tokens=ANSWER, min_tokens=ANSWER)


PROMPTS = [_words(20) for _ in range(4)]


def agents(s: Any, question: str, document: str) -> Any:
    said = question
    for agent, prompt in zip(s.fork(4), PROMPTS, strict=True):
        agent.append(prompt)
        agent.append(document[:12])
        agent.append(said)
        said = agent.gen("said", max_tokens=ANSWER, min_tokens=ANSWER)
    return said


def known_in_two_stages(row: Row, stage: int) -> str:
    return row["document"] if stage else row["question"]


def known_in_agents(row: Row, stage: int) -> str:
    return PROMPTS[stage] + row["document"][:12] + ("" if stage else row["question"])


CASES = [(two_stages, known_in_two_stages), (agents, known_in_agents)]
KV_TOKENS = 300
DOCUMENTS = [_words(20) for _ in range(6)]
ROWS = [{"question": _words(2), "document": _rng.choice(DOCUMENTS)} for _ in range(24)]


def _run(engine: LocalEngine, program: Any, block: int, rows: Sequence[Row] = ROWS) -> list[list[Request]]:
    """Return what the engine is asked by each instance in their order, when they run as they stand.

    As in a simulation, no step begins before every instance has asked for what comes next.
    """
    asked: list[list[Request]] = [[] for _ in rows]
    handles: list[Handle[Generation]] = []
    ends: dict[int, Finished] = {}
    submit, take = engine.submit, engine._worker._take_commands
    waits = threading.Event()

    def watch(request: Request, on_delta: Any = None) -> Any:
        asked[request.instance].append(request)
        handles.append(submit(request, on_delta))
        return handles[-1]

    def in_turn() -> bool:
        waits.set()
        deadline = time.monotonic() + 20
        while sum(not handle.future.done() for handle in handles) + len(ends) < len(rows):
            assert time.monotonic() < deadline
            time.sleep(0.0002)
        return take()

    compiled = _compiled(program, engine)
    executor = Executor(engine, compiled.prepared, compiled.hosts)
    engine.submit, engine._worker._take_commands = watch, in_turn
    engine._worker._command(lambda: None)  # the worker waits for commands already: it would begin with the first ones
    assert waits.wait(20)
    instances = [Instance(number, row) for number, row in enumerate(rows)]
    asyncio.run(executor.run_batch(instances, range(len(rows)), ends.__setitem__, block=block))
    assert [ends[number].error for number in range(len(rows))] == [None] * len(rows)
    return asked


def _compiled(program: Any, engine: LocalEngine) -> Compiled:
    function = lmc.jit(program)._runner._function
    # The simulator knows no prefixes that are computed ahead of their calls.
    options = PipelineOptions("O2", disabled_passes=("hoist-prefixes",))
    return compile_program(function, bind(function, (), ROWS[0]), Target.parse("toy"), options, engine.tokenizer)


def _trace(
    asked: Sequence[Sequence[Request]], known: Callable[[Row, int], str], engine: LocalEngine
) -> list[TraceRequest]:
    """The same requests, each after the one before in its instance."""
    made: list[dict[str, Any]] = []
    for instance, requests in enumerate(asked):
        for stage, request in enumerate(requests):
            beginning = Context.empty(engine.tokenizer).text(known(ROWS[instance], stage)).prompt
            made.append(
                {
                    "id": f"{instance}/{stage}",
                    "tokens": list(request.prompt),
                    "output": ANSWER,
                    "after": [f"{instance}/{stage - 1}"] if stage else [],
                    "instance": instance,
                    "known": common_length(request.prompt, beginning),
                }
            )
    return read_trace((None, entry) for entry in made)


@pytest.mark.parametrize(("program", "known"), CASES)
@pytest.mark.parametrize(("running", "block"), [(1, 1), (4, 1), (2, 8)])
def test_an_engine_finds_as_much_in_its_cache_as_the_simulator(
    open_engine: OpenEngine, program: Any, known: Any, running: int, block: int
) -> None:
    engine = open_engine(kv_tokens=KV_TOKENS, max_running=running)
    trace = _trace(_run(engine, program, block), known, engine)
    layout = Layout(InstanceOrder.GIVEN, block)
    best = simulate(trace, policy="lmc", kv_tokens=KV_TOKENS, batch=running, layout=layout)
    found = engine.statistics
    assert found.prompt_tokens == best.prompt_tokens
    assert found.cached_tokens >= 0.98 * best.hit_tokens


def chat(s: Any, question: str, document: str) -> Any:
    s += document
    s.gen("first", max_tokens=80, min_tokens=80)
    s += question
    s.gen("second", max_tokens=80, min_tokens=80)
    s += "And?"
    return s.gen("third", max_tokens=2)


@pytest.mark.parametrize("letters", ["abcdefgh ", "天地玄黄宇宙洪荒"])
def test_the_size_of_blocks_suits_the_tokens_of_the_engine(open_engine: OpenEngine, letters: str) -> None:
    """Chats of which the pool holds two: more of them at a time would lose each other's turns."""
    rng = random.Random(2)
    length = 60 // len(letters[0].encode())
    rows = [{key: "".join(rng.choices(letters, k=length)) for key in ("question", "document")} for _ in range(8)]
    found: list[int] = []
    for chosen in (True, False):
        engine = open_engine(kv_tokens=640, max_running=2)
        room = Room.of(engine, 64)
        assert room is not None
        layout = schedule_batch(_compiled(chat, engine).plan, rows, room).layout if chosen else Layout()
        _run(engine, chat, layout.block, rows)
        found.append(engine.statistics.cached_tokens)
    assert found[0] >= 0.98 * found[1] > 0
