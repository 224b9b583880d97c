import asyncio
from typing import Any

from lmc.ir.engine.protocol import OnDelta, Request
from lmc.ir.engine.toy import ToyEngine
from lmc.runtime.executor import Instance
from tests.runtime.region_texts import INPUTS, LEAF, executor, gen, run


def lengths(engine: ToyEngine) -> list[int]:
    return sorted(pin.length for pin in engine.pinned)


def test_a_prefix_stays_until_the_regions_that_use_it_are_over_and_one_of_a_round_goes_with_it():
    held: list[list[int]] = []

    class Watching(ToyEngine):
        def submit(self, request: Request, on_delta: OnDelta | None = None) -> Any:
            held.append(lengths(self))
            return super().submit(request, on_delta)

    body = f"""
    %o = lm.begin %c, user : !ctx
    %u = lm.end %o : !ctx
    %p = lm.prefill %u : !ctx
    %m = cf.loop (0) : !int ^condition(%i: !int) {{
      %more = py.call lt (%i, 2) : !bool
      cf.condition %more (%i)
    }} ^body(%j: !int) {{
      %in = lm.extend %p, user ["inner"] : !ctx
      %q = lm.prefill %in : !ctx
      {gen("a", "q", occurrences="(%j)")}
      {gen("b", "p", occurrences="(%j)")}
      %k = py.call add (%j, 1) : !int
      cf.yield (%k)
    }}
    %late = py.call str (%m) : !text
    %after = lm.extend %s [%late] : !ctx
    {gen("z", "after")}
    lm.return %z (%t.z) {LEAF}
    """
    run(body, Watching())
    outer, inner = held[0]
    assert held == [[outer, inner], [outer], [outer, inner], [outer], []]


def test_what_a_region_gives_builds_on_the_prefix_that_it_used():
    held: list[int] = []

    class Watching(ToyEngine):
        def submit(self, request: Request, on_delta: OnDelta | None = None) -> Any:
            held.append(len(self.pinned))
            return super().submit(request, on_delta)

    body = f"""
    %o = lm.extend %c, user ["outer"] : !ctx
    %p = lm.prefill %o : !ctx
    %d = cf.cond %f : !ctx ^then() {{ %e = lm.extend %p, user ["x"] : !ctx cf.yield (%e) }}
      ^otherwise() {{ cf.yield (%p) }}
    {gen("a", "d")}
    {gen("z", "s")}
    lm.return %a (%t.a) {LEAF}
    """
    run(body, Watching())
    assert held == [1, 0]


def test_a_prefix_of_the_batch_stays_to_its_end():
    held: list[int] = []

    class Watching(ToyEngine):
        def submit(self, request: Request, on_delta: OnDelta | None = None) -> Any:
            held.append(len(self.pinned))
            return super().submit(request, on_delta)

    body = f"""%o = lm.extend %c, user ["outer"] : !ctx %p = lm.prefill %o {{scope = "batch"}} : !ctx
    {gen("a", "p")} {gen("z", "s")} lm.return %a"""
    engine = Watching()
    instances = [Instance(number, INPUTS) for number in range(2)]
    asyncio.run(executor(body, engine).run_batch(instances, range(2), lambda *_: None))
    assert held == [1, 1, 1, 1]
    assert engine.pinned == ()
