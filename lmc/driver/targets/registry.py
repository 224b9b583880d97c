"""Registry of targets. The only place that imports a module by name: torch loads when an engine is made."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lmc import builtin_model
from lmc.driver.targets.hosted import model_file, near_target
from lmc.driver.targets.hub import model_snapshot
from lmc.driver.targets.openmp import let_threads_sleep
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import GIVEN, KINDS, WITH_PATH, WITH_WEIGHTS, Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import EngineError, InputError
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from lmc.runtime.remote.engine import RemoteEngine

_LOCAL = "lmc.runtime.local"
_LOCAL_PACKAGES = ("torch", "transformers", "safetensors")


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of target: its tokenizer (never torch) and its engine."""

    tokenizer: Callable[[Target], Tokenizer]
    engine: Callable[[Target], Engine]


def load_tokenizer(target: Target) -> Tokenizer:
    """The tokenizer of a target, without its engine. Raises ``InputError`` where the model is not there."""
    _check_here(target)
    return _ENTRIES[target.kind].tokenizer(target)


def make_engine(target: Target) -> Engine:
    """A new engine for a target. The caller closes it.

    Raises ``InputError`` where the model is not there or no good, ``EngineError`` where it can't be served.
    """
    _check_here(target)
    return _ENTRIES[target.kind].engine(target)


def model_folder(target: Target) -> Path | None:
    """The folder of a target's model; None where it has none. Raises ``InputError`` where the folder is not there."""
    return _folder(target) if target.kind in WITH_WEIGHTS else None


def _check_here(target: Target) -> None:
    """Raise ``InputError`` for a given engine, which only its own process has, until it is discarded."""
    if target.kind == GIVEN:
        raise InputError(
            f"there is no engine {target.path!r} in this process",
            remedy="give the engine itself, not its name, in the process that made it",
        )


def _folder(target: Target, *, weights: bool = True) -> Path:
    if target.kind == "hf":
        return model_snapshot(cast("str", target.path), weights=weights)
    folder = builtin_model.path() if target.path is None else Path(target.path).expanduser()
    if not folder.is_dir():
        hosted = near_target(folder.name)
        near = [hosted] if hosted else _near(folder)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(
            f"there is no model folder {folder}",
            remedy=f"{guess}name a folder that holds config.json, tokenizer.json and *.safetensors, or use the target "
            "builtin, toy or hf:ORG/NAME",
        )
    return folder


def _near(folder: Path) -> list[str]:
    """Targets and model folders with a name like that of a folder that is not there."""
    kinds = [kind for kind in KINDS if kind not in WITH_PATH]
    try:
        beside = [entry.name for entry in folder.parent.iterdir() if (entry / "config.json").is_file()]
    except OSError:
        beside = []
    places = {name: str(folder.parent / name) for name in beside}
    names = [*(kinds if folder.parent == Path.cwd() else ()), *beside]
    return [places.get(name, name) for name in difflib.get_close_matches(folder.name.lower(), names, n=2)]


def _local_tokenizer(target: Target) -> Tokenizer:
    return Tokenizer.from_folder(_folder(target, weights=False))


def _local_engine(target: Target) -> Engine:
    folder = _folder(target)
    options: dict[str, Any] = {name: getattr(target, name) for name in ("dtype", "deterministic", "device")}
    for name in ("kv_tokens", "prefill_tokens"):
        if getattr(target, name) is not None:
            options[name] = getattr(target, name)
    return cast("Engine", _local_package().load_local_engine(folder, **options))


def _local_package() -> Any:
    let_threads_sleep()
    try:
        return importlib.import_module(_LOCAL)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LOCAL_PACKAGES:
            raise
        raise EngineError(
            f"running a model on this machine needs {error.name}, which is not installed",
            remedy="pip install 'lmc-compiler[local]', or try the program with the target toy",
        ) from error


def _remote_tokenizer(target: Target) -> Tokenizer:
    if target.capabilities.contexts != "tokens":
        return message_tokenizer()
    named = None if target.remote is None else target.remote.tokenizer
    if named is None:
        raise InputError(
            f"contexts of {target.spec} are tokens, and it names no tokenizer", remedy="set tokenizer for the target"
        )
    path = Path(named).expanduser()
    return Tokenizer.from_folder(path.parent if path.name == "tokenizer.json" else path)


def _remote_engine(target: Target, names: Sequence[str] | None = None, place: int = 0) -> RemoteEngine:
    """Return the engine of a target. ``names`` are those of its fallbacks in the chain in which it has a ``place``."""
    from lmc.runtime.remote.engine import RemoteEngine  # most processes need none

    second, named = target.fallback, target.fallback_names if names is None else names
    return RemoteEngine(
        target,
        _remote_tokenizer(target),
        None if second is None else lambda: _remote_engine(second, named[1:], place + 1),
        () if target.kind == "server" else model_file(target.kind).near(target.path or ""),
        fallback_name=named[0] if named else "",
        place=place,
    )


def _toy_engine(target: Target) -> Engine:
    if replace(target, deterministic=False) != Target("toy"):  # it is deterministic
        raise InputError(
            "the toy has no weights and no KV pool", remedy="leave out dtype, kv_tokens, device and prefill_tokens"
        )
    return ToyEngine()


_REMOTE = TargetKind(_remote_tokenizer, _remote_engine)
_ENTRIES = {
    "anthropic": _REMOTE,
    "openai": _REMOTE,
    "server": _REMOTE,
    "builtin": TargetKind(_local_tokenizer, _local_engine),
    "hf": TargetKind(_local_tokenizer, _local_engine),
    "local": TargetKind(_local_tokenizer, _local_engine),
    "toy": TargetKind(lambda _: toy_tokenizer(), _toy_engine),
}
