"""The pass ``compile-constraints``."""
