"""The generated pages of the documentation: the command line, the Python API, ops, passes and errors.

mkdocs runs ``on_files`` (``hooks`` in mkdocs.yml). The text of the pages does not need mkdocs.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import signal
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

API = {
    "Programs": ("jit", "Program", "Result", "Compiled", "Stream", "AsyncStream", "TokenEvent", "Usage", "Profile"),
    "The state of a program": ("State", "gen", "select", "section", "system", "user", "assistant", "message"),
    "Control flow": ("map", "race", "cond", "while_loop"),
    "Tools": ("tool", "call_tools", "describe_tools"),
    "Engines": ("engines", "close", "remote", "Budget", "Resumption"),
    "Errors": (
        "LmcError",
        "InputError",
        "CaptureError",
        "ConstraintError",
        "ContextLengthError",
        "LoweringError",
        "EngineError",
        "BudgetError",
        "RequestTimeoutError",
        "RequestCancelledError",
        "ToolTimeoutError",
        "BatchInterruptedError",
    ),
}
"""The public names of lmc, by section of the page."""

DIALECTS = ("lm", "cf", "host", "py", "text")
"""The prefixes of the names of ops, in the order of the page."""

SCOPES = {
    "comment.line.double-slash": "Comment.Single",
    "constant.language": "Keyword.Constant",
    "constant.numeric": "Number",
    "constant.other": "Name",
    "entity.name.function": "Name.Function",
    "entity.name.label": "Name.Label",
    "entity.name.type": "Name.Class",
    "entity.other.attribute-name": "Name.Attribute",
    "keyword.other": "Keyword",
    "storage.type": "Keyword.Type",
    "string.quoted.double": "String",
    "support.function.op": "Name.Builtin",
    "variable.other": "Name.Variable",
}
"""The tokens of Pygments for the scopes of docs/lmir-syntax."""


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


def ops_page() -> str:
    """Return the page of the ops, by dialect: docstring, example, fields, effect."""
    lines = [
        "# Ops",
        "",
        "An op has operands, attributes (in braces), regions (`^name`), results with their types, and an effect. An "
        "attribute with its default is not written. The examples are from a [module with every op](../ops.lmir).",
    ]
    examples = op_examples()
    dialect = None
    for name in sorted(examples, key=lambda name: (DIALECTS.index(name.partition(".")[0]), name)):
        if dialect != (dialect := name.partition(".")[0]):
            lines += ["", f"## Dialect {dialect}"]
        lines += ["", f"### {name}", "", *_op(name, examples[name])]
    return "\n".join(lines) + "\n"


def op_examples() -> dict[str, str]:
    """Return the first lines of docs/ops.lmir with each op, its regions included."""
    lines = (ROOT / "docs" / "ops.lmir").read_text(encoding="utf-8").splitlines()
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        op = re.match(r"(\s+)(?:%.+? = )?((?:cf|host|lm|py|text)\.\w+) ", line)
        if op is None or op[2] in found:
            continue
        end = number + 1
        if line.endswith(" {"):
            end += next(index for index, later in enumerate(lines[end:]) if later == f"{op[1]}}}") + 1
        found[op[2]] = textwrap.dedent("\n".join(lines[number:end]))
    return found


def _op(name: str, example: str) -> Iterator[str]:
    import lmc.ir.text.parser  # noqa: F401 - fills the registry of ops  # pyright: ignore[reportUnusedImport]
    from lmc.ir.core import Op, op_class
    from lmc.ir.op_schema import layout_of
    from lmc.ir.printer import print_attribute

    kind = op_class(name)
    assert kind is not None
    yield from _docstring(kind)
    yield from ("```lmir", example, "```", "")
    for base in kind.__mro__[1 : kind.__mro__.index(Op)]:
        yield from _docstring(base)
    layout = layout_of(kind)
    fields = [*layout.positional, *(field for field in layout.attributes if not field.keyword), *layout.regions]
    if fields:
        yield from ("| field | holds | default |", "|---|---|---|")
    for field in fields:
        form = {"operand": f"%{field.name}", "region": f"^{field.name}"}.get(field.kind, field.name)
        holds = str(field.type) if field.kind == "attribute" else field.held
        if field.symbol is not None:
            holds = f"the name of a {field.symbol}, `@…`"
        elif field.keyword:
            holds = f"a word or a string, written without `{field.name} =`"
        default = "required" if field.required else f"`{_cell(print_attribute(field.default))}`"
        yield f"| `{form}` | {holds} | {default} |"
    yield ""
    facts = [("Effect", "effect", "pure"), ("May raise", "may_raise", "no"), ("Billable", "billable", "no")]
    yield " ".join(f"{title}: {_property(kind, attribute, default)}" for title, attribute, default in facts)
    if kind.ENDS:
        yield f"Ends a {' or a '.join(kind.ENDS)}."


def _property(kind: Any, name: str, default: str) -> str:
    """Return a property of ops in words: its docstring where it depends on the op, else its only value."""
    from lmc.ir.core import Op

    owner = next(base for base in kind.__mro__ if name in vars(base))
    if owner is Op:
        return f"{default}."
    getter = vars(owner)[name].fget
    if getter.__doc__:
        words: str = inspect.cleandoc(getter.__doc__).replace("``", "`")
        return f"{words[0].lower()}{words[1:]}"
    [value] = re.findall(r"return (?:Effect\.)?(\w+)$", inspect.getsource(getter), re.MULTILINE)
    return {"True": "yes.", "False": "no."}.get(value, f"{value.lower()}.")


def passes_page() -> str:
    """Return the page of the passes: docstring, options, levels; and the pipeline of each level."""
    from lmc.passes.pipelines import PASSES, PIPELINES, describe_passes, parse_pipeline

    pipelines = {level: [each.NAME for each in parse_pipeline(text)] for level, text in PIPELINES.items()}
    lines = [
        "# Passes",
        "",
        "A pass maps a verified module to a verified module. `lmc opt --passes=NAME,NAME{OPTION=VALUE}` runs passes on "
        "a module, `-O0` to `-O2` the pipeline of a level:",
        "",
        "| level | passes, in order |",
        "|---|---|",
    ]
    for level, names in pipelines.items():
        lines.append(f"| `-{level}` | {', '.join(f'[{name}](#{name})' for name in names) or 'none'} |")
    for described in describe_passes():
        name = described.name
        places = [
            f"`-{level}` ({' and '.join(_ordinal(index) for index, other in enumerate(names, 1) if other == name)} "
            f"of {len(names)})"
            for level, names in pipelines.items()
            if name in names
        ]
        lines += ["", f"## {name}", "", *_docstring(PASSES[name])]
        options = ", ".join(f"`{option}`" for option in described.options)
        lines += [f"Options and their defaults: {options or 'none'}.", "", f"Levels: {', '.join(places) or 'none'}."]
    return "\n".join(lines) + "\n"


def _ordinal(number: int) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"


def errors_page() -> str:
    """Return the page of the errors: exit codes, and each class with its meaning and remedy."""
    from lmc.cli.app import FAILURE, USAGE
    from lmc.cli.interrupts import SIGNALLED

    lines = [
        "# Errors",
        "",
        "An error of lmc names the line of the program, the cause and the remedy; in Python these are the attributes "
        "`location`, `cause` and `remedy`. Its class is the kind of problem; there are no further codes. The exit code "
        "is that of a command which the error ends.",
        "",
        "| exit code of a command | meaning |",
        "|---|---|",
        "| 0 | success |",
        f"| {FAILURE} | an error, or a failed row |",
        f"| {USAGE} | a wrong command line (`UsageError`, or found by the parser of the command line) |",
        f"| {SIGNALLED + signal.SIGINT} | Ctrl-C |",
        f"| {SIGNALLED + signal.SIGTERM} | SIGTERM |",
    ]
    classes = error_classes()
    public = {path: f"lmc.{name}" for name, path in public_names().items()}
    for path, (node, bases) in classes.items():
        name = public.get(path, path)
        lines += ["", f"## {name.rpartition('.')[2]}", ""]
        parents = ", ".join(f"`{base.rpartition('.')[2]}`" for base in bases)
        lines += [f"`{name}`, derived from {parents}.", "", *_markdown(ast.get_docstring(node) or "")]
        if any(isinstance(entry, ast.Assign) and "ends_run" in ast.unparse(entry) for entry in node.body):
            lines += ["It ends the run: a `try` of the program does not catch it.", ""]
        codes = {"UsageError": USAGE, "BatchInterruptedError": SIGNALLED + signal.SIGINT}
        lines += [f"Exit code: {codes.get(node.name, FAILURE)}."]
    return "\n".join(lines) + "\n"


def error_classes() -> dict[str, tuple[ast.ClassDef, list[str]]]:
    """Return the classes that derive from ``LmcError``, and the public errors, by dotted name, with their bases."""
    defined: dict[str, tuple[ast.ClassDef, list[str]]] = {}
    for file in sorted((ROOT / "lmc").rglob("*.py")):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                defined[f"{module}.{node.name}"] = node, [ast.unparse(base) for base in node.bases]
    found = {path: defined[path] for name, path in public_names().items() if name in API["Errors"]}
    names: set[str] = set()
    while names != (names := {path.rpartition(".")[2] for path in found}):
        found |= {path: entry for path, entry in defined.items() if names.intersection(entry[1])}
    return dict(sorted(found.items(), key=lambda item: (item[1][0].name != "LmcError", item[1][0].name, item[0])))


def lmir_scopes(text: str) -> Iterator[tuple[int, str, str]]:
    """Return pieces of ``.lmir`` text: offset, scope in the TextMate grammar (or an empty text), and the piece.

    The grammar is flat, so this does all that an editor does: of the patterns that match first in the rest of the line,
    the first one.
    """
    grammar = json.loads((ROOT / "docs" / "lmir-syntax" / "lmir.tmLanguage.json").read_text(encoding="utf-8"))
    patterns = [(re.compile(pattern["match"]), pattern) for pattern in grammar["patterns"]]
    start = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        place = 0
        while found := [
            (match.start(), index) for index, (each, _) in enumerate(patterns) if (match := each.search(line, place))
        ]:
            _, index = min(found)
            expression, pattern = patterns[index]
            match = expression.search(line, place)
            assert match is not None
            yield start + place, "", line[place : match.start()]
            captures = {int(group): capture["name"] for group, capture in pattern.get("captures", {}).items()}
            for group in range(1, expression.groups + 1) if captures else (0,):
                yield start + match.start(group), captures.get(group, pattern.get("name", "")), match[group]
            place = match.end()
        yield start + place, "", line[place:]
        start += len(line)


def highlight_lmir(source: str, *_: Any, **__: Any) -> str:
    """Return ``.lmir`` text as HTML, coloured by the TextMate grammar: a fence of superfences."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexer import Lexer
    from pygments.token import Token, string_to_tokentype

    class LmirLexer(Lexer):
        name = "LMIR"

        def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
            for offset, scope, piece in lmir_scopes(text):
                yield offset, string_to_tokentype(SCOPES[scope.removesuffix(".lmir")]) if scope else Token.Text, piece

    return highlight(source, LmirLexer(), HtmlFormatter(cssclass="highlight"))


