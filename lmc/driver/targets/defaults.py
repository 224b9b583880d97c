"""Ambient defaults: the target and the cache of a program without options for them.

Read once when a call enters, passed on from there.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from lmc.cost.prices import PRICES_TABLE, PriceBook
from lmc.driver.options import ENGINE_OPTIONS, Options, RemoteTarget, check_options
from lmc.driver.targets.hosted import Tables, defined_target, hosted_target, is_hosted, near_target, needs_probe
from lmc.driver.targets.probes import probe_once
from lmc.grammar.index.store import MAX_BYTES, IndexFolder, IndexStore
from lmc.ir.engine.target import GIVEN, KINDS, TARGETS, WITH_PATH, Target
from lmc.ir.errors import ConstraintError, EngineError, InputError

ENVIRONMENT = "LMC_TARGET"
FALLBACK = "builtin"
GRAMMAR_CACHE = "LMC_GRAMMAR_CACHE"
GRAMMAR_CACHE_MB = "LMC_GRAMMAR_CACHE_MB"
OFF = "off"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


_CACHE_SETTINGS = ("grammar_cache", "grammar_cache_mb")
TARGETS_TABLE = "targets"
COST_TABLE = "cost"
BUDGET_TABLE = "budget"
SETTINGS = (*ENGINE_OPTIONS, *_CACHE_SETTINGS, TARGETS_TABLE, PRICES_TABLE, COST_TABLE, BUDGET_TABLE)
"""The keys of ``[tool.lmc]``."""


class DefaultBackend:
    """The default backend of ``lmc.sglang``: one per process, as in that language."""

    def __init__(self) -> None:
        self.chosen: Any = None


DEFAULT_BACKEND = DefaultBackend()


def resolve_target(
    options: Options, *, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Target:
    """The target of a call: that of ``options``, else ``LMC_TARGET``, else ``[tool.lmc]``, else the built-in model.

    ``[tool.lmc]`` is read from the nearest ``pyproject.toml`` at or above ``folder`` (the current one) and may hold all
    engine options; those other than ``target`` count for the target it names only.
    Raises ``InputError``.
    """
    environment = os.environ if environment is None else environment
    named = options.target or environment.get(ENVIRONMENT)
    if not _needs_tables(named):
        return _parse({**options.engine, "target": named}, {})
    _, settings = _project_settings(Path.cwd() if folder is None else folder)
    defined = settings.get(TARGETS_TABLE, {})
    if named:
        return _parse({**options.engine, "target": named}, defined)
    return _parse({**settings, **replace(options, target=None).engine}, defined)


def _needs_tables(named: object) -> bool:
    """Return True if a target may be, or may have as its fallback, a name of ``[tool.lmc.targets]``; or is none."""
    if isinstance(named, RemoteTarget):
        fallback = named.settings.get("fallback")
        return isinstance(fallback, str) and not is_hosted(fallback)
    return named is None or (isinstance(named, str) and named.partition(":")[0] not in (*KINDS, GIVEN))


def target_of_run(options: Options) -> Target:
    """Return the target of a run: as ``resolve_target``, but a server that was not probed is probed now.

    A run with a journal asks each time whether the server has the same model. Raises ``InputError``, and
    ``EngineError`` for a server that can't be reached.
    """
    target = resolve_target(options)
    asked = [each for each in target.chain if needs_probe(each)]
    for each in asked:
        try:
            probe_once(each, again=options.journal is not None)
        except EngineError:
            if each is target:
                raise  # a fallback that can't be reached is no error before it is needed
    return resolve_target(options) if asked else target


def resolve_grammar_cache(
    *, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> IndexFolder | None:
    """Return the folder of token indexes that processes share, and its limit in bytes; None for no folder.

    It is ``LMC_GRAMMAR_CACHE``, else ``grammar_cache`` of ``[tool.lmc]`` (relative to its pyproject.toml), else the
    user's cache. "off" is none. The limit is ``LMC_GRAMMAR_CACHE_MB`` megabytes (of 2^20 bytes), else
    ``grammar_cache_mb``, else 512: beyond that, the least recently used are deleted. 0 in the environment: the folder
    is only read. Raises ``InputError``, also for a folder that was named and can't be used.
    """
    environment = os.environ if environment is None else environment
    here = Path.cwd() if folder is None else folder
    place, settings = _project_settings(here)
    named = environment.get(GRAMMAR_CACHE) or settings.get("grammar_cache")
    if named == OFF:
        return None
    max_bytes = _cache_bytes(environment.get(GRAMMAR_CACHE_MB), settings)
    if not named:
        try:
            return IndexFolder(IndexStore.default_folder(), max_bytes)
        except RuntimeError:  # a user without a home
            return None
    folder = (here if environment.get(GRAMMAR_CACHE) else place) / Path(named).expanduser()
    if not max_bytes:
        return IndexFolder(folder, 0)
    try:
        return IndexFolder(IndexStore(folder).folder, max_bytes)
    except ConstraintError as error:
        raise InputError(error.cause, remedy=error.remedy) from error


def _cache_bytes(asked: str | None, settings: Mapping[str, Any]) -> int:
    if not asked:
        return settings.get("grammar_cache_mb", MAX_BYTES >> 20) << 20
    if not asked.isdecimal():
        raise InputError(
            f"{GRAMMAR_CACHE_MB} is {asked!r}", remedy=f"give a number of megabytes, or {GRAMMAR_CACHE}=off"
        )
    return int(asked) << 20


def _parse(settings: Mapping[str, Any], defined: Tables) -> Target:
    """The target of settings by name; those that are left out have the defaults of ``Target``.

    ``defined`` are the tables of ``[tool.lmc.targets]``.
    """
    options = {"target": FALLBACK, **{name: value for name, value in settings.items() if name in ENGINE_OPTIONS}}
    check_options(options)
    asked = options.pop("target")
    if isinstance(asked, Target):
        _check_remote(asked.spec, options)
        return asked
    if isinstance(asked, RemoteTarget):
        _check_remote(asked.spec, options)
        return hosted_target(asked.spec, asked.settings, defined)
    spec = str(asked)
    if spec in defined or is_hosted(spec):
        _check_remote(spec, options)
        return defined_target(spec, defined) if spec in defined else hosted_target(spec, {})
    _check_kind(spec, defined)
    if options.get("kv_tokens") == "auto":
        del options["kv_tokens"]
    return Target.parse(spec, **options)


def _check_remote(spec: str, options: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for options of a local model."""
    for name in options:
        raise InputError(
            f"{name} is an option of a local model, and the target is {spec}",
            remedy="leave it out: settings of hosted models are those of lmc.remote and of [tool.lmc.targets.NAME]",
        )


