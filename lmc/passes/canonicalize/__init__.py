"""The pass ``canonicalize``."""
