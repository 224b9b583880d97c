"""Semantics of Python's own operators, functions and methods on abstract values."""
