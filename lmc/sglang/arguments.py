"""Arguments of programs: bound ones, the rows of a batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from lmc.driver import InputError
from lmc.frontend.source.locations import user_location
from lmc.ir.wording import with_article

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]


def rows_of(check_free: Callable[[Mapping[str, Any]], None], batch: Any) -> list[Arguments]:
    """Return the arguments of each row. Raises ``InputError`` if ``batch`` is no list of dicts or lists.

    ``check_free`` raises for names that are bound already.
    """
    if not isinstance(batch, list | tuple):
        raise _refused(f"the batch is {with_article(type(batch).__name__)}")
    rows: list[Arguments] = []
    for number, row in enumerate(batch):
        if isinstance(row, Mapping) and all(isinstance(key, str) for key in row):
            check_free(row)
            rows.append(((), dict(row)))
        elif isinstance(row, list | tuple):
            rows.append((tuple(row), {}))
        else:
            raise _refused(f"row {number} of the batch is {row!r:.80}")
    return rows


def bound_signature(signature: inspect.Signature, bound: Mapping[str, Any]) -> inspect.Signature:
    """``signature`` with what is bound as defaults; from the first of them on, arguments are given by name."""
    parameters: list[inspect.Parameter] = []
    by_name = False
    for parameter in signature.parameters.values():
        by_name = by_name or parameter.name in bound
        if by_name and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            parameter = parameter.replace(kind=parameter.KEYWORD_ONLY)  # noqa: PLW2901
        if parameter.name in bound:
            parameter = parameter.replace(default=bound[parameter.name])  # noqa: PLW2901
        parameters.append(parameter)
    return signature.replace(parameters=parameters)


def checked_threads(num_threads: Any) -> int | None:
    """Return the bound on concurrent rows; None for as many as there is room for. Raises ``InputError``."""
    if num_threads == "auto":
        return None
    if type(num_threads) is not int or num_threads < 1:
        raise InputError(
            f"num_threads is {num_threads!r}", remedy='give a whole number, or "auto"', location=user_location()
        )
    return num_threads


def _refused(cause: str) -> InputError:
    return InputError(
        cause, remedy='give a list of dicts, [{"argument": value}, …], or of lists of values', location=user_location()
    )
