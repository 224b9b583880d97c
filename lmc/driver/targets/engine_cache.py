"""The engines of a process: one per target and state of its model folder, closed when they are not used any more."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lmc import builtin_model
from lmc.driver.targets.registry import load_tokenizer, make_engine, model_folder
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import GIVEN, WITH_WEIGHTS, Target
from lmc.ir.tokens.tokenizer import Tokenizer

MAX_IDLE = 4
"""Engines with a model that no run uses and that are kept for the next one; beyond that the least recently used is
closed."""
_MODEL_FILES = re.compile(r"(?s:.*\.safetensors(\.index\.json)?|.*config\.json|tokenizer.*\.json|chat_template.*)")
"""Names of files of a model folder that an engine is made of."""

Version = tuple[tuple[str, int, int, int], ...]
"""Names of the model's files, with size, time of the last change in nanoseconds, and inode."""


class EngineCache:
    """One engine and one tokenizer per target, made on first use, shared by all programs, closed together.

    Where the files of a model folder have changed, the next use makes a new engine; runs that use the old one finish
    on it. An engine whose folder is not there any more stays: its weights are in memory, and a folder that is being
    replaced is missing for a moment. Of the engines with a model that no run uses ``MAX_IDLE`` are kept.

    While one thread loads an engine or a tokenizer, which may take a download, only those that need the same one wait.
    """

    def __init__(self) -> None:
        self._engines: dict[Target, Engine] = {}  # least recently used first
        self._tokenizers: dict[tuple[str, str | None], Tokenizer] = {}
        self._engine_versions: dict[Target, Version] = {}
        self._tokenizer_versions: dict[tuple[str, str | None], Version] = {}
        self._users: Counter[int] = Counter()
        self._replaced: dict[int, Engine] = {}  # by id: in use, but no longer found
        self._lock = threading.Lock()  # of the tables above: never held while something is loaded or closed
        self._key_locks: dict[Target | tuple[str, str | None], threading.Lock] = {}
        self._making = threading.Lock()  # one engine at a time takes its share of the free memory
        self._adopted = 0

    def engine(self, target: Target) -> Engine:
        """The engine of ``target``; loads it where it is not running. ``use`` keeps it running."""
        with self.use(target) as engine:
            return engine

    @contextmanager
    def use(self, target: Target) -> Generator[Engine]:
        """The engine of ``target``, which is not closed before the end of the block, unless a user closes it."""
        engine = self.acquire(target)
        try:
            yield engine
        finally:
            self.release(engine)

    def acquire(self, target: Target) -> Engine:
        """The engine of ``target``, in use until ``release``; loads it where it is not running."""
        target = _absolute(target)
        with self._key_lock(target):
            version = _version(target)
            with self._lock:
                unused: list[Engine] = []
                if version is not None and self._engine_versions.get(target, version) != version:
                    unused += self._forget([target])
                engine = self._engines.pop(target, None)
                if engine is not None:
                    self._put_in_use(target, engine)
                    return engine
                unused += self._forget(self._surplus(MAX_IDLE - 1))
            _close(unused)  # first, so that there is memory for the new one
            model_folder(target)  # a download stops no other engine from being made
            with self._making:
                engine = make_engine(target)
            with self._lock:
                if version is not None:
                    self._engine_versions[target] = version
                self._put_in_use(target, engine)
            return engine

    def release(self, engine: Engine) -> None:
        """End a use. Closes the engine where it was replaced meanwhile, and others that are idle beyond the bound."""
        with self._lock:
            self._users[id(engine)] -= 1
            if self._users[id(engine)] > 0:
                return
            del self._users[id(engine)]
            replaced = self._replaced.pop(id(engine), None)
            unused = [] if replaced is None else [replaced]
            unused += self._forget(self._surplus(MAX_IDLE))
        _close(unused)

    def adopt(self, engine: Engine) -> Target:
        """A target that stands for ``engine``, the same each time. At exit it is closed with all others."""
        with self._lock:
            for target, known in self._engines.items():
                if known is engine:
                    return target
            self._adopted += 1
            target = Target(GIVEN, f"{engine.info.name}-{self._adopted}")
            self._engines[target] = engine
            self._tokenizers[_tokenizer_key(target)] = engine.tokenizer
            return target

    def running(self, target: Target) -> Engine | None:
        """The engine of ``target``; None where it was not loaded yet."""
        with self._lock:
            return self._engines.get(_absolute(target))

    def discard(self, target: Target) -> None:
        """Close the engine of ``target``, where there is one. A further call starts a new one."""
        with self._lock:
            engine = self._engines.pop(_absolute(target), None)
        if engine is not None:
            engine.close()

    def tokenizer(self, target: Target) -> Tokenizer:
        """The tokenizer of ``target``, without its engine: that of its folder as it is now."""
        target = _absolute(target)
        key = _tokenizer_key(target)
        with self._key_lock(key):
            version = _version(target)
            with self._lock:
                is_old = version is not None and self._tokenizer_versions.get(key, version) != version
                known = None if is_old else self._tokenizers.get(key)
            if known is not None:
                return known
            tokenizer = load_tokenizer(target)
            with self._lock:
                self._tokenizers[key] = tokenizer
                if version is not None:
                    self._tokenizer_versions[key] = version
            return tokenizer

    def all(self) -> list[Engine]:
        """Every engine that runs."""
        with self._lock:
            return [*self._engines.values(), *self._replaced.values()]

    def close(self, *, but: Iterable[Engine] = ()) -> None:
        """Close every engine except those in ``but``: what is under way on them fails, further calls start new ones."""
        kept = {id(engine) for engine in but}
        with self._lock:
            found = {target: engine for target, engine in self._engines.items() if id(engine) not in kept}
            engines = [*found.values(), *(engine for key, engine in self._replaced.items() if key not in kept)]
            self._engines = {target: engine for target, engine in self._engines.items() if target not in found}
            self._replaced = {key: engine for key, engine in self._replaced.items() if key in kept}
        _close(engines)

    def _key_lock(self, key: Target | tuple[str, str | None]) -> threading.Lock:
        """The lock that is held while the engine or tokenizer of ``key`` is looked for and loaded."""
        with self._lock:
            return self._key_locks.setdefault(key, threading.Lock())

    def _put_in_use(self, target: Target, engine: Engine) -> None:
        """Count a use of the engine of ``target``, and make it the one used last."""
        self._engines[target] = engine
        self._users[id(engine)] += 1

    def _surplus(self, most: int) -> list[Target]:
        """Return the least recently used engines with a model that no run uses, but for ``most`` of them."""
        idle = [
            target
            for target, engine in self._engines.items()
            if target.kind in WITH_WEIGHTS and not self._users[id(engine)]
        ]
        return idle[: max(len(idle) - most, 0)]

    def _forget(self, targets: Iterable[Target]) -> list[Engine]:
        """Remove engines from the cache; return the unused ones, which are to be closed."""
        unused: list[Engine] = []
        for target in targets:
            self._engine_versions.pop(target, None)
            engine = self._engines.pop(target, None)
            if engine is None:
                continue
            if self._users[id(engine)]:
                self._replaced[id(engine)] = engine
            else:
                unused.append(engine)
        return unused


def _close(engines: Iterable[Engine]) -> None:
    for engine in engines:
        engine.close()


def _absolute(target: Target) -> Target:
    """The target with a path that stays the same folder wherever the process goes."""
    if target.path is None or target.kind != "local":
        return target
    return replace(target, path=str(Path(target.path).expanduser().resolve()))


def _tokenizer_key(target: Target) -> tuple[str, str | None]:
    """Equal for targets with one tokenizer."""
    named = None if target.remote is None else target.remote.tokenizer
    if target.capabilities.contexts != "tokens":
        return "messages", None
    return (target.kind, target.path) if named is None else ("folder", named)


def _version(target: Target) -> Version | None:
    """The state of the target's model folder; None where it has none, or the folder is not there (any more).

    What a revision on the Hugging Face Hub holds does not change.
    """
    if target.kind not in ("local", "builtin"):
        return None
    try:
        with os.scandir(builtin_model.path() if target.path is None else target.path) as entries:
            states = [(entry.name, entry.stat()) for entry in entries if _MODEL_FILES.fullmatch(entry.name)]
    except OSError:
        return None
    return tuple(sorted((name, state.st_size, state.st_mtime_ns, state.st_ino) for name, state in states))
