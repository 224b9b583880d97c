import asyncio
import inspect
import math
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import lmc
from tests.driver import programs


@lmc.jit
def greet(s: lmc.State, name: str, times: int = 2) -> str:
    """Greets."""
    s += f"Hello {name}" * times
    return s.gen("word", max_tokens=6, temperature=1.0)


@lmc.jit(target="toy", seed=3, level="O0")
def bound(s: lmc.State, name: str) -> str:
    s += f"Hello {name}" * 2
    return s.gen("word", max_tokens=6, temperature=1.0)


@lmc.jit
def outer(s: lmc.State, name: str) -> list[str]:
    s += "first "
    first = greet(name)
    second = greet.on_state(s, name)
    return [first, second, s.gen("third", max_tokens=3)]


TOY = greet.on("toy")


def test_a_program_looks_like_its_function():
    assert isinstance(greet, lmc.Program)
    assert (greet.name, greet.__doc__, inspect.unwrap(greet)) == ("greet", "Greets.", greet.function)


def test_a_call_gives_what_the_function_returns():
    assert TOY("Ann") == TOY.run("Ann").value == TOY.eager("Ann").value == TOY.run("Ann").variables["word"]
    assert TOY("Ann", times=3) != TOY("Ann")


def test_a_program_runs_on_the_default_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("LMC_TARGET", "toy")
    assert greet("Ann") == TOY("Ann")
    monkeypatch.delenv("LMC_TARGET")
    (tmp_path / "pyproject.toml").write_text('[tool.lmc]\ntarget = "toy"\n')
    monkeypatch.chdir(tmp_path)
    assert greet("Ann") == TOY("Ann")
    assert greet.compile().target.spec == "toy"


def test_options_stay_until_they_are_given_again():
    seeded = TOY.on(seed=3)
    assert seeded("Ann") != TOY("Ann")
    assert seeded.on(level="O0")("Ann") == seeded("Ann")
    assert bound("Ann") == bound.on(seed=3)("Ann") != bound.on(seed=0)("Ann")
    assert seeded.on(seed=0)("Ann") == TOY("Ann")
    assert bound.compile().level == "O0"
    assert bound.on(level="O2").compile().level == "O2"


def test_a_request_that_takes_too_long_names_its_line():
    hurried = greet.on("builtin", timeout=1e-6)
    for run in (hurried.run, hurried.eager):
        with pytest.raises(
            lmc.RequestTimeoutError, match=r"test_program\.py:\d+: the request was not finished within 1e-06"
        ):
            run("Ann")
    assert hurried.on(timeout=math.inf)("Ann") == hurried.on(timeout=600.0)("Ann") == greet.on("builtin")("Ann")


def test_a_bound_program_shares_its_variants():
    captured = TOY.compile("Ann").captured
    assert TOY.on(seed=4).compile("Bob").captured is captured
    assert greet.on("toy", level="O0").compile("Bob").captured is captured


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"target": "moon"}, "unknown target 'moon'"),
        ({"target": "local:/nowhere"}, "there is no model folder /nowhere"),
        ({"dtype": "int4"}, "unknown dtype 'int4'"),
        ({"kv_tokens": 0}, "kv_tokens is 0"),
        ({"deterministic": "yes"}, "deterministic is 'yes'"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"prefill_tokens": 0}, "prefill_tokens is 0"),
        ({"level": "O7"}, "unknown optimization level 'O7'"),
        ({"disabled_passes": ["ces"]}, "the pipeline of -O2 has no pass 'ces' to disable"),
        ({"disabled_passes": ["dce"], "level": "O0"}, "the pipeline of -O0 has no pass 'dce' to disable"),
    ],
)
def test_options_that_are_no_good(options: dict, cause: str):
    with pytest.raises(lmc.InputError, match=cause) as caught:
        greet.on("toy").on(**options).run("Ann")
    assert caught.value.remedy


def test_options_that_are_not_there():
    with pytest.raises(lmc.InputError, match=r"test_program\.py:\d+: there is no option 'speed'"):
        lmc.jit(speed=3)  # type: ignore[call-overload]
    with pytest.raises(lmc.InputError, match=r"test_program\.py:\d+: there is no option 'sed'") as caught:
        greet.on("toy", sed=3)  # type: ignore[call-overload]
    known = "target, dtype, kv_tokens, deterministic, device, prefill_tokens, seed, level, timeout"
    known += ", profile, order_sections, disabled_passes, priority, journal, budget, resume"
    assert caught.value.remedy == f"did you mean 'seed'? The options are {known}"


def test_batch_stream_and_async_forms():
    expected = TOY("Ann")
    assert [result.value for result in TOY.batch([{"name": "Ann"}])] == [expected]
    assert "".join(event.text for event in TOY.stream("Ann")) == expected

    async def main() -> None:
        assert (await TOY.arun("Ann")).value == expected
        assert [result.value for result in await TOY.abatch([{"name": "Ann"}])] == [expected]
        assert "".join([event.text async for event in TOY.astream("Ann")]) == expected

    asyncio.run(main())