def _docstring(documented: Any) -> list[str]:
    return _markdown(inspect.cleandoc(documented.__doc__ or ""))


def _markdown(docstring: str) -> list[str]:
    """Return the lines of a docstring as Markdown: literal blocks are fenced."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\n(?=\S)", docstring):
        title, *code = re.split(r"::\n\n(?= )", paragraph, maxsplit=1)
        lines += [title.replace("``", "`") + (":" if code else ""), ""]
        for text in code:
            lines += ["```lmir", textwrap.dedent(text), "```", ""]
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def decisions() -> list[str]:
    """Return the pages of the decision notes, in order."""
    return [f"decisions/{path.name}" for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))]


def on_config(config: Any) -> Any:
    """Add the decision notes to the navigation, and colours for ``.lmir``: a hook of mkdocs."""
    [section] = [entry for entry in config["nav"] if "Decisions" in entry]
    section["Decisions"] += decisions()
    fence = {"name": "lmir", "class": "highlight", "format": highlight_lmir}
    config["mdx_configs"].setdefault("pymdownx.superfences", {})["custom_fences"] = [fence]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the generated pages, and the style sheet of highlighted code: a hook of mkdocs."""
    from pygments.formatters import HtmlFormatter

    file = import_module("mkdocs.structure.files").File  # by name: type checkers run where it is not installed
    generated = {
        "reference/cli.md": cli_page(),
        "reference/api.md": api_page(),
        "reference/ops.md": ops_page(),
        "reference/passes.md": passes_page(),
        "reference/errors.md": errors_page(),
        "highlight.css": HtmlFormatter(style="friendly").get_style_defs(".highlight"),
    }
    for path, content in generated.items():
        files.append(file.generated(config, path, content=content))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Drop the escapes of bars in code in tables, as GitHub does: a hook of mkdocs."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)
