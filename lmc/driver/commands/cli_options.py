"""The options of a command line, over those of the program's decorator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from lmc.driver.errors import UsageError
from lmc.driver.options import DEFAULT_LEVEL, Options
from lmc.driver.profiles import read_profile
from lmc.driver.runner import Runner
from lmc.frontend.program.function import JittedFunction

GivenOptions = Mapping[str, Any]
"""Options of a command line by the names of the fields of ``Options``; None is an option that is not given.

``profile`` is a file."""


@runtime_checkable
class Configured(Protocol):
    """A program that has options of its own: those of ``@lmc.jit(…)``."""

    @property
    def options(self) -> Options:
        """Options set in ``@lmc.jit(…)``."""
        ...


def runner_for(function: JittedFunction, given: GivenOptions) -> Runner:
    """A runner of ``function`` under its own options, overridden by those that are ``given``.

    Engine options of a decorator that names a target hold for that target alone. Raises ``UsageError`` for a profile
    that is not there or that the level does not use, ``InputError`` for a profile of another program.
    """
    own = function.options if isinstance(function, Configured) else Options()
    if own.target is not None and given.get("target") not in (None, own.target):
        own = own.without_engine()
    if (path := given.get("profile")) is not None:
        level = given.get("level") or own.level
        if level != DEFAULT_LEVEL:
            raise UsageError(
                f"-{level} looks at no profile", remedy=f"use -{DEFAULT_LEVEL}, or leave out --profile-use"
            )
        given = {**given, "profile": read_profile(path, function.name)}
    return Runner(function, own.updated(function.name, **given))


def options_for_saved(path: str, given: GivenOptions) -> Options:
    """The options of a saved plan. Raises ``UsageError`` for those that say how a program is compiled."""
    for option, name in (
        ("--profile-use", "profile"),
        ("--order-sections", "order_sections"),
        ("--disable-pass", "disabled_passes"),
    ):
        if given.get(name) is not None:
            raise UsageError(
                f"{option} says how a program is compiled, and {path} is compiled already",
                remedy=f"give {option} to lmc compile, or name the program itself",
            )
    return Options().updated(path, **given)
