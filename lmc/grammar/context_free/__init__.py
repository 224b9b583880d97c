"""Context-free constraints: grammars in Lark's notation. See README.md."""

from lmc.grammar.context_free.constraint import ContextFreeConstraint, ContextFreeState

__all__ = ["ContextFreeConstraint", "ContextFreeState"]
