"""Calls of tools that begin before it is known whether their way is taken: when, how often, what becomes of them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import pytest

from lmc.backend.lower import lower
from lmc.ir.engine.hosts import CANCELLATION, Answer
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import InputError
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from lmc.passes.base import PassContext
from lmc.passes.start_reads_early import StartReadsEarly
from lmc.runtime.executor import Executor, Limits
from tests.ir.breaks import live_text
from tests.runtime.engines import HeldEngine

LONG = 20.0
MODULE = """
module @f {{
  host @look = "p:look" sha256 "0" reads {{early = true}}
  host @know = "p:know" sha256 "1" pure {{early = true}}
  host @save = "p:save" sha256 "2" writes
  func @f(%q: !text, %other: !text, %items: !list<!text>, %yes: !bool) {{
    %0 = lm.context : !ctx
    %1 = lm.extend %0 [%q] : !ctx
    {body}
    lm.return %1 (%r) {{structure = "{{\\"leaf\\":0}}"}}
  }}
}}
"""
DECIDES = """
    {before}
    %2, %d = lm.gen %1 {{id = "f/d", max_tokens = 3}} : !ctx, !text
    %go = py.call eq (%d, %other) : !bool
    %r = cf.cond %go : !text ^then() {{
      {then}
      cf.yield (%v)
    }} ^otherwise() {{
      {otherwise}
      cf.yield ("no")
    }}
"""
LOOK = '%v = host.call @look (%q) {declared = "reads", id = "f/@look"} : !text loc("f.py":9)'
SAVE = '%s = host.call @save (%q) {id = "f/@save"} : !text'
SAVE_AGAIN = '%t = host.call @save (%q) {id = "f/@save#1"} : !text'


def module_of(body: str, **parts: str):
    parts = {"before": "", "then": LOOK, "otherwise": "", **parts}
    module = parse_verified(MODULE.format(body=body.format(**parts)))
    return StartReadsEarly().run(module, PassContext())


def decision() -> str:
    """What the model answers to ``f/d``."""
    text = "module @f { func @f(%q: !text) { %0 = lm.context : !ctx %1 = lm.extend %0 [%q] : !ctx %2, %d = lm.gen %1 "
    text += '{id = "f/d", max_tokens = 3} : !ctx, !text lm.return %2 (%d) {structure = "{\\"leaf\\":0}"} } }'
    return interpret(parse_verified(text), {"q": "q"}, ToyEngine()).value


class Tool:
    """A host function that tells of its calls, and is over when the test says so."""

    def __init__(self, *, held: bool = False, fails: bool = False) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.told = threading.Event()
        self.over = threading.Event()
        self._fails = fails
        if not held:
            self.over.set()

    def __call__(self, *args: Any) -> str:
        self.calls.append(args)
        cancellation = CANCELLATION.get()
        assert cancellation is not None
        with cancellation.calling(self.told.set):
            assert self.over.wait(LONG)
        if self._fails:
            raise LookupError("not there")
        return f"saw {args}"


class AsyncTool(Tool):
    """The same as one that takes no thread."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.futures: list[Future[Answer]] = []

    def submit(self, *args: Any) -> Future[Answer]:
        self.calls.append(args)
        self.futures.append(Future())
        if self.over.is_set():
            self.futures[-1].set_result((f"saw {args}", None))
        return self.futures[-1]


class Run:
    """One run of a module whose generations the test answers."""

    def __init__(self, module: Any, *, limits: Limits | None = None, **hosts: Callable[..., Any]) -> None:
        self.engine = HeldEngine()
        self._module = module
        self.hosts = {"look": Tool(), "know": Tool(), "save": Tool(), **hosts}
        self._limits = limits

    def start(self, *, taken: bool, **inputs: Any) -> asyncio.Future[Any]:
        values = {"q": "q", "items": [], "yes": True, "other": decision() if taken else "another", **inputs}
        plan = lower(self._module, Target("toy"))
        executor = Executor(self.engine, plan, self.hosts, self._limits)
        return asyncio.ensure_future(executor.run(values))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not holds():
            await asyncio.sleep(0.001)


async def settle() -> None:
    """Time enough for what should not happen."""
    await asyncio.sleep(0.05)


