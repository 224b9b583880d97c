"""The generated pages of the documentation: the command line and the Python API.

mkdocs runs ``on_files`` (``hooks`` in mkdocs.yml). The text of the pages does not need mkdocs.
"""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

API = {
    "Programs": ("jit", "Program", "Result", "Compiled", "Stream", "AsyncStream", "TokenEvent", "Usage", "Profile"),
    "The state of a program": ("State", "gen", "select", "section", "system", "user", "assistant", "message"),
    "Control flow": ("map", "race", "cond", "while_loop"),
    "Tools": ("tool", "call_tools", "describe_tools"),
    "Engines": ("engines", "close"),
    "Errors": (
        "LmcError",
        "InputError",
        "CaptureError",
        "ConstraintError",
        "ContextLengthError",
        "LoweringError",
        "EngineError",
        "RequestTimeoutError",
        "RequestCancelledError",
        "ToolTimeoutError",
        "BatchInterruptedError",
    ),
}
"""The public names of lmc, by section of the page."""


def public_names() -> dict[str, str]:
    """Return the public names of lmc and the dotted name of each object, from the stub of the package."""
    stub = ast.parse((ROOT / "lmc" / "__init__.pyi").read_text(encoding="utf-8"))
    return {
        alias.name: f"lmc.{node.module}.{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if not alias.name.startswith("__")
    }


def api_page() -> str:
    """Return the page of the Python API: a directive of mkdocstrings for each public name."""
    names = public_names()
    lines = ["# Python API", "", "All names are exported by `lmc`: `import lmc`."]
    for title, members in API.items():
        lines += ["", f"## {title}"]
        for name in members:
            lines += [
                "",
                f"::: {names[name]}",
                "    options:",
                f"      heading: lmc.{name}",
                f"      toc_label: {name}",
            ]
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    """Return the page of the command line: each command with its help, arguments and options."""
    import typer

    from lmc.cli.app import app

    group: Any = typer.main.get_command(app)
    parent = group.make_context("lmc", [], resilient_parsing=True)
    lines = [
        "# Command line",
        "",
        "`lmc --version` prints the version; `lmc --install-completion` adds completion to the shell.",
        "",
        "Exit codes: 0 success; 1 failure, a failed row included; 2 a wrong command line; 130 Ctrl-C; 143 SIGTERM.",
    ]
    for name in sorted(group.commands):
        command = group.commands[name]
        context = command.make_context(name, [], parent=parent, resilient_parsing=True)
        usage = " ".join(command.collect_usage_pieces(context))
        lines += ["", f"## lmc {name}", "", "```text", f"lmc {name} {usage}", "```", "", inspect.cleandoc(command.help)]
        for title, kind in (("argument", "argument"), ("option", "option")):
            records = [
                parameter.get_help_record(context)
                for parameter in command.get_params(context)
                if parameter.param_type_name == kind
            ]
            if rows := [record for record in records if record]:
                lines += ["", f"| {title} | meaning |", "|---|---|"]
                lines += [f"| `{_cell(form)}` | {_cell(meaning)} |" for form, meaning in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def decisions() -> list[str]:
    """Return the pages of the decision notes, in order."""
    return [f"decisions/{path.name}" for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))]


def on_config(config: Any) -> Any:
    """Add the decision notes to the navigation: a hook of mkdocs."""
    [section] = [entry for entry in config["nav"] if "Decisions" in entry]
    section["Decisions"] += decisions()
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the generated pages, and the style sheet of highlighted code: a hook of mkdocs."""
    from pygments.formatters import HtmlFormatter

    file = import_module("mkdocs.structure.files").File  # by name: type checkers run where it is not installed
    generated = {
        "reference/cli.md": cli_page(),
        "reference/api.md": api_page(),
        "highlight.css": HtmlFormatter(style="friendly").get_style_defs(".highlight"),
    }
    for path, content in generated.items():
        files.append(file.generated(config, path, content=content))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Drop the escapes of bars in code in tables, as GitHub does: a hook of mkdocs."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)
