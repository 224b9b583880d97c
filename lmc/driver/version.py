"""The version of lmc that runs."""

from __future__ import annotations

from importlib.metadata import version as version_of

__version__ = version_of("lmc-compiler")
