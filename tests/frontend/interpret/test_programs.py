"""What the abstract interpreter captures whole does what plain Python does: every corpus, and random programs."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from benchmarks.captured_share import Program, corpus
from lmc.frontend.capture import capture
from lmc.frontend.continuation import stopping
from lmc.frontend.machine import graph
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.variants import Captured
from lmc.ir.dialects.core_ops import BreakOp
from tests.driver.levels import check_levels
from tests.frontend.condition_strategies import CONDITIONS_HEADER, conditional_programs
from tests.frontend.container_strategies import CONTAINERS_HEADER, container_programs
from tests.frontend.handle_strategies import HANDLES_HEADER, handle_programs
from tests.frontend.harness import EFFECTS, check
from tests.frontend.library_strategies import LIBRARY_HEADER, library_programs
from tests.frontend.loop_strategies import LOOPS_HEADER, looping_programs
from tests.frontend.mixed_strategies import MIXED_HEADER, mixed_programs
from tests.frontend.name_strategies import NAMES_HEADER, named_programs
from tests.frontend.object_strategies import OBJECTS_HEADER, object_programs
from tests.frontend.strategies import HEADER, arguments, load, programs, with_own_list
from tests.frontend.turn_strategies import TURNS_HEADER, turn_programs

FULL = settings.default.max_examples > 100  # type: ignore[union-attr]
DEPTHS = st.sampled_from([graph.MAX_DEPTH, graph.MAX_DEPTH, 7])
"""Limits of conditions in each other: known rounds reach a low one soon, and become a loop of the run."""
GROUPS = ("examples", "sglang", *(("conditions", "loops", "ordinary", "corpus") if FULL else ()))
"""Groups of the corpus. Those that only a full run checks have tests of their own, on the same inputs."""
CORPUS = {f"{program.group}-{program.name}": program for program in corpus() if program.group in GROUPS}
STRATEGIES = {
    "plain": (HEADER, programs()),
    "conditions": (CONDITIONS_HEADER, conditional_programs()),
    "loops": (LOOPS_HEADER, looping_programs()),
    "containers": (CONTAINERS_HEADER, container_programs()),
    "handles": (HANDLES_HEADER, handle_programs()),
    "objects": (OBJECTS_HEADER, object_programs()),
    "library": (LIBRARY_HEADER, library_programs()),
    "names": (NAMES_HEADER, named_programs()),
    "turns": (TURNS_HEADER, turn_programs()),
    "mixed": (MIXED_HEADER, mixed_programs()),
}


def check_rows(
    program: Any,
    make: Callable[[], tuple[Any, ...]],
    others: list[Any],
    watch: Callable[[], Any] | None = None,
    *,
    levels: bool = False,
) -> Captured:
    """Capture ``program``; it is equal to plain Python on these and all other arguments.

    ``watch`` tells what a run leaves behind; ``levels``: plans of each level are compared as well.
    """
    EFFECTS.clear()
    found = capture(program, bind(program, make(), {}))
    assert EFFECTS == []
    note(str(found.breaks))
    check(program, make, captured=found, watch=watch)
    if levels:
        check_levels(found, make)
    for other in others:
        if found.matches(bind(program, other(), {})):
            check(program, other, captured=found, watch=watch)
    return found


@pytest.mark.parametrize("name", CORPUS)
def test_what_is_captured_of_a_corpus_is_plain_python(name: str):
    program: Program = CORPUS[name]
    runs = program.runs() if FULL else program.runs()[:2]
    captures = []
    for run in runs:
        args, kwargs = run()
        EFFECTS.clear()
        found = capture(program.function, bind(program.function, args, kwargs))
        assert EFFECTS == []
        if not found.matches(bind(program.function, *run())):  # it holds for the objects that it was captured for
            continue
        captures.append(found)
        check(program.function, lambda run=run: run()[0], kwargs, captured=found)
    if captures:
        for run in runs:  # a graph for one row runs the others, or is refused by a guard
            args, kwargs = run()
            if captures[0].matches(bind(program.function, args, kwargs)):
                check(program.function, lambda run=run: run()[0], kwargs, captured=captures[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("part", range(10 if FULL else 1))  # each takes minutes: no test may take ten
@pytest.mark.parametrize("name", STRATEGIES)
def test_random_programs_are_plain_python(name: str, part: int, folder):
    header, sources = STRATEGIES[name]

    @settings(max_examples=200 if FULL else 8)
    @given(source=sources, args=arguments(), other=arguments(), depth=DEPTHS)
    def run(source, args, other, depth):
        source = with_own_list(source)
        note(source)
        module = load("@jit\n" + source, folder, header)
        others = [other, ("e" + other[0], *other[1:]), ("t", *args[1:])]
        reset = getattr(module, "reset", lambda: None)
        exchange = getattr(module, "exchange", lambda: None)
        make = lambda given: (*given[:3], list(given[3]))  # noqa: E731
        makers = [lambda given=given: (reset(), exchange(), make(given))[-1] for given in others]
        with patch.object(graph, "MAX_DEPTH", depth):
            found = check_rows(
                module.program,
                lambda: (reset(), make(args))[-1],
                makers,
                getattr(module, "left", None),
                levels=name in ("objects", "containers", "mixed"),
            )
        first = found.module.functions[0].body.ops[0]
        assert not isinstance(first, BreakOp) or first.record != stopping.BEGIN, "a break leaves what stands before it"

    run()
