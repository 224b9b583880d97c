"""Workers in a process that forks: its children never free what they inherit of them."""

import os
import weakref

from lmc.ir.engine.forks import claim_process, keep_for_ever

_holders: weakref.WeakSet[object] = weakref.WeakSet()


def hold_after_fork(holder: object) -> None:
    """Note that this process runs a model. A child made by fork never frees ``holder`` and what it refers to.

    Raises:
        EngineError: this process was forked from one that runs a model.
    """
    claim_process()
    _holders.add(holder)


def _keep_all() -> None:
    for holder in list(_holders):
        keep_for_ever(holder)


os.register_at_fork(after_in_child=_keep_all)