def defined_targets() -> tuple[Path, Mapping[str, Mapping[str, Any]]]:
    """Return the nearest ``pyproject.toml`` and its tables ``[tool.lmc.targets.NAME]``. Raises ``InputError``."""
    place, settings = _project_settings(Path.cwd())
    return place / "pyproject.toml", settings.get(TARGETS_TABLE, {})


def price_book(when: datetime | None = None) -> PriceBook:
    """Return the prices of models, with ``[tool.lmc.prices]`` of the nearest ``pyproject.toml``. Raises ``InputError``.

    ``when``: see ``PriceBook``.
    """
    place, settings = _project_settings(Path.cwd())
    return PriceBook(settings.get(PRICES_TABLE), str(place / "pyproject.toml"), when)


def cost_entries() -> tuple[Path, Sequence[Mapping[str, Any]]]:
    """Return the nearest ``pyproject.toml`` and its tables ``[[tool.lmc.cost]]``. Raises ``InputError``."""
    place, settings = _project_settings(Path.cwd())
    file, tables = place / "pyproject.toml", settings.get(COST_TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise InputError(f"{file}: tool.lmc.cost holds no tables", remedy="write [[tool.lmc.cost]]")
    return file, tables


def budget_table() -> tuple[Path, Mapping[str, Any]]:
    """Return the nearest ``pyproject.toml`` and its table ``[tool.lmc.budget]``. Raises ``InputError``."""
    place, settings = _project_settings(Path.cwd())
    file, table = place / "pyproject.toml", settings.get(BUDGET_TABLE, {})
    if not isinstance(table, dict):
        raise InputError(f"{file}: tool.lmc.budget is no table", remedy="write [tool.lmc.budget]")
    return file, table


def project_folder() -> Path:
    """Return the folder of the nearest ``pyproject.toml``; the current one where there is none."""
    return _project_settings(Path.cwd())[0]


def is_defined(name: str) -> bool:
    """Return True for a name of ``[tool.lmc.targets]`` in the nearest ``pyproject.toml``."""
    return name in defined_targets()[1]


def near_defined(name: str) -> str | None:
    """Return a name of ``[tool.lmc.targets]`` that is nearly ``name``."""
    return next(iter(difflib.get_close_matches(name, defined_targets()[1], n=1)), None)


def _check_name(name: str) -> None:
    if name in KINDS or not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can't be the name of a target", remedy="use letters, digits, - and _, and no kind of targets"
        )


