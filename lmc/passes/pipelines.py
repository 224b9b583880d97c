"""The passes by name, and pipelines of them as text: ``cse,hoist-prefixes{minimum_tokens=4}``, ``-O0`` … ``-O2``.

A new pass adds its import and its class to ``PASSES``.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from lmc.ir.errors import InputError
from lmc.ir.profile import Profile
from lmc.passes.apply_profile import ApplyProfile
from lmc.passes.base import Pass, PassManager
from lmc.passes.canonicalize.canonicalize import Canonicalize
from lmc.passes.compile_constraints import CompileConstraints
from lmc.passes.cse import EliminateCommonSubexpressions
from lmc.passes.dce import EliminateDeadCode
from lmc.passes.distribute_loops import DistributeLoops
from lmc.passes.hoist_prefixes import HoistPrefixes
from lmc.passes.kv_liveness import KvLiveness
from lmc.passes.order_sections import OrderSections
from lmc.passes.plan_fork_join import PlanForkJoin
from lmc.passes.start_reads_early import StartReadsEarly

PASSES: dict[str, type[Pass]] = {
    kind.NAME: kind
    for kind in (
        ApplyProfile,
        Canonicalize,
        CompileConstraints,
        EliminateCommonSubexpressions,
        EliminateDeadCode,
        DistributeLoops,
        HoistPrefixes,
        KvLiveness,
        OrderSections,
        PlanForkJoin,
        StartReadsEarly,
    )
}


@dataclass(frozen=True, slots=True)
class PassDescription:
    """A pass as a user sees it: name, one line about it, and its options as ``name=default``."""

    name: str
    summary: str
    options: tuple[str, ...]


def describe_passes() -> Iterator[PassDescription]:
    """Every pass, in the order of ``PASSES``; all of it derives from the classes."""
    for name, kind in PASSES.items():
        summary = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
        options = tuple(f"{field.name}={option_text(field.default)}" for field in dataclasses.fields(kind))
        yield PassDescription(name, summary, options)


def option_text(value: object) -> str:
    """An option's value as a pipeline writes it, such as ``none``, ``true`` or ``8``."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


# apply-profile comes before anything has changed an id, and does nothing without a profile.
# dce comes first so that canonicalize does not keep apart, for users that are dead, what could be one op.
# After distribute-loops it drops what loops carried for results that now come from elsewhere.
# kv-liveness comes last: it says when what is cached is used again, so it needs the waves.
# compile-constraints comes late, because the driver compiles while the others run, and before those that plan calls.
PIPELINES = {
    "O0": "",
    "O1": "dce,canonicalize,cse,dce,compile-constraints",
    "O2": "apply-profile,dce,canonicalize,cse,dce,compile-constraints,distribute-loops,dce,hoist-prefixes,"
    "start-reads-early,plan-fork-join,kv-liveness",
}

_ENTRY = re.compile(r"\s*([^{},\s]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")
_NUMBERS: dict[type, Callable[[str], object]] = {int: int, float: float}


@dataclasses.dataclass(frozen=True, slots=True)
class PipelineOptions:
    """Options of the compilation of a captured program.

    ``order_sections`` puts movable sections of text first (``lmc.section``); ``profile`` is of earlier runs.
    ``disabled_passes`` are left out of the pipeline.
    """

    level: str
    order_sections: bool = False
    profile: Profile | None = None
    disabled_passes: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """A hashable value, equal for options that compile a program in the same way."""
        profile = None if self.profile is None else self.profile.digest
        return self.level, self.order_sections, profile, frozenset(self.disabled_passes)

    @property
    def passes(self) -> PassManager:
        """The passes to run. Raises ``InputError`` for an unknown level, and for a disabled pass that it has not."""
        return pipeline(self.level, order_sections=self.order_sections, disabled=self.disabled_passes)


def pipeline(
    level: str, *, order_sections: bool = False, disabled: Collection[str] = (), verify_each: bool = False
) -> PassManager:
    """The passes of an optimization level: ``O0``, ``O1`` or ``O2``; where asked for, sections are ordered before.

    Those that are ``disabled`` are left out. Raises ``InputError`` for an unknown level, and for a disabled pass that
    the level has not.
    """
    if level not in PIPELINES:
        raise InputError(f"unknown optimization level {level!r}", remedy=f"use one of {', '.join(PIPELINES)}")
    first = (OrderSections(),) if order_sections else ()
    passes = (*first, *parse_pipeline(PIPELINES[level]))
    names = dict.fromkeys(each.NAME for each in passes)
    for name in disabled:
        if name not in names:
            remedy = _did_you_mean(name, names) if names else "it has no passes"
            raise InputError(f"the pipeline of -{level} has no pass {name!r} to disable", remedy=remedy)
    return PassManager(tuple(each for each in passes if each.NAME not in disabled), verify_each)


def parse_pipeline(text: str) -> tuple[Pass, ...]:
    """The passes that ``text`` names, in order: ``a,b{option=value, other=value}``; empty text gives none.

    Raises ``InputError`` for what is no pipeline, an unknown pass or option (with near matches) and a wrong value.
    """
    found: list[Pass] = []
    position = 0
    while position < len(text) or (found and text.endswith(",")):
        match = _ENTRY.match(text, position)
        if match is None:
            raise InputError(
                f"not a pipeline from {text[position : position + 20]!r} on",
                remedy="write pass names with commas between them: cse,hoist-prefixes{minimum_tokens=4}",
            )
        found.append(make_pass(match[1], _split_options(match[1], match[2] or "")))
        position = match.end()
        if match[3] == "":
            break
    return tuple(found)


def make_pass(name: str, options: Iterable[tuple[str, str]] = ()) -> Pass:
    """The pass called ``name`` with options given as text. Raises ``InputError`` as ``parse_pipeline`` does."""
    kind = PASSES.get(name)
    if kind is None:
        raise InputError(f"unknown pass {name!r}", remedy=_did_you_mean(name, PASSES))
    hints = typing.get_type_hints(kind)
    known = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    values: dict[str, object] = {}
    for option, value in options:
        field = option.replace("-", "_")
        if field not in known:
            remedy = _did_you_mean(field, known) if known else "it has none"
            raise InputError(f"pass {name} has no option {option!r}", remedy=remedy)
        if field in values:
            raise InputError(f"option {option!r} of pass {name} is given twice", remedy="give it once")
        values[field] = _parse_value(name, option, value, known[field])
    return kind(**values)


def _split_options(name: str, text: str) -> Iterable[tuple[str, str]]:
    for entry in re.split(r"[,\s]+", text.strip()):
        if not entry:
            continue
        option, equals, value = entry.partition("=")
        if not equals:
            raise InputError(f"option {option!r} of pass {name} has no value", remedy=f"write {option}=VALUE")
        yield option, value


def _parse_value(name: str, option: str, text: str, hint: object) -> object:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if text == "none" and type(None) in kinds:
        return None
    if bool in kinds and text in ("true", "false"):
        return text == "true"
    for kind, convert in _NUMBERS.items():
        if kind in kinds:
            try:
                return convert(text)
            except ValueError:
                continue
    if str in kinds:
        return text
    wanted = " or ".join("none" if kind is type(None) else getattr(kind, "__name__", str(kind)) for kind in kinds)
    raise InputError(f"option {option!r} of pass {name} can't be {text!r}", remedy=f"give {wanted}")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    near = difflib.get_close_matches(name[:64], names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(names)}"
