"""lmc's LRU eviction and longest-prefix order beside those of SGLang's published package, on the same requests.

python benchmarks/public_policies.py [--write] [--seeds 100] [--setup]

`--setup` makes an environment with lmc, torch and SGLang (`PIN`) in build/peers/sglang; without SGLang, the script
starts itself again in that one. Of SGLang, only the modules that decide are loaded, as they were published
(`public/modules.py`): its radix cache with the LRU strategy, and its schedule policy "lpm". All by themselves:

- sequences: random requests start and end in turn. Same found tokens; same evicted tokens; and same tokens cached
  after each of them, where both evict the same number. Known differences are taken away one after the other: SGLang
  evicts whole leaves, lmc no more than is needed; and in SGLang a match that ends within an edge also renews the rest
  of that edge, which nobody asked for, in lmc it does not.
- queues: the order of a waiting queue. SGLang puts a request last that found 32 tokens or fewer and shares 32 or more
  with one before it, which has to compute them first; lmc has no need to, since rows are shared within a step. So its
  order is compared without that rule, and with it.
- traces: requests of `traces.py` one at a time, hits of both.
"""

import argparse
import os
import random
import subprocess
import sys
from array import array
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.public import modules
from benchmarks.public.serving import Cache, Ours, SGLang, Started
from benchmarks.replay import Traced
from benchmarks.results import table, write_section
from lmc.cache.order import MATCHED_AT_MOST, LongestPrefix
from lmc.cache.sequence import Sequence

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / "build" / "peers" / "sglang"
PIN = "sglang==0.5.23"
SETUP = "python benchmarks/public_policies.py --setup"
PAGES, REQUESTS, AT_ONCE = 160, 80, 3
TRACES = ("mmlu", "react", "rag", "agents", "multi_turn_chat_short", "tree_of_thought")


def set_up() -> None:
    """Make the environment in which lmc and SGLang's modules run together."""
    python = str(ENVIRONMENT / "bin" / "python")
    install = [python, "-m", "pip", "install", "--constraint", "constraints.txt"]
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], cwd=ROOT, check=True)
    subprocess.run([*install, "--editable", ".", "torch"], cwd=ROOT, check=True)
    subprocess.run([*install, "--no-deps", PIN], cwd=ROOT, check=True)


def load() -> tuple[ModuleType, ModuleType]:
    """SGLang's modules; where this interpreter has none, this command again with the one that has."""
    os.environ["SGLANG_ENABLE_WAITING_PREFIX_REFRESH"] = "0"  # it belongs to no policy: what waits is kept alive
    try:
        return modules.load()
    except ModuleNotFoundError as error:
        python = ENVIRONMENT / "bin" / "python"
        if not python.is_file() or Path(sys.prefix) == ENVIRONMENT:
            raise SystemExit(f"{sys.executable} lacks {error.name}; run {SETUP}") from error
        raise SystemExit(subprocess.run([str(python), *sys.argv], check=False).returncode) from error


