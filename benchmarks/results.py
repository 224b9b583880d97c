"""Sections of RESULTS.md: each between two marks, written by the script of its name."""

import platform
import sys
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
_HEAD = "# Results\n\nWritten by the scripts of this folder; do not edit.\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine() -> str:
    """What the numbers depend on."""
    return f"{platform.system()} {platform.machine()}, Python {sys.version.split()[0]}"


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
