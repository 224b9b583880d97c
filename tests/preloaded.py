"""What the server of ``processes`` does once, before any fork: the tables of the parser, which depend on no command."""

from lmc.ir.text.parser import parse

parse("module @m {\n  func @f() {\n    cf.unreachable {}\n  }\n}\n")
