"""Tools in every way of running a program: same results, same effects, once per instance."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stamina

import lmc
from lmc.driver.options import Options
from lmc.driver.saved.artifacts import plan_text
from lmc.driver.saved.saved import SavedRunner

LONG = 20.0
CALLS: list[str] = []
_LOCK = threading.Lock()


def note(text: str) -> None:
    with _LOCK:
        CALLS.append(text)


@pytest.fixture(autouse=True)
def nothing_called() -> Iterator[None]:
    CALLS.clear()
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@lmc.tool(effect="reads", retries=3)
def flaky(text: str) -> str:
    note(f"flaky {text}")
    if CALLS.count(f"flaky {text}") < 3:
        raise ConnectionError
    return f"flaky said {text}"


@lmc.tool(retries=3, retry_on=ConnectionError, timeout=LONG)
async def save(text: str) -> int:
    note(f"save {text}")
    await asyncio.sleep(0)
    if CALLS.count(f"save {text}") < 2:
        raise ConnectionError
    return len(text)


@lmc.tool(timeout=0.01)
async def never(text: str) -> str:
    note(f"never {text}")
    await asyncio.sleep(LONG)
    return text


@lmc.jit
def works(s: lmc.State, topic: str) -> list[Any]:
    s += topic
    first = s.gen("first", max_tokens=4, temperature=1.0)
    said = flaky(first)
    size = save(first)
    save("again " + said)
    s += f" {said} {size} "
    return [said, size, s.gen("second", max_tokens=4)]


@lmc.jit
def breaks(s: lmc.State, topic: str) -> list[Any]:
    """What stands behind ``locals()`` runs eagerly, and what stands before it is not called again."""
    s += topic
    first = s.gen("first", max_tokens=4)
    size = save(first)
    known = sorted(locals())
    said = flaky(f"{first} {size}")
    save(said)
    return [size, said, known, s.gen("second", max_tokens=4)]


@lmc.jit
def loops(s: lmc.State, topic: str) -> list[Any]:
    """Rounds that only a run decides, with tools in them."""
    s += topic
    said, size = s.gen("first", max_tokens=2), 0
    while size < 40 and "e" not in said:
        said = flaky(s.gen("more", max_tokens=3))[:4]
        size += save(f"{said} {size}")
    return [said, size, [flaky(word) for word in ("a", "b")]]


@lmc.jit
def catches(s: lmc.State, topic: str) -> str:
    s += topic
    try:
        return never(topic)
    except TimeoutError as error:
        note(type(error).__name__)
    return s.gen("answer", max_tokens=4)


@lmc.jit
def is_late(s: lmc.State, topic: str) -> str:
    save(topic)
    return never(topic)


def eagerly(program: lmc.Program, topic: str) -> lmc.Result:
    return program.on("toy").eager(topic)


def plainly(program: lmc.Program, topic: str) -> lmc.Result:
    return program.on("toy", level="O0").run(topic)


def optimized(program: lmc.Program, topic: str) -> lmc.Result:
    return program.on("toy", level="O2").run(topic)


def in_a_loop(program: lmc.Program, topic: str) -> lmc.Result:
    return asyncio.run(program.on("toy").arun(topic))


def from_a_loop(program: lmc.Program, topic: str) -> lmc.Result:
    """As in a notebook: a loop runs in the thread that calls."""

    async def main() -> lmc.Result:
        return program.on("toy").run(topic)

    return asyncio.run(main())


def eagerly_from_a_loop(program: lmc.Program, topic: str) -> lmc.Result:
    async def main() -> lmc.Result:
        return program.on("toy").eager(topic)

    return asyncio.run(main())


WAYS = [eagerly, plainly, optimized, in_a_loop, from_a_loop, eagerly_from_a_loop]


@pytest.mark.parametrize("program", [works, breaks, loops, catches], ids=lambda program: program.name)
def test_every_way_of_running_gives_the_same_and_calls_the_same(program: lmc.Program):
    found: list[tuple[Any, ...]] = []
    for way in WAYS:
        CALLS.clear()
        result = way(program, "ants")
        writes = [call for call in CALLS if call.startswith("save")]
        found.append((result.value, result.text, writes, sorted(CALLS)))  # what only looks may run in any order
    assert all(entry == found[0] for entry in found)
    assert found[0][3]


def test_failures_are_tried_again_once_per_instance():
    results = works.on("toy").batch([{"topic": "ants"}, {"topic": "birds"}])
    for result in results:
        assert result.error is None
        first = result.variables["first"]
        assert CALLS.count(f"flaky {first}") == 3
        assert CALLS.count(f"save {first}") == 2
        assert CALLS.count(f"save again {result.value[0]}") == 2
    assert len(CALLS) == 14


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_timeout_names_the_line_of_the_program(way: Callable[..., lmc.Result]):
    with pytest.raises(lmc.ToolTimeoutError, match=r"the tool 'never' did not finish within 0\.01 seconds") as caught:
        way(is_late, "x")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert caught.value.location.line == is_late.function.__code__.co_firstlineno + 3
    assert "timeout=…" in str(caught.value)


def test_a_saved_plan_calls_the_tools_as_its_program_does(tmp_path: Path):
    path = tmp_path / "works.json"
    path.write_text(plan_text(works.on("toy").compile("ants").plan))
    assert CALLS == []
    runner = SavedRunner.load(str(path), Options("toy"), works)
    [(_, result)] = runner.run_rows([[(0, ((), {"topic": "ants"}))]])
    called = list(CALLS)
    CALLS.clear()
    assert result.value == works.on("toy")("ants")
    assert called == CALLS


BEGAN, ENDED = threading.Semaphore(0), threading.Semaphore(0)


@lmc.tool(effect="reads")
async def waits(text: str) -> str:
    BEGAN.release()
    try:
        await asyncio.sleep(LONG)
    finally:
        ENDED.release()
    return text


@lmc.tool(effect="reads", retries=5, timeout=LONG)
def holds(text: str) -> str:
    note(text)
    BEGAN.release()
    threading.Event().wait(0.2)
    ENDED.release()
    raise OSError


@lmc.jit
def waiting(s: lmc.State, topic: str) -> str:
    s += topic
    return waits(topic)


@lmc.jit
def waiting_eagerly(s: lmc.State, topic: str) -> str:
    s += ", ".join(sorted(locals()))
    return waits(topic)


@lmc.jit
def holding(s: lmc.State, topic: str) -> str:
    s += topic
    return holds(topic)


@lmc.jit
def holding_eagerly(s: lmc.State, topic: str) -> str:
    s += ", ".join(sorted(locals()))
    return holds(topic)


@pytest.mark.parametrize(
    "program", [waiting, waiting_eagerly, holding, holding_eagerly], ids=lambda program: program.name
)
def test_cancelling_ends_async_tools_and_waits_for_no_plain_one(program: lmc.Program):
    async def main() -> None:
        task = asyncio.ensure_future(program.on("toy").arun("x"))
        assert await asyncio.to_thread(BEGAN.acquire, True, LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), LONG))
    assert ENDED.acquire(timeout=LONG)
    assert len(CALLS) <= 1  # nothing is called again


def test_a_program_in_an_async_tool_has_to_be_awaited():
    inner = works.on("toy")

    @lmc.tool(effect="reads")
    async def blocks(topic: str) -> str:
        return inner.run(topic).text

    @lmc.tool(effect="reads")
    async def streams(topic: str) -> str:
        return inner.stream(topic).result.text

    @lmc.tool(effect="reads")
    async def reads(topic: str) -> str:
        return inner.batch(iter([{"topic": topic}]))[0].text

    @lmc.tool(effect="reads")
    async def awaits(topic: str) -> str:
        return (await inner.arun(topic)).text

    @lmc.tool(effect="reads")
    async def awaits_rows(topic: str) -> str:
        return (await inner.abatch(iter([{"topic": topic}])))[0].text

    @lmc.jit(target="toy")
    def outer(s: lmc.State, which: int) -> str:
        return [blocks, streams, reads, awaits, awaits_rows][which]("ants")

    for which in range(3):
        with pytest.raises(lmc.LmcError, match="a program was run from an async tool") as caught:
            outer(which)
        assert "arun" in str(caught.value)
    assert outer(3) == outer(4) == inner.run("ants").text


def test_an_async_function_that_is_not_declared_ends_the_capture():
    async def later(text: str) -> str:
        return text

    @lmc.jit(target="toy")
    def program(s: lmc.State) -> str:
        s += "x"
        value: Any = later("y")
        value.close()
        return s.gen(max_tokens=2)

    [found] = program.compile().breaks
    assert "later() is async" in found.cause
    assert "@lmc.tool" in found.remedy
