"""The wait policy of OpenMP's threads, set through the environment, which the library reads when torch loads."""

from __future__ import annotations

import os
import sys
import warnings

SLEEPING_THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}
"""Threads soon sleep while they wait.

Those that spin stall every parallel region by milliseconds as soon as anything else runs on these cores. GNU's OpenMP,
which torch has on Linux, may spin for some microseconds: most waits are shorter than waking up takes.
"""
THREAD_SETTINGS = (*SLEEPING_THREADS, "KMP_BLOCKTIME")


def let_threads_sleep() -> None:
    """Set `SLEEPING_THREADS` for this process, to be called before torch loads; a user's own setting stands."""
    if any(name in os.environ for name in THREAD_SETTINGS):
        return
    if "torch" in sys.modules:
        warnings.warn(
            "torch was loaded before lmc could tell its threads not to spin while they wait; beside any other busy "
            "process a model then runs several times slower. Set OMP_WAIT_POLICY=PASSIVE in the environment",
            RuntimeWarning,
            stacklevel=2,
        )
    os.environ |= SLEEPING_THREADS