def check(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), LONG)

    asyncio.run(bounded())


@pytest.mark.parametrize("kind", [Tool, AsyncTool])
def test_a_call_begins_beside_the_generation_that_decides_and_is_made_once(kind: type[Tool]):
    async def scenario() -> None:
        tool = kind()
        run = Run(module_of(DECIDES), look=tool)
        end = run.start(taken=True)
        await until(lambda: tool.calls == [("q",)] and run.engine.waiting == ["f/d"])
        run.engine.answer("f/d")
        assert (await end).value == "saw ('q',)"
        assert tool.calls == [("q",)]

    check(scenario)


def test_a_call_that_is_not_over_when_it_is_come_to_is_waited_for():
    async def scenario() -> None:
        tool = Tool(held=True)
        run = Run(module_of(DECIDES), look=tool)
        end = run.start(taken=True)
        await until(lambda: bool(tool.calls))
        run.engine.answer("f/d")
        await settle()
        assert not end.done()
        assert not tool.told.is_set()
        tool.over.set()
        assert (await end).value == "saw ('q',)"
        assert len(tool.calls) == 1

    check(scenario)


def test_a_plain_call_that_is_not_needed_is_told_and_not_waited_for():
    async def scenario() -> None:
        tool = Tool(held=True)
        run = Run(module_of(DECIDES), look=tool)
        end = run.start(taken=False)
        await until(lambda: bool(tool.calls))
        run.engine.answer("f/d")
        assert (await end).value == "no"
        assert tool.told.wait(LONG)
        tool.over.set()

    check(scenario)


def test_an_async_call_that_is_not_needed_is_cancelled_at_once():
    async def scenario() -> None:
        tool = AsyncTool(held=True)
        otherwise = '%3, %e = lm.gen %2 {id = "f/e"} : !ctx, !text'
        run = Run(module_of(DECIDES, otherwise=otherwise), look=tool)
        end = run.start(taken=False)
        await until(lambda: bool(tool.calls))
        run.engine.answer("f/d")
        await until(lambda: run.engine.waiting == ["f/e"])
        assert tool.futures[0].cancelled()
        run.engine.answer("f/e")
        assert (await end).value == "no"

    check(scenario)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("taken", [True, False])
def test_an_error_is_one_of_the_call_and_only_where_that_is_come_to(taken: bool, early: bool):
    async def scenario() -> None:
        tool = Tool(fails=True)
        module = (
            module_of(DECIDES)
            if early
            else parse_verified(MODULE.format(body=DECIDES.format(before="", then=LOOK, otherwise="")))
        )
        run = Run(module, look=tool)
        end = run.start(taken=taken)
        await until(lambda: run.engine.waiting == ["f/d"])
        await until(lambda: bool(tool.calls) or not early)
        run.engine.answer("f/d")
        if not taken:
            assert (await end).value == "no"
            return
        with pytest.raises(LookupError, match="not there") as caught:
            await end
        assert caught.value.__notes__ == ["in the program at f.py:9"]

    check(scenario)


def test_the_generation_that_decides_fails_as_it_would_alone():
    async def scenario() -> None:
        tool = Tool(held=True)
        run = Run(module_of(DECIDES), look=tool)
        end = run.start(taken=True)
        await until(lambda: bool(tool.calls))
        run.engine.fail("f/d")
        with pytest.raises(Exception, match="f/d failed"):
            await end
        assert tool.told.wait(LONG)
        tool.over.set()

    check(scenario)


def test_a_run_that_is_cancelled_cancels_what_has_begun():
    async def scenario() -> None:
        tool = AsyncTool(held=True)
        run = Run(module_of(DECIDES), look=tool)
        end = run.start(taken=True)
        await until(lambda: bool(tool.calls))
        end.cancel()
        with pytest.raises(asyncio.CancelledError):
            await end
        assert tool.futures[0].cancelled()

    check(scenario)


@pytest.mark.parametrize("taken", [True, False])
def test_a_host_that_is_not_there_is_missed_where_the_call_stands(taken: bool):
    async def scenario() -> None:
        run = Run(module_of(DECIDES))
        run.hosts.pop("look")
        end = run.start(taken=taken)
        await until(lambda: run.engine.waiting == ["f/d"])
        run.engine.answer("f/d")
        if not taken:
            assert (await end).value == "no"
            return
        with pytest.raises(InputError, match="the host function @look is not there"):
            await end

    check(scenario)


