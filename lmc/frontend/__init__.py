"""The frontend: from a Python function to a Module, and the plain-Python ways to run it (see README.md)."""
