"""Constraints beside xgrammar, llguidance and outlines-core, in one process: masks first compared, then timed.

python benchmarks/constraints.py [--write] [--tokenizer NAME …] [--case NAME …] [--check] [--setup]

`--setup` makes the environment of the peers in build/peers/constraints; without the peers, the script starts itself
again in that one. The tokenizers are trained on first use. Of every case of `constraining/cases.py`:

- masks: along outputs, ours beside the definition (at some positions) and beside those of the peers (at all);
- index: the complete token automaton, ours and outlines-core's, and ours loaded from the disk cache;
- first mask: a constraint compiled anew and its first mask, the median of several;
- mask: handing out the mask of a state that was visited before, and what the peers need to fill theirs.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.constraining import peers
from benchmarks.results import machine, processor, write_section

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / "build" / "peers" / "constraints"
Thing = TypeVar("Thing")
SETUP = "python benchmarks/constraints.py --setup"


def set_up() -> None:
    """Make the environment in which lmc and the peers are installed together."""
    python = str(ENVIRONMENT / "bin" / "python")
    pins = [f"{name}=={version}" for name, version in peers.PINS.items()]
    install = ["-m", "pip", "install", "--constraint", "constraints.txt", "--editable", ".[local]", *pins]
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], cwd=ROOT, check=True)
    subprocess.run([python, *install], cwd=ROOT, check=True)


def go_where_the_peers_are() -> None:
    """Nothing where this interpreter has them; else this command again with the one that has."""
    missing = peers.missing()
    if not missing:
        return
    python = ENVIRONMENT / "bin" / "python"
    if not python.is_file() or Path(sys.prefix) == ENVIRONMENT:
        raise SystemExit(f"{sys.executable} lacks {', '.join(missing)}; run {SETUP}")
    raise SystemExit(subprocess.run([str(python), *sys.argv], check=False).returncode)


def run(tokenizers: Sequence[str] | None, cases: Sequence[str] | None, *, time: bool = True) -> str:
    """Compare, then measure unless told not to, and print; the tables. Ends the script where a mask is wrong."""
    from benchmarks.constraining import byte_bpe, measuring, tables  # what the peers bring is imported here

    chosen = measuring.chosen(cases)
    names = [*(tokenizers or byte_bpe.SIZES)]
    if not {*names} <= {*byte_bpe.SIZES}:
        raise SystemExit(f"there is no such tokenizer; there are {', '.join(byte_bpe.SIZES)}")
    sections: list[str] = []
    for name in names:
        setting = measuring.Setting.of(byte_bpe.tokenizer(name))
        right = [measuring.checked(case, setting) for case in told(chosen, f"{name}, masks")]
        if not time:
            print(tables.masks(right), flush=True)
            continue
        found = [measuring.timed(each, setting) for each in told(right, f"{name}, times")]
        sections.append(tables.text_of(name, byte_bpe.SIZES[name], found))
        print(sections[-1], flush=True)
    return "\n".join([f"{tables.LIMITS}\n", *sections])


def told(things: Sequence[Thing], what: str) -> Iterator[Thing]:
    """The things one after the other, with a word on the screen for each."""
    for at, thing in enumerate(things, 1):
        print(f"{what}: {at} of {len(things)}", file=sys.stderr, flush=True)
        yield thing


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md; needs all of them")
    parser.add_argument("--check", action="store_true", help="compare masks, and time nothing")
    parser.add_argument("--setup", action="store_true", help="make the environment of the peers and end")
    parser.add_argument(
        "--tokenizer", action="append", help="of byte_bpe.py; may be repeated; all where it is not given"
    )
    parser.add_argument("--case", action="append", help="of cases.py; may be repeated; likewise")
    options = parser.parse_args(arguments)
    if options.write and (options.tokenizer or options.case or options.check):
        parser.error("--write keeps all tables: leave --tokenizer, --case and --check out")
    if options.setup:
        set_up()
        return
    go_where_the_peers_are()
    text = run(options.tokenizer, options.case, time=not options.check)
    if options.write:
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("lmc-compiler", *peers.PINS))
        about = f"{machine()}, {processor()}; {versions}; all in one process."
        write_section("constraints", "python benchmarks/constraints.py --write", f"{about}\n\n{text}")


if __name__ == "__main__":
    main()
