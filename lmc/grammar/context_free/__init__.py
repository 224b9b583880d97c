"""Context-free constraints: recursive JSON Schemas, and grammars in Lark's notation. See README.md."""

from lmc.grammar.context_free.constraint import ContextFreeConstraint, ContextFreeState

__all__ = ["ContextFreeConstraint", "ContextFreeState"]
