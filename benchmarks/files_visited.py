"""Count the files of lmc that a first call visits, and the moves between them: how far a newcomer has to read.

python benchmarks/files_visited.py [--write]

A profile function (`sys.setprofile`, in every thread, that of the loop of lmc too) sees each call of a Python function
of lmc. A move is a call in
another file than the call before it, in the same thread. A call runs on the toy engine; a capture is the second one of
its program, so that its source is parsed already.
"""

import argparse
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import lmc
from benchmarks.results import table, write_section
from lmc.driver.targets.service import service
from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind

_OWN = str(Path(lmc.__file__).parent)


@lmc.jit
def short(s: lmc.State, q: str) -> str:
    s += q
    s.gen("x")
    return s["x"]


@lmc.jit
def one_condition(s: lmc.State, q: str) -> str:
    s += q
    x = s.gen("x")
    if "e" in x:
        s += "Why?"
        y = s.gen("y")
    else:
        y = "none"
    return y


@lmc.jit
def other(s: lmc.State, q: str) -> str:
    """Loads the modules: what an import runs is not counted."""
    s += q
    return s.gen("x") if "e" in q else s.gen("y")


PROGRAMS = {"two lines": short, "one `if`": one_condition}


@dataclass
class Walk:
    """What was visited."""

    is_on: bool = False
    calls: int = 0
    moves: int = 0
    files: set[str] = field(default_factory=set[str])
    last: dict[int, str] = field(default_factory=dict[int, str])

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if not self.is_on or event != "call" or not name.startswith(_OWN) or frame.f_code.co_name == "<module>":
            return
        thread = threading.get_ident()
        self.calls += 1
        self.moves += self.last.get(thread, name) != name
        self.last[thread] = name
        self.files.add(name)


@contextmanager
def walked() -> Generator[Walk]:
    """Watch the calls of the block, in threads that it starts too."""
    walk = Walk()
    threading.setprofile(walk)
    _profile_loop(walk)
    sys.setprofile(walk)
    walk.is_on = True
    try:
        yield walk
    finally:
        walk.is_on = False
        sys.setprofile(None)
        _profile_loop(None)
        threading.setprofile(None)


def _profile_loop(walk: Walk | None) -> None:
    """Set the profile function of the thread of lmc's loop, which runs already."""

    async def set_it() -> None:
        sys.setprofile(walk)

    service().loop.start(set_it()).result()


def first_call(program: lmc.Program) -> Walk:
    """Return what the first call of a program visits."""
    runner: Callable[[str], Any] = program.on("toy")
    with walked() as walk:
        runner("q")
    return walk


def one_capture(program: lmc.Program) -> Walk:
    """Return what a capture visits whose source is parsed already."""
    capture(program, bind(program, ("q",), {}))
    with walked() as walk:
        capture(program, bind(program, ("q",), {}))
    return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    options = parser.parse_args()
    other.on("toy")("q")
    rows = [
        [name, what, str(walk.calls), str(walk.moves), str(len(walk.files))]
        for name, program in PROGRAMS.items()
        for what, walk in (("first call", first_call(program)), ("capture", one_capture(program)))
    ]
    text = table(["program", "what", "calls", "moves", "files"], rows)
    print(text, end="")
    if options.write:
        about = "Functions of lmc called, moves from file to file, and files visited, on the toy engine.\n\n"
        write_section("files_visited", "python benchmarks/files_visited.py --write", about + text)


if __name__ == "__main__":
    main()
