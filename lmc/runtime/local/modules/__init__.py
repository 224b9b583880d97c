"""Modules of transformers that the engine replaces by faster ones with the same results."""
