"""The structure of docs/: the glossary, the navigation, and the generated reference."""

import re
from dataclasses import replace
from typing import Any

import typer
import yaml

import lmc
from docs.reference import (
    API,
    api_page,
    cli_page,
    decisions,
    error_classes,
    errors_page,
    op_examples,
    ops_page,
    passes_page,
    public_names,
)
from lmc.cli.app import app
from lmc.ir.core import Block, op_class, op_names, walk
from lmc.ir.dialects.core_ops import UnreachableOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.module import Function, print_module
from lmc.ir.op_schema import layout_of
from lmc.ir.text.parser import parse
from lmc.passes.pipelines import PASSES, PIPELINES, describe_passes, parse_pipeline
from tests.equality import structurally_equal
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.report.browser.screenshots import GALLERY, gallery, names

DOCS = REPOSITORY / "docs"
GENERATED = ("api", "cli", "errors", "ops", "passes")


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
    assert sorted(listed) == sorted(written | {f"reference/{name}.md" for name in GENERATED})


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


def sections(page: str, level: str) -> dict[str, str]:
    """Return the text below each heading of a level, by heading."""
    found = re.split(rf"^{level} (.+)$", page, flags=re.MULTILINE)[1:]
    return {title: text.partition("\n## ")[0] for title, text in zip(found[::2], found[1::2], strict=True)}


def test_the_reference_covers_every_op_and_field() -> None:
    page = sections(ops_page(), "###")
    names = [name for name in op_names() if not name.startswith("test.")]
    assert sorted(page) == names
    for name, section in page.items():
        kind = op_class(name)
        assert kind is not None
        layout = layout_of(kind)
        fields = {field.name for field in (*layout.positional, *layout.attributes, *layout.regions)}
        rows = re.findall(r"^\| `[%^]?(\w+)` \|", section, re.MULTILINE)
        assert sorted(rows) == sorted(fields)
        assert f"{name} " in section.partition("```lmir\n")[2].partition("```")[0]
        for fact in ("Effect", "May raise", "Billable"):
            assert re.search(rf"\b{fact}: .+\.", section), f"{name}: {fact}"


def test_the_parser_reads_each_example_of_an_op() -> None:
    """Alone: in a function whose parameters are the values that the example uses."""
    module = parse((DOCS / "ops.lmir").read_text(encoding="utf-8"))
    for name, example in op_examples().items():
        op = next(op for function in module.functions for op in walk((function.body,)) if name == op.NAME)
        values = dict.fromkeys((*op.operands, *(op.free_values if isinstance(op, RegionOp) else ())))
        end = () if op.IS_TERMINATOR else (UnreachableOp(),)
        alone = replace(module, functions=(Function("alone", Block(tuple(values), (op, *end))),))
        lines = print_module(alone).splitlines()
        start = next(index for index, line in enumerate(lines) if line.startswith("  func")) + 1
        text = "\n".join([*lines[:start], example, *(["cf.unreachable {}"] if end else []), "  }", "}"])
        assert structurally_equal(parse(text), alone), name


def test_the_reference_covers_every_pass() -> None:
    page = passes_page()
    found = sections(page, "##")
    assert sorted(found) == sorted(PASSES)
    for described in describe_passes():
        section = found[described.name]
        assert described.summary.rstrip(".") in section.replace("`", "")
        assert [option for option in described.options if f"`{option}`" not in section] == []
        assert {"Before:", "After:"} <= set(section.splitlines())
    for level, text in PIPELINES.items():
        names = [each.NAME for each in parse_pipeline(text)]
        assert f"| `-{level}` | {', '.join(f'[{name}](#{name})' for name in names) or 'none'} |" in page
        assert {name for name, section in found.items() if f"`-{level}` (" in section} == set(names)


def test_the_reference_covers_every_error() -> None:
    classes = error_classes()
    named = {f"{error.__module__}.{error.__name__}" for error in derived(lmc.LmcError)}
    assert {name for name in named if name.startswith("lmc.")} <= set(classes)
    assert f"{lmc.InputError.__module__}.InputError" in classes
    page = errors_page()
    for path in classes:
        name = next((f"lmc.{public}" for public, where in public_names().items() if where == path), path)
        assert f"\n\n`{name}`, derived from " in page
    found = sections(page, "##")
    assert len(found["InputError"].split()) > 10
    assert "Exit code: 2." in found["UsageError"]
    assert "Exit code: 1." in found["InputError"]


def test_the_pictures_are_those_of_the_examples() -> None:
    """``python -m tests.report.browser.screenshots`` writes them and the gallery."""
    assert GALLERY.read_text(encoding="utf-8") == gallery()
    wanted = {name for example in EXAMPLES for name in names(example)}
    pictures = {path.name: path.read_bytes() for path in (DOCS / "screenshots").iterdir()}
    assert set(pictures) == wanted
    assert all(data[:4] + data[8:12] == b"RIFFWEBP" for data in pictures.values())
    assert sum(map(len, pictures.values())) < 3e6
    shown = GALLERY.read_text(encoding="utf-8") + (DOCS / "viz.md").read_text(encoding="utf-8")
    assert [name for name in wanted if f"](screenshots/{name})" not in shown] == []


def derived(error: type[BaseException]) -> set[type[BaseException]]:
    """Return a class and all classes that are derived from it."""
    return {error}.union(*map(derived, error.__subclasses__()))


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
