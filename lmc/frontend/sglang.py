"""The former import path of ``lmc.sglang``, kept for programs that use it."""

from lmc.sglang import *  # noqa: F403
from lmc.sglang import __all__  # noqa: F401
