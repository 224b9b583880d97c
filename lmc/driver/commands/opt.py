"""Passes over a ``.lmir`` text: the implementation of ``lmc opt``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lmc.driver.compile.compiled import pass_context
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.targets.defaults import resolve_grammar_cache, resolve_target
from lmc.driver.targets.service import service
from lmc.ir.errors import InputError, ParseError
from lmc.ir.module import Module, print_module
from lmc.ir.profile import Profile
from lmc.passes.apply_profile import ApplyProfile
from lmc.passes.base import Pass, PassContext, PassManager, PassResult
from lmc.passes.pipelines import PASSES, describe_passes, parse_pipeline, pipeline

__all__ = [
    "ALL_PASSES",
    "ParseError",
    "check_profile_is_used",
    "choose_passes",
    "context_for",
    "list_passes",
    "optimize",
]

ALL_PASSES = "all"
OnText = Callable[[str], None]


def choose_passes(passes: str | None, level: str | None, *, print_after: str | None = None) -> PassManager:
    """Return the pipeline of a command line: ``passes``, or those of a ``level``, else none.

    Raises ``UsageError`` for what is no pipeline, for both at once, and where ``print_after`` names no pass.
    """
    if passes is not None and level is not None:
        raise UsageError(f"--passes and -{level} both say which passes to run", remedy="give one of them")
    try:
        chosen = PassManager(parse_pipeline(passes)) if passes is not None else pipeline(level or "O0")
    except InputError as error:
        raise UsageError(error.cause, remedy=error.remedy) from error
    running = [each.NAME for each in chosen.passes]
    if print_after not in (None, ALL_PASSES, *running):
        known = f"use one of {', '.join(running)}" if running else "name passes with --passes or -O2"
        raise UsageError(f"--print-after={print_after}: no such pass is run", remedy=known)
    return chosen


def context_for(spec: str | None, profile: Profile | None = None) -> PassContext:
    """Return the context of passes: the tokenizer of the target ``spec``, a profile. Raises ``InputError``."""
    if spec is None:
        return PassContext(profile=profile)
    home = service()
    target = resolve_target(Options(spec))
    cache = home.constraints.of(resolve_grammar_cache())
    return pass_context(target, home.engines.tokenizer(target), cache, profile)


def check_profile_is_used(passes: PassManager) -> None:
    """Raise ``UsageError`` where a profile is given for passes that look at none."""
    if not any(isinstance(each, ApplyProfile) for each in passes.passes):
        raise UsageError(
            f"--profile-use is for the pass {ApplyProfile.NAME}, which is not run",
            remedy=f"add -O2 or --passes={ApplyProfile.NAME}, or leave out --profile-use",
        )


def optimize(
    module: Module,
    passes: PassManager,
    *,
    context: PassContext | None = None,
    print_after: str | None = None,
    on_text: OnText,
) -> tuple[str, PassResult]:
    """Run ``passes``; return the text of the last module. ``on_text`` gets the module after each pass asked for.

    ``print_after`` is the name of a pass, ``ALL_PASSES`` for every one or None for none.
    """

    def after(each: Pass, changed: Module) -> None:
        if print_after in (ALL_PASSES, each.NAME):
            on_text(f"// after {each.NAME}\n{print_module(changed)}".rstrip())

    result = passes.run(module, context, after=after)
    return print_module(result.module), result


def list_passes() -> Iterator[str]:
    """A line for each pass, and below it its options."""
    width = max(map(len, PASSES)) + 2
    for entry in describe_passes():
        yield f"{entry.name:<{width}}{entry.summary}"
        if entry.options:
            yield f"{'':<{width}}options: {', '.join(entry.options)}"
