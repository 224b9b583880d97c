"""Settings of a server."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BODY = 32 << 20
MAX_WAITING = 512
DRAIN_SECONDS = 30.0
BODY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Who may connect, and how much may be asked for at once.

    ``model`` is the name that clients give. ``api_key`` is what they must send (None: nothing). Requests whose
    ``Host`` is not one of ``hosts`` are refused (None: any is taken), so that no web page reaches a loopback server
    through a name of its own. A page of ``allow_origin`` may read answers. Bodies have at most ``max_body`` bytes
    (and 4 MiB where they are no files or batches), of which one comes within ``body_seconds`` after the other, and at
    most ``max_waiting`` jobs wait for the engine.
    ``log_texts``: the log has prompts and outputs too.
    """

    model: str
    api_key: str | None = None
    hosts: frozenset[str] | None = None
    allow_origin: str | None = None
    max_body: int = MAX_BODY
    body_seconds: float = BODY_SECONDS
    max_waiting: int = MAX_WAITING
    log_texts: bool = False
