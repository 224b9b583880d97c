"""Protected regions in the executor: which error is caught, and what becomes of all that is under way."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from lmc.ir.engine.protocol import DoneHandle
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineClosedError, InputError, RequestCancelledError
from lmc.ir.profile import BranchProfile
from lmc.ir.semantics.interpreter import Outcome
from tests.runtime.region_texts import INPUTS, Step, executor, gen, run, stepwise

RESULT = '{structure = "{\\"list\\":[{\\"leaf\\":0},{\\"leaf\\":1},{\\"leaf\\":2}]}"}'
TRY = f"""
%ok, %error, %v = cf.try ("none") {{id = "m/@cf.try"OPTIONS}} : !bool, !any, !text ^body() {{
  BODY
  cf.yield ("all")
}}
{gen("after")}
%r = py.call repr (%error) : !text
lm.return %after (%ok, %r, %v) {RESULT}
"""
TWO = TRY.replace("OPTIONS", "").replace("BODY", gen("a") + gen("b"))


def of(body: str, base: str = "") -> str:
    return TRY.replace("BODY", body).replace("OPTIONS", base)


def test_what_comes_after_the_body_does_not_wait_for_it_and_is_not_cancelled():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/b", "m/after")
        step.engine.fail("m/a")
        await step.until("m/after")
        assert step.engine.cancelled == ["m/b"]
        step.engine.answer("m/after")

    found = stepwise(TWO, steps)
    assert found.value == [False, "EngineError('m/a failed')", "none"]
    assert found.profile.branches == {"m/@cf.try": BranchProfile(otherwise=1)}


def test_the_error_that_comes_first_in_the_program_is_caught():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/b", "m/after")
        step.engine.fail("m/b")
        await step.until("m/a", "m/after")
        step.engine.fail("m/a")
        await step.until("m/after")
        step.engine.answer("m/after")

    assert stepwise(TWO, steps).value == [False, "EngineError('m/a failed')", "none"]


def test_elements_after_one_that_fails_are_cancelled():
    inside = f"cf.map (%xs) ^body(%i: !int, %x: !text) {{ {gen('a', occurrences='(%i)')} cf.yield {{}} }}"

    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1", "m/a#2", "m/after")
        step.engine.fail("m/a#1")
        await step.until("m/a", "m/after")
        assert step.engine.cancelled == ["m/a#2"]
        step.engine.answer("m/a")
        await step.until("m/after")
        step.engine.answer("m/after")

    assert stepwise(of(inside), steps).value == [False, "EngineError('m/a#1 failed')", "none"]


def test_a_failure_outside_ends_the_body():
    async def steps(step: Step) -> None:
        await step.until("m/before", "m/a", "m/b", "m/after")
        step.engine.fail("m/before")
        async with asyncio.timeout(60):
            while len(step.engine.cancelled) < 3:
                await asyncio.sleep(0.001)
        assert sorted(step.engine.cancelled) == ["m/a", "m/after", "m/b"]

    with pytest.raises(Exception, match="m/before failed"):
        stepwise(gen("before") + TWO, steps)


def test_nothing_after_what_raises_is_written():
    told: list[str] = []

    async def tell(what: str) -> Outcome:
        inside = (
            '%w = host.call @tell ("one") {id = "m/@w"} : !any '
            f"%num = py.call int ({what}) : !int "
            '%v1 = host.call @tell ("two") {id = "m/@v"} : !any'
        )
        return await executor(of(inside), ToyEngine(), tell=told.append).run(INPUTS)

    found = asyncio.run(tell('"x"'))
    assert (found.value[0], told) == (False, ["one"])
    assert asyncio.run(tell('"7"')).value == [True, "None", "all"]
    assert told == ["one", "one", "two"]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_only_with_base_what_is_no_exception_is_caught(kind: type[BaseException]):
    def leave(_: Any) -> None:
        raise kind("now")

    inside = '%w = host.call @tell ("one") {id = "m/@w"} : !any'
    found = asyncio.run(executor(of(inside, ", base = true"), ToyEngine(), tell=leave).run(INPUTS))
    assert found.value == [False, f"{kind.__name__}('now')", "none"]
    with pytest.raises(kind):
        asyncio.run(executor(of(inside), ToyEngine(), tell=leave).run(INPUTS))


class Ending(ToyEngine):
    """Every request ends with ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def submit(self, request: Any, on_delta: Any = None) -> Any:
        return DoneHandle[Any].failed(self.error)


@pytest.mark.parametrize("base", ["", ", base = true"])
@pytest.mark.parametrize("error", [EngineClosedError("closed"), RequestCancelledError("cancelled")])
def test_what_ends_the_run_is_never_caught(base: str, error: Exception):
    with pytest.raises(type(error)):
        run(of(gen("a"), base), Ending(error))


@pytest.mark.parametrize("base", ["", ", base = true"])
def test_what_does_not_fit_the_program_is_never_caught(base: str):
    with pytest.raises(InputError, match="the program was compiled for 4 here"):
        run(of("py.assume %n {expected = 4}", base))
    with pytest.raises(InputError, match="the host function @tell is not there"):
        run(of('%w = host.call @tell ("one") {id = "m/@w"} : !any', base))


def test_cancelling_a_run_goes_through_every_body():
    async def main() -> None:
        def slow(_: Any) -> None:
            time.sleep(0.05)

        inside = '%w = host.call @tell ("one") {id = "m/@w"} : !any'
        running = asyncio.ensure_future(executor(of(inside, ", base = true"), ToyEngine(), tell=slow).run(INPUTS))
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_a_caught_error_of_a_request_has_the_text_that_it_has_in_eager_mode():
    """Nothing but what leaves the program is given the line of its op, which the text of such an error begins with."""
    inside = gen("a") + 'loc("m.py":3)'
    body = of(inside).replace("repr", "str")

    async def steps(step: Step) -> None:
        await step.until("m/a", "m/after")
        step.engine.fail("m/a")
        await step.until("m/after")
        step.engine.answer("m/after")

    assert stepwise(body, steps).value[1] == "m/a failed"
