"""A process that forks after a model has run: its children run none, and free nothing of their parent's."""

import os
import weakref

from lmc.ir.forks import keep_for_ever
from lmc.runtime.local.failures import forked

_holders: weakref.WeakSet[object] = weakref.WeakSet()
_pool_of: list[int] = []
"""The process in which OpenMP's threads were started for a model, once there is one; children inherit the number."""


def hold_after_fork(holder: object) -> None:
    """Note that this process runs a model. A child made by fork never frees ``holder`` and what it refers to."""
    claim_process()
    _holders.add(holder)


def claim_process() -> None:
    """Note that OpenMP's threads start in this process.

    Raises:
        EngineError: they started in a parent of it, and did not survive the fork.
    """
    if not _pool_of:
        _pool_of.append(os.getpid())
    if _pool_of[0] != os.getpid():
        raise forked()


def _keep_all() -> None:
    for holder in list(_holders):
        keep_for_ever(holder)


os.register_at_fork(after_in_child=_keep_all)
