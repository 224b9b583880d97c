"""Implementations of ``lmc viz`` and ``lmc view``, and of ``lmc compile --emit tree``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
