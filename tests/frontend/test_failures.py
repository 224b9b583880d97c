"""Errors on their way out of a program: the same class, words and line in every mode."""

# Programs as users write them, some of them wrong.
# pyright: reportCallIssue=false, reportArgumentType=false

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import lmc
from lmc.frontend.capture import capture
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.failures import RecursionDepthError
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.variants import inputs_of
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import Location
from lmc.ir.semantics.interpreter import interpret
from tests.frontend.harness import check, effect


def interpreted(program: Any, args: tuple[Any, ...]) -> Any:
    bound = bind(program, args, {})
    captured = capture(program, bound)
    outcome = interpret(captured.module, inputs_of(captured, bound), ToyEngine(), hosts=captured.hosts)
    return outcome if outcome.live is None else go_on(captured, bound, outcome.live, EagerSession(ToyEngine()))


MODES: dict[str, Callable[[Any, tuple[Any, ...]], Any]] = {
    "eager": lambda program, args: program.on("toy").eager(*args),
    "interpreter": interpreted,
    "O0": lambda program, args: program.on("toy", level="O0").run(*args),
    "O2": lambda program, args: program.on("toy", level="O2").run(*args),
}


def failure(program: Any, *args: Any) -> lmc.LmcError:
    """The eager error of ``program``, which must be the same in every mode, at a line of this file."""
    found: list[lmc.LmcError] = []
    for run in MODES.values():
        with pytest.raises(lmc.LmcError) as caught:
            run(program, args)
        found.append(caught.value)
    assert len({(type(error), error.cause, error.remedy) for error in found}) == 1, found
    assert found[0].location is not None
    assert found[0].location.file == __file__
    assert found[0].remedy
    return found[0]


def line_of(function: Any, text: str) -> int:
    """The line of ``function`` that holds ``text``."""
    lines, first = inspect.getsourcelines(getattr(function, "function", function))
    return first + next(index for index, line in enumerate(lines) if text in line)


# A recursion that is too deep


@lmc.jit
def endless(s, n):
    return endless(n)


@lmc.jit
def endless_inside(s, n):
    def down(k):
        return down(k + 1)

    return down(n)


def endless_helper(n):
    return endless_helper(n + 1)


@lmc.jit
def endless_outside(s, n):
    s += "x"
    return endless_helper(n)


def leaf(n):
    text = str(n)
    return text + "!"


def calls_a_leaf(n):
    leaf(n)
    return calls_a_leaf(n + 1)


@lmc.jit
def endless_beside_a_leaf(s, n):
    s += leaf(n)
    return calls_a_leaf(n)


@lmc.tool
def recurring_tool(n):
    leaf(n)
    return recurring_tool.function(n + 1)  # pyright: ignore[reportFunctionMemberAccess]  its own type is being inferred


@lmc.jit
def endless_in_a_tool(s, n):
    s += "x"
    return recurring_tool(n)


def ping(n):
    return pong(n)


def pong(n):
    leaf(n)
    return ping(n)


@lmc.jit
def endless_in_two(s, n):
    s += "x"
    return ping(n)


@lmc.jit
def endless_on_a_state(s, n):
    s.gen("x", max_tokens=1)
    return endless_on_a_state.on_state(s, n)  # pyright: ignore[reportFunctionMemberAccess]  as above


def grows_a_state(s, n):
    s += "x"
    leaf(n)
    return grows_a_state(s, n + 1)


@lmc.jit
def endless_with_a_state(s, n):
    return grows_a_state(s, n)


class Endless:
    def go(self, n):
        leaf(n)
        return [self.go(n) for _ in "ab"]


ENDLESS = Endless()


@lmc.jit
def endless_in_a_method(s, n):
    s += "x"
    return ENDLESS.go(n)


