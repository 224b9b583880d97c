"""The engine of a run under a budget."""
