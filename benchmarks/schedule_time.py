"""Time and memory of scheduling batches of 10,000 and 100,000 instances of 1 kB, without a model.

python benchmarks/schedule_time.py [--write]

Instances ask about documents of 700 characters, fifty each, with 300 characters of their own; the program is that of
`examples/judge.py`. Memory is what the largest resident set grew by.
"""

import argparse
import random
import resource
import time

from benchmarks.results import machine, table, write_section
from examples.judge import judge
from lmc.backend.schedule.schedule import Room, schedule_batch

SIZES = (10_000, 100_000)
HEAD = ("instances", "seconds", "seconds with blocks tried out", "MiB")
ALPHABET = "abcdefgh "


def inputs(count: int) -> list[dict[str, str]]:
    """Essays that begin alike in groups."""
    rng = random.Random(count)
    documents = ["".join(rng.choices(ALPHABET, k=700)) for _ in range(count // 50)]
    return [{"essay": rng.choice(documents) + "".join(rng.choices(ALPHABET, k=300))} for _ in range(count)]


def line(count: int) -> list[str]:
    """Processor time of one size."""
    rows = inputs(count)
    plan = judge.on("toy").compile(essay="an essay").plan
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds: list[float] = []
    for room in (None, Room(100_000)):
        start = time.process_time()
        schedule_batch(plan, rows, room)
        seconds.append(time.process_time() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return [f"{count:,}", *(f"{each:.2f}" for each in seconds), f"{grown / 1024:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args()
    text = table(HEAD, [line(count) for count in SIZES])
    print(text, end="")
    if options.write:
        write_section("schedule_time", "python benchmarks/schedule_time.py --write", f"{machine()}.\n\n{text}")


if __name__ == "__main__":
    main()
