"""Usage counts what the engine computed, whatever became of it."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmc
from lmc.driver.options import Options
from lmc.driver.run.result import Result
from lmc.driver.runner import Runner
from lmc.driver.targets.engines import adopt_engine
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import ConstraintError
from lmc.ir.profile import Profile
from lmc.ir.usage import Usage

PATTERN = "[a-z]{3,12}!"  # now and then longer than six tokens


@lmc.jit
def one(s: lmc.State, topic: str) -> str:
    s += topic
    s.gen("free", max_tokens=3)
    return s.gen("word", regex=PATTERN, max_tokens=6, temperature=1.0)


@lmc.jit
def several(s: lmc.State, topic: str) -> list[str]:
    s += topic
    return s.gen("words", n=3, regex=PATTERN, max_tokens=6, temperature=1.0)


@lmc.jit
def branches(s: lmc.State, topic: str) -> str:
    s += topic
    views = s.fork(3)
    for view in views:
        view.gen("word", regex=PATTERN, max_tokens=6, temperature=1.0)
    return "".join(view["word"] for view in views)


@lmc.jit
def behind_a_break(s: lmc.State, topic: str) -> str:
    s += topic
    s.gen("free", max_tokens=3)
    eval("0")
    return s.gen("word", regex=PATTERN, max_tokens=6, temperature=1.0)


@lmc.jit
def tries_again(s: lmc.State, topic: str) -> str:
    s += topic
    for _ in range(3):
        try:
            return s.gen("word", regex=PATTERN, max_tokens=6, temperature=1.0)
        except lmc.ConstraintError:
            s += "again"
    return "never"


PROGRAMS = [one, several, branches, behind_a_break, tries_again]


ENGINE = ToyEngine()


def computed() -> Counter[str]:
    totals = ENGINE.statistics
    return Counter(prompt=totals.prompt_tokens, generated=totals.generated_tokens, calls=totals.requests)


@given(st.sampled_from(PROGRAMS), st.integers(0, 2**32), st.integers(1, 6), st.sampled_from(["O0", "O2"]))
def test_the_usage_of_a_batch_is_what_the_engine_computed(program: lmc.Program, seed: int, rows: int, level: Any):
    before = computed()
    bound = program.on(adopt_engine(ENGINE), seed=seed, level=level)
    results = bound.batch([{"topic": f"topic {number}"} for number in range(rows)])
    assert {type(result.error) for result in results} <= {type(None), ConstraintError}
    total = sum((result.usage for result in results), Usage())
    counted = Counter(prompt=total.prompt_tokens, generated=total.generated_tokens, calls=total.calls)
    assert counted == computed() - before
    for result in results:
        assert Profile.from_json(result.profile.to_json()) == result.profile


def failing(program: lmc.Program) -> Result:
    """A row of ``program`` that fails."""
    runner = Runner(program, Options("toy"))
    results = runner.batch([((), {"topic": f"topic {number}"}) for number in range(12)])
    return next(result for result in results if result.error is not None)


@pytest.mark.parametrize("program", [one, several, branches, behind_a_break])
def test_a_generation_that_max_tokens_cut_counts(program: lmc.Program):
    result = failing(program)
    assert isinstance(result.error, ConstraintError)
    assert result.error.usage is not None
    assert result.error.usage.generated_tokens == 6
    assert result.usage.generated_tokens >= 6


def test_a_run_that_fails_says_what_its_request_cost():
    ends: list[Usage | None] = []
    for seed in range(12):
        run: Callable[..., object] = Runner(one, Options("toy", seed=seed)).run
        try:
            run(((), {"topic": "x"}))
        except ConstraintError as error:
            ends.append(error.usage)
    assert ends
    assert all(usage is not None and (usage.generated_tokens, usage.calls) == (6, 1) for usage in ends)
