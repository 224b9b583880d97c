"""The graph of a view as a static picture: an SVG element without scripts, styles, references or ids.

It has the text colour of the page around it, and fills that are mostly transparent, so it is readable on light and on
dark pages. The layout is in layers: an op stands below the ops that it depends on, what a group holds is laid out on
its own. An edge that enters or leaves a group ends at its border.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from lmc.ir.wording import with_count
from lmc.report.forms.graph import Edge, FoldedGraph, GraphNode, graph_of
from lmc.report.model import CompiledView, InputKind, Kind
from lmc.report.text import one_line

MAX_NODES = 60
MAX_BYTES = 80_000
_MAX_LABEL = 40
_MAX_WIDTH = 900.0
"""Pixels of a row of nodes; a wider one is broken into several."""
_CELL, _LINE, _PADDING = 6.7, 14.0, 8.0
"""Pixels of a character of the font, of a line of it, and between text and border."""
_GAP, _LANE, _BETWEEN = 16.0, 6.0, 24.0
"""Pixels between nodes of a row, the width of a line that passes a row, and pixels between two rows."""
_SWEEPS = 4
_COLOURS: dict[Kind, str] = {
    "call": "#3b82f6",
    "prefix": "#16a34a",
    "tool": "#d97706",
    "break": "#dc2626",
}
_DASHES: dict[InputKind, str] = {"context": "", "value": ' stroke-dasharray="5 3"', "order": ' stroke-dasharray="1 3"'}
_CRITICAL = ' stroke="#ea580c" stroke-width="2.5"'


def svg(view: CompiledView) -> str:
    """Return the graph of a view: at most 60 nodes and 80 kB, and as many nodes as that allows."""
    most = MAX_NODES
    while True:
        text = _drawn(graph_of(view, most), view.program.name)
        if most == 1 or len(text.encode()) <= MAX_BYTES:
            return text
        most = max(most * 3 // 4, 1)


@dataclass(slots=True)
class _Line:
    """An edge: the points that it passes, from above to below; ``is_up`` if it leads to the upper one."""

    edge: Edge
    is_up: bool
    points: list[tuple[float, float]]


@dataclass(slots=True)
class _Picture:
    """Boxes and lines, from the left upper corner of what holds them."""

    boxes: list[_Box] = field(default_factory=list["_Box"])
    lines: list[_Line] = field(default_factory=list["_Line"])
    width: float = 0.0
    height: float = 0.0


@dataclass(slots=True, eq=False)
class _Box:
    """A node, or a place at which lines pass a row (``node`` is None)."""

    width: float
    height: float = 0.0
    node: GraphNode | None = None
    inside: _Picture | None = None
    left: float = 0.0
    top: float = 0.0
    above: list[_Box] = field(default_factory=list["_Box"])
    below: list[_Box] = field(default_factory=list["_Box"])

    @property
    def centre(self) -> float:
        return self.left + self.width / 2


def _layout(graph: FoldedGraph) -> _Picture:
    held: dict[str | None, list[GraphNode]] = {}
    for node in graph.nodes:
        held.setdefault(node.group, []).append(node)
    edges = _lifted(graph)
    return _level(None, held, edges)


def _lifted(graph: FoldedGraph) -> dict[str | None, list[Edge]]:
    """Return the edges between the nodes that a group holds directly, by group; of equal ones, the strongest."""
    group_of = {node.key: node.group for node in graph.nodes}

    def path(key: str) -> list[str]:
        found = [key]
        while (around := group_of[found[-1]]) is not None:
            found.append(around)
        return found[::-1]

    kinds: tuple[InputKind, ...] = ("context", "value", "order")
    found: dict[str | None, dict[tuple[str, str], Edge]] = {}
    for edge in sorted(graph.edges, key=lambda each: (not each.critical, kinds.index(each.kind))):
        pairs = zip(path(edge.source), path(edge.target), strict=False)
        ends = next(((source, target) for source, target in pairs if source != target), None)
        if ends is not None:  # else one end holds the other
            found.setdefault(group_of[ends[0]], {}).setdefault(ends, Edge(*ends, edge.kind, edge.critical))
    return {group: list(edges.values()) for group, edges in found.items()}


def _level(group: str | None, held: dict[str | None, list[GraphNode]], edges: dict[str | None, list[Edge]]) -> _Picture:
    """Lay out what a group holds. Recursion is as deep as groups are nested: at most ``MAX_NODES``."""
    boxes: dict[str, _Box] = {}
    for node in held.get(group, ()):
        lines = [text for text in _texts(node) if text]
        width = max(map(_cells, lines), default=0) * _CELL + 2 * _PADDING
        height = len(lines) * _LINE + _PADDING
        inside = None
        if node.is_group:
            inside = _level(node.key, held, edges)
            width, height = max(width, inside.width + 2 * _PADDING), height + inside.height + _PADDING
        boxes[node.key] = _Box(width, height, node, inside)
    return _in_rows(boxes, edges.get(group, []))


def _in_rows(boxes: dict[str, _Box], edges: Sequence[Edge]) -> _Picture:
    place = {key: number for number, key in enumerate(boxes)}
    # An edge of effects may lead to a fan-out that begins before its source.
    pairs = [(*sorted((edge.source, edge.target), key=place.__getitem__), edge) for edge in edges]
    row_of = _row_numbers(boxes, [(upper, lower) for upper, lower, _ in pairs])
    rows: list[list[_Box]] = [[] for _ in range(max(row_of.values(), default=-1) + 1)]
    for key, box in boxes.items():
        rows[row_of[key]].append(box)
    lanes: dict[tuple[str, InputKind, int], _Box] = {}
    ways: list[tuple[Edge, bool, list[_Box]]] = []
    for upper, lower, edge in pairs:
        way = [boxes[upper]]
        for number in range(row_of[upper] + 1, row_of[lower]):
            lane = lanes.get((upper, edge.kind, number))
            if lane is None:  # the edges from one node pass a row together
                lane = lanes[upper, edge.kind, number] = _Box(_LANE)
                rows[number].append(lane)
            way.append(lane)
        way.append(boxes[lower])
        ways.append((edge, edge.source != upper, way))
    for _, _, way in ways:
        for one, other in pairwise(way):
            if other not in one.below:
                one.below.append(other)
                other.above.append(one)
    return _placed(rows, list(boxes.values()), ways)


def _row_numbers(boxes: dict[str, _Box], pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the row of each box: below all that it depends on. A row that is too wide is several rows."""
    before: dict[str, list[str]] = {}
    for upper, lower in pairs:
        before.setdefault(lower, []).append(upper)
    ranks: dict[str, int] = {}
    for key in boxes:
        ranks[key] = max((ranks[each] + 1 for each in before.get(key, ())), default=0)
    found: dict[str, int] = {}
    number = -1
    for rank in range(max(ranks.values(), default=-1) + 1):
        number += 1
        width = 0.0
        for key in (key for key in boxes if ranks[key] == rank):
            if width and width + boxes[key].width > _MAX_WIDTH:
                number += 1
                width = 0.0
            width += boxes[key].width + _GAP
            found[key] = number
    return found


