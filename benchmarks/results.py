"""Sections of RESULTS.md: each between two marks, written by the script of its name."""

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
# By family of processors: what every member has, then what the speed of products and attention hangs on.
_INSTRUCTIONS = (("sse2", "avx2", "avx512f", "avx512_bf16", "amx_bf16"), ("asimd", "bf16", "sve", "sme"))
_HEAD = "# Results\n\nWritten by the scripts of this folder; do not edit.\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine() -> str:
    """What the numbers depend on."""
    return f"{platform.system()} {platform.machine()}, Python {sys.version.split()[0]}"


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Cores, and which of the instructions that matter here they have, where the system is Linux."""
    cores = f"{os.cpu_count()} cores"
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return cores
    said = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    flags = set(said.partition(":")[2].split())
    family = next((names for names in _INSTRUCTIONS if names[0] in flags), ())
    if not family:
        return cores
    return f"{cores} with {', '.join(('' if name in flags else 'no ') + name.upper() for name in family[1:])}"


def write_section(name: str, command: str, text: str, path: Path = RESULTS) -> None:
    """Put ``text`` into the section ``name``, under the command that made it."""
    whole = path.read_text(encoding="utf-8") if path.is_file() else _HEAD
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    section = f"{start}## {name}\n\n    {command}\n\n{text}{end}"
    if start in whole:
        before, _, rest = whole.partition(start)
        whole = before + section + rest.partition(end)[2]
    else:
        whole += "\n" + section
    path.write_text(whole, encoding="utf-8")
