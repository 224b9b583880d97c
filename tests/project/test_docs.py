"""The structure of docs/: the glossary, the navigation, and the generated reference."""

import re
from typing import Any

import typer
import yaml

import lmc
from docs.reference import API, api_page, cli_page, decisions, public_names
from lmc.cli.app import app
from tests.project.layers import REPOSITORY

DOCS = REPOSITORY / "docs"


def test_the_glossary_is_short_and_names_files_that_exist() -> None:
    lines = (DOCS / "GLOSSARY.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert len(lines) <= 60
    assert [row for row in rows[1:] if not (REPOSITORY / row[-1].strip("`")).is_file()] == []
    terms = [row[0] for row in rows[1:]]
    assert len(set(terms)) == len(terms) >= 40


def pages_of(nav: list[Any]) -> list[str]:
    """Return the pages that a navigation lists, in order."""
    found: list[str] = []
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            found += pages_of(value) if isinstance(value, list) else [value]
    return found


def test_the_navigation_lists_every_page() -> None:
    listed = pages_of(yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    listed += decisions()
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(written | {"reference/cli.md", "reference/api.md"})


def test_the_site_needs_no_other() -> None:
    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["strict"] is True
    assert settings["theme"]["highlightjs"] is False  # else from a CDN
    assert not [name for name in settings.get("extra_javascript", []) + settings["extra_css"] if ":" in name]


def test_the_reference_covers_every_command_and_option() -> None:
    page = cli_page()
    group: Any = typer.main.get_command(app)
    assert len(group.commands) >= 6
    for name, command in group.commands.items():
        section = page.partition(f"## lmc {name}\n")[2].partition("\n## ")[0]
        assert section, f"lmc {name} is missing"
        options = {option for parameter in command.params for option in parameter.opts if option.startswith("-")}
        assert {option for option in options if option not in section} == set()


def test_the_reference_covers_the_public_names() -> None:
    listed = [name for names in API.values() for name in names]
    assert sorted(listed) == sorted(public_names())
    page = api_page()
    for name in listed:
        assert getattr(lmc, name) is not None
        assert f"::: {public_names()[name]}\n" in page


def test_decisions_are_short_dated_and_listed() -> None:
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    for number, name in enumerate(decisions(), 1):
        title, date, *text = (DOCS / name).read_text(encoding="utf-8").replace("\n\n", "\n").splitlines()
        assert name.startswith(f"decisions/{number:04d}-")
        assert f"| [{title.removeprefix('# ')}]({name.partition('/')[2]}) |" in index
        assert re.fullmatch(r"\d{4}-\d\d-\d\d, `([\w/]+)`", date)
        assert len(text) <= 50, f"{name} is longer than a screen"


def test_readmes_are_short() -> None:
    long: list[str] = []
    for path in (REPOSITORY / "lmc").rglob("README.md"):
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.parent.name == "interpret":
            continue
        if len(lines) > 80 or any(len(line) > 150 for line in lines):
            long.append(path.relative_to(REPOSITORY).as_posix())
    assert long == []


def test_what_documents_name_exists() -> None:
    """Files in all documents; also functions, classes and tables in the READMEs' places to add something."""
    code = [*REPOSITORY.glob("lmc/**/*.py"), *REPOSITORY.glob("tests/**/*.py")]
    words = set(re.findall(r"\w+", "\n".join(path.read_text("utf-8") for path in code)))
    roots = ("lmc", "docs", "tests", "benchmarks", "examples", "training")
    found = [REPOSITORY / name for name in roots] + [path for name in roots for path in (REPOSITORY / name).rglob("*")]
    paths = [path.relative_to(REPOSITORY).as_posix() for path in found]
    missing: list[str] = []
    for document in [*REPOSITORY.glob("lmc/**/README.md"), *DOCS.rglob("*.md"), REPOSITORY / "CONTRIBUTING.md"]:
        text = document.read_text("utf-8")
        places = text.partition("## How to add")[2].partition("\n## ")[0]
        names = re.findall(r"`([\w/]+\.(?:py|pyi|c|h|lark)|[a-z_]+/[\w/]*/)`", text)
        known = [name for name in names if any(f"/{path}".endswith(f"/{name}".rstrip("/")) for path in paths)]
        terms = re.findall(r"`(_?[A-Z]\w+|[a-z]+(?:_\w+)+)`", places)
        missing += [f"{document}: {name}" for name in names if name not in known]
        missing += [f"{document}: {name}" for name in terms if name not in words]
    assert missing == []
