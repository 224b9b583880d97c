"""What a program raises is what its graph raises, with the same line, and nothing behind it is done."""

import asyncio
import traceback

import pytest

import lmc
from lmc.driver.compile.compile import compile_captured
from lmc.driver.run.execute import Job, execute
from lmc.driver.run.result import Result
from lmc.driver.targets.registry import load_tokenizer
from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import inputs_of
from lmc.ir.builtins.statements import exception, raised_while, refusal
from lmc.ir.dialects.core_ops import UnreachableOp
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import CaptureError, InputError
from lmc.passes.pipelines import PipelineOptions
from tests.compiled_constraints import CACHE, compile_for_toy
from tests.frontend.harness import check, effect


class RefusedError(Exception):
    pass


@JittedFunction
def in_both_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise ValueError(x)
    else:  # noqa: RET506
        effect("other")
        raise KeyError(x)


@JittedFunction
def only_an_exception_ends_it(s, a: str):
    s += a
    while True:
        text = s.gen("x", max_tokens=2)
        effect(text)
        if "e" in text:
            raise RefusedError(text)


@JittedFunction
def ends_python_at_once(s, a: str):
    s += a
    s.gen("x", max_tokens=4)
    if a:
        raise SystemExit(a)


@pytest.mark.parametrize("program", [in_both_arms, only_an_exception_ends_it, ends_python_at_once])
def test_a_program_that_only_raises(program):
    for text in ("a", "hello", "zz", "x y"):
        captured = check(program, (text,))
        assert not captured.breaks
        assert isinstance(captured.module.main.body.terminator, UnreachableOp)


@JittedFunction
def at_a_line(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if x:
        raise RefusedError(x)  # here
    return x


@JittedFunction
def of_lmc_at_a_line(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if x:
        raise InputError("no", remedy="none")  # here
    return x


def run(program, level):
    captured = capture(program, bind(program, ("a",), {}))
    compiled = compile_captured(
        captured, Target("toy"), PipelineOptions(level), load_tokenizer(Target("toy")), cache=CACHE
    )
    bound = bind(program, ("a",), {})
    found: dict[int, Result] = {}
    job = Job(0, bound, compiled, inputs_of(captured, bound))
    asyncio.run(execute(program, [job], ToyEngine(), found.__setitem__, seed=0, compile=compile_for_toy()))
    return found[0].error


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_an_exception_names_the_line_of_the_program(level):
    line = at_a_line.function.__code__.co_firstlineno + 5
    error = run(at_a_line, level)
    assert isinstance(error, RefusedError)
    assert any(f"test_raises.py:{line}" in note for note in error.__notes__)
    assert "RefusedError" in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_an_error_of_lmcs_names_the_line_of_the_program(level):
    error = run(of_lmc_at_a_line, level)
    assert isinstance(error, InputError)
    assert error.location is not None
    assert error.location.line == of_lmc_at_a_line.function.__code__.co_firstlineno + 5


def test_a_form_whose_element_always_raises_is_refused():
    @lmc.jit
    def program(s, a: str):
        def bad(word):
            raise RefusedError(word)

        s += a
        return lmc.map(bad, s.gen("x", max_tokens=4).split())

    with pytest.raises(CaptureError, match=r"lmc\.map can't be captured: an element leaves it early"):
        capture(program, bind(program, ("a",), {}))


def test_a_loop_that_is_spelt_out_and_always_raises():
    @lmc.jit
    def program(s, a: str):
        def bad(word):
            raise RefusedError(word)

        s += a
        return lmc.while_loop(lambda word: "e" in word, bad, s.gen("x", max_tokens=4))

    for text in ("a", "hello"):
        assert not check(program, (text,)).breaks


def test_only_pythons_own_exceptions_have_names():
    with pytest.raises(InputError, match="Python has no exception 'int'"):
        exception("int", "1")


def test_what_can_be_converted_has_no_error():
    with pytest.raises(InputError, match="'12' can be converted with int"):
        refusal("int", "12")


def test_the_context_is_what_was_handled():
    handled = refusal("float", "x")
    with pytest.raises(KeyError) as found:
        raised_while(handled, KeyError("k"), None)
    assert found.value.__context__ is handled
    assert found.value.__cause__ is None
    assert found.value.__suppress_context__


@JittedFunction
def handles(s, a: str):
    s += a
    try:
        return int(a)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def test_the_context_is_that_of_plain_python_while_the_caller_handles_an_exception():
    for text in ("7", "x"):
        try:
            raise OSError("around")
        except OSError:
            assert not check(handles, (text,)).breaks
