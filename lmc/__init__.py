"""lmc, an optimizing compiler for language-model programs.

``__init__.pyi`` lists the public names; each module is imported on the first use of one of its names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
