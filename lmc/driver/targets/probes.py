"""The cache of probes of servers: one JSON file of the user's, which compilation reads and runs write."""

from __future__ import annotations

import datetime
import json
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from threading import RLock
from types import MappingProxyType

import pydantic

from lmc.ir.engine.target import Target
from lmc.ir.errors import EngineError, InputError
from lmc.runtime.remote.probe import MOST_CHARACTERS, Probe, ServedModel, probe, served_model
from lmc.toolchain import ForeignFolderError, replace_own_file, user_cache

PLACE = "LMC_PROBE_CACHE"
"""The variable that names the file; ``off``: probes are kept for the process alone."""
OFF = "off"
MOST_SERVERS = 256
MOST_BYTES = 1 << 20
_VERSION = 1


@dataclass(frozen=True)
class DatedProbe:
    """A probe and its day."""

    date: datetime.date
    probe: Probe


class _Checked:
    """The servers that this process has asked, and the tokenizers that it has compared with theirs."""

    def __init__(self) -> None:
        self.found: dict[str, DatedProbe] = {}
        self.tokenizers: dict[str, set[str | None]] = {}
        self.lock = RLock()


_CHECKED = _Checked()
_ENTRY = pydantic.TypeAdapter(DatedProbe)


def known_probe(target_path: str) -> DatedProbe | None:
    """Return the cached probe of ``URL[#MODEL]``. Opens no connection."""
    return _CHECKED.found.get(target_path) or _stored().get(target_path)


def probe_again(target: Target) -> DatedProbe:
    """Probe the server of a target, and keep the result. Raises as ``lmc.runtime.remote.probe.probe`` does."""
    assert target.path is not None
    with _CHECKED.lock:
        found = DatedProbe(datetime.datetime.now(datetime.UTC).date(), probe(target))
        _CHECKED.found[target.path] = found
        _store(target.path, found)
        return found


def probe_once(target: Target, *, again: bool = False) -> None:
    """Probe a server before a run: where there is no cached probe, or the server has another model now.

    Asks it once per process, unless ``again`` is True. A server that can't be reached, but has a cached probe or a
    fallback, is left to the run. Raises as ``probe_again`` does.
    """
    assert target.path is not None
    assert target.remote is not None
    with _CHECKED.lock:
        known, named = known_probe(target.path), target.remote.tokenizer
        if not again and target.path in _CHECKED.found and named in _CHECKED.tokenizers.get(target.path, ()):
            return
        if named is not None and known is not None and named != known.probe.tokenizer:
            known = None  # it is compared with the server's texts anew
        try:
            if known is None or served_model(target) != known.probe.model:
                probe_again(target)
            else:
                _CHECKED.found[target.path] = known
            _CHECKED.tokenizers.setdefault(target.path, set()).add(named)
        except EngineError:  # it can't be reached; anything else it says is an error of the target
            if known is None and target.remote.fallback is None:
                raise


def served_by(target: Target, *, asks: bool = True) -> ServedModel | None:
    """Return the model of a server, as the run that begins has found it; None where nothing is known of it.

    A server of a declared kind, which is not probed, is asked for its model where the target does not name it, if it
    ``asks``.
    """
    if target.kind != "server" or target.remote is None or target.path is None:
        return None
    if target.remote.server is None:
        known = known_probe(target.path)
        return None if known is None else known.probe.model
    if "#" in target.path or not asks:
        return None
    try:
        return served_model(target)
    except (EngineError, InputError):  # no list of models, or no server: the run raises its own error
        return None


def forget_probes() -> None:
    """Forget the servers that this process has asked; the file stays."""
    _CHECKED.found.clear()
    _CHECKED.tokenizers.clear()


def _file() -> Path | None:
    named = os.environ.get(PLACE)
    if named:
        return None if named == OFF else Path(named).expanduser()
    try:
        return user_cache() / "servers.json"
    except RuntimeError:  # a user without a home
        return None


def _stored() -> Mapping[str, DatedProbe]:
    path = _file()
    if path is None:
        return {}
    try:
        state = path.stat()
    except OSError:
        return {}
    return _read(path, (state.st_mtime_ns, state.st_size, state.st_ino))


@lru_cache(maxsize=8)
def _read(path: Path, version: tuple[int, ...]) -> Mapping[str, DatedProbe]:
    """Return the entries of the file, which is read again once it has another ``version``. Warns of wrong ones."""
    del version
    found: dict[str, DatedProbe] = {}
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        content = json.loads(data)
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise ValueError(f"it is not of version {_VERSION}")
        servers = content.get("servers")
        if not isinstance(servers, dict):
            raise ValueError("it holds no servers")
        for name, entry in servers.items():
            found[name] = _checked(entry)
    except (OSError, ValueError, RecursionError) as error:  # pydantic's errors are ValueErrors
        reason = str(error).splitlines()[0]
        warnings.warn(f"{path} is no cache of probes ({reason}): servers are probed again", stacklevel=2)
        return {}
    return MappingProxyType(found)


def _checked(entry: object) -> DatedProbe:
    found = _ENTRY.validate_python(entry)
    model = found.probe.model
    texts = (model.owner, model.name, model.root or "", found.probe.tokenizer or "")
    counts = (model.context_length or 1, found.probe.kv_tokens or 1, found.probe.kv_page)
    if any(len(text) > MOST_CHARACTERS for text in texts) or min(counts) < 1:
        raise ValueError("an entry is out of bounds")
    return found


def _store(path: str, found: DatedProbe) -> None:
    """Write an entry to the file, which is replaced as a whole. A file that can't be written costs another probe."""
    file = _file()
    if file is None:
        return
    kept = {**_stored(), path: found}
    newest = sorted(kept, key=lambda name: (name == path, kept[name].date))[-MOST_SERVERS:]
    entries = {name: {**asdict(kept[name]), "date": kept[name].date.isoformat()} for name in newest}
    text = json.dumps({"version": _VERSION, "servers": entries}, indent=1)
    with suppress(OSError, ForeignFolderError):
        replace_own_file(file, text)
