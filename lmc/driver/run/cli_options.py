"""How a program of a file runs: what its decorator says, and what the command line says, which wins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from lmc.driver.compile.profiles import read_profile
from lmc.driver.errors import UsageError
from lmc.driver.options import DEFAULT_LEVEL, Options, Wish
from lmc.driver.run.run import Runner
from lmc.frontend.program.function import JittedFunction


@runtime_checkable
class Configured(Protocol):
    """A program that has options of its own: those of ``@lmc.jit(…)``."""

    @property
    def options(self) -> Options:
        """They."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """The run options of a command line; None where an option is not given.

    ``profile`` is the file of a profile to plan by, the others are as in ``Options``.
    """

    wish: Wish = field(default_factory=Wish)
    seed: int | None = None
    level: str | None = None
    timeout: float | None = None
    profile: str | None = None
    order_sections: bool | None = None

    def runner(self, function: JittedFunction) -> Runner:
        """A runner of ``function`` under its own options, as far as the command line has no others.

        Engine settings of a decorator that names a target hold for that target alone. Raises ``UsageError`` for a
        profile that is not there or is not looked at, ``InputError`` for one that is no profile of the program.
        """
        own = function.options if isinstance(function, Configured) else Options()
        if own.wish.target is not None and self.wish.target not in (None, own.wish.target):
            own = replace(own, wish=Wish())
        level = own.level if self.level is None else self.level
        if self.profile is not None and level != DEFAULT_LEVEL:
            raise UsageError(
                f"-{level} looks at no profile", remedy=f"use -{DEFAULT_LEVEL}, or leave out --profile-use"
            )
        profile = None if self.profile is None else read_profile(self.profile, function.name)
        options = own.updated(
            function.name,
            self.wish,
            seed=self.seed,
            level=self.level,
            timeout=self.timeout,
            profile=profile,
            order_sections=self.order_sections,
        )
        return Runner(function, options)

    def for_saved(self, path: str) -> Options:
        """The options of a saved plan. Raises ``UsageError`` for those that say how a program is compiled."""
        chosen = {"--profile-use": self.profile is not None, "--order-sections": self.order_sections is not None}
        for name, is_given in chosen.items():
            if is_given:
                raise UsageError(
                    f"{name} says how a program is compiled, and {path} is compiled already",
                    remedy=f"give {name} to lmc compile, or name the program itself",
                )
        return Options(self.wish, self.seed or 0, timeout=self.timeout)
