"""Hosted models and servers as targets: their settings, and what the data files say that they can do."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit

import pydantic

from lmc.driver.options import RemoteTarget
from lmc.driver.targets.probes import DatedProbe, known_probe
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.target import HOSTED, Api, RemoteSettings, Target
from lmc.ir.errors import InputError

_APIS: Mapping[str, tuple[Api, ...]] = {
    "openai": ("chat", "responses"),
    "anthropic": ("messages",),
    "server": ("chat", "completions"),
}
SETTINGS = tuple(each.name for each in fields(RemoteSettings))
"""The settings of ``lmc.remote`` and of ``[tool.lmc.targets.NAME]``."""
_COUNTS = (
    "requests_per_minute",
    "tokens_per_minute",
    "concurrency",
    "attempts",
    "context_length",
    "kv_tokens",
    "kv_page",
)
_OF_SERVERS = ("server", "session_header", "kv_tokens", "kv_page")
_SECRETS = frozenset({"apikey", "key", "token", "password", "secret"})
"""Words in names of settings that hold secrets."""
_NEAR = 0.9
"""The similarity of a name that is a setting with a slip of the pen."""
_NAMES_SHOWN = 3
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_HEADER = re.compile(r"(?i)x-[a-z0-9-]{1,62}")
_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
OTHER_SERVER = "other"
Tables = Mapping[str, Mapping[str, Any]]
"""The tables of ``[tool.lmc.targets]`` by name."""
NOTHING = "none"
"""The text for None in files of capabilities: TOML has no null."""


@dataclass(frozen=True)
class DataSource:
    """The origin of a capability: a data file, a probe or the user.

    ``date`` is that of its check; None: unknown. ``basis`` is what a data file was checked against.
    """

    date: str | None
    text: str
    basis: str | None = None


@dataclass(frozen=True)
class KnownTarget:
    """A hosted target, and the origin of each of its capabilities."""

    target: Target
    sources: Mapping[str, DataSource]


@dataclass(frozen=True)
class ModelFile:
    """The data file of one provider."""

    provider: str
    source: DataSource
    default_api: Api
    api_key_env: str | None
    names: tuple[str, ...]
    data: Mapping[str, Any] = field(repr=False)

    def entries(self, model: str, api: Api) -> dict[str, tuple[Any, DataSource]]:
        """Return capabilities of ``model`` through ``api``, with sources: later entries of the file override."""
        found: dict[str, tuple[Any, DataSource]] = {}
        self._take(found, self.data["capabilities"], "all models")
        for each in self.data.get("models", ()):
            if any(fnmatchcase(model, pattern) for pattern in each["match"]):
                self._take(found, each["capabilities"], ", ".join(each["match"]))
        of_api = dict(self.data.get("apis", {}).get(api, {}))
        without, more = of_api.pop("without", ()), of_api.pop("more", ())
        self._take(found, of_api, f"api {api}")
        parameters = found["parameters"][0]
        kept = [name for name in (*parameters, *more) if name not in without]
        if kept != parameters:
            self._take(found, {"parameters": kept}, f"api {api}")
        return found

    def _take(self, found: dict[str, tuple[Any, DataSource]], entries: Mapping[str, Any], part: str) -> None:
        source = DataSource(self.source.date, f"{self.source.text}, {part}", self.source.basis)
        found.update({name: (value, source) for name, value in entries.items()})

    def knows(self, model: str) -> bool:
        """Return True for a model that the file names, with or without a date at its end."""
        return model in self.names or _DATE.sub("", model) in self.names

    def near(self, model: str) -> list[str]:
        """Return other known models with a name like ``model``."""
        return difflib.get_close_matches(model, [name for name in self.names if name != model], n=_NAMES_SHOWN)


@lru_cache
def model_file(provider: str) -> ModelFile:
    """Read the data file of a provider."""
    text = resources.files("lmc.driver.targets").joinpath("models", f"{provider}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return ModelFile(
        provider,
        DataSource(data["date"], f"models/{provider}.toml", data["source"]),
        data["default_api"],
        data.get("api_key_env"),
        tuple(data["names"]),
        data,
    )


def remote(spec: str, **settings: Any) -> RemoteTarget:
    """Return a hosted model with settings: a target for ``judge.on(lmc.remote("openai:gpt-5.6", …))``.

    ``settings`` are those of ``[tool.lmc.targets.NAME]``: ``api``, ``base_url``, ``api_key_env``,
    ``requests_per_minute``, ``tokens_per_minute``, ``concurrency``, ``first_token_timeout``, ``idle_timeout``,
    ``timeout``, ``attempts``, ``fallback``, ``continuation``, ``reasoning_tokens``, ``tokenizer``, ``server``,
    ``context_length``, ``kv_tokens``, ``kv_page``, ``session_header``, ``store``, and ``capabilities``, which override
    those that lmc knows. Raises ``InputError``.
    """
    if not (isinstance(spec, str) and is_hosted(spec)):
        guess = near_target(spec) if isinstance(spec, str) else None
        wish = f"did you mean {guess!r}? Otherwise name" if guess else "name"
        raise InputError(
            f"{spec!r} is no hosted model",
            remedy=f"{wish} openai:MODEL, anthropic:MODEL or server:URL[#MODEL]; "
            "a target of [tool.lmc.targets] has its settings there",
        )
    hosted_target(spec, settings)
    return RemoteTarget(spec, settings)


def near_target(name: str) -> str | None:
    """Return the hosted target that a name without its provider, or with a wrong one, may mean."""
    kind, colon, model = name.partition(":")
    near = difflib.get_close_matches(kind.lower(), HOSTED, n=1) if colon and model else []
    if near:
        return f"{near[0]}:{model}"
    providers = [each for each in HOSTED if each != "server" and model_file(each).knows(name)]
    return f"{providers[0]}:{name}" if providers else None


def is_hosted(spec: str) -> bool:
    """Return True for ``openai:MODEL``, ``anthropic:MODEL`` and ``server:URL``."""
    kind, colon, rest = spec.partition(":")
    return kind in HOSTED and bool(colon and rest)


def defined_target(name: str, tables: Tables) -> Target:
    """Return the target of ``[tool.lmc.targets.NAME]``. Raises ``InputError``."""
    return hosted_target(*spec_of(name, tables[name]), tables)


def spec_of(name: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the target and the other settings of a table ``[tool.lmc.targets.NAME]``. Raises ``InputError``."""
    given = dict(settings)
    kind, model = given.pop("kind", None), given.pop("model", None)
    if kind not in HOSTED:
        raise InputError(f"kind of target {name!r} is {kind!r}", remedy=f"give one of {', '.join(HOSTED)}")
    if kind == "server":
        address = given.pop("base_url", None)
        if not isinstance(address, str):
            raise InputError(f"target {name!r} has no base_url", remedy='write base_url = "http://HOST:PORT"')
        return f"server:{address}" + (f"#{model}" if model else ""), given
    if not isinstance(model, str) or not model:
        raise InputError(f"target {name!r} has no model", remedy='write model = "NAME"')
    return f"{kind}:{model}", given


