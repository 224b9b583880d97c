"""The driver: the one place that knows all stages. Command line and ``@lmc.jit`` are its clients (see README.md).

``__init__.pyi`` lists the exported names; each module is imported on the first use of one of its names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
