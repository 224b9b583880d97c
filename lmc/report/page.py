"""The page: one HTML file that shows a view, loads nothing and runs only its own scripts; the pages of ``lmc view``."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lmc.report.model import CompiledView, to_json
from lmc.report.text import visible

STATIC = Path(__file__).parent / "static"
SCRIPTS = (
    "dom",
    "data",
    "parts",
    "layout",
    "session",
    "colours",
    "labels",
    "graph",
    "slider",
    "source",
    "ir",
    "selection",
    "tables",
    "outline",
    "search",
    "tabs",
    "heat",
    "timeline",
    "app",
)
"""The files of the page's script, in their order: they share one scope."""
SAVED = ("start",)
"""The last file of a page that holds its data."""
LIVE = ("same", "live")
"""The last files of a page that a server sends data to."""


@dataclass(frozen=True, slots=True)
class ServedPage:
    """A page that a server sends, and its policy, which the server sends as well."""

    data: bytes
    policy: str


def page(view: CompiledView) -> str:
    """Return the page for a view. Its data are the JSON of the view, which has no character that HTML reserves."""
    before, behind, _ = _shell(SAVED)
    return f"{before.replace('@TITLE@', _escaped(title_of(view)))}{to_json(view).rstrip()}{behind}"


def title_of(view: CompiledView) -> str:
    """Return the name of a program, or those of two modules that are compared, with their files."""
    if view.old is None:
        return view.program.name
    names = (view.old.program.name, view.program.name)
    old, new = (stage.name for stage in view.stages)
    if names[0] == names[1]:
        return f"{names[0]}: {old} → {new}"
    return f"{names[0]} ({old}) → {names[1]} ({new})"


def live_page(title: str, events: str, index: str | None, file: str) -> ServedPage:
    """Return the page that shows the views of a file sent to it from the address ``events``; ``index`` lists all pages.

    It shows no views of another ``file``.
    """
    before, behind, policy = _shell(LIVE)
    data = json.dumps({"events": events, "index": index, "file": file})
    return ServedPage(f"{before.replace('@TITLE@', _escaped(title))}{data}{behind}".encode(), policy)


def index_page(entries: Sequence[tuple[str, str, str]]) -> ServedPage:
    """Return a list of pages: of each its address, its name and its kind."""
    style = _read("page.css")
    policy = f"default-src 'none'; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    items = "".join(
        f'<li><a href="{_escaped(address)}">{_escaped(name)}</a> <span class="hint-text">{_escaped(kind)}</span></li>\n'
        for address, name, kind in entries
    )
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>lmc view</title>\n<style>{style}</style>\n</head>\n<body>\n<header><h1>lmc view</h1></header>\n"
        f'<main id="files"><ul>\n{items}</ul></main>\n</body>\n</html>\n'
    )
    return ServedPage(text.encode(), policy)


def _escaped(text: str) -> str:
    return html.escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode("ascii")


@cache
def _shell(last: tuple[str, ...]) -> tuple[str, str, str]:
    """Return the text before and behind the data, and the policy of the page."""
    style = _read("page.css")
    vendor = _read("vendor.js")
    script = '"use strict";\n' + "".join(_read(f"{name}.js") for name in (*SCRIPTS, *last))
    connect = " connect-src 'self';" if last == LIVE else ""
    policy = (
        f"default-src 'none'; script-src {_hash(vendor)} {_hash(script)}; style-src {_hash(style)}; worker-src blob:;"
        f"{connect} base-uri 'none'; form-action 'none'"
    )
    template = _read("page.html").replace("@POLICY@", policy).replace("@STYLE@", style)
    before, behind = template.split("@DATA@")
    # The scripts are put in last: they may hold anything.
    head, middle, end = behind.partition("@VENDOR@")[0], *behind.partition("@VENDOR@")[2].split("@SCRIPT@")
    return before, f"{head}{vendor}{middle}{script}{end}", policy


def _read(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
