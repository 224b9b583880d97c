"""The graph of a view as Mermaid, in the limits of a comment on GitHub."""

from __future__ import annotations

from lmc.report.forms.graph import FoldedGraph, GraphNode, graph_of
from lmc.report.model import CompiledView, InputKind, Kind

MAX_NODES = 200
MAX_EDGES = 500
MAX_CHARACTERS = 50_000
"""Limits of Mermaid as GitHub sets it up (``maxEdges``, ``maxTextSize``); a comment may have 65,536 characters."""
_PLAIN = frozenset(" ,()")
_ARROWS: dict[InputKind, str] = {"context": "==>", "value": "-->", "order": "-.->"}
_SHAPES: dict[Kind, tuple[str, str]] = {
    "call": ("([", "])"),
    "tool": ("[[", "]]"),
    "prefix": ("[(", ")]"),
    "break": ("{{", "}}"),
    "folded": ("[/", "/]"),
}
_COLOURS: dict[str, str] = {
    "call": "fill:#dbeafe,stroke:#1d4ed8,color:#111827",
    "text": "fill:#f3f4f6,stroke:#6b7280,color:#111827",
    "prefix": "fill:#dcfce7,stroke:#15803d,color:#111827",
    "tool": "fill:#fef3c7,stroke:#b45309,color:#111827",
    "python": "fill:#ffffff,stroke:#9ca3af,color:#111827",
    "break": "fill:#fee2e2,stroke:#b91c1c,color:#111827",
    "folded": "fill:#f3f4f6,stroke:#6b7280,color:#111827,stroke-dasharray:4",
    "critical": "stroke-width:4px",
    "added": "stroke:#15803d,stroke-width:4px",
    "changed": "stroke:#b45309,stroke-width:4px",
    "removed": "stroke:#b91c1c,stroke-width:4px,stroke-dasharray:6",
}


def mermaid(view: CompiledView) -> str:
    """Return a flow chart: at most 200 nodes, and as many as the other limits allow."""
    most = MAX_NODES
    while True:
        graph = graph_of(view, most)
        text = _text(graph)
        if most == 1 or (len(graph.edges) <= MAX_EDGES and len(text) <= MAX_CHARACTERS):
            return text
        most = max(most * 3 // 4, 1)


def _text(graph: FoldedGraph) -> str:
    lines = ["flowchart TD"]
    for depth, node in graph.nested():
        margin = "  " * depth
        if node is None:
            lines.append(f"{margin}end")
        elif node.is_group:
            lines.append(f'{margin}subgraph {node.key}["{escaped(node.text)}"]')
        else:
            left, right = _SHAPES.get(node.kind, ("[", "]"))
            lines.append(f'{margin}{node.key}{left}"{escaped(node.text)}"{right}')
    lines += [f"  {edge.source} {_ARROWS[edge.kind]} {edge.target}" for edge in graph.edges]
    for name, style in _COLOURS.items():
        keys = [node.key for node in graph.nodes if name in _classes(node)]
        if keys:
            # Mermaid has a keyword "call".
            lines += [f"  classDef {name}node {style}", f"  class {','.join(keys)} {name}node"]
    return "\n".join(lines) + "\n"


def _classes(node: GraphNode) -> set[str]:
    return {node.kind, *(["critical"] if node.critical else []), *([node.mark] if node.mark else [])}


def escaped(text: str) -> str:
    """Return a text for a label: what is no letter, digit, space, comma or parenthesis is an entity code.

    So nothing in it is HTML, Markdown or a part of the chart.
    """
    return "".join(one if one in _PLAIN or one.isalnum() or ord(one) > 127 else f"#{ord(one)};" for one in text)
