"""The abstract state of a capture: abstract values, the cells that hold them, and their join."""
