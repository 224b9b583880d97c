"""Roles of messages on each API: compilation refuses what the provider refuses, and nothing else."""

from collections.abc import Callable, Generator
from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lmc
from lmc.backend.lower import lower
from lmc.ir.builder import Builder
from lmc.ir.dialects.core_ops import ROLES, ContextOp, ExtendOp, GenOp, ReturnOp
from lmc.ir.engine.protocol import Request, SamplingParams
from lmc.ir.engine.target import Target
from lmc.ir.errors import EngineError, Location, LoweringError
from lmc.ir.module import Function, Module
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.requirements import check_request
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.types import CTX, TEXT
from lmc.runtime.remote.engine import RemoteEngine
from tests.runtime.remote.hosted_runs import hosted, simulated_engines, target
from tests.runtime.remote.simulator import Simulator

SPECS = {
    "chat": ("openai:gpt-4.1", "/v1", {}),
    "responses": ("openai:gpt-5.6", "/v1", {"api": "responses"}),
    "prefilled": ("anthropic:claude-haiku-4-5", "", {}),
    "messages": ("anthropic:claude-sonnet-5-5", "", {}),
}
Messages = list[tuple[str, str]]
conversations = st.lists(st.tuples(st.sampled_from(ROLES), st.sampled_from(["", "a", "b"])), max_size=5)


@pytest.fixture(scope="module")
def simulator() -> Generator[Simulator]:
    with hosted(), Simulator() as found:
        yield found


@pytest.fixture(scope="module")
def engines(simulator: Simulator) -> Generator[dict[str, tuple[Target, RemoteEngine]]]:
    with simulated_engines(simulator, SPECS) as made:
        yield made


def module_of(messages: Messages) -> Module:
    """Return a module that generates behind ``messages``, each of them on a line of its own."""
    builder = Builder(())
    (context,) = builder.emit(ContextOp, (CTX,))
    for number, (role, text) in enumerate(messages):
        place = Location("program.py", number + 1)
        (context,) = builder.emit(ExtendOp, (CTX,), context=context, role=role, text=(text,), location=place)
    fields: dict[str, Any] = {"id": "main/a", "max_tokens": 20, "location": Location("program.py", len(messages) + 1)}
    context, answer = builder.emit(GenOp, (CTX, TEXT), context=context, **fields)
    builder.emit(ReturnOp, context=context, values=(answer,), structure='{"leaf":0}', variables=(), variable_names=())
    return Module("main", (Function("main", builder.block()),))


def refusal(work: Callable[[], object]) -> LoweringError | None:
    try:
        work()
    except LoweringError as error:
        return error
    return None


def said(error: LoweringError | None) -> str | None:
    """Return the cause without the line of the message, which a request does not know."""
    return None if error is None else error.cause.partition(" (program.py")[0]


@pytest.mark.parametrize("api", SPECS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations.filter(bool))
def test_compilation_refuses_what_the_provider_refuses(
    simulator: Simulator, engines: dict[str, tuple[Target, RemoteEngine]], api: str, messages: Messages
):
    place, engine = engines[api]
    context = Context.empty(message_tokenizer())
    for role, text in messages:
        context = context.message(role, text)
    module = module_of(messages)
    [op] = [op for op in module.main.body.ops if isinstance(op, GenOp)]
    error = refusal(lambda: lower(module, place))
    assert error is None or error.remedy
    assert error is None or error.location == Location("program.py", len(messages) + 1)
    again = refusal(lambda: check_request(op, context, engine.info))
    assert said(again) == said(error), "a request is checked as its program is"
    simulator.arrivals.clear()
    request = Request(context.prompt, SamplingParams(max_tokens=20))
    told = engine.submit(request).future.exception(20.0)
    if messages[-1][0] == "assistant" and place.kind == "anthropic":
        assert error is not None, "it would be continued, or is refused"
        return
    assert (told is None) == (error is None), (told, error)
    assert told is None or isinstance(told, EngineError)
    if told is None:
        answer = simulator.arrivals[-1].answer
        assert answer is not None
        found = [(each.role, each.text) for each in answer.asked.turns]
        kept = [(role, text) for role, text in messages]
        if place.kind == "anthropic":
            kept = [(role, "".join(text for _, text in group)) for role, group in groupby(kept, lambda each: each[0])]
        assert found == kept


@lmc.jit
def told_by_a_tool(s: Any):
    s += lmc.user("Look it up.")
    s += lmc.message("tool", "found")
    return s.gen("a")


def test_the_error_names_the_line_of_the_message():
    with pytest.raises(LoweringError, match=r"is behind a message of a tool.*test_roles.py:\d+\)") as raised:
        told_by_a_tool.on("openai:gpt-4.1").compile()
    assert "message of the user" in (raised.value.remedy or "")
    assert told_by_a_tool.on(lmc.remote("server:http://127.0.0.1:1", server="vllm")).compile()


@lmc.jit
def answered_with_nothing(s: Any, text: str):
    s += lmc.user("Look it up.")
    s += lmc.assistant(text)
    s += lmc.user("And?")
    return s.gen("a")


def test_a_message_that_is_empty_at_run_time_is_refused_before_it_is_sent(simulator: Simulator):
    simulator.arrivals.clear()
    program = answered_with_nothing.on(target(simulator.url, "messages"))
    assert program.run("so").value
    [found] = program.batch([{"text": ""}])
    assert "is behind an empty message" in str(found.error)
    assert "test_roles.py" in str(found.error)
    assert len(simulator.arrivals) == 1