def _placed(rows: Sequence[list[_Box]], boxes: list[_Box], ways: Sequence[tuple[Edge, bool, list[_Box]]]) -> _Picture:
    """Place each box of a row as near as it can be to those that it has lines to."""
    for row in rows:
        _spread(row, [0.0] * len(row))
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            aims = [_mean((box.above if sweep % 2 == 0 else box.below) or [box]) for box in row]
            order = sorted(range(len(row)), key=aims.__getitem__)
            row[:] = [row[index] for index in order]
            _spread(row, [aims[index] for index in order])
    least = min((box.left for row in rows for box in row), default=0.0)
    top = 0.0
    for row in rows:
        height = max(box.height for box in row)
        for box in row:
            box.left -= least
            box.top = top + (height - box.height) / 2
            if box.node is None:
                box.top, box.height = top, height
        top += height + _BETWEEN
    lines = [_Line(edge, is_up, list(_points(way))) for edge, is_up, way in ways]
    width = max((box.left + box.width for row in rows for box in row), default=0.0)
    return _Picture(boxes, lines, width, max(top - _BETWEEN, 0.0))


def _mean(boxes: Sequence[_Box]) -> float:
    return sum(box.centre for box in boxes) / len(boxes)


def _spread(row: Sequence[_Box], aims: Sequence[float]) -> None:
    """Place the boxes of a row beside each other: their distances from ``aims`` add up to nothing."""
    end = float("-inf")
    for box, aim in zip(row, aims, strict=True):
        box.left = max(end, aim - box.width / 2)
        end = box.left + box.width + _GAP
    shift = sum(box.centre - aim for box, aim in zip(row, aims, strict=True)) / len(row)
    for box in row:
        box.left -= shift


