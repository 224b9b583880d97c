"""Constraints on the output of a generation, compiled to automata over tokens. See README.md.

``__init__.pyi`` lists the exported names; each module is imported on the first use of one of its names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
