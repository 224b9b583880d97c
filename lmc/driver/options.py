"""The options of a program: the fields of ``Options`` declare the name, type, default, check and help of each.

``@lmc.jit``, ``Program.on``, ``[tool.lmc]`` and the command line take their options from here. To add one, add a field,
and a parameter to the signatures that offer it (``lmc/program.py``, commands in ``lmc/cli``).

The command line imports this module to print ``--help``, so it imports no other stage of lmc.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from lmc.ir.engine.target import TARGETS, Target
from lmc.ir.errors import InputError, Location

if TYPE_CHECKING:
    from lmc.cost.budget import Budget
    from lmc.ir.profile import Profile
    from lmc.passes.pipelines import PipelineOptions
    from lmc.runtime.journal.journal import Resumption

DEFAULT_LEVEL = "O2"
DTYPES = ("float32", "bfloat16")
MAX_PRIORITY = 1000
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")


@dataclass(frozen=True)
class RemoteTarget:
    """A hosted model with its settings: a ``target`` of ``Program.on`` and ``@lmc.jit``. Make one with ``remote``."""

    spec: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _option(default: Any, help: str, check: Callable[[str, Any], None] | None = None, *, engine: bool = False) -> Any:
    """A field of ``Options`` that the user can set. An ``engine`` option is part of the target: see ``Target``."""
    return field(default=default, metadata={"help": help, "check": check, "engine": engine})


def _check_flag(name: str, value: object) -> None:
    if type(value) is not bool:
        raise InputError(f"{name} is {value!r}", remedy="give True or False")


def _check_seed(name: str, value: object) -> None:
    if type(value) is not int:
        raise InputError(f"{name} is {value!r}", remedy="give an integer")


def _check_priority(name: str, value: object) -> None:
    if type(value) is not int or abs(value) > MAX_PRIORITY:
        raise InputError(
            f"{name} is {value!r}",
            remedy=f"give an integer from -{MAX_PRIORITY} to {MAX_PRIORITY}; 0 is that of all others",
        )


def _check_timeout(name: str, value: object) -> None:
    if type(value) not in (int, float) or not cast("float", value) > 0:
        raise InputError(f"{name} is {value!r}", remedy="give a number of seconds greater than 0")


def _check_target(name: str, value: object) -> None:
    if not isinstance(value, str | RemoteTarget | Target):
        raise InputError(f"{name} is {value!r}", remedy=f"give text: {TARGETS}; or lmc.remote(…)")


def _check_dtype(name: str, value: object) -> None:
    if value not in DTYPES:
        raise InputError(f"unknown {name} {value!r}", remedy=f"use one of {', '.join(DTYPES)}")


def _check_kv_tokens(name: str, value: object) -> None:
    if value != "auto" and (type(value) is not int or value < 1):
        raise InputError(f"{name} is {value!r}", remedy='give a number of tokens from 1 on, or "auto"')


def _check_device(name: str, value: object) -> None:
    if not (isinstance(value, str) and _DEVICE.fullmatch(value)):
        raise InputError(f"unknown {name} {value!r}", remedy='use "auto", "cpu", "cuda" or "cuda:1"')


def _check_file(name: str, value: object) -> None:
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} is {value!r}", remedy="give the name of a file")


def _check_names(name: str, value: object) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in cast("list[object]", value)):
        raise InputError(f"{name} is {value!r}", remedy='give a list of names: ["cse"]')


def _check_budget(name: str, value: object) -> None:
    from lmc.cost.budget import Budget  # most programs have none

    if not isinstance(value, Budget):
        raise InputError(f"{name} is {value!r}", remedy="give lmc.Budget(usd=…, tokens=…, calls=…)")


def _check_resume(name: str, value: object) -> None:
    if type(value) is bool:
        return
    from lmc.runtime.journal.journal import Resumption  # most programs have no journal

    if not isinstance(value, Resumption):
        raise InputError(f"{name} is {value!r}", remedy="give True, False or lmc.Resumption(…)")


def _check_tokens(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise InputError(f"{name} is {value!r}", remedy="give a number of tokens from 1 on")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a program, set by ``@lmc.jit(…)``, ``Program.on`` and the command line; see ``Program.on``.

    An engine option that is None is that of the environment or of ``[tool.lmc]`` (``resolve_target``). ``requests``
    bounds the requests and instances of a batch that run at the same time, ``lane`` is the client that they belong to
    (``Place``); the user of a program sets neither. A ``target`` that is a ``Target`` is that of a replayed journal.
    """

    target: str | RemoteTarget | Target | None = _option(  # noqa: RUF009 - a field
        None, "Where the program runs.", _check_target, engine=True
    )
    dtype: str | None = _option(None, "Precision of a local model: float32 or bfloat16.", _check_dtype, engine=True)
    kv_tokens: int | Literal["auto"] | None = _option(
        None, "Size of a local model's KV pool; auto goes by free memory.", _check_kv_tokens, engine=True
    )
    deterministic: bool | None = _option(
        None, "Results independent of other requests (local model, slower).", _check_flag, engine=True
    )
    device: str | None = _option(
        None,
        "Where a local model computes: auto (CUDA where there is one), cpu, cuda, cuda:1.",
        _check_device,
        engine=True,
    )
    prefill_tokens: int | None = _option(
        None,
        "Tokens of prompts that a local model computes in a step: more is faster, less is steadier.",
        _check_tokens,
        engine=True,
    )
    seed: int = _option(0, "Seed of the random draws; 0, or that of @lmc.jit.", _check_seed)
    level: str = _option(DEFAULT_LEVEL, "Optimization level: -O0, -O1 or -O2; overrides @lmc.jit.")
    timeout: float | None = _option(None, "Seconds that each request to the model may take.", _check_timeout)
    profile: Profile | None = _option(  # noqa: RUF009 - a field
        None, "Plan by a profile that lmc run --profile-generate wrote."
    )
    order_sections: bool = _option(
        False, "Put movable sections of text (lmc.section) first: other prompts.", _check_flag
    )
    disabled_passes: tuple[str, ...] = _option((), "Leave this pass out; may be repeated.", _check_names)
    priority: int = _option(
        0,
        "Requests of higher priority go before others of the same engine or server.",
        _check_priority,
    )
    journal: str | os.PathLike[str] | None = _option(  # noqa: RUF009 - a field
        None, "Record requests and calls of tools in this file, so that the run can be resumed.", _check_file
    )
    budget: Budget | None = _option(  # noqa: RUF009 - a field
        None, "The most that a run may cost: lmc.Budget(usd=…, tokens=…, calls=…).", _check_budget
    )
    resume: bool | Resumption = _option(  # noqa: RUF009 - a field
        False, "Go on with the unfinished run of the journal.", _check_resume
    )
    requests: int | None = None
    lane: int | None = None

    def updated(self, program: str, **given: Any) -> Options:
        """Return these options with those of ``given`` that are not None, for the program of that name.

        Reads the file of a profile now. Engine options are checked when the program runs. Raises ``InputError`` at the
        user's line for an option of another name and for a value that is not allowed.
        """
        from lmc.driver.profiles import profile_for  # loads a stage: see above

        check_option_names(given)
        changes = {name: value for name, value in given.items() if value is not None}
        try:
            check_options({name: value for name, value in changes.items() if name not in ENGINE_OPTIONS})
        except InputError as error:
            error.location = _user_location()
            raise
        if "profile" in changes:
            changes["profile"] = profile_for(program, changes["profile"])
        return replace(self, **changes)

    @property
    def engine(self) -> dict[str, Any]:
        """The engine options that are set, by name."""
        return {name: value for name in ENGINE_OPTIONS if (value := getattr(self, name)) is not None}

    @property
    def pipeline(self) -> PipelineOptions:
        """The options that say how a program is compiled."""
        from lmc.passes.pipelines import PipelineOptions  # loads a stage: see above

        return PipelineOptions(self.level, self.order_sections, self.profile, tuple(self.disabled_passes))

    def without_engine(self) -> Options:
        """Return these options without those of an engine."""
        return replace(self, **dict.fromkeys(ENGINE_OPTIONS))


OPTIONS = {each.name: each.metadata for each in fields(Options) if each.metadata}
"""Every option that a user can set: its ``help``, its ``check`` and whether it is of an ``engine``."""
ENGINE_OPTIONS = tuple(name for name, declared in OPTIONS.items() if declared["engine"])


def check_options(given: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for a value that its option does not take."""
    for name, value in given.items():
        check = OPTIONS[name]["check"]
        if check is not None:
            check(name, value)


def check_option_names(given: Iterable[str]) -> None:
    """Raise ``InputError`` at the user's line for a name that no option has."""
    for name in given:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            guess = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(
                f"there is no option {name!r}",
                remedy=f"{guess}The options are {', '.join(OPTIONS)}",
                location=_user_location(),
            )


def _user_location() -> Location | None:
    from lmc.frontend.source.locations import user_location  # loads a stage: see above

    return user_location()
