"""The version of lmc that runs."""

from __future__ import annotations

import importlib.metadata


def version() -> str:
    """The version of the installed distribution."""
    return importlib.metadata.version("lmc-compiler")
