"""Constraints on what a generation may say, compiled to automata over tokens. See README.md."""

from lmc.grammar.compiling import compile, compile_source
from lmc.grammar.facts import Facts
from lmc.grammar.interface import Constraint
from lmc.grammar.sources import Source
from lmc.grammar.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

__all__ = ["Constraint", "ConstraintError", "Facts", "Source", "Vocabulary", "compile", "compile_source"]
