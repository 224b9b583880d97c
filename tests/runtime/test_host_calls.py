"""Tools beside generations: what the executor runs at the same time, in which order, and what cancelling ends."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from lmc.backend.lower import lower
from lmc.ir.engine.hosts import CANCELLATION, Answer
from lmc.ir.engine.protocol import OnDelta, Request
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import RequestCancelledError
from lmc.ir.text.parser import parse
from lmc.runtime.executor import Executor
from tests.runtime.engines import LateHandle

LONG = 20.0
BESIDE = """
module @f {{
  host @tool = "program:tool" sha256 "00" {effect}
  func @f(%x: !text) {{
    %c = lm.context : !ctx
    %d = lm.extend %c [%x] : !ctx
    %e, %a = lm.gen %d {{id = "f/a", max_tokens = 3}} : !ctx, !text
    %t = host.call @tool (%x) {{declared = "{effect}", id = "f/@tool"}} : !any
    %u = host.call @tool (%x) {{declared = "{effect}", id = "f/@tool#1"}} : !any
    %g, %b = lm.gen %d {{id = "f/b", max_tokens = 3}} : !ctx, !text
    lm.return %e (%t, %u, %a, %b) {{
      structure = "{{\\"list\\":[{{\\"leaf\\":0}},{{\\"leaf\\":1}},{{\\"leaf\\":2}},{{\\"leaf\\":3}}]}}"
    }}
  }}
}}
"""


class Meeting:
    """Whoever comes waits until ``count`` are there, which only happens if all of them run at the same time."""

    def __init__(self, count: int) -> None:
        self.barrier = threading.Barrier(count, timeout=LONG)

    def host(self, *_: Any) -> str:
        self.barrier.wait()
        return "met"

    def engine(self, *takes_part: str) -> ToyEngine:
        """One whose answers to these requests come too."""
        barrier = self.barrier

        class Engine(ToyEngine):
            def submit(self, request: Request, on_delta: OnDelta | None = None) -> LateHandle:
                handle = LateHandle()
                answer = super().submit(request, on_delta)

                def work() -> None:
                    if request.op_id in takes_part:
                        barrier.wait()
                    handle.future.set_result(answer.future.result())

                threading.Thread(target=work, daemon=True).start()
                return handle

        return Engine()


class AsyncFunction:
    """An async host function, in a loop of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.submitted: list[Future[Answer]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the executor waits for the future")

    def submit(self, *args: Any, **kwargs: Any) -> Future[Answer]:
        future: Future[Answer] = Future()
        future.set_running_or_notify_cancel()
        self.submitted.append(future)

        def work() -> None:
            try:
                future.set_result((self.function(*args, **kwargs), None))
            except BaseException as error:
                future.set_result((None, error))

        threading.Thread(target=work, daemon=True).start()
        return future


def executor(effect: str, engine: ToyEngine, host: Callable[..., Any]) -> Executor:
    return Executor(engine, lower(parse(BESIDE.format(effect=effect)), Target("toy")), {"tool": host})


def run(effect: str, engine: ToyEngine, host: Callable[..., Any]) -> list[Any]:
    return asyncio.run(asyncio.wait_for(executor(effect, engine, host).run({"x": "x"}), LONG)).value


@pytest.mark.parametrize("wrap", [lambda host: host, AsyncFunction], ids=["plain", "async"])
@pytest.mark.parametrize("effect", ["pure", "reads"])
def test_tools_that_only_look_run_beside_each_other_and_generations(effect: str, wrap: Callable[..., Any]):
    meeting = Meeting(4)  # two calls of the tool and two generations
    assert run(effect, meeting.engine("f/a", "f/b"), wrap(meeting.host))[:2] == ["met", "met"]


@pytest.mark.parametrize("wrap", [lambda host: host, AsyncFunction], ids=["plain", "async"])
def test_tools_that_write_keep_their_order_and_run_beside_later_generations(wrap: Callable[..., Any]):
    meeting = Meeting(2)  # the first call and the generation after it: it waits for the one before, which may fail
    under_way = 0
    calls: list[int] = []

    def write(_: str) -> str:
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        if not calls:
            meeting.host()
        calls.append(len(calls))
        under_way -= 1
        return f"call {calls[-1]}"

    assert run("writes", meeting.engine("f/b"), wrap(write))[:2] == ["call 0", "call 1"]


IN_REGIONS = """
module @f {{
  host @tool = "program:tool" sha256 "00" reads
  func @f(%x: !text, %yes: !bool, %items: !list<!text>) {{
    %c = lm.context : !ctx
    %d = lm.extend %c [%x] : !ctx
    {region}
    lm.return %c (%r) {{structure = "{{\\"leaf\\":0}}"}}
  }}
}}
"""
INSIDE = """
      %e, %a = lm.gen %d {id = "f/a", max_tokens = 3} : !ctx, !text
      %t = host.call @tool (%x) {declared = "reads", id = "f/@tool"} : !text
      %both = text.concat [%t, "!"] : !text
"""
ARM = "%r = cf.cond %yes : !text ^then() {{ {inside} cf.yield (%both) }} ^otherwise() {{ cf.yield (%x) }}"
ROUND = """
    %no = py.call not (%yes) : !bool
    %r = cf.loop (%yes, %x) : !text ^condition(%go: !bool, %said: !text) {{ cf.condition %go (%said) }}
    ^body(%before: !text) {{ {inside} cf.yield (%no, %both) }}
"""
ELEMENT = """
    %rs = cf.map (%items) : !list<!text> ^body(%i: !int, %item: !text) {{ {inside} cf.yield (%both) }}
    %r = py.call str (%rs) : !text
"""


@pytest.mark.parametrize("wrap", [lambda host: host, AsyncFunction], ids=["plain", "async"])
@pytest.mark.parametrize(
    ("region", "given"), [(ARM, "met!"), (ROUND, "met!"), (ELEMENT, "['met!']")], ids=["arm", "round", "element"]
)
def test_tools_run_beside_generations_in_regions_too(region: str, given: str, wrap: Callable[..., Any]):
    meeting = Meeting(2)
    module = parse(IN_REGIONS.format(region=region.format(inside=INSIDE)))
    found = Executor(meeting.engine("f/a"), lower(module, Target("toy")), {"tool": wrap(meeting.host)})
    inputs = {"x": "x", "yes": True, "items": ["one"]}
    assert asyncio.run(asyncio.wait_for(found.run(inputs), LONG)).value == given


def test_what_an_async_tool_raises_is_the_error_of_the_run():
    def fails(_: str) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        run("reads", ToyEngine(), AsyncFunction(fails))


def test_a_call_whose_loop_has_gone_is_an_error():
    class Gone(AsyncFunction):
        def submit(self, *args: Any, **kwargs: Any) -> Future[Answer]:
            future: Future[Answer] = Future()
            future.cancel()
            return future

    with pytest.raises(RequestCancelledError, match="the call of a tool was cancelled"):
        run("reads", ToyEngine(), Gone(str))


def test_cancelling_a_run_cancels_async_tools_and_tells_plain_ones():
    began = threading.Semaphore(0)
    told = threading.Semaphore(0)
    go_on = threading.Event()

    def plain(_: str) -> None:
        cancellation = CANCELLATION.get()
        assert cancellation is not None
        with cancellation.calling(told.release):
            began.release()
            go_on.wait(LONG)

    async def main() -> None:
        task = asyncio.ensure_future(executor("reads", ToyEngine(), plain).run({"x": "x"}))
        for _ in range(2):
            assert await asyncio.to_thread(began.acquire, True, LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), LONG))  # though neither call is over
    for _ in range(2):
        assert told.acquire(timeout=LONG)
    go_on.set()
