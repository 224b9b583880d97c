"""Implementations of single commands: ``lmc grammar``, ``opt``, ``schedule``, ``serve``, ``simulate`` and others."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
