"""The model that ships with the package, as package data in the transformers layout."""

from pathlib import Path


def path() -> Path:
    """Return the folder with the model's weights, configuration and tokenizer."""
    return Path(__file__).parent
