"""The programs with symbolic conditions: each is run on inputs that together take every way through it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FrameType
from typing import Any

from lmc.frontend.program.function import JittedFunction
from tests.frontend.harness import run_plain

INPUTS = [
    ("a",),
    ("b",),
    ("hello",),
    ("x y",),
    ("12",),
    ("",),
    ("no",),
    ("why",),
    ("q",),
    ("é",),
    ("zz",),
    ("k",),
    *((f"text {index}",) for index in range(250)),
]


@dataclass
class Condition:
    """A program of one text, a part of the cause of its break (None: captured whole), and texts of lines never run."""

    program: JittedFunction
    stops: str | None = None
    never: tuple[str, ...] = ()

    @cached_property
    def inputs(self) -> list[tuple[str]]:
        """Inputs that together run every line, at least two of them."""
        wanted = _lines(self.program.function.__code__)
        chosen: list[tuple[str]] = []
        seen: set[tuple[str, int]] = set()
        for given in INPUTS:
            ran = _ran(self.program, given, wanted)
            if len(chosen) < 2 or ran - seen:
                chosen.append(given)
                seen |= ran
            if seen == wanted and len(chosen) >= 2:
                break
        missing = {place for place in wanted - seen if not any(text in _text(place) for text in self.never)}
        assert not missing, f"no input runs {sorted(missing)}: {[_text(place) for place in sorted(missing)]}"
        return chosen


CONDITIONS: dict[str, Condition] = {}


def registering(corpus: dict[str, Condition]) -> Callable[..., Callable[[Any], JittedFunction]]:
    """What puts functions into ``corpus``."""

    def registered(stops: str | None = None, never: tuple[str, ...] = ()) -> Callable[[Any], JittedFunction]:
        def add(function: Any) -> JittedFunction:
            program = function if isinstance(function, JittedFunction) else JittedFunction(function)
            assert program.name not in corpus
            corpus[program.name] = Condition(program, stops, never)
            return program

        return add

    return registered


condition = registering(CONDITIONS)
"""Put a function into the corpus of conditions."""


def _lines(code: CodeType) -> set[tuple[str, int]]:
    found = {(code.co_filename, line) for _, _, line in code.co_lines() if line is not None}
    found.discard((code.co_filename, code.co_firstlineno))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _lines(inner)
    return found


def _ran(program: JittedFunction, given: tuple[str], wanted: set[tuple[str, int]]) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename != next(iter(wanted))[0]:
            return None
        if event == "line":
            found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run_plain(program, given, {})
    finally:
        sys.settrace(before)
    return found & wanted


def _text(place: tuple[str, int]) -> str:
    import linecache

    return linecache.getline(*place).strip()