def random_tokens(rng: random.Random, known: list[list[int]]) -> list[int]:
    """A request that goes on from a part of another one, or of nothing."""
    before = rng.choice(known) if known and rng.random() < 0.8 else []
    tokens = before[: rng.randint(0, len(before))] + rng.choices(range(3), k=rng.randint(2, 12))
    known.append(tokens[: PAGES // 5])
    return known[-1]


class Agreement:
    """How often two caches did the same, over many sequences of requests."""

    def __init__(self) -> None:
        self.sequences = self.requests = self.found = self.evicted = self.cached = self.same = 0
        self.hits = [0, 0]

    def follow(self, rng: random.Random, ours: Cache, theirs: Cache, *, same_number: bool) -> None:
        """Run a sequence on both, until what they have cached differs."""
        running: list[tuple[Started, Started]] = []
        known: list[list[int]] = []
        self.sequences += 1
        equal = True
        for _ in range(REQUESTS):
            while running and (len(running) == AT_ONCE or rng.random() < 0.3):
                mine, other = running.pop(rng.randrange(len(running)))
                ours.end(mine)
                theirs.end(other)
            tokens = random_tokens(rng, known)
            other = theirs.start(tokens, len(tokens))
            mine = ours.start(tokens, len(tokens), other.evicted if same_number else None)
            running.append((mine, other))
            self.requests += 1
            self.found += mine.hits == other.hits
            self.evicted += mine.evicted == other.evicted
            cached = ours.leaves() == theirs.leaves()
            self.cached += cached
            self.hits[0] += mine.hits
            self.hits[1] += other.hits
            equal = equal and cached and mine.hits == other.hits
            if same_number and not equal:
                break  # one could be asked for what only the other holds
        self.same += equal

    def row(self, name: str) -> list[str]:
        counts = (self.found, self.evicted, self.cached)
        shares = [f"{count:,} of {self.requests:,}" for count in counts]
        return [name, f"{self.same:,} of {self.sequences:,}", *shares, f"{self.hits[0]:,}", f"{self.hits[1]:,}"]


def sequences(cache: ModuleType, seeds: int) -> str:
    """The table of random requests."""
    lines: list[list[str]] = []
    cases = (
        ("as they are", False, False),
        ("lmc evicts as many as SGLang", True, False),
        ("… and a split edge's rest keeps its age in SGLang", True, True),
    )
    for name, same_number, split_keeps_age in cases:
        agreement = Agreement()
        for seed in range(seeds):
            theirs = SGLang(cache, PAGES, split_keeps_age=split_keeps_age)
            agreement.follow(random.Random(seed), Ours(PAGES), theirs, same_number=same_number)
        lines.append(agreement.row(name))
    head = ["sequences", "equal throughout", "same found", "same number evicted", "same cached", "hits lmc", "SGLang"]
    return table(head, lines)


def request(number: int, tokens: list[int]) -> Any:
    """What SGLang's policy looks at of a request."""
    return SimpleNamespace(
        rid=number,
        origin_input_ids=array("q", tokens),
        output_ids=array("q"),
        extra_key=None,
        cache_salt=None,
        _compute_max_prefix_len=lambda length: length - 1,
    )


def their_order(policy: Any, tree: Any, prompts: list[list[int]]) -> list[int]:
    queue = [request(number, tokens) for number, tokens in enumerate(prompts)]
    policy.SchedulePolicy("lpm", tree, False, False, False).calc_priority(queue)
    return [each.rid for each in queue]


def our_order(ours: Ours, prompts: list[list[int]], *, many: bool) -> list[int]:
    """The order in which they are taken; with `many`, until so few are left that they are matched."""
    order = LongestPrefix(ours.radix)
    numbers: dict[Sequence, int] = {}
    for number, tokens in enumerate(prompts):
        sequence = Sequence(tokens, capacity=len(tokens) + 1, first_wanted_row=len(tokens) - 1)
        numbers[sequence] = number
        order.add(sequence)
    order.begin_step()
    found: list[int] = []
    while len(order) > (MATCHED_AT_MOST if many else 0):
        found.append(numbers[order.first])
        order.remove(order.first)
    return found


def random_queue(rng: random.Random, caches: list[Cache], least: int, most: int) -> list[list[int]]:
    """Prompts that share prefixes with what is in the caches, after some requests, and with each other."""
    known: list[list[int]] = []
    for _ in range(20):
        known.append([*random_tokens(rng, known), *rng.choices(range(3), k=rng.randint(0, 40))])
        for each in caches:
            each.end(each.start(known[-1], len(known[-1])))
    return [
        rng.choice(known)[: rng.randint(2, 60)] + rng.choices(range(3), k=rng.randint(1, 40))
        for _ in range(rng.randint(least, most))
    ]


def queues(cache: ModuleType, policy: Any, seeds: int) -> str:
    """The table of waiting queues."""
    lines: list[list[str]] = []
    usual = policy.IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD
    cases = (
        ("2 to 60 wait, without SGLang's rule for shared prefixes", 2, 60, -1),
        ("129 to 150 wait: both as they came", 129, 150, -1),
        ("2 to 60 wait, with that rule", 2, 60, usual),
    )
    for name, least, most, threshold in cases:
        policy.IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD = threshold
        same = firsts = 0
        for seed in range(seeds):
            ours, theirs = Ours(100_000), SGLang(cache, 100_000)
            prompts = random_queue(random.Random(seed), [ours, theirs], least, most)
            mine = our_order(ours, prompts, many=most > MATCHED_AT_MOST)
            other = their_order(policy, theirs.tree, prompts)
            same += mine == other[: len(mine)]
            firsts += mine[0] == other[0]
        lines.append([name, f"{same:,} of {seeds:,}", f"{firsts:,} of {seeds:,}"])
    policy.IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD = usual
    return table(["queues", "same order", "same first"], lines)


def traces(cache: ModuleType) -> str:
    """The table of traces, one request at a time."""
    lines: list[list[str]] = []
    for name in TRACES:
        traced = Traced(name)
        pages = traced.pool(25, 1)
        caches: list[Cache] = [Ours(pages), SGLang(cache, pages), SGLang(cache, pages, split_keeps_age=True)]
        hits = [0 for _ in caches]
        for one in traced.requests:
            tokens = [*one.tokens.tolist(), *one.generated[:-1].tolist()]
            for at, each in enumerate(caches):
                started = each.start(tokens, one.tokens.size)
                each.end(started)
                hits[at] += started.hits
        lines.append([name, f"{pages:,}", *(f"{count:,}" for count in hits), f"{100 * hits[0] / hits[1]:.2f}"])
    head = ["trace", "pool", "hits lmc", "SGLang", "SGLang, a split edge's rest keeps its age", "lmc / SGLang %"]
    return table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--setup", action="store_true", help="make the environment with SGLang and end")
    parser.add_argument("--seeds", type=int, default=100, help="random sequences and queues of each kind")
    options = parser.parse_args()
    if options.setup:
        set_up()
        return
    cache, policy = load()
    text = f"{sequences(cache, options.seeds)}\n{queues(cache, policy, options.seeds)}\n{traces(cache)}"
    print(text, end="")
    if options.write:
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("lmc-compiler", "sglang"))
        write_section("public_policies", "python benchmarks/public_policies.py --write", f"{versions}.\n\n{text}")


if __name__ == "__main__":
    main()
