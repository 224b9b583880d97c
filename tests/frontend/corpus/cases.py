"""The corpus: each program says how far it is captured, wholly (``stops`` None) or up to a break about something."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lmc.frontend.program.function import JittedFunction


@dataclass
class Case:
    """A program, its arguments (or what makes them anew for each run), and a part of its break's cause.

    ``watch`` gives what a run leaves behind.
    """

    program: JittedFunction
    args: Any = ()
    stops: str | None = None
    watch: Callable[[], Any] | None = None


CASES: dict[str, Case] = {}


def case(
    *args: Any, stops: str | None = None, make: Callable[[], tuple[Any, ...]] | None = None
) -> Callable[[Any], JittedFunction]:
    """Put a function into the corpus."""

    def add(function: Any) -> JittedFunction:
        program = function if isinstance(function, JittedFunction) else JittedFunction(function)
        assert program.name not in CASES
        CASES[program.name] = Case(program, make or args, stops)
        return program

    return add