def test_compile_with_and_without_arguments():
    without = TOY.compile()
    assert [parameter.name for parameter in without.plan.parameters] == ["name", "times"]
    assert without.breaks == ()
    assert TOY.compile("Ann", times=1).plan.wave_count == 1


def test_programs_call_programs():
    on_toy = outer.on("toy")
    result = on_toy.run("Ann")
    assert result.value == on_toy.eager("Ann").value
    assert result.value[1:] == [result.variables["word"], result.variables["third"]]
    assert on_toy.compile().breaks == ()


def test_on_state_needs_a_running_program():
    with pytest.raises(lmc.CaptureError, match="on_state"):
        greet.on_state(None, "Ann")  # type: ignore[arg-type]


def test_what_the_user_raises_is_raised():
    with pytest.raises(ValueError, match="invalid literal"):
        programs.fails.on("toy")("many")


def test_a_function_without_a_state_is_refused():
    with pytest.raises(lmc.CaptureError, match="no parameter for the state") as caught:
        lmc.jit(lambda: None)
    assert caught.value.remedy


class Opaque:
    __iter__ = None


async def one_row() -> AsyncIterator[Any]:
    yield {"name": "Ann"}


@pytest.mark.parametrize(
    ("rows", "kind", "remedy"),
    [
        (5, "int", 'write [{"argument": value}, …]'),
        (None, "NoneType", 'write [{"argument": value}, …]'),
        ("abc", "str", 'write [{"argument": value}, …]'),
        (Opaque(), "Opaque", 'write [{"argument": value}, …]'),
        (one_row(), "async_generator", "read it first: [row async for row in rows]"),
    ],
)
def test_what_is_no_batch_is_refused_at_its_line(rows: Any, kind: str, remedy: str) -> None:
    for run in (TOY.batch, lambda given: asyncio.run(TOY.abatch(given))):
        cause = rf"test_program\.py:\d+: a batch is a list of rows, not of type {kind}\n"
        with pytest.raises(lmc.InputError, match=cause) as caught:
            run(rows)
        assert caught.value.remedy == remedy


class BadRows:
    def __iter__(self) -> Iterator[Any]:
        raise TypeError("no file is open")


def test_the_error_of_a_class_of_rows_is_its_own() -> None:
    for run in (TOY.batch, lambda given: asyncio.run(TOY.abatch(given))):
        with pytest.raises(TypeError, match=r"^no file is open$"):
            run(BadRows())


class RowsByNumber:
    def __getitem__(self, number: int) -> dict[str, str]:
        return [{"name": "Ann"}, {"name": "Bob"}][number]


def test_rows_may_be_read_by_number() -> None:
    rows: Any = RowsByNumber()
    assert [result.error for result in TOY.batch(rows)] == [None, None]


class Greeter:
    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    @lmc.jit(target="toy")
    def greet(self, s: lmc.State, name: str) -> str:
        s += f"{self.greeting} {name}"
        s.gen("word", max_tokens=2)
        return f"{self.greeting} {name}"


def test_a_generator_may_fill_the_same_dict_for_each_row() -> None:
    def rows() -> Iterator[Any]:
        row: dict[str, Any] = {}
        for number in range(5):
            row["name"] = f"Ann {number}"
            yield row

    bound_method = Greeter("Hello").greet
    for run in (bound_method.batch, lambda given: asyncio.run(bound_method.abatch(given))):
        assert [result.value for result in run(rows())] == [f"Hello Ann {number}" for number in range(5)]


@pytest.mark.parametrize("rows", ["abc", {"topic": "x"}, [{"topic": "x"}, 5], [{1: "x"}]])
def test_a_batch_that_is_no_list_of_rows_is_refused(rows: Any) -> None:
    @lmc.jit(target="toy")
    def program(s: lmc.State, topic: str) -> str:
        s += topic
        return s.gen("answer", max_tokens=2)

    with pytest.raises(lmc.InputError, match="batch"):
        program.batch(rows)


def test_rows_of_a_generator_are_read_while_others_run() -> None:
    started: list[str] = []

    @lmc.tool
    def tell(topic: str) -> None:
        started.append(topic)

    @lmc.jit(target="toy")
    def program(s: lmc.State, topic: str) -> str:
        tell(topic)
        s += topic
        return s.gen("answer", max_tokens=2)

    def rows() -> Iterator[Any]:
        yield {"topic": "a"}
        while not started:
            time.sleep(0.002)
        yield 5
        yield {"topic": "b"}

    results = program.batch(rows())
    assert [result.value for result in results] == [program(topic="a"), None, program(topic="b")]
    assert isinstance(results[1].error, lmc.InputError)
    assert str(results[1].error).startswith("row 1 of the batch is 5")
    assert results[1].error.remedy == 'give a dict: {"argument": value}'
