"""Results of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, cast

from pydantic_core import to_jsonable_python
from typing_extensions import TypeVar  # with a default, which typing has from Python 3.13 on

from lmc.driver.notebook import result_html
from lmc.driver.run.money import Spending
from lmc.frontend.language.core import META
from lmc.ir.errors import LmcError, RequestCancelledError
from lmc.ir.profile import FallbackProfile, Profile
from lmc.ir.semantics.interpreter import Outcome
from lmc.ir.usage import Usage

if TYPE_CHECKING:
    from lmc.cost.ranges import CostRange
    from lmc.driver.run.estimation import RowEstimator

R = TypeVar("R", default=Any)


@dataclass(frozen=True)
class Result(Generic[R]):
    """One instance of a program, run to its end.

    ``value`` is what the function returned, ``variables`` the names on its state, ``text`` the whole conversation.
    ``profile`` holds the cost of each op, by stable id. ``error`` is None, an ``LmcError``, or an exception of the
    user's code; then there is no value, but ``profile`` counts the work done. ``messages`` are the roles and contents
    of a chat. ``spending`` are the attempts of its requests to a hosted model, ``estimator`` estimates their cost; a
    pickled result leaves it out.
    """

    value: R
    variables: Mapping[str, Any]
    text: str
    profile: Profile = field(repr=False)
    error: BaseException | None = None
    messages: Sequence[Mapping[str, str]] = field(default=(), repr=False)
    spending: Spending | None = field(default=None, repr=False, compare=False)
    estimator: RowEstimator | None = field(default=None, repr=False, compare=False)

    @property
    def usage(self) -> Usage:
        """Prompt, cached and generated tokens, and calls of the engine."""
        return self.profile.usage

    @property
    def cost(self) -> Decimal | None:
        """Dollars that its requests to a hosted model cost, failed attempts included, each priced by itself.

        None where a price is unknown, and for local models. ``unknown_calls`` attempts may have cost more.
        """
        return None if self.spending is None else self.spending.usd

    @property
    def estimated_cost(self) -> CostRange[Decimal] | None:
        """Dollars that ``lmc cost`` estimates for this instance alone, to compare with ``cost``: least, expected, most.

        ``most`` is None where nothing bounds it. None where a price is unknown, for local models, and for eager runs
        and saved plans. Each access estimates anew, which takes milliseconds. Without failed attempts ``cost`` lies in
        the range. Prefixes that other instances left in the caches of a provider are not expected.
        """
        return None if self.estimator is None else self.estimator.dollars()

    @property
    def unknown_calls(self) -> int:
        """The number of attempts without a whole answer: ``cost`` and ``usage`` count what is known of them."""
        return 0 if self.spending is None else self.spending.unknown_calls

    @property
    def fallbacks(self) -> Mapping[str, FallbackProfile]:
        """The parts of the fallbacks of the target in ``usage``, and the number of requests that each answered."""
        return self.profile.fallbacks

    def _repr_html_(self) -> str:
        return result_html(result_row(0, self), self.messages, self.text, self.profile.ops)

    @classmethod
    def of(cls, outcome: Outcome, profile: Profile | None = None) -> Result[R]:
        """Return the result of a completed run; ``profile`` if it counts more than that outcome."""
        found = outcome.profile if profile is None else profile
        return cls(outcome.value, outcome.variables, outcome.text, found, messages=outcome.messages)

    @classmethod
    def failed(cls, error: BaseException, profile: Profile) -> Result[R]:
        """The result of an instance that has an error: it has no value."""
        return cls(cast("R", None), {}, "", profile, error)


_OF_PROVIDERS = ("cache_written_tokens", "reasoning_tokens")
"""Counts of hosted models, which a row has where they are not 0."""


def stopped(profile: Profile, spending: Spending | None = None) -> Result:
    """The result of an instance that was cancelled, with what it had cost by then."""
    return replace(Result.failed(RequestCancelledError("the run was cancelled"), profile), spending=spending)


def result_row(index: int, result: Result) -> dict[str, Any]:
    """Return a result as JSON data: ``index``, ``value``, ``variables``, ``usage``, ``fallbacks`` if any, ``error``."""
    usage = result.usage
    return {
        "index": index,
        "value": _json(result.value),
        "variables": {name: _json(value) for name, value in result.variables.items() if not name.startswith(META)},
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "generated_tokens": usage.generated_tokens,
            "calls": usage.calls,
            **{name: count for name in _OF_PROVIDERS if (count := getattr(usage, name))},
        },
        **(
            {"fallbacks": {name: _fallback(each) for name, each in found.items()}}
            if (found := result.fallbacks)
            else {}
        ),
        "error": None if result.error is None else describe_error(result.error),
    }


def _fallback(found: FallbackProfile) -> dict[str, int]:
    """The part of a fallback in a row: its counts that are not 0."""
    counts = {name: count for name, count in asdict(found.usage).items() if count}
    return {"answers": found.answers, **counts}


def describe_error(error: BaseException) -> str:
    """Describe an error: an ``LmcError`` as it stands, anything else with its type and the user's line."""
    if isinstance(error, LmcError):
        return str(error)
    notes = getattr(error, "__notes__", [])
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "\n  ".join([said, *notes])


def _json(value: Any) -> Any:
    """Return ``value`` as JSON data: pydantic models and dataclasses as objects, its repr where JSON has no form."""
    try:
        return _finite(to_jsonable_python(value, fallback=_repr, bytes_mode="base64"))
    except (ValueError, RecursionError):  # it holds itself
        return _repr(value)


def _repr(value: Any) -> str:
    """Return the repr of an object of the user's class; its class where that raises."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}: its repr raises {type(error).__name__}>"


def _finite(data: Any) -> Any:
    """Return JSON data with infinite and NaN floats as text."""
    if isinstance(data, float):
        return data if math.isfinite(data) else str(data)
    if isinstance(data, list):
        return [_finite(entry) for entry in data]
    return {key: _finite(entry) for key, entry in data.items()} if isinstance(data, dict) else data
