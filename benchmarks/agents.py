"""Wall clock of agent workflows under memory pressure: the plan's order and eviction beside LRU, on one engine.

python benchmarks/agents.py [--write] [--repeats 3] [--workload "many workflows"]

A workflow is a chain of agents, as in KVFlow (arXiv 2507.07400): each has a long fixed prompt of its own, a short task,
and what the agent before it said; it answers briefly. The pool holds a part of the fixed prompts, and what running
requests add to one. The rows of a workload are the same work on the same engine, with the same bound on running
requests, from an empty cache; they must give the same texts, or the script fails:

- `lmc`: the rows as one `Program.batch` for each workflow, at -O2.
- `lpm`, `fcfs`: -O0, requests that belong to no plan; LRU, and the longest cached prefix first (SGLang's rules, see
  `public_policies.py`) or first come, first served. *One by one*: as many instances at a time as requests may run, the
  next one when one ends, as where workflows are served as they come; nothing waits, so the order decides nothing.
  *All at once*: all instances from the start, so that there is a choice.

The model is a Llama of random weights in fp32 that says words only (`workloads.py`), so small that a run takes seconds
on one core. Runs of all rows take turns in one process.
"""

import argparse
import asyncio
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmc
from benchmarks.engine import FOLDER
from benchmarks.peers.shapes import words
from benchmarks.results import machine, processor, table, write_section
from benchmarks.workloads import make_small_model
from lmc.driver.options import Options
from lmc.driver.targets.engines import adopt_engine, close_engine
from lmc.ir.engine.protocol import EngineStatistics
from lmc.program import Level
from lmc.runtime.local import load_local_engine


@dataclass(frozen=True)
class Workload:
    """`workflows` with agents of their own, and `instances` of each. Lengths are in tokens.

    The pool holds `share` percent of the fixed prompts, and beside that what `running` requests add to those.
    """

    workflows: int
    agents: int
    instances: int
    running: int
    fixed: int
    task: int = 24
    answer: int = 16
    share: int = 50

    @property
    def kv_tokens(self) -> int:
        """Size of the pool."""
        fixed = self.workflows * self.agents * self.fixed
        return self.share * fixed // 100 + self.running * (2 * self.task + 2 * self.answer)


WORKLOADS = {
    "one workflow": Workload(workflows=1, agents=6, instances=8, running=1, fixed=1024),
    "one workflow, four at once": Workload(workflows=1, agents=6, instances=12, running=4, fixed=512),
    "many workflows": Workload(workflows=8, agents=4, instances=5, running=8, fixed=512),
}


def workflow(prompts: Sequence[str], answer: int) -> lmc.Program:
    """A chain of agents with these prompts."""

    @lmc.jit
    def chain(s: Any, task: str) -> Any:
        said = task
        answers = []
        for agent, prompt in zip(s.fork(len(prompts)), prompts, strict=True):
            agent.append(prompt)
            agent.append(task + said)
            said = agent.gen("answer", max_tokens=answer, min_tokens=answer)
            answers.append(said)
        return answers

    return chain


Batch = list[tuple[lmc.Program, list[dict[str, str]]]]
Texts = list[list[list[str]]]


def batch_of(name: str, workload: Workload) -> Batch:
    """The programs of a workload, each with its rows.

    With these texts the likeliest word is everywhere more likely than the next by more than rounding: 5e-5 and more.
    """
    rng = random.Random(f"{name}/1")
    made: Batch = []
    for _ in range(workload.workflows):
        program = workflow([words(rng, workload.fixed) for _ in range(workload.agents)], workload.answer)
        made.append((program, [{"task": words(rng, workload.task)} for _ in range(workload.instances)]))
    return made


async def as_batches(batch: Batch, running: int) -> Texts:  # noqa: ARG001
    """One `Program.batch` for each workflow, all of them together."""
    found = await asyncio.gather(*(program.abatch(rows) for program, rows in batch))
    return [[result.value for result in results] for results in found]


async def all_at_once(batch: Batch, running: int) -> Texts:  # noqa: ARG001
    """Every instance is there from the start."""
    return await _by_clients(batch, clients=max(len(rows) for _, rows in batch))


