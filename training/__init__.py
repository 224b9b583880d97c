"""Trains the built-in model from text this package generates itself."""
