"""Fills the tables of the parser in the server of ``processes``, before any fork: they depend on no command."""

from lmc.ir.text.parser import parse

parse("module @m {\n  func @f() {\n    cf.unreachable {}\n  }\n}\n")
