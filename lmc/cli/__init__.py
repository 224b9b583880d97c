"""The command ``lmc``."""

from lmc.cli.start import main

__all__ = ["main"]
