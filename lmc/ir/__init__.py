"""The IR: types, ops, modules, their meaning, and what engines must offer. Never imports torch (see README.md)."""
