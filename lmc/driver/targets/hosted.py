"""Hosted models and servers as targets: their settings, and what the data files say that they can do."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import resources
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit

import pydantic

from lmc.driver.options import RemoteTarget
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
_SECRET = ("api_key", "key", "token", "password", "secret")
_NAMES_SHOWN = 3


@dataclass(frozen=True)
class DataSource:
    """The origin of capabilities: a data file with its date."""

    date: str
    text: str


@dataclass(frozen=True)
class ModelFile:
    """The data file of one provider."""

    provider: str
    source: DataSource
    default_api: Api
    api_key_env: str | None
    names: tuple[str, ...]
    data: Mapping[str, Any] = field(repr=False)

    def capabilities(self, model: str, api: Api) -> Capabilities:
        """Return what ``model`` can do through ``api``: later entries of the file override earlier ones."""
        entries: dict[str, Any] = dict(self.data["capabilities"])
        for each in self.data.get("models", ()):
            if any(fnmatchcase(model, pattern) for pattern in each["match"]):
                entries.update(each["capabilities"])
        of_api = dict(self.data.get("apis", {}).get(api, {}))
        without, more = of_api.pop("without", ()), of_api.pop("more", ())
        entries.update(of_api)
        entries["parameters"] = [name for name in (*entries["parameters"], *more) if name not in without]
        return checked_capabilities(entries, f"models/{self.provider}.toml")

    def near(self, model: str) -> list[str]:
        """Return known models with a name like ``model``."""
        return difflib.get_close_matches(model, self.names, n=_NAMES_SHOWN)


@lru_cache
def model_file(provider: str) -> ModelFile:
    """Read the data file of a provider."""
    text = resources.files("lmc.driver.targets").joinpath("models", f"{provider}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return ModelFile(
        provider,
        DataSource(data["date"], data["source"]),
        data["default_api"],
        data.get("api_key_env"),
        tuple(data["names"]),
        data,
    )


def remote(spec: str, **settings: Any) -> RemoteTarget:
    """Return a hosted model with settings: a target for ``judge.on(lmc.remote("openai:gpt-5.6", …))``.

    ``settings`` are those of ``[tool.lmc.targets.NAME]``: ``api``, ``base_url``, ``api_key_env``,
    ``requests_per_minute``, ``tokens_per_minute``, ``concurrency``, ``first_token_timeout``, ``idle_timeout``,
    ``timeout``, ``attempts``, ``fallback``, ``continuation``, ``reasoning_tokens``, ``tokenizer``, and
    ``capabilities``, which override those that lmc knows. Raises ``InputError``.
    """
    hosted_target(spec, settings)
    return RemoteTarget(spec, settings)


def is_hosted(spec: str) -> bool:
    """Return True for ``openai:MODEL``, ``anthropic:MODEL`` and ``server:URL``."""
    kind, colon, rest = spec.partition(":")
    return kind in HOSTED and bool(colon and rest)


def defined_target(name: str, settings: Mapping[str, Any]) -> Target:
    """Return the target of ``[tool.lmc.targets.NAME]``: ``settings`` are its table. Raises ``InputError``."""
    given = dict(settings)
    kind, model = given.pop("kind", None), given.pop("model", None)
    if kind not in HOSTED:
        raise InputError(f"kind of target {name!r} is {kind!r}", remedy=f"give one of {', '.join(HOSTED)}")
    if kind == "server":
        address = given.pop("base_url", None)
        if not isinstance(address, str):
            raise InputError(f"target {name!r} has no base_url", remedy='write base_url = "http://HOST:PORT"')
        spec = f"server:{address}" + (f"#{model}" if model else "")
    else:
        if not isinstance(model, str) or not model:
            raise InputError(f"target {name!r} has no model", remedy='write model = "NAME"')
        spec = f"{kind}:{model}"
    return hosted_target(spec, given)


def hosted_target(spec: str, settings: Mapping[str, Any]) -> Target:
    """Return the target of ``openai:MODEL``, ``anthropic:MODEL`` or ``server:URL[#MODEL]``. Raises ``InputError``."""
    kind, _, rest = spec.partition(":")
    given = dict(settings)
    overrides = given.pop("capabilities", {})
    if kind == "server":
        _check_address(rest)
    elif any(mark in rest for mark in "/?# "):
        raise InputError(f"{rest!r} is no name of a model", remedy=f"write {kind}:MODEL")
    file = model_file(kind)
    given.setdefault("api_key_env", file.api_key_env)
    given.setdefault("api", "completions" if kind == "server" and given.get("tokenizer") else file.default_api)
    chosen = _checked_settings(spec, given)
    if chosen.api not in _APIS[kind]:
        raise InputError(f"{kind} has no api {chosen.api!r}", remedy=f"use {' or '.join(_APIS[kind])}")
    if not isinstance(overrides, dict):
        raise InputError(f"capabilities of {spec} are {overrides!r}", remedy="give a table of capabilities")
    known = file.capabilities(rest, chosen.api)
    found = checked_capabilities({**_data_of(known), **overrides}, spec)
    if found.contexts == "messages" and found.continuation == "none" and chosen.continuation == "turns":
        found = replace(found, continuation="turns")
    return Target(kind, rest, remote=chosen, capabilities=found)


def checked_capabilities(entries: Mapping[str, Any], where: str) -> Capabilities:
    """Return capabilities from the entries of a file. Raises ``InputError`` at the first that is none."""
    names = [each.name for each in fields(Capabilities)]
    for name in entries:
        if name not in names:
            raise InputError(f"{where}: there is no capability {name!r}", remedy=_near(name, names))
    return _validated(Capabilities, entries, where)


def _checked_settings(spec: str, given: Mapping[str, Any]) -> RemoteSettings:
    for name in given:
        if name not in SETTINGS:
            if any(secret in name.lower() for secret in _SECRET):
                raise InputError(
                    f"{spec}: {name} stands in a file or in the program",
                    remedy='take it out, set it in the environment, and name the variable: api_key_env = "MY_KEY"',
                )
            raise InputError(f"{spec}: a target has no setting {name!r}", remedy=_near(name, SETTINGS))
    for name in ("requests_per_minute", "tokens_per_minute", "concurrency", "attempts"):
        value = given.get(name)
        if value is not None and (type(value) is not int or value < 1):
            raise InputError(f"{spec}: {name} is {value!r}", remedy="give a whole number from 1 on")
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


def _data_of(known: Capabilities) -> dict[str, Any]:
    return {each.name: getattr(known, each.name) for each in fields(Capabilities)}


def _check_address(rest: str) -> None:
    try:
        parts = urlsplit(rest)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        parts, is_good = None, False
    if parts is None or not is_good:
        raise InputError(f"{rest!r} is no address of a server", remedy="write server:http://HOST:PORT[#MODEL]")
    if parts.username or parts.password:
        raise InputError(
            "the address of a server holds a password",
            remedy="set it in the environment, and name the variable: api_key_env",
        )


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
