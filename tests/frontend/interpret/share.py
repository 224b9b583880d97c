"""Count what the abstract interpreter captures whole, and what stops it.

python -m tests.frontend.interpret.share [GROUP...] [--name PART]

It stands beside ``benchmarks/captured_share.py`` while the old capture is there, and goes with it.
"""

import argparse
import copy
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.captured_share import Program, Run, corpus
from lmc.frontend.arguments import bind
from lmc.frontend.capture import capture
from tests.frontend.harness import EFFECTS, check


def outcome_of(program: Program) -> tuple[str, str]:
    """Return whether every run of it is captured whole and equal, and what stops it."""
    stopped = ""
    for run in program.runs():
        args, kwargs = run()
        EFFECTS.clear()
        try:
            found = capture(program.function, bind(program.function, args, kwargs))
        except Exception as error:
            return "CRASH", "".join(traceback.format_exception_only(error)).strip() + _place(error)
        if EFFECTS:
            return "EFFECT", repr(EFFECTS)
        if found.breaks and not stopped:
            where = found.breaks[0].location
            stopped = f"{found.breaks[0].cause} ({where and where.line})"
        if not found.matches(bind(program.function, *run())):
            return "identity", "its guards hold objects that each run makes anew"
        try:
            check(program.function, _anew(program, run), kwargs, captured=found)
        except (Exception, pytest.fail.Exception) as error:
            return "UNEQUAL", str(error)[:300]
    return ("break", stopped) if stopped else ("whole", "")


def _anew(program: Program, run: Run) -> Callable[[], tuple[Any, ...]]:
    """Arguments of a run; the object of a method, with its containers, is as it was before the first one."""
    own = [each for each in program.function.receiver if hasattr(each, "__dict__") and not isinstance(each, type)]
    held = [(each, dict(vars(each)), copy.deepcopy(vars(each))) for each in own]

    def make() -> tuple[Any, ...]:
        for receiver, attributes, content in held:
            vars(receiver).clear()
            vars(receiver).update(attributes)
            for name, value in attributes.items():
                if isinstance(value, list):
                    value[:] = copy.deepcopy(content[name])
                elif isinstance(value, dict | set):
                    value.clear()
                    value.update(copy.deepcopy(content[name]))
        return run()[0]

    return make


def _place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f" at {last.filename.rpartition('lmc/')[2]}:{last.lineno}"


def main() -> None:
    """Print a line for each program that is not whole, then counts for each group."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--name", default="", help="only programs whose names contain this")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for program in corpus():
        if (options.groups and program.group not in options.groups) or options.name not in program.name:
            continue
        kind, why = outcome_of(program)
        counts[program.group][kind] += 1
        if kind != "whole":
            print(f"{kind:9}{program.group}/{program.name}: {why}")
    for group, found in counts.items():
        print(group, dict(found), "of", found.total())


if __name__ == "__main__":
    main()
