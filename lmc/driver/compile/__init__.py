"""From a program to a plan: capture, passes, lowering; compiled programs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
