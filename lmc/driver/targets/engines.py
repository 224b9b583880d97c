"""The engines that this process has started, by what the user asked for."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from lmc.driver.options import Options
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.service import service, service_in_use
from lmc.ir.engine.protocol import CacheFlushing, Engine


def adopt_engine(engine: Engine) -> str:
    """The name of a target that stands for ``engine``, which the caller made: a ``target`` of ``Options``."""
    return service().engines.adopt(engine).spec


def flush_cache(options: Options) -> bool:
    """Forget the prefixes that the engine of ``options`` has computed; whether there was an engine that keeps any."""
    engine = service().engines.running(resolve_target(options))
    if not isinstance(engine, CacheFlushing):
        return False
    engine.flush_cache()
    return True


def engine_info(options: Options) -> dict[str, Any]:
    """Return facts and statistics of the engine of ``options`` as JSON data. Loads it, unless it runs already."""
    target = resolve_target(options)
    engine = service().engines.engine(target)
    info = {"target": asdict(target), **asdict(engine.info), "statistics": asdict(engine.statistics)}
    return json.loads(json.dumps(info, default=sorted))  # sets of capabilities are lists


def close() -> None:
    """Close every engine that this process has started, and free its memory: weights and KV pools.

    Requests that are under way fail with an ``EngineError``; an engine that another thread loads now is not closed. A
    later call of a program starts a new engine. Engines are closed at exit too, and where none of the last few runs
    used them (``lmc.driver.targets.engine_cache``).
    """
    home = service_in_use()
    if home is not None:
        home.engines.close()


@contextmanager
def engines() -> Generator[None]:
    """Close, at the end of the block, the engines that this process has started in it: ``with lmc.engines(): …``.

    Those that ran before the block stay.
    """
    home = service_in_use()
    before = [] if home is None else home.engines.all()
    try:
        yield
    finally:
        home = service_in_use()
        if home is not None:
            home.engines.close(but=before)


def close_engine(options: Options) -> None:
    """Close the engine of ``options``, where it runs: what is under way on it fails. A later call starts a new one."""
    service().engines.discard(resolve_target(options))