@pytest.mark.parametrize("taken", [True, False])
def test_it_waits_for_what_was_written_before_and_nothing_that_writes_begins_early(taken: bool):
    async def scenario() -> None:
        look, save = Tool(), Tool(held=True)
        then = f"{LOOK} {SAVE_AGAIN}"
        run = Run(module_of(DECIDES, before=SAVE, then=then), look=look, save=save)
        end = run.start(taken=taken)
        await until(lambda: save.calls == [("q",)] and run.engine.waiting == ["f/d"])
        await settle()
        assert not look.calls
        save.over.set()
        await until(lambda: look.calls == [("q",)])
        await settle()
        assert len(save.calls) == 1
        run.engine.answer("f/d")
        await end
        assert (len(look.calls), len(save.calls)) == (1, 1 + taken)

    check(scenario)


@pytest.mark.parametrize(("host", "effect", "early"), [("look", "reads", False), ("know", "pure", True)])
def test_behind_a_write_in_its_arm_a_call_that_reads_stays_and_a_pure_one_does_not(host: str, effect: str, early: bool):
    async def scenario() -> None:
        tool = Tool()
        then = f"{SAVE} {LOOK.replace('look', host).replace('reads', effect)}"
        hosts: dict[str, Any] = {host: tool}
        run = Run(module_of(DECIDES, then=then), **hosts)
        end = run.start(taken=True)
        await until(lambda: run.engine.waiting == ["f/d"])
        await settle()
        assert bool(tool.calls) is early
        run.engine.answer("f/d")
        assert (await end).value == "saw ('q',)"
        assert len(tool.calls) == 1

    check(scenario)


NESTED = """
    %2, %d = lm.gen %1 {{id = "f/d", max_tokens = 3}} : !ctx, !text
    %go = py.call eq (%d, %other) : !bool
    %r = cf.cond %go : !text ^then() {{
      %3, %e = lm.gen %1 {{id = "f/e", max_tokens = 3}} : !ctx, !text
      %again = py.call eq (%e, %d) : !bool
      %in = cf.cond %again : !text ^then() {{
        %made = text.concat ["about ", %q] : !text
        %v = host.call @look (%made) {{declared = "reads", id = "f/@look"}} : !text
        cf.yield (%v)
      }} ^otherwise() {{
        %w = host.call @look (%e) {{declared = "reads", id = "f/@look"}} : !text
        cf.yield (%w)
      }}
      cf.yield (%in)
    }} ^otherwise() {{
      cf.yield ("no")
    }}
"""


def test_a_call_in_nested_arms_begins_as_soon_as_its_arguments_are_known():
    async def scenario() -> None:
        tool = Tool()
        run = Run(module_of(NESTED), look=tool)
        end = run.start(taken=True)
        await until(lambda: tool.calls == [("about q",)] and run.engine.waiting == ["f/d"])
        run.engine.answer("f/d")
        await until(lambda: run.engine.waiting == ["f/e"])
        assert len(tool.calls) == 1
        run.engine.answer("f/e")
        value = (await end).value
        assert tool.calls[0] == ("about q",)
        assert value == f"saw {tool.calls[-1]}"
        assert len(tool.calls) <= 2

    check(scenario)


LOOPED = """
    %n = py.call len (%items) : !int
    %r, %last = cf.loop ("", 0) : !text, !int ^condition(%a: !text, %k: !int) {{
      %go = py.call lt (%k, %n) : !bool
      cf.condition %go (%a, %k)
    }} ^body(%b: !text, %j: !int) {{
      %2, %d = lm.gen %1 (%j) {{id = "f/d*", max_tokens = 3}} : !ctx, !text
      %is = py.call eq (%d, %other) : !bool
      %x = cf.cond %is : !text ^then() {{
        %v = host.call @look (%j) {{declared = "reads", id = "f/@look"}} : !text
        cf.yield (%v)
      }} ^otherwise() {{
        cf.yield (%b)
      }}
      %m = py.call add (%j, 1) : !int
      cf.yield (%x, %m)
    }}
"""


