"""``lmc serve``: the engine of a target over HTTP (``lmc.runtime.server``)."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.driver.commands.cli_options import GivenOptions
from lmc.driver.commands.hosting import host, load_programs
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.registry import make_engine

if TYPE_CHECKING:
    from lmc.ir.engine.target import Target

PORT = 8000
HOST = "127.0.0.1"
_PACKAGES = ("fastapi", "prometheus_client", "python_multipart", "starlette", "uvicorn")
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of ``lmc serve``; those of ``Settings`` (``lmc.runtime.server``) have its meanings.

    Files and batches are in the folder ``state``; without one, they end with the process. ``programs`` are named
    ``PROGRAM.py[:name]``.
    """

    host: str = HOST
    port: int = PORT
    api_key_env: str | None = None
    insecure: bool = False
    allow_origin: str | None = None
    max_body: int = 32 << 20
    max_waiting: int = 512
    drain_seconds: float = 30.0
    log_texts: bool = False
    state: Path | None = None
    programs: tuple[str, ...] = ()


def serve(given: GivenOptions, options: ServeOptions, started: Callable[[str, str], None]) -> None:
    """Serve until a signal ends the process. ``started`` gets the URL and the name of the model.

    Raises ``UsageError`` for a host that would be open to anyone, ``InputError`` for an address that is in use or a
    model that is not there, ``EngineError`` where it can't be served; for programs see ``load_programs``.
    """
    key = _key(options)
    try:
        from lmc.runtime.server.app import ServerApp
        from lmc.runtime.server.batches.store import StateStore
        from lmc.runtime.server.model import Model
        from lmc.runtime.server.running import bound, run
        from lmc.runtime.server.settings import Settings
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise UsageError(
            f"lmc serve needs {error.name}, which is not installed", remedy="pip install 'lmc-compiler[server]'"
        ) from error
    target = resolve_target(Options().updated("lmc serve", **given))
    functions = load_programs(options.programs, target) if options.programs else []
    with closing(bound(options.host, options.port)) as listening:
        port = listening.getsockname()[1]
        url = f"http://{_shown(options.host)}:{port}"
        name = _name(target)
        settings = Settings(
            model=name,
            api_key=key,
            hosts=frozenset((*_LOOPBACK_NAMES, options.host.lower())) if _is_loopback(options.host) else None,
            allow_origin=options.allow_origin,
            max_body=options.max_body,
            max_waiting=options.max_waiting,
            log_texts=options.log_texts,
        )
        with closing(StateStore(options.state)) as store, closing(make_engine(target)) as engine:
            hosted = [host(function, engine) for function in functions]
            server = ServerApp(Model(engine, name, options.max_waiting), settings, store, hosted)
            run(server, listening, options.drain_seconds, lambda: started(url, name))


def _key(options: ServeOptions) -> str | None:
    """Return the key from the environment. Raises ``UsageError`` where one is needed and there is none."""
    if options.api_key_env is not None:
        key = os.environ.get(options.api_key_env)
        if not key:
            raise UsageError(
                f"the environment has no {options.api_key_env}", remedy=f"export {options.api_key_env}=… before"
            )
        return key
    if not _is_loopback(options.host) and not options.insecure:
        raise UsageError(
            f"anyone who reaches {options.host} could use this server",
            remedy="name the variable that holds a key with --api-key-env, or give --insecure",
        )
    return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        try:
            found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
        except OSError:
            return False
        return all(ipaddress.ip_address(each).is_loopback for each in found)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _name(target: Target) -> str:
    """Return the name that clients give: that of the folder, or the kind of the target."""
    path: Any = target.path
    return target.kind if path is None else str(path).rstrip("/").rpartition("/")[2] or str(path)
