"""The pass ``hoist-prefixes``."""