@pytest.mark.parametrize(
    ("program", "where", "text"),
    [
        (endless_beside_a_leaf, calls_a_leaf, "return"),
        (endless_in_a_tool, recurring_tool, "return"),
        (endless_in_two, ping, "return"),
        (endless_on_a_state, endless_on_a_state, "return"),
        (endless_with_a_state, grows_a_state, "return"),
        (endless_in_a_method, Endless.go, "return"),
        (endless, endless, "return"),
        (endless_inside, endless_inside, "return down(k"),
        (endless_outside, endless_helper, "return"),
    ],
)
def test_a_recursion_without_end_is_an_error_at_its_line(program, where, text):
    error = failure(program, 1)
    assert isinstance(error, RecursionDepthError)
    assert isinstance(error, RecursionError)
    assert "calls itself too deep" in error.cause
    assert "bound the recursion" in (error.remedy or "")
    assert error.location is not None
    assert error.location.line == line_of(where, text)


@lmc.jit
def counts_down(s, n):
    if n <= 0:
        return s.gen("x", max_tokens=4)
    return counts_down(n - 1)


def test_a_recursion_deeper_than_a_capture_runs_eagerly():
    captured = check(counts_down, (110,))
    assert "levels deep" in captured.breaks[0].cause
    if captured.matches(bind(counts_down, (3,), {})):
        check(counts_down, (3,), captured=captured)


@lmc.jit
def catches_too_deep(s, n):
    effect("before")
    s += s.gen("first", max_tokens=2)
    try:
        endless(n)
    except RecursionError:
        effect("caught")
        s += "deep"
    return s.gen("x", max_tokens=3)


@lmc.jit
def catches_what_only_a_capture_meets(s, n):
    def down(k):
        return k if k <= 0 else down(k - 1)

    try:
        found = down(450)
    except RecursionError:
        found = "deep"
    s += f"{found}"
    return s.gen("x", max_tokens=3)


@lmc.jit
def leaves_by_finally(s, n):
    def down(k):
        return k if k <= 0 else down(k - 1)

    try:
        return down(450)
    finally:
        effect("finally")


@pytest.mark.parametrize("program", [catches_too_deep, catches_what_only_a_capture_meets, leaves_by_finally])
def test_catching_a_recursion_that_is_too_deep_is_left_to_plain_python(program):
    check(program, (1,))


# Errors of functions that the program calls


@lmc.tool(effect="writes")
def refuses(text) -> str:
    raise lmc.InputError(f"no good: {text}", remedy="give another")


def refuses_plainly(text):
    raise lmc.InputError(f"no good: {text}", remedy="give another")


def refuses_with_a_line(text):
    raise lmc.InputError("no good", remedy="give another", location=Location(__file__, 7))


@lmc.jit
def calls_tool(s, a):
    s += "x"
    return refuses(a)


@lmc.jit
def calls_plain_function(s, a):
    s += "x"
    refuses_plainly(a)


@lmc.jit
def calls_in_inner_function(s, a):
    def inner(text):
        return refuses_plainly(text)

    return inner(a)


@lmc.jit
def calls_program(s, a):
    s += "x"
    return calls_tool(a)


@lmc.jit
def calls_after_a_break(s, a):
    hash(s.gen("x", max_tokens=3))
    return calls_tool(a)


@lmc.jit
def raises_itself(s, a):
    s += a
    raise lmc.InputError("no good: at all", remedy="give another")


@pytest.mark.parametrize(
    ("program", "where", "text"),
    [
        (calls_tool, calls_tool, "return refuses"),
        (calls_plain_function, calls_plain_function, "refuses_plainly"),
        (calls_in_inner_function, calls_in_inner_function, "return refuses"),
        (calls_program, calls_tool, "return refuses"),
        (calls_after_a_break, calls_tool, "return refuses"),
        (raises_itself, raises_itself, "raise lmc"),
    ],
)
def test_errors_of_called_functions_name_the_line_of_the_program(program, where, text):
    error = failure(program, "a")
    assert "no good" in error.cause
    assert error.location is not None
    assert error.location.line == line_of(where, text)


