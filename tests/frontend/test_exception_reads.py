"""Which functions may ask for the exception that is being handled."""

import sys
import traceback

import pytest

from lmc.frontend.program.function import JittedFunction
from lmc.frontend.source.exception_reads import looks_at_exceptions
from lmc.frontend.tools.tools import tool


def asks():
    return sys.exc_info()


def shows():
    return [traceback.format_exc() for _ in range(1)]


def calls():
    return asks()


def calls_itself(n):
    return calls_itself(n - 1) if n else "end"


class Logger:
    def report(self):
        return shows()


@tool
def asking_tool() -> None:
    asks()


@JittedFunction
def asking_program(s):
    s += f"{asks()}"


@pytest.mark.parametrize("value", [asks, shows, calls, Logger().report, asking_tool, asking_program])
def test_functions_that_ask_are_found(value):
    assert looks_at_exceptions(value)


@pytest.mark.parametrize("value", [calls_itself, len, str, None, "text", Logger, JittedFunction(lambda s: s)])
def test_others_are_not(value):
    assert not looks_at_exceptions(value)
