"""The interpreter: statements, expressions, calls and patterns of Python over abstract values."""