def hosted_target(spec: str, settings: Mapping[str, Any], tables: Tables | None = None) -> Target:
    """Return the target of ``openai:MODEL``, ``anthropic:MODEL`` or ``server:URL[#MODEL]``.

    ``tables`` are the user's targets, of which a fallback may be one; None: they are not known yet, and a fallback that
    is a name is left out. Raises ``InputError``.
    """
    return known_target(spec, settings, tables=tables).target


def known_target(
    spec: str, settings: Mapping[str, Any], own: str = "settings of the target", tables: Tables | None = None
) -> KnownTarget:
    """Return a hosted target with the sources of its capabilities; ``own`` names that of ``settings``.

    ``tables`` are as for ``hosted_target``. Raises ``InputError``.
    """
    kind, _, rest = spec.partition(":")
    given = dict(settings)
    overrides = given.pop("capabilities", {})
    if kind == "server":
        _check_address(rest)
        if given.get("base_url") is not None:
            raise InputError(
                f"{spec}: base_url is {given['base_url']!r}, and the target has its address", remedy="leave it out"
            )
    elif any(mark in rest for mark in "/?# "):
        raise InputError(f"{rest!r} is no name of a model", remedy=f"write {kind}:MODEL")
    file = model_file(kind)
    found_by = known_probe(rest) if kind == "server" and given.get("server") is None else None
    if kind == "server":
        _choose(given, found_by)
    else:
        for name in _OF_SERVERS:
            if given.get(name) is not None:
                raise InputError(f"{spec}: {name} is for targets of the kind server", remedy="leave it out")
    given.setdefault("api_key_env", file.api_key_env)
    given.setdefault("api", file.default_api)
    chosen = _checked_settings(spec, given)
    if chosen.api not in _APIS[kind]:
        raise InputError(f"{kind} has no api {chosen.api!r}", remedy=f"use {' or '.join(_APIS[kind])}")
    if chosen.store and chosen.api != "responses":
        raise InputError(f"{spec}: store is for the api responses", remedy='set api = "responses", or leave store out')
    if not isinstance(overrides, dict):
        raise InputError(f"capabilities of {spec} are {overrides!r}", remedy="give a table of capabilities")
    checked_capabilities(overrides, spec)
    entries = _server_entries(file, rest, chosen, found_by) if kind == "server" else file.entries(rest, chosen.api)
    entries.update({name: (value, DataSource(None, own)) for name, value in overrides.items()})
    found = checked_capabilities({name: value for name, (value, _) in entries.items()}, f"models/{kind}.toml")
    sources = {name: source for name, (_, source) in entries.items()}
    if found.contexts != "tokens":  # these parameters and scores name tokens
        lacking = {"logit_bias", "stop_token_ids"} & found.parameters
        found = replace(found, scores=False, logprobs=-1, parameters=found.parameters - lacking)
    if found.contexts == "messages" and found.continuation == "none" and chosen.continuation == "turns":
        found = replace(found, continuation="turns")
        sources["continuation"] = DataSource(None, f'{own}: continuation = "turns"')
    if chosen.reasoning_tokens:
        found = replace(found, reasoning_tokens=chosen.reasoning_tokens)
        sources["reasoning_tokens"] = DataSource(None, f"{own}: reasoning_tokens")
    target = Target(kind, rest, remote=chosen, capabilities=found)
    if chosen.fallback is not None:
        target = replace(target, fallback=_fallback(target, chosen.fallback, tables))
    return KnownTarget(target, sources)


