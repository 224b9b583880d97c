"""The tokens of a model as bytes."""
