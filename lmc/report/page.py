"""The page: one HTML file that shows a view, loads nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from pathlib import Path

from lmc.report.model import CompiledView, to_json

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


def page(view: CompiledView) -> str:
    """Return the page for a view. Its data are the JSON of the view, which has no character that HTML reserves."""
    before, behind = _shell()
    title = html.escape(view.program.name).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return f"{before.replace('@TITLE@', title)}{to_json(view).rstrip()}{behind}"


@cache
def _shell() -> tuple[str, str]:
    """Return what stands before and behind the data."""
    style = _read("page.css")
    vendor = _read("vendor.js")
    script = '"use strict";\n' + "".join(_read(f"{name}.js") for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_hash(vendor)} {_hash(script)}; style-src {_hash(style)}; worker-src blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = _read("page.html").replace("@POLICY@", policy).replace("@STYLE@", style)
    before, behind = template.split("@DATA@")
    # The scripts are put in last: they may hold anything.
    head, middle, end = behind.partition("@VENDOR@")[0], *behind.partition("@VENDOR@")[2].split("@SCRIPT@")
    return before, f"{head}{vendor}{middle}{script}{end}"


def _read(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