def _fallback(first: Target, named: str, tables: Tables | None) -> Target | None:
    """Return the target that is asked where ``first`` fails; None for a name before ``tables`` are known."""
    if tables is not None and named in tables:
        spec, given = spec_of(named, tables[named])
        # Without its own table, a chain of fallbacks that comes back to it ends with an error.
        tables = {name: table for name, table in tables.items() if name != named}
    elif is_hosted(named):
        spec, given = named, {}
    elif tables is None:
        return None
    else:
        raise InputError(
            f"fallback of {first.spec} is {named!r}, which is no hosted model, or a fallback of itself",
            remedy="name openai:MODEL, anthropic:MODEL, server:URL or another one of [tool.lmc.targets]",
        )
    if spec.startswith("server:"):  # its contexts are those of the first target, where that is up to us
        assert first.remote is not None
        if first.capabilities.contexts == "tokens":
            given.setdefault("tokenizer", first.remote.tokenizer)
        else:
            given.setdefault("api", "chat")
    found = hosted_target(spec, given, tables)
    if found.capabilities.contexts != first.capabilities.contexts:
        raise InputError(
            f"{named} can't be the fallback of {first.spec}: its contexts are {found.capabilities.contexts}, those "
            f"of the target are {first.capabilities.contexts}",
            remedy="name a target of the same kind, or choose the api of either",
        )
    if found.capabilities.contexts == "tokens" and not _is_same_tokenizer(first, found):
        raise InputError(
            f"{named} can't be the fallback of {first.spec}: it has another tokenizer",
            remedy='name a server with the same model, or take messages: api = "chat"',
        )
    return found


def _is_same_tokenizer(first: Target, second: Target) -> bool:
    """Return True if contexts of both are tokens of one tokenizer. Files that are not there are errors of the run."""
    assert first.remote is not None
    assert second.remote is not None
    named = first.remote.tokenizer, second.remote.tokenizer
    if named[0] == named[1] or None in named:
        return named[0] == named[1]
    paths = [Path(each).expanduser() for each in named if each is not None]
    try:
        one, other = ((path / "tokenizer.json" if path.is_dir() else path).read_bytes() for path in paths)
    except OSError:
        return True
    return one == other


def needs_probe(target: Target) -> bool:
    """Return True for a server whose kind is not declared: a run asks it first."""
    return target.kind == "server" and target.remote is not None and target.remote.server is None


def is_unprobed(target: Target) -> bool:
    """Return True for a server whose capabilities are not known yet."""
    return needs_probe(target) and target.path is not None and known_probe(target.path) is None


def _choose(given: dict[str, Any], found: DatedProbe | None) -> None:
    """Set what the probe of a server tells: tokens are its contexts where it takes them and they are known here."""
    if found is None:
        if given.get("tokenizer"):
            given.setdefault("api", "completions")
        return
    probe, folder = found.probe, found.probe.tokenizer
    # A fallback takes messages as a rule, so a target with one keeps them unless its user decides otherwise.
    is_free = given.get("api") == "completions" or not (given.get("api") or given.get("fallback"))
    if folder is not None and is_free and os.access(Path(folder, "tokenizer.json"), os.R_OK):
        given.setdefault("tokenizer", folder)
    if probe.token_ids and given.get("tokenizer"):
        given.setdefault("api", "completions")
    given.setdefault("context_length", probe.model.context_length)
    if given.get("session_header") is None:  # else it is one of several servers behind a router
        given.setdefault("kv_tokens", probe.kv_tokens)
        given.setdefault("kv_page", probe.kv_page)


