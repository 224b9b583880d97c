"""Targets with their settings and capabilities: the implementation of ``lmc targets``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.targets.defaults import defined_targets, resolve_target
from lmc.driver.targets.hosted import (
    SETTINGS,
    DataSource,
    is_hosted,
    known_target,
    model_file,
    needs_probe,
    spec_of,
)
from lmc.driver.targets.probes import DatedProbe, known_probe, probe_again
from lmc.driver.targets.registry import model_folder
from lmc.driver.version import __version__
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.target import KINDS, WITH_PATH, Target

__all__ = ["KindEntry", "TargetFacts", "all_targets", "facts_of"]

_FORMS = {"hf": "hf:ORG/NAME[@REVISION]", "local": "local:PATH", "server": "server:URL[#MODEL]"}
_LOCAL_SETTINGS = ("dtype", "kv_tokens", "deterministic", "device", "prefill_tokens")


@dataclass(frozen=True, slots=True)
class KindEntry:
    """A kind of target, or a name of ``[tool.lmc.targets]``.

    ``form`` is the text that ``--model`` takes, ``stands_for`` the target of a name, ``where`` its definition.
    """

    form: str
    where: str
    stands_for: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        return {"target": self.form, "stands_for": self.stands_for, "defined_in": self.where}


@dataclass(frozen=True)
class TargetFacts:
    """A target with its settings, and its capabilities with their sources. Keys are never part of it.

    ``key`` is the environment variable of the key and whether it is set, ``probe`` that of a server. ``remarks`` are
    doubts, not errors.
    """

    target: Target
    settings: Mapping[str, Any]
    sources: Mapping[str, DataSource]
    key: tuple[str, bool] | None = None
    probe: DatedProbe | None = None
    remarks: list[str] = field(default_factory=list[str])

    @property
    def capabilities(self) -> dict[str, tuple[Any, DataSource]]:
        """The capabilities in the order of their declaration; sets as sorted lists."""
        found = self.target.capabilities
        return {each.name: (_data(getattr(found, each.name)), self.sources[each.name]) for each in fields(Capabilities)}

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON data."""
        return {
            "target": self.target.spec,
            "settings": dict(self.settings),
            "key": None if self.key is None else {"variable": self.key[0], "is_set": self.key[1]},
            "probe": None if self.probe is None else {"date": self.probe.date.isoformat(), **asdict(self.probe.probe)},
            "capabilities": {
                name: {"value": value, "date": source.date, "source": source.text, "basis": source.basis}
                for name, (value, source) in self.capabilities.items()
            },
            "remarks": self.remarks,
        }


def all_targets() -> list[KindEntry]:
    """Return the kinds of targets and the names of ``[tool.lmc.targets]``. Raises ``InputError`` for a wrong table."""
    forms = [_FORMS.get(kind, f"{kind}:MODEL" if kind in WITH_PATH else kind) for kind in KINDS]
    found = [KindEntry(form, f"lmc {__version__}") for form in forms]
    path, tables = defined_targets()
    return [*found, *(KindEntry(name, str(path), spec_of(name, table)[0]) for name, table in tables.items())]


def facts_of(name: str, *, asks: bool = False) -> TargetFacts:
    """Return the facts of a target: a name of ``[tool.lmc.targets]``, or a text for ``--model``.

    A server without a cached probe is probed; ``asks``: it is probed anew. Raises ``InputError``, ``EngineError`` for a
    server that can't be reached, and ``UsageError`` for ``asks`` of a target that is not probed.
    """
    path, tables = defined_targets()
    is_remote = name in tables or is_hosted(name)
    if not is_remote:
        if asks:
            raise _not_probed(name)
        local = resolve_target(Options(name), environment={})
        if local.kind == "local":
            model_folder(local)  # a folder that is not there has no capabilities
        return _local_facts(local)
    spec, given = spec_of(name, tables[name]) if name in tables else (name, {})
    own = f"[tool.lmc.targets.{name}] in {path}"
    known, probe = known_target(spec, given, own, tables), None
    if needs_probe(known.target):
        assert known.target.path is not None
        probe = known_probe(known.target.path)
        if probe is None or asks:
            probe = probe_again(known.target)
            known = known_target(spec, given, own, tables)
    elif asks:
        raise _not_probed(name)
    target, remote = known.target, known.target.remote
    assert remote is not None
    variable = remote.api_key_env
    key = None if variable is None else (variable, bool(os.environ.get(variable, "").strip()))
    settings = {setting: getattr(remote, setting) for setting in SETTINGS if setting != "api_key_env"}
    return TargetFacts(target, settings, known.sources, key, probe, _remarks(target))


def _local_facts(target: Target) -> TargetFacts:
    settings = {} if target.kind == "toy" else {name: getattr(target, name) for name in _LOCAL_SETTINGS}
    source = DataSource(None, f"the engine of lmc {__version__}")
    return TargetFacts(target, settings, {each.name: source for each in fields(Capabilities)})


def _not_probed(name: str) -> UsageError:
    return UsageError(
        f"{name} is not probed", remedy="leave out --probe: it is for servers whose kind is not declared (server)"
    )


def _remarks(target: Target) -> list[str]:
    assert target.path is not None
    file = model_file(target.kind)
    if target.kind == "server" or file.knows(target.path):
        return []
    near = file.near(target.path)
    guess = f"; did you mean {' or '.join(near)}?" if near else ";"
    return [
        f"the data file of {target.kind} ({file.source.date}) does not name the model {target.path!r}{guess} "
        "its capabilities are those of models with such names"
    ]


def _data(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value
