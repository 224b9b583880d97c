"""lmc, an optimizing compiler for language-model programs.

``__init__.pyi`` lists the public names; each module is imported on the first use of one of its names.
"""

import sys
from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _load(name)
    # Python reads name and obj to suggest a similar name.
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
