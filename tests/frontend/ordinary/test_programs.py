"""Ordinary programs do the same in every mode: value, variables, transcript, messages, output, log and effects."""

import logging
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import TextIOBase

import pytest

from lmc.frontend.capture import StopBefore, capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.variants import Captured
from tests.driver.levels import check_levels
from tests.frontend.harness import EFFECTS, FULL, check, some
from tests.frontend.interpret.forced import from_step, statements_of
from tests.frontend.ordinary.cases import CASES, Arguments, Ordinary

pytestmark = pytest.mark.slow("a corpus in every mode")


class Screen(TextIOBase):
    """Standard output as an effect that the harness compares."""

    def write(self, text: str) -> int:
        EFFECTS.append(("printed", text))
        return len(text)


class Log(logging.Handler):
    """Log records as effects that the harness compares."""

    def emit(self, record: logging.LogRecord) -> None:
        EFFECTS.append(("logged", record.levelname, record.getMessage()))


@pytest.fixture(autouse=True)
def _output_is_an_effect() -> Iterator[None]:
    log = Log()
    logging.getLogger().addHandler(log)
    try:
        with redirect_stdout(Screen()):
            yield
    finally:
        logging.getLogger().removeHandler(log)


def agree(
    case: Ordinary,
    make: Callable[[], Arguments],
    captured: Captured | None = None,
    stop_before: StopBefore | None = None,
) -> Captured:
    """Check one input: its arguments and what tools wrote are compared after each run, too."""
    last: list[Arguments] = []

    def fresh() -> Arguments:
        last[:] = [make()]
        return last[0]

    watch = lambda: (last, case.writes)  # noqa: E731
    return check(case.program, fresh, captured=captured, watch=watch, stop_before=stop_before)


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees_with_plain_python(name: str):
    case = CASES[name]
    captures: list[Captured] = []
    for make in case.runs():
        fitting = [one for one in captures if one.matches(bind(case.program, make(), {}))]
        for captured in fitting if FULL else fitting[:1]:  # of another input
            agree(case, make, captured)
        if FULL or not fitting:
            captures.append(agree(case, make))


@pytest.mark.parametrize("name", some(CASES, 2))
def test_every_level_agrees_with_plain_python(name: str):
    case = CASES[name]
    for make in case.runs() if FULL else case.runs()[:1]:
        check_levels(capture(case.program, bind(case.program, make(), {})), make)


@pytest.mark.parametrize("name", some(CASES, 2, first=1))
def test_a_continuation_from_the_middle_agrees_with_plain_python(name: str):
    case = CASES[name]
    for make in case.runs() if FULL else case.runs()[-1:]:
        steps = len(statements_of(case.program, make, {}))
        for number in range(1, steps + 1, max(1, steps // 20)) if FULL else (max(1, steps // 2),):
            agree(case, make, stop_before=from_step(number))
