"""Retries, timeouts and the loop of tools: called as plain Python and by a program that runs eagerly."""

import asyncio
import random
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stamina

from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tool_calls import CallPolicy, Retries, tool_loop
from lmc.frontend.tools.tools import Tool, tool
from lmc.ir.engine.hosts import Cancellation, ProgramCancelled, cancelled_by
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import CaptureError, EngineError, InputError, LmcError, ToolTimeoutError
from tests.frontend.harness import check

LONG = 30.0


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


def failing(*errors: BaseException, is_async: bool = False, **options: Any) -> tuple[Tool[[], str], list[int]]:
    """A tool that raises ``errors``, one at each call, and then gives a text; and its calls."""
    calls: list[int] = []

    def flaky() -> str:
        calls.append(len(calls))
        if len(calls) <= len(errors):
            raise errors[len(calls) - 1]
        return "done"

    async def flaky_async() -> str:
        await asyncio.sleep(0)
        return flaky()

    return tool(**options)(flaky_async if is_async else flaky), calls  # type: ignore[arg-type]


def call(given: Tool[..., Any], *args: Any) -> Any:
    """What it gives in a program."""
    return run(lambda s: given(*args))


def run(body: Callable[[Any], Any]) -> Any:
    def program(s: Any) -> Any:
        return body(s)

    function = JittedFunction(program)
    return run_eager(function, bind(function, (), {}), EagerSession(ToyEngine())).value


both = pytest.mark.parametrize("is_async", [False, True])


@both
def test_a_call_that_fails_is_made_again(is_async: bool):
    given, calls = failing(OSError("a"), ValueError("b"), is_async=is_async, effect="reads", retries=2)
    assert call(given) == "done"
    assert len(calls) == 3


@both
def test_the_last_error_is_raised_as_it_is(is_async: bool):
    errors = [OSError("a"), OSError("b"), OSError("c")]
    given, calls = failing(*errors, is_async=is_async, effect="reads", retries=2)
    with pytest.raises(OSError, match="c") as caught:
        call(given)
    assert caught.value is errors[2]
    assert len(calls) == 3


@both
@pytest.mark.parametrize("error", [TypeError("x"), NameError("x"), AssertionError(), EngineError("x"), SystemExit(3)])
def test_what_a_second_call_would_not_mend_is_raised_at_once(is_async: bool, error: BaseException):
    given, calls = failing(error, is_async=is_async, effect="pure", retries=5)
    with pytest.raises(type(error)):
        call(given)
    assert len(calls) == 1


@both
def test_what_writes_is_called_again_after_what_was_named_alone(is_async: bool):
    given, calls = failing(
        ConnectionError(), OSError("disk"), is_async=is_async, retries=5, retry_on=(ConnectionError, TypeError)
    )
    with pytest.raises(OSError, match="disk"):
        call(given)
    assert len(calls) == 2


def test_a_result_that_breaks_a_promise_is_not_asked_for_again():
    calls: list[int] = []

    @tool(effect="reads", retries=3, retry_on=Exception)
    def wrong() -> int:
        calls.append(1)
        return "x"  # type: ignore[return-value]

    with pytest.raises(InputError, match="annotated to give !int"):
        call(wrong)
    assert calls == [1]


def test_without_retries_a_call_is_made_once():
    given, calls = failing(OSError("a"), effect="reads", timeout=LONG)
    with pytest.raises(OSError, match="a"):
        call(given)
    assert calls == [0]