def _points(way: Sequence[_Box]) -> Iterator[tuple[float, float]]:
    yield way[0].centre, way[0].top + way[0].height
    for lane in way[1:-1]:
        yield lane.centre, lane.top
        yield lane.centre, lane.top + lane.height
    yield way[-1].centre, way[-1].top


def _texts(node: GraphNode) -> tuple[str, str]:
    return one_line(node.label, _MAX_LABEL), one_line(node.cost, _MAX_LABEL)


def _cells(text: str) -> int:
    """Return the columns that a text takes in a font of equal widths."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _drawn(graph: FoldedGraph, name: str) -> str:
    picture = _layout(graph)
    parts = list(_shapes(picture, 1.0, 1.0))
    width, height = round(picture.width) + 2, round(picture.height) + 2
    title = escape(f"{one_line(name, _MAX_LABEL)}: {with_count(len(graph.nodes), 'node')}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="max-width: none" font-family="monospace" font-size="11" '
        f'fill="currentColor" stroke="currentColor"><title>{title}</title>'
    )
    return f"{head}{''.join(parts)}</svg>"


def _shapes(picture: _Picture, left: float, top: float) -> Iterator[str]:
    """Yield the elements of a picture. Recursion is as deep as groups are nested."""
    for line in picture.lines:
        yield _path(line, left, top)
    for box in picture.boxes:
        if box.node is not None:
            yield from _node(box, box.node, left + box.left, top + box.top)
            if box.inside is not None:
                header = box.height - box.inside.height - _PADDING
                middle = (box.width - box.inside.width) / 2
                yield from _shapes(box.inside, left + box.left + middle, top + box.top + header)


def _path(line: _Line, left: float, top: float) -> str:
    points = [(left + x, top + y) for x, y in line.points]
    path = f"M{_number(points[0][0])} {_number(points[0][1])}"
    for number, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
        if number % 2 or x == to_x:
            path += f"L{_numbers(to_x, to_y)}"
        else:
            middle = (y + to_y) / 2
            path += f"C{_numbers(x, middle, to_x, middle, to_x, to_y)}"
    (x, y), down = (points[0], -1.0) if line.is_up else (points[-1], 1.0)
    head = f"M{_numbers(x - 3, y - 6 * down)}L{_numbers(x, y)}L{_numbers(x + 3, y - 6 * down)}"
    style = _CRITICAL if line.edge.critical else ' stroke-opacity=".6"'
    tip = f'<path d="{head}" fill="none"{style}/>' if _DASHES[line.edge.kind] else ""
    whole = path if tip else path + head
    return f'<path d="{whole}" fill="none"{style}{_DASHES[line.edge.kind]}/>{tip}'


def _node(box: _Box, node: GraphNode, x: float, y: float) -> Iterator[str]:
    colour = _COLOURS.get(node.kind, "currentColor")
    fill = ".06" if colour == "currentColor" else ".22"
    border = _CRITICAL if node.critical and not node.is_group else f' stroke="{colour}"'
    dash = ' stroke-dasharray="4 3"' if node.is_group or node.kind == "folded" else ""
    radius = 8 if node.kind == "call" else 2
    yield (
        f'<g><title>{escape(node.text)}</title><rect x="{_number(x)}" y="{_number(y)}" width="{_number(box.width)}" '
        f'height="{_number(box.height)}" rx="{radius}" fill="{colour}" fill-opacity="{fill}"{border}{dash}/>'
    )
    for number, text in enumerate(each for each in _texts(node) if each):
        baseline = y + _PADDING / 2 + number * _LINE + 11
        weight = ' font-weight="bold"' if node.kind == "call" and not number else ""
        yield (
            f'<text x="{_number(x + box.width / 2)}" y="{_number(baseline)}" text-anchor="middle" stroke="none"'
            f"{weight}>{escape(text)}</text>"
        )
    yield "</g>"


def _numbers(*values: float) -> str:
    return " ".join(map(_number, values))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