def _server_entries(
    file: ModelFile, rest: str, chosen: RemoteSettings, found: DatedProbe | None
) -> dict[str, tuple[Any, DataSource]]:
    """Return the capabilities of a server: those of its kind, and what its probe tells."""
    if chosen.server is not None and chosen.server not in file.names:
        raise InputError(f"server is {chosen.server!r}", remedy=_near(chosen.server, file.names))
    if found is None:
        return file.entries(chosen.server or OTHER_SERVER, chosen.api)
    entries = file.entries(found.probe.model.owner, chosen.api)
    source = DataSource(found.date.isoformat(), f"probe of {rest}")
    if found.probe.priority:
        entries["priority"] = ("falling", source)
    if chosen.api == "completions":
        entries["contexts"] = (entries["contexts"][0], source)
        entries["scores"] = (found.probe.echo, source)
    return entries


def checked_capabilities(entries: Mapping[str, Any], where: str) -> Capabilities:
    """Return capabilities from the entries of a file. Raises ``InputError`` at the first that is none."""
    names = [each.name for each in fields(Capabilities)]
    for name in entries:
        if name not in names:
            raise InputError(f"{where}: there is no capability {name!r}", remedy=_near(name, names))
    hints = get_type_hints(Capabilities)
    is_none = {name for name, value in entries.items() if value == NOTHING and type(None) in get_args(hints[name])}
    return _validated(Capabilities, {name: None if name in is_none else entries[name] for name in entries}, where)


def _checked_settings(spec: str, given: Mapping[str, Any]) -> RemoteSettings:
    for name in given:
        if name not in SETTINGS:
            words = {*name.lower().replace("-", "_").split("_"), name.lower()}
            if words & _SECRETS and not difflib.get_close_matches(name, SETTINGS, n=1, cutoff=_NEAR):
                raise InputError(
                    f"{spec}: {name} is written in a file or in the program",
                    remedy='take it out, set it in the environment, and name the variable: api_key_env = "MY_KEY"',
                )
            raise InputError(f"{spec}: a target has no setting {name!r}", remedy=_near(name, SETTINGS))
    for name in _COUNTS:
        value = given.get(name)
        if value is not None and (type(value) is not int or value < 1):
            raise InputError(f"{spec}: {name} is {value!r}", remedy="give a whole number from 1 on")
    if type(given.get("reasoning_tokens", 0)) is not int or given.get("reasoning_tokens", 0) < 0:
        raise InputError(
            f"{spec}: reasoning_tokens is {given['reasoning_tokens']!r}", remedy="give a whole number from 0 on"
        )
    variable = given.get("api_key_env")
    if variable is not None and not (isinstance(variable, str) and _VARIABLE.fullmatch(variable)):
        raise InputError(  # it may be a key: it is not shown
            f"{spec}: api_key_env is no name of an environment variable",
            remedy='set the key in the environment, and name the variable: api_key_env = "MY_KEY"',
        )
    header = given.get("session_header")
    if header is not None and not (isinstance(header, str) and _HEADER.fullmatch(header)):
        raise InputError(
            f"{spec}: session_header is {header!r}",
            remedy='give the name of a header that the router reads, like "x-session-id"',
        )
    if given.get("base_url") is not None:
        _check_address(str(given["base_url"]))
    for name in ("first_token_timeout", "idle_timeout", "timeout"):
        value = given.get(name)
        if value is not None and (type(value) not in (int, float) or not value > 0):
            raise InputError(f"{spec}: {name} is {value!r}", remedy="give a number of seconds greater than 0")
    return _validated(RemoteSettings, given, spec)


def _validated(kind: Any, entries: Mapping[str, Any], where: str) -> Any:
    try:
        return pydantic.TypeAdapter(kind).validate_python(dict(entries))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "it"
        hint = get_type_hints(kind).get(str(first["loc"][0]) if first["loc"] else "", None)
        allowed = [str(each) for each in get_args(hint) if isinstance(each, str)]
        remedy = f"give one of {', '.join(allowed)}" if allowed else first["msg"]
        raise InputError(f"{where}: {name} is {first['input']!r}", remedy=remedy) from None


def _check_address(rest: str) -> None:
    try:
        parts = urlsplit(rest)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        parts, is_good = None, False
    if parts is None or not is_good:
        raise InputError(f"{rest!r} is no address of a server", remedy="write server:http://HOST:PORT[#MODEL]")
    if parts.username or parts.password or parts.query:
        raise InputError(
            "the address of a server holds a password, or parameters that may hold one",
            remedy="set it in the environment, and name the variable: api_key_env",
        )


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