def test_pauses_grow_and_differ_and_leave_the_users_random_numbers_alone(monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    stamina.set_testing(False)
    random.seed(3)
    expected = random.random()
    random.seed(3)
    given, _ = failing(*[OSError()] * 8, effect="reads", retries=8)
    assert call(given) == "done"
    assert random.random() == expected
    for number, pause in enumerate(pauses):
        longest = min(0.1 * 2**number, 5.0)
        assert longest / 2 <= pause <= longest
    assert len(pauses) == 8


@both
def test_each_retry_is_one_warning_with_the_name_of_the_tool(is_async: bool, caplog: pytest.LogCaptureFixture):
    given, calls = failing(OSError("disk"), ValueError("%s odd"), effect="reads", retries=2, is_async=is_async)
    assert call(given) == "done"
    assert len(calls) == 3
    assert {(record.name, record.levelname) for record in caplog.records} == {("lmc.tools", "WARNING")}
    name = "flaky_async" if is_async else "flaky"
    first, second = (record.getMessage() for record in caplog.records)
    assert re.fullmatch(
        rf"the tool '{name}' failed \(OSError: disk\); it is called again in 0\.\d\d seconds, 2 more times at most",
        first,
    )
    assert re.search(r"\(ValueError: %s odd\).* 1 more times at most", second)


def test_the_last_failure_of_a_tool_is_no_warning(caplog: pytest.LogCaptureFixture):
    given, calls = failing(OSError("a"), OSError("b"), effect="reads", retries=1)
    with pytest.raises(OSError, match="b"):
        call(given)
    assert len(calls) == 2
    assert len(caplog.records) == 1


def test_a_retry_of_something_else_is_still_stamina_s_own_warning(caplog: pytest.LogCaptureFixture):
    given, _ = failing(OSError("a"), effect="reads", retries=1)
    assert call(given) == "done"
    caplog.clear()
    for attempt in stamina.retry_context(OSError, attempts=2):
        with attempt:
            if attempt.num == 1:
                raise OSError
    assert [record.name for record in caplog.records] == ["stamina"]


@both
def test_what_takes_too_long_is_an_error_that_says_what_to_do(is_async: bool):
    never = threading.Event()

    def waits() -> None:
        never.wait(LONG)

    async def waits_async() -> None:
        await asyncio.sleep(LONG)

    given = tool(effect="reads", timeout=0.02)(waits_async if is_async else waits)
    with pytest.raises(ToolTimeoutError, match=r"did not finish within 0\.02 seconds") as caught:
        call(given)
    never.set()
    assert isinstance(caught.value, TimeoutError)
    assert given.name in caught.value.cause
    assert "timeout=…" in str(caught.value)
    assert ("goes on in its thread" in str(caught.value)) is not is_async
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_outside_of_a_program_a_timeout_names_the_line_that_calls():
    @tool(effect="reads", timeout=0.01)
    async def waits() -> None:
        await asyncio.sleep(LONG)

    async def main() -> None:
        await waits()  # type: ignore[misc]

    with pytest.raises(ToolTimeoutError) as caught:
        asyncio.run(main())
    assert caught.value.location is not None
    assert caught.value.location.line == main.__code__.co_firstlineno + 1


@both
def test_an_attempt_that_took_too_long_is_made_again(is_async: bool):
    calls: list[int] = []
    never = threading.Event()

    def slow_at_first() -> str:
        calls.append(1)
        if len(calls) == 1:
            never.wait(LONG)
        return "done"

    async def slow_at_first_async() -> str:
        calls.append(1)
        if len(calls) == 1:
            await asyncio.sleep(LONG)
        return "done"

    given = tool(effect="reads", timeout=0.05, retries=1)(slow_at_first_async if is_async else slow_at_first)
    assert call(given) == "done"
    never.set()
    assert len(calls) == 2


@both
def test_what_writes_and_may_still_do_so_is_not_called_again_after_its_timeout(is_async: bool):
    calls: list[int] = []
    never = threading.Event()

    def write() -> str:
        calls.append(1)
        never.wait(LONG)
        return "done"

    async def write_async() -> str:
        calls.append(1)
        if len(calls) == 1:
            await asyncio.sleep(LONG)
        return "done"

    options: dict[str, Any] = {"timeout": 0.05, "retries": 1, "retry_on": TimeoutError}
    if is_async:
        assert call(tool(**options)(write_async)) == "done"
    else:
        with pytest.raises(ToolTimeoutError):
            call(tool(**options)(write))
        never.set()
    assert len(calls) == 1 + is_async


def test_the_tools_own_timeouts_stay_its_own():
    own = TimeoutError("of a socket")
    for is_async in (False, True):
        given, _ = failing(own, is_async=is_async, effect="reads", timeout=LONG)
        with pytest.raises(TimeoutError) as caught:
            call(given)
        assert caught.value is own


def test_async_tools_run_in_one_thread_and_loop():
    seen: set[tuple[str, int]] = set()

    @tool(effect="reads")
    async def where() -> None:
        seen.add((threading.current_thread().name, id(asyncio.get_running_loop())))

    call(where)
    call(where)

    async def main() -> None:
        call(where)  # a notebook, a server: a loop runs here already

    asyncio.run(main())
    assert seen == {("lmc-tools", id(tool_loop().loop))}


def test_an_async_tool_awaits_another_and_calls_plain_ones():
    @tool(effect="pure", timeout=LONG)
    async def inner(text: str) -> str:
        await asyncio.sleep(0)
        return text + "."

    @tool(effect="pure", timeout=LONG, retries=1)
    def plain(text: str) -> str:
        return text + "!"

    @tool(effect="pure")
    async def outer(text: str) -> str:
        return plain(await inner(text))  # type: ignore[misc]

    assert call(outer, "a") == "a.!"


def test_a_plain_function_of_a_program_gets_the_result_of_an_async_tool():
    @tool(effect="pure", retries=1)
    async def inner(text: str) -> str:
        return text + "."

    def helper(text: str) -> str:
        return inner(text) + "!"

    assert run(lambda s: helper("a")) == "a.!"


def test_a_timeout_keeps_the_surroundings_of_the_call():
    @tool(effect="pure")
    async def inner(text: str) -> str:
        return text + "."

    @tool(effect="pure", timeout=LONG)
    def outer(text: str) -> str:
        return inner(text) + "!"

    assert call(outer, "a") == "a.!"


def test_a_program_in_an_async_tool_is_refused():
    def part(s: Any) -> str:
        return s.gen(max_tokens=2)

    program = JittedFunction(part)

    @tool(effect="reads")
    async def outer() -> str:
        return program()

    with pytest.raises(CaptureError, match=r"outer\(\) calls the program part\(\)"):
        call(outer)


def test_a_program_that_holds_up_the_loop_of_tools_is_refused():
    @tool(effect="reads")
    async def inner() -> str:
        return "x"

    @tool(effect="reads")
    async def outer() -> str:
        return call(inner)

    with pytest.raises(CaptureError, match="another async tool runs without awaiting it") as caught:
        call(outer)
    assert "arun" in str(caught.value)


def test_a_tool_that_somebody_else_cancels_is_an_error():
    @tool(effect="reads")
    async def outer() -> None:
        task = asyncio.ensure_future(asyncio.sleep(LONG))
        task.cancel()
        await task

    with pytest.raises(LmcError, match="the tool 'outer' was cancelled, and not by the run") as caught:
        call(outer)
    assert "catch asyncio.CancelledError" in str(caught.value)


def test_a_recursion_that_is_too_deep_in_an_async_tool_says_where():
    def deep(number: int) -> int:
        return deep(number + 1) + 1

    @tool(effect="pure")
    async def outer() -> int:
        return deep(0)

    with pytest.raises(RecursionError) as caught:
        call(outer)
    assert isinstance(caught.value, CaptureError)
    assert caught.value.location is not None


def test_cancelling_ends_an_async_tool_where_it_waits():
    began, ended = threading.Event(), threading.Event()

    @tool(effect="reads")
    async def waits() -> None:
        began.set()
        try:
            await asyncio.sleep(LONG)
        finally:
            ended.set()

    cancellation = Cancellation()
    raised: list[BaseException] = []

    def program() -> None:
        try:
            with cancelled_by(cancellation):
                call(waits)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=program)
    thread.start()
    assert began.wait(LONG)
    cancellation.cancel()
    thread.join(LONG)
    assert ended.wait(LONG)
    assert [type(error) for error in raised] == [ProgramCancelled]


