"""The pass ``distribute-loops``."""
