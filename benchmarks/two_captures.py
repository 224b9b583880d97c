"""Hold the graphs of the abstract interpreter against those of the capture it replaces.

python benchmarks/two_captures.py [--write] [GROUP ...]

For every program of the corpora of benchmarks/captured_share.py that both take whole: ops as captured and at -O2,
waves, tokens that the passes save, and the ids of its generations, over its first inputs. It goes with the old capture.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from benchmarks.captured_share import Program, corpus
from benchmarks.results import table, write_section
from lmc.driver.artifacts import summary
from lmc.driver.compile import compile_captured
from lmc.frontend.arguments import bind
from lmc.frontend.capture import capture
from lmc.frontend.capture import capture_whole
from lmc.frontend.variants import Captured
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.core import walk
from lmc.ir.target import Target
from lmc.ir.toy import toy_tokenizer

HEAD = ["programs of", "both whole", "ops captured", "ops at -O2", "waves", "prefixes", "saved tokens", "other ids"]
CACHE = ConstraintCache()


@dataclass(frozen=True)
class Graph:
    """What is counted of one graph. ``ids`` are those of its generations, in order of text."""

    captured: int
    optimized: int
    waves: int
    prefixes: int
    saved: int
    ids: tuple[str, ...]


def measured(captured: Captured) -> Graph:
    """Compile at -O2 and count."""
    compiled = compile_captured(captured, Target.parse("toy"), "O2", toy_tokenizer(), cache=CACHE)
    found = summary(compiled)
    ops: Any = walk([captured.module.main.body])
    ids = tuple(sorted({op.id for op in ops if op.billable and not op.regions}))
    numbers = found["ops"]
    prefixes = sum(found["prefixes"].values())
    return Graph(numbers["captured"], numbers["optimized"], found["waves"], prefixes, found["saved"]["tokens"], ids)


def both(program: Program) -> tuple[Graph, Graph] | None:
    """The graphs of the old and of the new capture; None unless both are whole."""
    run = program.runs()[0]
    new = capture_whole(program.function, bind(program.function, *run()))
    if not isinstance(new, Captured) or new.breaks:
        return None
    old = capture(program.function, bind(program.function, *run()))
    return None if old.breaks else (measured(old), measured(new))


def row(group: str, pairs: list[tuple[Graph, Graph]]) -> list[str]:
    """A line of the table: sums over the programs, old and new."""

    def sums(name: str) -> str:
        old, new = (sum(getattr(pair[which], name) for pair in pairs) for which in (0, 1))
        return f"{old:,} → {new:,}"

    counted = [sums(name) for name in ("captured", "optimized", "waves", "prefixes", "saved")]
    return [group, f"{len(pairs)}", *counted, f"{sum(old.ids != new.ids for old, new in pairs)}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("groups", nargs="*")
    options = parser.parse_args()
    groups: dict[str, list[tuple[Graph, Graph]]] = defaultdict(list)
    for program in corpus():
        if options.groups and program.group not in options.groups:
            continue
        pair = both(program)
        if pair is None:
            continue
        groups[program.group].append(pair)
        old, new = pair
        more = [name for name in ("optimized", "waves") if getattr(new, name) > getattr(old, name)]
        if more or old.ids != new.ids or new.saved < old.saved or new.prefixes < old.prefixes:
            print(f"{program.group}/{program.name}: {old} → {new}")
    every = [pair for pairs in groups.values() for pair in pairs]
    text = table(HEAD, [row(group, pairs) for group, pairs in (*groups.items(), ("all", every))])
    print(text, end="")
    if options.write:
        write_section("two_captures", "python benchmarks/two_captures.py --write", text)


if __name__ == "__main__":
    main()
