"""The commands and the code in README.md and docs/ run, and print what the pages show."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from lmc.driver import Options
from lmc.driver.targets.defaults import resolve_target
from lmc.ir.text.parser import parse
from lmc.ir.verify.verifier import verify
from tests.project.documents import PAGES, README, Page, missing, run
from tests.project.layers import REPOSITORY

pytestmark = pytest.mark.slow("commands of every page run, many of them on the built-in model")

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
OTHER_COMMANDS = ("pip install ", "make ", "mkdocs ")


def name_of(page: Page) -> str:
    return page.name


@pytest.mark.parametrize("page", [page for page in PAGES if page.commands], ids=name_of)
def test_commands_print_what_the_page_shows(page: Page, tmp_path: Path) -> None:
    page.write_files(tmp_path)
    printed = None
    for block in page.blocks:
        if block.language == "text":
            assert printed is not None, f"no command prints\n{block.text}"
            assert missing(block.text, printed) == []
            if page is README:
                assert missing(printed, block.text) == [], "the front page shows all of it"
        for command in block.commands:
            printed = run(command, tmp_path)


@pytest.mark.parametrize("page", [page for page in PAGES if page.script], ids=name_of)
def test_code_runs(page: Page, tmp_path: Path) -> None:
    page.write_files(tmp_path)
    # A capture reads the source of a program: from a file. The toy engine loads no torch.
    (tmp_path / "page.py").write_text(page.script, encoding="utf-8")
    run("python page.py", tmp_path, LMC_TARGET="toy")


def test_modules_are_verified() -> None:
    modules = [block.text for page in PAGES for block in page.blocks if block.language == "lmir"]
    assert modules
    for text in modules:
        verify(parse(text))


def test_settings_are_taken(tmp_path: Path) -> None:
    settings = [block.text for page in PAGES for block in page.blocks if block.language == "toml"]
    assert settings
    for text in settings:
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
        for name in tomllib.loads(text)["tool"]["lmc"].get("targets", {}):
            assert resolve_target(Options(name), environment={}, folder=tmp_path).is_hosted


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_of_a_known_kind(page: Page) -> None:
    assert page.text.count("```") == 2 * len(page.blocks)
    assert {block.language for block in page.blocks} <= {"bash", "lmir", "py", "python", "sh", "text", "toml", "yaml"}
    others = [
        line
        for block in page.blocks
        if block.language == "bash"
        for line in block.text.splitlines()
        if line not in block.commands
    ]
    assert [line for line in others if not line.startswith(OTHER_COMMANDS)] == []


def test_no_command_runs_twice() -> None:
    counts = Counter(command for page in PAGES for command in page.commands)
    # What follows it on its page needs the file that it writes.
    shared = [command for command in counts if command.startswith(("lmc schedule", "lmc simulate"))]
    assert [command for command, count in counts.items() if count > 1 and command not in shared] == []


def test_links_lead_to_files() -> None:
    folders = ("docs", "lmc", "tests", "examples", "benchmarks", "training")
    pages = [*REPOSITORY.glob("*.md"), *(page for name in folders for page in (REPOSITORY / name).rglob("*.md"))]
    broken: list[str] = []
    for path in pages:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        targets = [target for target in LINK.findall(prose) if ":" not in target]
        broken += [f"{path}: {target}" for target in targets if not (path.parent / target).exists()]
    assert broken == []
