"""README.md and the pages of docs/, and the fenced code blocks in them.

A ``bash`` block holds commands. A ``text`` block right after it holds lines of what its last command prints; ``...``
stands for lines that are left out. A ``python`` block with a title is a file of that name. Those without a title are
one script, which can import these files. A ``lmir`` block is a module. ``sh`` and ``py`` blocks start a server or need
one: ``tests/runtime/server/test_parameters.py`` runs the latter.
"""

import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests import processes
from tests.project.layers import REPOSITORY

_FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title or an empty text, and its lines."""

    language: str
    title: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of lmc in a ``bash`` block."""
        lines = self.text.replace("\\\n", "").splitlines() if self.language == "bash" else []
        return [line for line in lines if line.startswith("lmc ")]


@dataclass(frozen=True)
class Page:
    """A document with code."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(REPOSITORY).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return [Block(*match.groups(default="")) for match in _FENCE.finditer(self.text)]

    @property
    def commands(self) -> list[str]:
        return [command for block in self.blocks for command in block.commands]

    @property
    def script(self) -> str:
        """The Python blocks that are no files."""
        return "\n\n".join(block.text for block in self.blocks if block.language == "python" and not block.title)

    def write_files(self, folder: Path) -> None:
        """Write the blocks that are files into ``folder``, beside the examples."""
        (folder / "examples").symlink_to(REPOSITORY / "examples")
        for block in self.blocks:
            if block.title:
                (folder / block.title).write_text(block.text, encoding="utf-8")


README = Page(REPOSITORY / "README.md")
PAGES = [README, *(Page(path) for path in sorted((REPOSITORY / "docs").glob("*.md")))]


def run(command: str, folder: Path, **environment: str) -> str:
    """Run a command of lmc or of Python in ``folder`` and return what it prints."""
    words = shlex.split(command)
    path = (REPOSITORY, REPOSITORY / "examples")
    settings = {"NO_COLOR": "1", "COLUMNS": "400", **environment}
    done = processes.run(words[words[0] == "python" :], folder, path, merged=False, **settings)
    assert done.code == 0, f"{command}\n{done.err}"
    return done.out


def missing(shown: str, printed: str) -> list[str]:
    """Return the lines of ``shown`` that are not in ``printed``: anywhere, and as a part of a line."""
    lines = [re.sub(r"\s+loc\(.*\)$", "", line) for line in printed.splitlines()]
    wanted = [line.strip() for line in shown.splitlines() if line.strip() not in ("", "...")]
    return [line for line in wanted if not any(line in found for found in lines)]
