"""Regular expressions: the dialect of README.md, as nodes over bytes."""

from lmc.grammar.regex.lowering import search_to_node, to_node, without_match_to_node

__all__ = ["search_to_node", "to_node", "without_match_to_node"]
