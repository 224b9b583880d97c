"""Short programs with regions, written as `.lmir`, and running them step by step."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from lmc.backend.lower import lower
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.module import Module
from lmc.ir.semantics.interpreter import Outcome
from lmc.ir.text.parser import parse_verified
from lmc.runtime.executor import Executor, Limits
from tests.runtime.engines import HeldEngine

TOY = Target.parse("toy")


TEMPLATE = """
module @m {
  host @tell = "m:tell" sha256 "" writes
  func @m(%f: !bool, %n: !int, %xs: !list<!text>) {
    %c = lm.context : !ctx
    %s = lm.extend %c ["Say: "] : !ctx
    BODY
  }
}
"""


INPUTS: dict[str, Any] = {"f": True, "n": 3, "xs": ["a", "b", "c"]}


LEAF = '{structure = "{\\"leaf\\":0}"}'


def module(body: str) -> Module:
    return parse_verified(TEMPLATE.replace("BODY", body))


def executor(body: str, engine: Engine, limits: Limits | None = None, **hosts: Callable[..., Any]) -> Executor:
    return Executor(engine, lower(module(body), TOY), hosts, limits)


def run(body: str, engine: Engine | None = None, limits: Limits | None = None, **inputs: Any) -> Outcome:
    return asyncio.run(executor(body, engine or ToyEngine(), limits).run({**INPUTS, **inputs}))


class Step:
    """A run under way, and the engine that holds its requests."""

    def __init__(self, task: asyncio.Task[Outcome], engine: HeldEngine) -> None:
        self.task = task
        self.engine = engine

    async def until(self, *waiting: str) -> None:
        """Wait until exactly these requests are under way."""
        for _ in range(20_000):
            await asyncio.sleep(0.001)
            if sorted(self.engine.waiting) == sorted(waiting):
                return
        raise AssertionError(f"{self.engine.waiting} are under way")


def stepwise(
    body: str,
    steps: Callable[[Step], Coroutine[Any, Any, None]],
    limits: Limits | None = None,
    engine: HeldEngine | None = None,
    **hosts: Callable[..., Any],
) -> Outcome:
    """Run a program while ``steps`` answers its requests."""
    held = engine or HeldEngine()

    async def main() -> Outcome:
        step = Step(asyncio.ensure_future(executor(body, held, limits, **hosts).run(INPUTS)), held)
        await steps(step)
        return await asyncio.wait_for(step.task, 60)

    outcome = asyncio.run(main())
    assert held.pinned == ()
    return outcome


def gen(name: str, context: str = "s", *, occurrences: str = "", extra: str = "") -> str:
    """A generation ``m/NAME``, whose context is ``%NAME`` and whose text ``%t.NAME``."""
    op_id = f"m/{name}{'*' if occurrences else ''}"
    return (
        f'%{name}, %t.{name} = lm.gen %{context} {occurrences} {{id = "{op_id}", max_tokens = 2{extra}}} : !ctx, !text '
    )


MAP = f"""
%ts = cf.map (%xs) : !list<!text> ^body(%i: !int, %x: !text) {{
  %d = lm.extend %s [%x] : !ctx
  {gen("a", "d", occurrences="(%i)")}
  {gen("b", "a", occurrences="(%i)")}
  cf.yield (%t.b)
}} loc("m.py":7)
lm.return %s (%ts) {LEAF}
"""


LOOP = f"""
%m, %d = cf.loop (0, %s) LIMIT : !int, !ctx ^condition(%i: !int, %e: !ctx) {{
  %more = py.call lt (%i, %n) : !bool
  cf.condition %more (%i, %e)
}} ^body(%j: !int, %g: !ctx) {{
  {gen("a", "g", occurrences="(%j)")}
  %k = py.call add (%j, 1) : !int
  cf.yield (%k, %a)
}} loc("m.py":3)
lm.return %d (%m) {LEAF}
"""


def count_up(rounds: int, inside: str = "") -> Module:
    return module(f"""
    %m = cf.loop (0) : !int ^condition(%i: !int) {{
      %more = py.call lt (%i, {rounds}) : !bool
      cf.condition %more (%i)
    }} ^body(%j: !int) {{
      {inside}
      %k = py.call add (%j, 1) : !int
      cf.yield (%k)
    }}
    lm.return %s (%m) {LEAF}
    """)
