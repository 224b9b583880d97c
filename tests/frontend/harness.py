"""Runs a program in every way and holds the results against each other."""

import ast
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from lmc.frontend.capture import StopBefore, capture
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import Captured, inputs_of
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import LmcError
from lmc.ir.module import Module, print_module
from lmc.ir.profile import OpProfile
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.text.parser import parse
from lmc.ir.verify.verifier import verify
from tests.compiled_constraints import compile_for_toy, toy_constraints

FULL = os.environ.get("LMC_TEST_FULL") == "1"
EFFECTS: list[Any] = []
_CHECKED: WeakValueDictionary[int, Module] = WeakValueDictionary()


def some(names: Iterable[str], share: int, first: int = 0) -> list[str]:
    """Return every ``share``-th name from ``first`` on; with LMC_TEST_FULL all of them."""
    found = list(names)
    return found if FULL else found[first::share]


def effect(*values: Any) -> None:
    """Something the outside world would see."""
    EFFECTS.append(values)


@dataclass
class Run:
    """One way of running: the outcome's parts or the error, the effects, and the engine calls by the ids of ops."""

    end: tuple[Any, ...]
    effects: list[Any]
    calls: Counter[str]


def run_captured(
    captured: Captured, args: tuple[Any, ...], kwargs: dict[str, Any], program: JittedFunction | None = None
) -> Run:
    """The captured graph on the interpreter, and its eager continuation where it breaks.

    ``program`` is the one that is meant, where the capture is of a method.
    """
    EFFECTS.clear()
    bound = bind(program or captured.function, args, kwargs)
    inputs = inputs_of(captured, bound)
    session = EagerSession(ToyEngine(), compile=compile_for_toy())
    constraints = toy_constraints(captured.module, captured.readers)
    calls: Counter[str] = Counter()

    def go() -> Outcome:
        outcome = interpret(captured.module, inputs, ToyEngine(), hosts=captured.hosts, constraints=constraints)
        calls.update(calls_of(outcome.profile.ops))
        return outcome if outcome.live is None else go_on(captured, bound, outcome.live, session)

    end = ending(go)
    return Run(end, list(EFFECTS), calls + calls_of(session.profile))


def run_plain(function: JittedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """The user's own function, operation by operation."""
    EFFECTS.clear()
    session = EagerSession(ToyEngine(), compile=compile_for_toy())
    end = ending(lambda: run_eager(function, bind(function, args, kwargs), session))
    return Run(end, list(EFFECTS), calls_of(session.profile))


def calls_of(profile: Mapping[str, OpProfile]) -> Counter[str]:
    """Return how often each op called an engine, by its id."""
    return Counter({op_id: entry.usage.calls for op_id, entry in profile.items() if entry.usage.calls})


def check(
    function: JittedFunction,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    *,
    captured: Captured | None = None,
    watch: Callable[[], Any] | None = None,
    plain: Run | None = None,
    stop_before: StopBefore | None = None,
) -> Captured:
    """Capture (where ``captured`` is None), run in both ways, and assert that nothing tells them apart.

    ``args`` is a tuple, or a function that makes it anew for each run; ``watch`` gives what a run leaves behind;
    ``plain`` is the run as plain Python where it is known, and nothing is left behind. ``stop_before`` is that of the
    capture.
    """
    kwargs = kwargs or {}
    EFFECTS.clear()
    given = _fresh(args, kwargs)
    if captured is None:
        captured = capture(function, bind(function, *given), stop_before=stop_before)
    assert EFFECTS == [], "a capture runs no effect"
    check_module(captured.module)
    assert captured.matches(bind(function, *given))
    graph = run_captured(captured, *given, program=function)
    left = _shown(watch)
    if plain is None:
        plain = run_plain(function, *_fresh(args, kwargs))
    assert left == _shown(watch)
    assert graph.end == plain.end, (graph.end, plain.end)
    assert graph.effects == plain.effects
    if plain.end[0] == "gave":
        assert graph.calls == plain.calls
    return captured


def check_inputs(
    program: JittedFunction, inputs: Sequence[tuple[Any, ...]], *, stop_before: StopBefore | None = None
) -> Captured:
    """Check each of ``inputs``: a capture runs all that it matches. Return the first capture.

    With LMC_TEST_FULL each input is captured as well where an earlier capture matches it.
    """
    captures: list[Captured] = []
    for one in inputs:
        plain = run_plain(program, one, {})
        found = next((each for each in captures if each.matches(bind(program, one, {}))), None)
        if found is not None:
            check(program, one, captured=found, plain=plain)
        if found is None or FULL:
            captures.append(check(program, one, plain=plain, stop_before=stop_before))
    return captures[0]


def check_module(module: Module) -> None:
    """Assert, once for each module, that it is valid and that its text says all of it."""
    if _CHECKED.get(id(module)) is module:
        return
    verify(module)
    text = print_module(module)
    assert print_module(parse(text)) == text
    _CHECKED[id(module)] = module


def _shown(watch: Callable[[], Any] | None) -> str:
    """Return what a run left behind, without the addresses of objects."""
    return "" if watch is None else re.sub(r" at 0x[0-9a-f]+", "", repr(watch()))


def at_the_end(node: ast.stmt | None) -> bool:
    """Stop captures before the statement by which the program returns; what its last line does is done eagerly."""
    return node is None


def check_whole(program: JittedFunction, texts: Sequence[str]) -> None:
    """``program`` is captured whole for each of ``texts``, and its continuation from the end is equal as well."""
    for text in texts:
        assert not check(program, (text,)).breaks
        assert check(program, (text,), stop_before=at_the_end).breaks


def _fresh(args: Any, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    made: Any = args() if callable(args) else args
    return made, dict(kwargs)


def described(error: BaseException | None) -> tuple[Any, ...]:
    """Return what can be seen of an error, and of those that it names as its reasons."""
    if error is None:
        return ()
    own = {name: value for name, value in vars(error).items() if name != "__notes__"}
    return (
        type(error),
        str(error),
        repr(error.args),
        *(repr(getattr(error, name, None)) for name in ("name", "obj")),
        repr(own),
        error.__suppress_context__,
        described(error.__cause__),
        described(error.__context__) if error.__context__ is not error.__cause__ else "the same",
    )


def ending(run: Callable[[], Outcome]) -> tuple[Any, ...]:
    """Return what a run gave, or what it raised, as far as a user can tell."""
    try:
        outcome = run()
    except LmcError as error:  # the graph knows the line of the op, plain Python the line that runs
        return ("raised", type(error), error.cause)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return ("raised", *described(error))
    messages = [dict(message) for message in outcome.messages]
    return ("gave", repr(outcome.value), outcome.value, outcome.variables, outcome.text, messages)
