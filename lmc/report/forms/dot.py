"""The graph of a view in the language of Graphviz."""

from __future__ import annotations

from lmc.report.forms.graph import GraphNode, graph_of
from lmc.report.model import CompiledView, InputKind

MAX_NODES = 2_000
_STYLES: dict[InputKind, str] = {"context": "[penwidth=2]", "value": "", "order": "[style=dashed]"}
_SHAPES = {
    "call": 'shape=box, style="rounded,filled", fillcolor="#dbeafe"',
    "text": 'shape=box, style=filled, fillcolor="#f3f4f6"',
    "prefix": 'shape=cylinder, style=filled, fillcolor="#dcfce7"',
    "tool": 'shape=component, style=filled, fillcolor="#fef3c7"',
    "break": 'shape=octagon, style=filled, fillcolor="#fee2e2"',
    "folded": 'shape=folder, style=filled, fillcolor="#f3f4f6"',
}
_MARKS = {"added": "#15803d", "changed": "#b45309", "removed": "#b91c1c"}


def dot(view: CompiledView) -> str:
    """Return a directed graph of at most 2,000 nodes. A group is a cluster, with a node for its edges."""
    graph = graph_of(view, MAX_NODES)
    lines = [f"digraph {quoted(view.program.name)} {{", '  node [fontname="sans-serif"];', "  edge [arrowsize=0.7];"]
    for depth, node in graph.nested():
        margin = "  " * depth
        if node is None:
            lines.append(f"{margin}}}")
        elif node.is_group:
            lines += [f"{margin}subgraph cluster_{node.key} {{", f"{margin}  label={quoted(node.text)};"]
            lines.append(f"{margin}  {node.key} [shape=diamond, label={quoted(node.text)}];")
        else:
            lines.append(f"{margin}{node.key} [{_attributes(node)}];")
    for edge in graph.edges:
        style = _STYLES[edge.kind]
        lines.append(f"  {edge.source} -> {edge.target}{' ' if style else ''}{style};")
    return "\n".join([*lines, "}"]) + "\n"


def _attributes(node: GraphNode) -> str:
    found = [f"label={quoted(node.text)}", _SHAPES.get(node.kind, "shape=box")]
    if node.mark is not None:
        found.append(f'color="{_MARKS[node.mark]}", penwidth=3')
    elif node.critical:
        found.append("penwidth=3")
    return ", ".join(found)


def quoted(text: str) -> str:
    """Return a text as a string: Graphviz reads escapes with a backslash in it, and HTML entities."""
    escapes = {"\\": "\\\\", '"': '\\"', "&": "&amp;", "\n": "\\n"}
    return f'"{"".join(escapes.get(one, one) for one in text)}"'
