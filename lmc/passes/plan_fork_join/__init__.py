"""The pass ``plan-fork-join``."""
