"""Runs a captured program as plans of each level, on a toy whose answers come in any order."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from lmc.driver.compile import compile_captured
from lmc.driver.execute import Job, execute
from lmc.driver.registry import load_tokenizer
from lmc.driver.result import Result
from lmc.frontend.arguments import bind
from lmc.frontend.function import JittedFunction
from lmc.frontend.variants import Captured, inputs_of
from lmc.ir.errors import LmcError
from lmc.ir.target import Target
from tests.compiled_constraints import CACHE, compile_for_toy
from tests.frontend.harness import EFFECTS, Run, run_plain
from tests.runtime.engines import LateEngine

TOY = Target("toy")
LEVELS = ("O0", "O2")
READS = frozenset({"lookup"})
"""First values of effects of functions that only read: what they read at the same time, they may in any order."""


def run_at(
    level: str,
    captured: Captured,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    program: JittedFunction | None = None,
) -> Run:
    """What ``captured`` does as a plan of ``level``, together with its continuation where it breaks.

    ``program`` is the one that is meant, where the capture is of a method.
    """
    EFFECTS.clear()
    compiled = compile_captured(captured, TOY, level, load_tokenizer(TOY), cache=CACHE)
    bound = bind(program or captured.function, args, kwargs)
    found: dict[int, Result] = {}
    job = Job(0, bound, compiled, inputs_of(captured, bound))
    compile = compile_for_toy()
    engine = LateEngine(most_seconds=0.0)
    asyncio.run(execute(captured.function, [job], engine, found.__setitem__, seed=0, compile=compile))
    assert engine.pinned == ()
    return Run(_end(found[0]), list(EFFECTS), found[0].usage.calls)


def check_levels(captured: Captured, make: Callable[[], tuple[Any, ...]]) -> None:
    """Assert that no level tells itself apart from plain Python; ``make`` makes the arguments anew for each run."""
    function: JittedFunction = captured.function
    plain = run_plain(function, make(), {})
    for level in LEVELS:
        found = run_at(level, captured, make(), {})
        assert found.end == plain.end, level
        assert _in_order(found.effects) == _in_order(plain.effects), level
        if plain.end[0] == "gave":
            assert found.calls == plain.calls if level == "O0" else found.calls <= plain.calls, level


def _end(result: Result) -> tuple[Any, ...]:
    if isinstance(result.error, LmcError):
        return ("raised", type(result.error), result.error.cause)
    if result.error is not None:
        return ("raised", type(result.error), str(result.error))
    return ("gave", repr(result.value), result.value, result.variables, result.text)


def _in_order(effects: list[Any]) -> list[Any]:
    """``effects``, with those that may trade places sorted, and one where the same was read more often."""
    found: list[Any] = []
    for reads, group in groupby(effects, lambda one: one[0] in READS):
        values = list(group)
        found += sorted(set(values)) if reads else values
    return found
