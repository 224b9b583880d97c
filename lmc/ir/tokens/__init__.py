"""Contexts as tokens: tokenizers, chat templates, token boundaries, stop strings."""