async def one_by_one(batch: Batch, running: int) -> Texts:
    """As many instances at a time as requests may run, equally many of each workflow."""
    return await _by_clients(batch, clients=running // len(batch))


async def _by_clients(batch: Batch, clients: int) -> Texts:
    """So many clients for each workflow, of which each runs one instance after the other."""
    texts: Texts = [[[] for _ in rows] for _, rows in batch]

    async def client(number: int, waiting: Iterator[int]) -> None:
        program, rows = batch[number]
        for row in waiting:
            texts[number][row] = (await program.arun(**rows[row])).value

    queues = [iter(range(len(rows))) for _, rows in batch]
    await asyncio.gather(*(client(number, queue) for _ in range(clients) for number, queue in enumerate(queues)))
    return texts


@dataclass(frozen=True)
class Mode:
    """How the work is asked for, and how the engine goes about it."""

    policy: str
    level: Level
    ask: Callable[[Batch, int], Coroutine[Any, Any, Texts]]
    arrival: str


MODES = (
    Mode("lmc", "O2", as_batches, "batch"),
    Mode("lpm", "O0", one_by_one, "one by one"),
    Mode("lpm", "O0", all_at_once, "all at once"),
    Mode("fcfs", "O0", all_at_once, "all at once"),
)


@dataclass(frozen=True)
class Run:
    """What one run took, on the clock and of the processor, and what it gave and cost."""

    seconds: float
    cpu_seconds: float
    statistics: EngineStatistics
    texts: Texts


def run(mode: Mode, batch: Batch, workload: Workload, model: Path) -> Run:
    """Do the work once on a new engine. The programs are compiled before time counts."""
    engine = load_local_engine(
        model, device="cpu", kv_tokens=workload.kv_tokens, max_running=workload.running, policy=mode.policy
    )
    target = adopt_engine(engine)
    try:
        bound: Batch = [(program.on(target, level=mode.level), rows) for program, rows in batch]
        for program, rows in bound:
            program.compile(**rows[0])
        start, cpu = time.perf_counter(), time.process_time()
        texts = asyncio.run(mode.ask(bound, workload.running))
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        return Run(seconds, cpu_seconds, engine.statistics, texts)
    finally:
        close_engine(Options(target))


def measure(name: str, workload: Workload, model: Path, repeats: int) -> list[list[Run]]:
    """The runs of each mode; modes take turns. Ends the script where they gave different texts."""
    batch = batch_of(name, workload)
    runs: list[list[Run]] = [[] for _ in MODES]
    for _ in range(repeats):
        for mode, found in zip(MODES, runs, strict=True):
            found.append(run(mode, batch, workload, model))
            print(f"{name}, {mode.policy}, {mode.arrival}: {found[-1].seconds:.2f} s", file=sys.stderr, flush=True)
    for mode, found in zip(MODES, runs, strict=True):
        if any(each.texts != runs[0][0].texts for each in found):
            raise SystemExit(f"{name}: {mode.policy}, {mode.arrival} gave other texts than {MODES[0].policy}")
    return runs


def rows_of(name: str, runs: Sequence[Sequence[Run]]) -> list[list[str]]:
    """A line for each mode: medians, and what the first run cost."""

    def seconds(found: Sequence[Run]) -> float:
        return statistics.median(each.seconds for each in found)

    lines: list[list[str]] = []
    for mode, found in zip(MODES, runs, strict=True):
        totals = found[0].statistics
        lines.append(
            [
                name,
                mode.policy,
                mode.arrival,
                f"{seconds(found):.2f}",
                f"{statistics.median(each.cpu_seconds for each in found):.2f}",
                f"{totals.cached_tokens / totals.prompt_tokens:.1%}",
                f"{totals.prefilled_tokens:,}",
                f"{totals.evicted_tokens:,}",
                f"{seconds(found) / seconds(runs[0]):.2f}",
            ]
        )
    return lines


HEAD = ["workload", "policy", "instances", "seconds", "CPU s", "hits", "prefilled", "evicted", "seconds / lmc"]


def about(name: str, workload: Workload) -> str:
    """The sizes of a workload in a line."""
    return (
        f"- {name}: {workload.workflows} × {workload.agents} agents of {workload.fixed} tokens, {workload.instances} "
        f"instances of each workflow, tasks of {workload.task} and answers of {workload.answer} tokens; at most "
        f"{workload.running} requests at once, pool of {workload.kv_tokens:,} tokens ({workload.share}% of the fixed "
        "prompts, and what running requests add).\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="default: all")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.write and options.workload:
        parser.error("--write keeps all of the table: leave --workload out")
    model = make_small_model(FOLDER / "agents")
    chosen = {name: WORKLOADS[name] for name in options.workload or WORKLOADS}
    measure("warm-up", Workload(workflows=1, agents=2, instances=2, running=2, fixed=32), model, repeats=1)
    lines = [
        line
        for name, workload in chosen.items()
        for line in rows_of(name, measure(name, workload, model, options.repeats))
    ]
    text = "".join(about(name, workload) for name, workload in chosen.items()) + "\n" + table(HEAD, lines)
    print(text, end="")
    if options.write:
        import torch

        threads = f"{torch.get_num_threads()} threads"
        head = f"{machine()}, {processor()}, {threads}; medians of {options.repeats}. All rows gave the same texts.\n\n"
        write_section("agents", shlex.join(["python", *sys.argv]), head + text)


if __name__ == "__main__":
    main()
