"""Programs, results and compiled programs as HTML, for notebooks (``_repr_html_``).

All text is printable and escaped, none of it is in an attribute, and there is no script, style sheet or reference. Each
part has a bound in bytes, and all together are below 200 kB. Colours are those of the notebook.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from lmc.driver.options import Options
from lmc.frontend.program.function import JittedFunction
from lmc.ir.profile import OpProfile
from lmc.ir.wording import with_count

if TYPE_CHECKING:  # lmc.report loads when something is shown
    from lmc.report.model import CallCost, CompiledView

_LONG, _SHORT = 40_000, 10_000
"""Bytes of a long part, and of a short one. The picture of a graph has up to 80 kB."""
_MAX_NAME = 100
_MAX_CHARACTERS = 20_000
"""Bounds on a name in a table, and on one text; a notebook with more of it is slow."""
_MEASURED = {"requests": "requests", "in": "prompt", "cached": "cached", "out": "output", "seconds": "seconds"}
_Cell = str | int | float


def result_html(
    row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], text: str, ops: Mapping[str, OpProfile]
) -> str:
    """Return a result, by its row in an output file: its value or error, variables, conversation, and cost by op."""
    if row["error"] is not None:
        parts = [_block("error", row["error"], _LONG)]
    else:
        parts = [_block("value", _json(row["value"]), _LONG)]
    if row["variables"]:
        parts.append(_pairs([(name, _json(value)) for name, value in row["variables"].items()], _LONG))
    if messages:
        turns = [(turn["role"], turn["content"]) for turn in messages]
        parts.append(_details(with_count(len(turns), "message"), _pairs(turns, _LONG)))
    elif text:
        parts.append(_details("text", _pre(text, _LONG)))
    usage = f"<small>{_text(_usage(row['usage']), _SHORT)}</small>"
    parts.append(f"<details><summary>{usage}</summary>{_figures(_op_columns(ops), _LONG)}</details>" if ops else usage)
    return _page(parts)


def compiled_html(
    summary: str, breaks: Sequence[object], remarks: Sequence[object], module: str, view: CompiledView
) -> str:
    """Return a compiled program: its summary, graph, calls, remarks, breaks and IR."""
    parts = [_pre(summary, _SHORT), *_view_parts(view)]
    if breaks:
        said = _pre("\n".join(map(str, breaks)), _SHORT)
        parts.append(_details(with_count(len(breaks), "break"), said, is_open=True))
    if remarks:
        parts.append(_details(with_count(len(remarks), "remark"), _pre("\n".join(map(str, remarks)), _SHORT)))
    parts.append(_details("IR", _pre(module, _LONG)))
    return _page(parts)


def program_html(program: JittedFunction, options: Options, view: CompiledView | None) -> str:
    """Return a program: its signature, documentation, the options that are not the defaults, and a compiled variant."""
    defaults = asdict(type(options)())
    chosen = asdict(options)
    settings = {name: value for name, value in chosen.items() if value != defaults[name]}
    settings.pop("profile", None)
    shown = [(name, str(value)) for name, value in settings.items() if value is not None]
    parts = [_block("program", f"{program.name}{program.signature}", _SHORT)]
    if program.__doc__:
        parts.append(_pre(program.__doc__.strip(), _SHORT))
    if program.location is not None:
        parts.append(f"<small>{_text(str(program.location), _SHORT)}</small>")
    if shown:
        parts.append(_pairs(shown, _SHORT))
    if view is not None:
        parts += _view_parts(view)
    return _page(parts)


def _view_parts(view: CompiledView) -> Iterator[str]:
    """Yield the graph and the table of the calls of a view."""
    from lmc.report.forms.svg import svg

    yield f'<div style="overflow: auto; max-height: 40em; margin: 1em 0">{svg(view)}</div>'
    if view.calls:
        yield _figures(_call_columns(view), _LONG)


def _call_columns(view: CompiledView) -> dict[str, list[_Cell]]:
    """Return the columns of the table of calls, without empty ones."""
    places = {node.key: node.place for stage in view.stages for node in (*stage.added, *stage.changed)}

    def line(call: CallCost) -> str:
        place = places.get(call.key)
        return "" if place is None else f"{view.sources[place.source].file}:{place.line}"

    columns: dict[str, list[_Cell]] = {
        "call": [call.id for call in view.calls],
        "line": [line(call) for call in view.calls],
        "wave": [call.wave for call in view.calls],
        "prompt tokens": [call.prompt.known for call in view.calls],
        "texts of the run": [call.prompt.texts for call in view.calls],
        "computed ahead": [call.prefilled.known for call in view.calls],
        "output, at most": [call.output for call in view.calls],
        "choices": [call.choices for call in view.calls],
        "constraint": [call.constraint or "" for call in view.calls],
    }
    measured = [call.measured for call in view.calls]
    for head, name in _MEASURED.items():
        columns[f"measured {head}"] = [0 if each is None else getattr(each, name) for each in measured]
    return {head: column for head, column in columns.items() if any(column) or head == "wave"}


def _op_columns(ops: Mapping[str, OpProfile]) -> dict[str, list[_Cell]]:
    """Return the columns of the cost of each op of a run."""
    entries = [ops[name] for name in sorted(ops)]
    return {
        "op": sorted(ops),
        "calls": [each.usage.calls for each in entries],
        "tokens in": [each.usage.prompt_tokens for each in entries],
        "cached": [each.usage.cached_tokens for each in entries],
        "tokens out": [each.usage.generated_tokens for each in entries],
        "seconds": [each.seconds for each in entries],
    }


def _usage(usage: dict[str, int]) -> str:
    tokens = f"{usage['prompt_tokens']:,} prompt tokens ({usage['cached_tokens']:,} cached)"
    return f"{with_count(usage['calls'], 'call')}, {tokens}, {usage['generated_tokens']:,} generated"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _page(parts: list[str]) -> str:
    # The classes keep MathJax from texts with dollar signs.
    return f'<div class="lmc tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _block(label: str, text: str, most: int) -> str:
    return f"<div><small>{escape(label)}</small>{_pre(text, most)}</div>"


def _pre(text: str, most: int) -> str:
    return f'<pre style="white-space: pre-wrap; margin: 0">{_text(text, most)}</pre>'


def _text(text: str, most: int) -> str:
    """Return a text in HTML, of about ``most`` bytes at most; a longer one ends with its length."""
    from lmc.report.text import KEPT, visible

    cut = text[: min(most, _MAX_CHARACTERS)].replace("\r\n", "\n")
    shown = escape(visible(cut, KEPT))
    if len(text) <= len(cut) and len(shown.encode()) <= most:
        return shown
    left, kept = most, len(cut)
    for number, one in enumerate(cut):
        left -= len(escape(visible(one, KEPT)).encode())
        if left < 0:
            kept = number
            break
    return f"{escape(visible(cut[:kept], KEPT))}\n… {len(text):,} characters"


def _pairs(rows: Sequence[tuple[str, str]], most: int) -> str:
    """Return names and texts as a table."""
    style = 'style="text-align: left; vertical-align: top"'
    name_most, text_most = most // 20, most // 4
    lines = (
        f"<tr><th {style}>{_text(name, name_most)}</th><td {style}>{_pre(text, text_most)}</td></tr>"
        for name, text in rows
    )
    return _table(lines, len(rows), most)


def _figures(columns: Mapping[str, Sequence[_Cell]], most: int) -> str:
    """Return columns of texts and figures as a table, by their heads."""
    rows = list(zip(*columns.values(), strict=True))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = (f'<tr align="right">{"".join(map(_cell, row))}</tr>' for row in rows)
    return _table(lines, len(rows), most, f"<tr>{head}</tr>")


def _cell(value: _Cell) -> str:
    if isinstance(value, str):
        from lmc.report.text import one_line

        return f'<td style="text-align: left">{escape(one_line(value, _MAX_NAME))}</td>'
    return f"<td>{value:,.3f}</td>" if isinstance(value, float) else f"<td>{value:,}</td>"


def _table(lines: Iterable[str], count: int, most: int, head: str = "") -> str:
    """Return the first of ``count`` rows, which have about ``most`` bytes, and the number of the others."""
    kept: list[str] = []
    for line in lines:
        most -= len(line.encode())
        if most < 0:
            break
        kept.append(line)
    rest = f"<small>… and {count - len(kept):,} more</small>" if len(kept) < count else ""
    return f"<table>{head}{''.join(kept)}</table>{rest}"


def _details(label: str, content: str, *, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{escape(label)}</summary>{content}</details>"
