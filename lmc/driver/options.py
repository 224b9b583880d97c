"""The options of a program: target, seed, level, profile and others, checked at the line where the user sets them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import cast

from lmc.driver.compile.profiles import ProfileOption, profile_for
from lmc.frontend.source.locations import user_location
from lmc.ir.engine.target import KvTokens
from lmc.ir.errors import InputError
from lmc.ir.profile import Profile

DEFAULT_LEVEL = "O2"
MAX_PRIORITY = 1000


@dataclass(frozen=True, slots=True)
class Wish:
    """The options that the user set: a target in words, and the settings of its engine."""

    target: str | None = None
    dtype: str | None = None
    kv_tokens: KvTokens | None = None
    deterministic: bool | None = None
    device: str | None = None
    prefill_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How a program runs, as set by ``@lmc.jit(…)``, ``Program.on`` and the command line: see ``Program.on``.

    ``requests`` bounds the requests and instances of a batch that run at the same time. ``profile`` holds measurements
    of earlier runs for the passes. ``order_sections`` puts movable sections of text first (``lmc.section``).
    An engine serves requests of higher ``priority`` first.
    """

    wish: Wish = field(default_factory=Wish)
    seed: int = 0
    level: str = DEFAULT_LEVEL
    timeout: float | None = None
    requests: int | None = None
    profile: Profile | None = None
    order_sections: bool = False
    priority: int = 0

    def updated(
        self,
        program: str,
        wish: Wish,
        *,
        seed: int | None = None,
        level: str | None = None,
        timeout: float | None = None,
        profile: ProfileOption | None = None,
        order_sections: bool | None = None,
        priority: int | None = None,
    ) -> Options:
        """Return these options with those replaced that are not None, for the program of that name.

        Reads the file of a profile now. Raises ``InputError`` at the user's line for a value that is not allowed.
        """
        if seed is not None:
            check_seed(seed)
        if timeout is not None:
            check_timeout(timeout)
        if order_sections is not None:
            check_flag("order_sections", order_sections)
        if priority is not None:
            check_priority(priority)
        asked = {name: value for name, value in asdict(wish).items() if value is not None}
        return Options(
            replace(self.wish, **asked),
            self.seed if seed is None else seed,
            self.level if level is None else level,
            self.timeout if timeout is None else timeout,
            self.requests,
            self.profile if profile is None else profile_for(program, profile),
            self.order_sections if order_sections is None else order_sections,
            self.priority if priority is None else priority,
        )


def check_option_names(unknown: Iterable[str], known: Sequence[str]) -> None:
    """Raise ``InputError`` at the user's line for an option that there is none of; ``known`` are those there are."""
    for name in unknown:
        near = difflib.get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"there is no option {name!r}",
            remedy=f"{guess}The options are {', '.join(known)}",
            location=user_location(),
        )


def check_seed(seed: object) -> None:
    """Raise ``InputError`` at the user's line for what is no seed."""
    if type(seed) is not int:
        raise InputError(f"seed is {seed!r}", remedy="give an integer", location=user_location())


def check_flag(name: str, value: object) -> None:
    """Raise ``InputError`` at the user's line for what is no bool."""
    if type(value) is not bool:
        raise InputError(f"{name} is {value!r}", remedy="give True or False", location=user_location())


def check_priority(priority: object) -> None:
    """Raise ``InputError`` at the user's line for what is no priority."""
    if type(priority) is not int or abs(priority) > MAX_PRIORITY:
        raise InputError(
            f"priority is {priority!r}",
            remedy=f"give an integer from -{MAX_PRIORITY} to {MAX_PRIORITY}; 0 is that of all others",
            location=user_location(),
        )


def check_timeout(timeout: object) -> None:
    """Raise ``InputError`` at the user's line for what is no number of seconds."""
    if type(timeout) not in (int, float) or not cast("float", timeout) > 0:
        raise InputError(
            f"timeout is {timeout!r}", remedy="give a number of seconds greater than 0", location=user_location()
        )