@both
def test_a_cancelled_program_may_tidy_up(is_async: bool):
    given, calls = failing(is_async=is_async, effect="reads", retries=2)
    cancellation = Cancellation()
    cancellation.cancel()
    with cancelled_by(cancellation):
        assert call(given) == "done"
    assert calls == [0]


def test_a_cancelled_call_is_not_made_again():
    cancellation = Cancellation()
    calls: list[int] = []

    @tool(effect="reads", retries=5)
    def flaky() -> None:
        calls.append(1)
        cancellation.cancel()
        raise OSError

    with cancelled_by(cancellation), pytest.raises(ProgramCancelled):
        call(flaky)
    assert calls == [1]


@both
@pytest.mark.parametrize("error", [None, OSError("x")])
def test_a_graph_gives_what_plain_python_gives(is_async: bool, error: Exception | None):
    def doubled(text: str) -> str:
        if error is not None:
            raise error
        return text * 2

    async def doubled_async(text: str) -> str:
        return doubled(text)

    given = tool(effect="reads", retries=1, timeout=LONG)(doubled_async if is_async else doubled)

    def program(s: Any) -> str:
        s += "x"
        return s.gen(max_tokens=2) + given("y")

    captured = check(JittedFunction(program))
    assert captured.breaks == ()


def test_policies_say_what_is_retried():
    late = ToolTimeoutError("late")
    assert CallPolicy("f", Retries(1)).is_retried(late)
    assert not CallPolicy("f", Retries(1, retry_on=(TimeoutError,)), stoppable=False).is_retried(late)
    assert not CallPolicy("f", Retries(1)).is_retried(KeyboardInterrupt())
    assert CallPolicy("f", Retries(1, retry_on=(EngineError,))).is_retried(EngineError("x"))