@lmc.jit
def calls_what_knows_its_line(s, a):
    refuses_with_a_line(a)


def test_a_line_that_an_error_has_already_is_kept():
    error = failure(calls_what_knows_its_line, "a")
    assert error.location is not None
    assert error.location.line == 7


# Choices that are known late


@lmc.jit
def chooses(s, items: list[str]):
    s += "pick"
    return s.select("a", items)


@lmc.jit
def chooses_among(s, a):
    s += "pick"
    return s.select("a", ["b", a])


@lmc.tool(effect="pure")
def anything(value):
    return value


@lmc.jit
def chooses_among_anything(s, a):
    s += "pick"
    return s.select("a", ["b", anything(a)])


@pytest.mark.parametrize(
    ("program", "argument", "cause"),
    [
        (chooses, [], "select has no choices"),
        (chooses, ["a", ""], "an empty choice can't be scored"),
        (chooses, [1, 2], "a choice is no text: 1 (an int)"),
        (chooses, "ab", "choices is 'ab' (a str)"),
        (chooses, None, "choices is None (a NoneType)"),
        (chooses_among, "", "an empty choice can't be scored"),
        (chooses_among, 2.5, "a choice is no text: 2.5 (a float)"),
        (chooses_among, ["x"], "a choice is no text: ['x'] (a list)"),
        (chooses_among_anything, "", "an empty choice can't be scored"),
        (chooses_among_anything, 3, "a choice is no text: 3 (an int)"),
    ],
)
def test_choices_are_refused_alike_whenever_they_are_known(program, argument, cause):
    error = failure(program, argument)
    assert type(error) is lmc.CaptureError
    assert error.cause == cause
    assert error.location is not None
    assert error.location.line == line_of(program, "s.select")


# Options that are known late


@lmc.jit
def heats(s, value):
    s += "x"
    return s.gen("x", max_tokens=3, temperature=value)


@lmc.jit
def bounds(s, value):
    s += lmc.gen("x", max_tokens=value)


@lmc.jit
def stops(s, value):
    s += s.gen("x", stop=[value])


@lmc.jit
def branches(s, value):
    s.fork(value)


@lmc.jit
def names(s, value):
    s.gen(value)


@pytest.mark.parametrize(
    ("program", "argument", "cause", "remedy"),
    [
        (heats, "hot", "temperature is 'hot' (a str)", "a number not below 0"),
        (heats, [0.5], "temperature is [0.5] (a list)", "a number not below 0"),
        (bounds, 2.5, "max_tokens is 2.5 (a float)", "a whole number, at least 1"),
        (bounds, "9" * 1000, "max_tokens is '999999999999...9999999999999' (a str)", "a whole number"),
        (stops, 3, "stop is [3] (a list)", "a text or a list of texts"),
        (branches, "2", "fork('2'): n is a str", "a whole number"),
        (names, 3, "the name 3 (an int)", "a text that is not empty"),
    ],
)
def test_options_are_refused_by_name_value_and_class(program, argument, cause, remedy):
    error = failure(program, argument)
    assert error.cause == cause
    assert remedy in (error.remedy or "")


@lmc.jit
def heats_by_a_generation(s, a):
    s += a
    return s.gen("x", max_tokens=3, temperature=s.gen("k", max_tokens=3))


def test_a_break_for_an_option_names_it():
    captured = check(heats_by_a_generation, ("a",))
    assert "the generation 'k' is known only" in captured.breaks[0].cause
    assert "temperature of gen has to be known now" in captured.breaks[0].cause


# Messages without content


@pytest.mark.parametrize("role", ["user", "system", "assistant"])
def test_a_message_without_content_says_how_to_write_one(role):
    make: Any = getattr(lmc, role)

    @lmc.jit
    def program(s):
        s += make()

    error = failure(program)
    assert error.cause == f"lmc.{role}() has no content"
    assert f's += lmc.{role}("' in (error.remedy or "")
    assert f"with s.{role}():" in (error.remedy or "")