def test_in_a_loop_a_call_begins_with_its_round():
    async def scenario() -> None:
        tool = Tool()
        run = Run(module_of(LOOPED), look=tool)
        end = run.start(taken=True, items=["a", "b", "c"])
        for number, op_id in enumerate(("f/d", "f/d#1", "f/d#2")):
            await until(lambda op_id=op_id: run.engine.waiting == [op_id])
            await until(lambda number=number: tool.calls == [(known,) for known in range(number + 1)])
            await settle()
            run.engine.answer(op_id)
        assert (await end).value.startswith("saw")
        assert tool.calls == [(0,), (1,), (2,)]

    check(scenario)


FIRST_ROUND = """
    %2, %d = lm.gen %1 {{id = "f/d", max_tokens = 3}} : !ctx, !text
    %go = py.call eq (%d, %other) : !bool
    %r = cf.loop (%go, %q) : !text ^condition(%is: !bool, %a: !text) {{
      cf.condition %is (%a)
    }} ^body(%b: !text) {{
      %v = host.call @look (%b) {{declared = "reads", id = "f/@look"}} : !text
      %more = py.call lt (%v, "saw") : !bool
      cf.yield (%more, %v)
    }}
"""


@pytest.mark.parametrize("taken", [True, False])
def test_the_first_round_of_a_loop_may_begin_before_it_is_known_whether_there_is_one(taken: bool):
    async def scenario() -> None:
        tool = Tool()
        run = Run(module_of(FIRST_ROUND), look=tool)
        end = run.start(taken=taken)
        await until(lambda: tool.calls == [("q",)] and run.engine.waiting == ["f/d"])
        run.engine.answer("f/d")
        assert (await end).value == ("saw ('q',)" if taken else "q")
        assert len(tool.calls) == 1

    check(scenario)


MAPPED = """
    %rs = cf.map (%items) : !list<!text> ^body(%i: !int, %item: !text) {{
      %2 = lm.extend %1 [%item] : !ctx
      %3, %d = lm.gen %2 (%i) {{id = "f/$/d", max_tokens = 3}} : !ctx, !text
      %go = py.call eq (%d, %other) : !bool
      %x = cf.cond %go : !text ^then() {{
        %v = host.call @look (%item) {{declared = "reads", id = "f/@look"}} : !text
        cf.yield (%v)
      }} ^otherwise() {{
        cf.yield ("no")
      }}
      cf.yield (%x)
    }}
    %r = py.call str (%rs) : !text
"""


def test_in_a_map_each_element_begins_its_own():
    async def scenario() -> None:
        tool = Tool()
        run = Run(module_of(MAPPED), look=tool)
        end = run.start(taken=False, items=["a", "b"])
        await until(lambda: sorted(tool.calls) == [("a",), ("b",)])
        assert sorted(run.engine.waiting) == ["f/0/d", "f/1/d"]
        run.engine.answer("f/1/d")
        run.engine.answer("f/0/d")
        assert (await end).value == "['no', 'no']"
        assert len(tool.calls) == 2

    check(scenario)


MAP_IN_AN_ARM = """
    %2, %d = lm.gen %1 {{id = "f/d", max_tokens = 3}} : !ctx, !text
    %go = py.call eq (%d, %other) : !bool
    %found = cf.cond %go : !list<!text> ^then() {{
      %vs = cf.map (%items) : !list<!text> ^body(%i: !int, %item: !text) {{
        %long = py.call eq (%item, "b") : !bool
        %x = cf.cond %long : !text ^then() {{
          cf.yield ("left out")
        }} ^otherwise() {{
          %v = host.call @look (%item, %i) {{declared = "reads", id = "f/@look"}} : !text
          cf.yield (%v)
        }}
        cf.yield (%x)
      }}
      cf.yield (%vs)
    }} ^otherwise() {{
      cf.yield (%items)
    }}
    %r = py.call str (%found) : !text
"""


