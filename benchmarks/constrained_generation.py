"""Objects and fields generated under constraints by the built-in model: what jump-forward is worth.

python benchmarks/constrained_generation.py [--write] [--runs N] [--workload NAME …] [--way NAME …]

Workloads are json_character, json_city and json_decode (`constraining/workloads.py`), greedy, in float32, once with all
requests at a time and once one by one. Each is run with lmc's masks in the three modes of jump-forward and, token by
token, with the masks of xgrammar and llguidance in the same engine; constraints are compiled before the clock starts.
Outputs of every way but "canonical" have to be equal to those token by token. Medians of several runs, each by a new
engine; runs of the ways alternate. The masks of others need the environment that `constraints.py --setup` makes.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.constraints import go_where_the_peers_are
from benchmarks.results import machine, processor, table, write_section

BASE = "lmc off"
WAYS = ("lmc exact", "lmc canonical", BASE, "xgrammar", "llguidance")
ALONE = 8  # requests of a run one by one
NAME = "constrained_generation"


@dataclass(frozen=True)
class Run:
    """Seconds, tokens of the outputs, forward passes, drafted and accepted tokens, and the texts."""

    seconds: float
    tokens: int
    steps: int
    drafted: int
    accepted: int
    texts: tuple[str, ...]


def run(items: Sequence[Any], way: str, constraint_of: Callable[[str, str], Any], *, together: bool) -> Run:
    """All items by a new engine, together or one by one."""
    from lmc import builtin_model
    from lmc.ir.engine.protocol import Request, SamplingParams
    from lmc.ir.semantics.context import Context
    from lmc.runtime.local import load_local_engine

    mode: Any = way.removeprefix("lmc ") if way.startswith("lmc") else "off"
    with load_local_engine(builtin_model.path(), kv_tokens=120_000) as engine:
        warm = Request(tuple(engine.tokenizer.encode("Once")), SamplingParams(max_tokens=8))
        engine.submit(warm).future.result()
        contexts = [Context.empty(engine.tokenizer).text(item.text) for item in items]
        texts = [""] * len(items)
        before = engine.statistics
        start = time.perf_counter()
        for chosen in [range(len(items))] if together else [[index] for index in range(len(items))]:
            for place in range(len(items[0].generations)):
                handles: dict[int, Any] = {}
                for index in chosen:
                    label, pattern = items[index].generations[place]
                    contexts[index] = contexts[index].text(label)
                    handles[index] = engine.submit(
                        Request(
                            contexts[index].prompt,
                            SamplingParams(max_tokens=items[index].max_tokens),
                            constraint=constraint_of(way, pattern),
                            jump_forward=mode,
                        )
                    )
                for index, handle in handles.items():
                    found = handle.future.result()
                    contexts[index] = contexts[index].generated(found)
                    texts[index] += found.text + "\n"
        seconds = time.perf_counter() - start
        after = engine.statistics
    return Run(
        seconds,
        after.generated_tokens - before.generated_tokens,
        after.steps - before.steps,
        after.drafted_tokens - before.drafted_tokens,
        after.accepted_tokens - before.accepted_tokens,
        tuple(texts),
    )


def constraints(ways: Sequence[str]) -> Callable[[str, str], Any]:
    """A function that gives the constraint of one of these ways and a pattern, each compiled once."""
    from lmc import builtin_model, grammar

    vocabulary = grammar.Vocabulary.of(builtin_model.path())
    makers = {way: made_by_lmc(vocabulary) if way.startswith("lmc") else made_by_peer(way, vocabulary) for way in ways}
    kept: dict[tuple[str, str], Any] = {}

    def constraint_of(way: str, pattern: str) -> Any:
        key = ("lmc" if way.startswith("lmc") else way, pattern)
        if key not in kept:
            kept[key] = makers[way](pattern)
        return kept[key]

    return constraint_of


def made_by_lmc(vocabulary: Any) -> Callable[[str], Any]:
    """What makes a constraint of a pattern."""
    from lmc import grammar

    def make(pattern: str) -> Any:
        made = grammar.compile(regex=pattern, tokenizer=vocabulary)
        made.build()
        return made

    return make


def made_by_peer(name: str, vocabulary: Any) -> Callable[[str], Any]:
    """What makes a constraint of a pattern with the masks of another library."""
    import tokenizers

    from benchmarks.constraining import peers
    from benchmarks.constraining.masks import PeerConstraint
    from lmc import builtin_model

    tokenizer = tokenizers.Tokenizer.from_file(str(builtin_model.path() / "tokenizer.json"))
    peer = peers.made_for(tokenizer, vocabulary.tokens, vocabulary.eos_ids[0])[name]
    return lambda pattern: PeerConstraint(peer, pattern, vocabulary.eos_ids[:1])


def measured(names: Sequence[str], ways: Sequence[str], runs: int) -> str:
    """The table of all workloads."""
    from benchmarks.constraining.workloads import WORKLOADS

    constraint_of = constraints(ways)
    rows: list[list[str]] = []
    for name in names:
        make, count = WORKLOADS[name]
        for together in (True, False):
            items = make(count)[: None if together else ALONE]
            found: dict[str, list[Run]] = {way: [] for way in ways}
            for number in range(runs + 1):
                for way in ways:
                    made = run(items, way, constraint_of, together=together)
                    if number:  # the first fills caches of masks
                        found[way].append(made)
            slowest = statistics.median(each.seconds for each in found[BASE])
            expected = found[BASE][0].texts
            for way in ways:
                seconds = statistics.median(each.seconds for each in found[way])
                one = found[way][0]
                equal = sum(map(str.__eq__, one.texts, expected))
                passes = one.steps / (1 if together else len(items))
                rows.append(
                    [
                        f"{name}, {len(items)} {'together' if together else 'one by one'}",
                        way,
                        f"{seconds:.2f}",
                        f"{slowest / seconds:.2f}",
                        f"{one.tokens / len(items) / passes:.2f}",
                        f"{one.accepted / one.drafted:.0%}" if one.drafted else "",
                        f"{equal}/{len(items)}",
                    ]
                )
                print(" | ".join(rows[-1]), flush=True)
    head = ["workload", "masks and mode", "s", "times off", "tokens a pass", "drafts kept", "texts as off"]
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--runs", type=int, default=3, help="of which the medians count")
    parser.add_argument("--workload", action="append", help="may be repeated; all where it is not given")
    parser.add_argument("--way", action="append", choices=WAYS, help=f"beside {BASE!r}; may be repeated, as above")
    options = parser.parse_args()
    if options.write and (options.workload or options.way):
        parser.error("only the whole table is kept: leave --workload and --way out")
    ways = [way for way in WAYS if way == BASE or not options.way or way in options.way]
    if not all(way.startswith("lmc") for way in ways):
        go_where_the_peers_are()
    from benchmarks.constraining.workloads import WORKLOADS
    from benchmarks.runners import versions

    text = measured(options.workload or [*WORKLOADS], ways, options.runs)
    if options.write:
        about = f"{machine()}, {processor()}; {versions(['lmc'])}; median of {options.runs}."
        write_section(NAME, f"python benchmarks/{NAME}.py --write", f"{about}\n\n{text}")


if __name__ == "__main__":
    main()
