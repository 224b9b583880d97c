"""Options of programs (``lmc.driver.Options``) as options of commands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from lmc import driver


def program_option(name: str, *flags: str, **more: Any) -> Any:
    """The option of a command for the option of that name, with its help."""
    return typer.Option(*flags, help=driver.OPTIONS[name]["help"], **more)


def _seconds(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value} is no number of seconds greater than 0")
    return value


def kv_tokens_of(text: str | None) -> int | Literal["auto"] | None:
    """Return the value of ``KvTokens``. Raises ``UsageError``."""
    if text is None or text == "auto":
        return text
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise driver.UsageError(f"--kv-tokens is {text!r}", remedy="give a number of tokens from 1 on, or auto")
    return int(text)


def budget_of(usd: str | None, tokens: int | None, calls: int | None) -> driver.Budget | None:
    """Return the budget of the options ``--budget-…``; None without any. Raises ``UsageError``."""
    if usd is None and tokens is None and calls is None:
        return None
    try:
        return driver.Budget(usd, tokens, calls)
    except driver.InputError as error:
        raise driver.UsageError(error.cause, remedy=error.remedy) from error


BudgetUsd = Annotated[
    str | None, typer.Option("--budget-usd", metavar="DOLLARS", help="The most dollars that the run may cost.")
]
BudgetTokens = Annotated[
    int | None, typer.Option("--budget-tokens", metavar="N", help="The most tokens, of prompts and outputs.")
]
BudgetCalls = Annotated[
    int | None, typer.Option("--budget-calls", metavar="N", help="The most requests, failed attempts included.")
]
Seed = Annotated[int | None, program_option("seed")]
Dtype = Annotated[str | None, program_option("dtype")]
KvTokens = Annotated[str | None, program_option("kv_tokens", metavar="TOKENS|auto")]
Deterministic = Annotated[
    bool | None, program_option("deterministic", "--deterministic/--no-deterministic", show_default=False)
]
Device = Annotated[str | None, program_option("device")]
PrefillTokens = Annotated[int | None, program_option("prefill_tokens", metavar="TOKENS")]
Timeout = Annotated[float | None, program_option("timeout", metavar="SECONDS", callback=_seconds)]
ProfileUse = Annotated[
    str | None,
    typer.Option(
        "--profile-use",
        "--profile",
        metavar="FILE",
        help=f"{driver.OPTIONS['profile']['help']} Short form: --profile.",
    ),
]
"""For commands that write no profile."""
OrderSections = Annotated[
    bool | None, program_option("order_sections", "--order-sections/--no-order-sections", show_default=False)
]
DisabledPasses = Annotated[list[str] | None, program_option("disabled_passes", "--disable-pass", metavar="NAME")]
