"""The command ``lmc``."""

from lmc.cli.app import main

__all__ = ["main"]