@pytest.mark.parametrize("kind", [Tool, AsyncTool])
@pytest.mark.parametrize("taken", [True, False])
def test_of_a_map_in_an_arm_every_element_begins_its_own(taken: bool, kind: type[Tool]):
    async def scenario() -> None:
        tool = kind()
        run = Run(module_of(MAP_IN_AN_ARM), look=tool)
        end = run.start(taken=taken, items=["a", "b", "c"])
        await until(lambda: sorted(tool.calls) == [("a", 0), ("b", 1), ("c", 2)] and run.engine.waiting == ["f/d"])
        run.engine.answer("f/d")
        given = ["saw ('a', 0)", "left out", "saw ('c', 2)"] if taken else ["a", "b", "c"]
        assert (await end).value == str(given)
        assert len(tool.calls) == 3

    check(scenario)


def test_of_a_map_no_more_elements_begin_early_than_run_at_once():
    async def scenario() -> None:
        tool = Tool()
        run = Run(module_of(MAP_IN_AN_ARM), look=tool, limits=Limits(requests=2))
        end = run.start(taken=True, items=["a", "c", "d", "e"])
        await until(lambda: sorted(tool.calls) == [("a", 0), ("c", 1)])
        await settle()
        run.engine.answer("f/d")
        await end
        assert sorted(tool.calls) == [("a", 0), ("c", 1), ("d", 2), ("e", 3)]

    check(scenario)


def test_of_many_conditionals_each_ends_what_it_makes_needless():
    lines: list[str] = []
    for number in range(1000):
        lines.append(
            f'%r{number} = cf.cond %go : !text ^then() {{{{ cf.yield ("") }}}} ^otherwise() {{{{ '
            f'%v{number} = host.call @look (%q) {{{{declared = "reads", id = "f/@look{number}"}}}} : !text '
            f"cf.yield (%v{number}) }}}}"
        )
    decides, _, _ = DECIDES.partition("%r =")
    body = f"{decides} {' '.join(lines)} %r = text.concat [%r0] : !text"

    async def scenario() -> None:
        tool = AsyncTool(held=True)
        run = Run(module_of(body), look=tool)
        end = run.start(taken=True)
        await until(lambda: len(tool.calls) == 1000)
        run.engine.answer("f/d")
        await end
        assert all(future.cancelled() for future in tool.futures)

    check(scenario)


def test_a_way_that_is_known_not_to_be_taken_begins_nothing():
    async def scenario() -> None:
        body = DECIDES.replace("cf.cond %go", "cf.cond %yes")
        tool = Tool()
        run = Run(module_of(body, then=f"%u = text.concat [%d] : !text {LOOK}"), look=tool)
        end = run.start(taken=True, yes=False)
        await until(lambda: run.engine.waiting == ["f/d"])
        await settle()
        run.engine.answer("f/d")
        assert (await end).value == "no"
        assert not tool.calls

    check(scenario)


def test_with_one_thread_nothing_begins_early_and_nothing_is_lost():
    async def scenario() -> None:
        tool = Tool()
        run = Run(module_of(DECIDES), look=tool, limits=Limits(host_threads=1))
        end = run.start(taken=True)
        await until(lambda: run.engine.waiting == ["f/d"])
        await settle()
        assert not tool.calls
        run.engine.answer("f/d")
        assert (await end).value == "saw ('q',)"
        assert len(tool.calls) == 1

    check(scenario)


BREAKS = """
    {before}
    %2, %d = lm.gen %1 {{id = "f/d", max_tokens = 3}} : !ctx, !text
    %go = py.call eq (%d, %other) : !bool
    %r = cf.cond %go : !text ^then() {{
      %v = host.call @look (%q) {{declared = "reads", id = "f/@look"}} : !text
      cf.yield (%v)
    }} ^otherwise() {{
      {otherwise}
      cf.yield ("no")
    }}
    cf.cond %yes ^then() {{ {end} }} ^otherwise() {{ cf.yield {{}} }}
"""


@pytest.mark.parametrize("taken", [True, False])
def test_a_break_behind_a_call_that_began_early_gives_what_the_program_came_to(taken: bool):
    async def scenario() -> None:
        tool = Tool()
        run = Run(module_of(BREAKS, end=live_text(["r"])), look=tool)
        end = run.start(taken=taken)
        await until(lambda: tool.calls == [("q",)])
        run.engine.answer("f/d")
        live = (await end).live
        assert live.values == ("saw ('q',)" if taken else "no",)

    check(scenario)