def _check_kind(spec: str, defined: Tables) -> None:
    """Raise ``InputError`` for a target that nearly is one."""
    kind = spec.partition(":")[0]
    if kind in KINDS:
        return
    near = difflib.get_close_matches(kind.lower(), KINDS, n=1)
    wish = near_target(spec) or next(iter(difflib.get_close_matches(spec, defined, n=1)), None)
    if near and wish is None:
        wish = f"{near[0]}:{spec.partition(':')[2] or 'PATH'}" if near[0] in WITH_PATH else near[0]
    if wish is not None:
        raise InputError(
            f"unknown target {spec!r}",
            remedy=f"did you mean {wish!r}? There are {TARGETS}",
        )


def _project_settings(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """``[tool.lmc]`` and the folder where it stands."""
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        with suppress(OSError):
            status = path.stat()
            if S_ISREG(status.st_mode):
                return place, _read_settings(path, (status.st_mtime_ns, status.st_size, status.st_ino))
    return folder, {}


@lru_cache(maxsize=64)
def _read_settings(path: Path, version: tuple[int, ...]) -> Mapping[str, Any]:
    """The settings in a file, which is read again once it has another ``version``: every call of a program asks."""
    del version
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("lmc", {})
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read: {error}", remedy=f"correct it, or set {ENVIRONMENT}") from error
    except AttributeError as error:
        raise InputError(f"{path}: [tool] is no table", remedy=f"correct it, or set {ENVIRONMENT}") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path}: tool.lmc is no table", remedy='write [tool.lmc], then target = "…"')
    for name in settings:
        if name not in SETTINGS:
            raise InputError(f"{path}: [tool.lmc] has no setting {name!r}", remedy=f"use {', '.join(SETTINGS)}")
    if not isinstance(settings.get("grammar_cache", ""), str):
        raise InputError(f"{path}: grammar_cache is no text", remedy='name a folder, or write grammar_cache = "off"')
    megabytes = settings.get("grammar_cache_mb", 1)
    if not isinstance(megabytes, int) or isinstance(megabytes, bool) or megabytes < 1:
        remedy = 'give a number of megabytes, or write grammar_cache = "off"'
        raise InputError(f"{path}: grammar_cache_mb is {megabytes!r}", remedy=remedy)
    defined = settings.get(TARGETS_TABLE, {})
    if not isinstance(defined, dict) or not all(isinstance(each, dict) for each in defined.values()):
        raise InputError(f"{path}: tool.lmc.targets holds no tables", remedy="write [tool.lmc.targets.NAME]")
    prices = settings.get(PRICES_TABLE, {})
    if not isinstance(prices, dict):
        raise InputError(f"{path}: tool.lmc.prices holds no tables", remedy='write [tool.lmc.prices."MODEL"]')
    PriceBook(prices, str(path))
    for each in defined.values():
        if isinstance(tokenizer := each.get("tokenizer"), str):
            each["tokenizer"] = str(path.parent / Path(tokenizer).expanduser())
    part = ""
    try:
        for name in defined:
            part = f".{TARGETS_TABLE}.{name}"
            _check_name(name)
            target = defined_target(name, defined)
            if name in prices and name != target.path:
                part = f".{PRICES_TABLE}.{name}"
                raise InputError(
                    f"{name} is a target, and prices are those of models",
                    remedy=f'write [tool.lmc.{PRICES_TABLE}."{target.spec}"]',
                )
        part = ""
        _parse(settings, defined)
    except InputError as error:
        raise InputError(f"{path}: [tool.lmc{part}]: {error.cause}", remedy=error.remedy) from error
    return settings
