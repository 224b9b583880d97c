"""Programs, results and compiled programs as HTML, for notebooks (``_repr_html_``). All text is escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from lmc.driver.options import Options
from lmc.frontend.program.function import JittedFunction
from lmc.ir.wording import with_count

_MAX_CHARACTERS = 20_000
"""Bound on one text; a notebook with more of it is slow."""


def result_html(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], text: str) -> str:
    """Return a result, by its row in an output file: its value or error, variables, conversation and usage."""
    parts = [_block("error", row["error"]) if row["error"] is not None else _block("value", _json(row["value"]))]
    if row["variables"]:
        parts.append(_table([(name, _json(value)) for name, value in row["variables"].items()]))
    if messages:
        turns = [(turn["role"], turn["content"]) for turn in messages]
        parts.append(_details(with_count(len(turns), "message"), _table(turns)))
    elif text:
        parts.append(_details("text", _pre(text)))
    parts.append(f"<small>{escape(_usage(row['usage']))}</small>")
    return _page(parts)


def compiled_html(summary: str, breaks: Sequence[object], remarks: Sequence[object], module: str) -> str:
    """Return a compiled program: its summary, remarks, breaks and IR."""
    parts = [_pre(summary)]
    if breaks:
        parts.append(_details(with_count(len(breaks), "break"), _pre("\n".join(map(str, breaks))), is_open=True))
    if remarks:
        parts.append(_details(with_count(len(remarks), "remark"), _pre("\n".join(map(str, remarks)))))
    parts.append(_details("IR", _pre(module)))
    return _page(parts)


def program_html(program: JittedFunction, options: Options) -> str:
    """Return a program: its signature, documentation and the options that are not the defaults."""
    defaults = asdict(type(options)())
    chosen = asdict(options)
    settings = {name: value for name, value in chosen.items() if value != defaults[name]}
    settings.pop("profile", None)
    shown = [(name, str(value)) for name, value in settings.items() if value is not None]
    parts = [_block("program", f"{program.name}{program.signature}")]
    if program.__doc__:
        parts.append(_pre(program.__doc__.strip()))
    if program.location is not None:
        parts.append(f"<small>{escape(str(program.location))}</small>")
    if shown:
        parts.append(_table(shown))
    return _page(parts)


def _usage(usage: dict[str, int]) -> str:
    tokens = f"{usage['prompt_tokens']:,} prompt tokens ({usage['cached_tokens']:,} cached)"
    return f"{with_count(usage['calls'], 'call')}, {tokens}, {usage['generated_tokens']:,} generated"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _page(parts: list[str]) -> str:
    return f'<div class="lmc">{"".join(parts)}</div>'


def _block(label: str, text: str) -> str:
    return f"<div><small>{escape(label)}</small>{_pre(text)}</div>"


def _pre(text: str) -> str:
    shown = text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}\n… {len(text):,} characters"
    return f'<pre style="white-space: pre-wrap; margin: 0">{escape(shown)}</pre>'


def _table(rows: list[tuple[str, str]]) -> str:
    style = 'style="text-align: left; vertical-align: top"'
    lines = [f"<tr><th {style}>{escape(name)}</th><td {style}>{_pre(text)}</td></tr>" for name, text in rows]
    return f"<table>{''.join(lines)}</table>"


def _details(label: str, content: str, *, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{escape(label)}</summary>{content}</details>"
