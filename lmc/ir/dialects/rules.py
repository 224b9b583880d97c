"""Rules that several ops share, for their ``verify``. Each raises ``VerifyError`` through ``op.fail``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from lmc.ir.core import Op, Value
from lmc.ir.engine.protocol import SamplingParams
from lmc.ir.ids import count_holes
from lmc.ir.types import BOOL, CTX, INT, TEXT, holds_context


def expect_context(op: Op, value: Value) -> None:
    """``value`` is a context."""
    if value.type != CTX:
        raise op.fail(f"{value} is {value.type}, a context (!ctx) is needed")


def expect_not_context(op: Op, value: Value) -> None:
    """``value`` is something a Python value can stand for."""
    if holds_context(value.type):
        what = "a context" if value.type == CTX else "a list of contexts"
        raise op.fail(f"{value} is {what}", "use its text or its variables")


def expect_flag(op: Op, value: Value) -> None:
    """``value`` is true or false."""
    if value.type != BOOL:
        raise op.fail(f"{value} is {value.type}, a truth value (!bool) is needed", 'convert it with py.call "bool"')


def expect_occurrences(op: Op, ids: Sequence[str], occurrences: Sequence[Value]) -> None:
    """There is a number for each hole of ``ids`` (``lmc.ir.ids``)."""
    holes = sum(map(count_holes, ids))
    if holes != len(occurrences):
        named = ", ".join(map(repr, ids))
        raise op.fail(
            f"{holes} holes (* or $) in {named}, but {len(occurrences)} occurrences",
            "give a number for each; write %2A and %24 where the signs themselves are meant",
        )
    for value in occurrences:
        if value.type != INT:
            raise op.fail(f"occurrence {value} is {value.type}, a number (!int) is needed")


def expect_one_of(op: Op, what: str, found: str, known: Sequence[str]) -> None:
    """``found``, which is a ``what``, is one of ``known``."""
    if found not in known:
        raise op.fail(f"unknown {what} {found!r}", f"use one of {', '.join(known)}")


def expect_text_parts(op: Op, text: tuple[str | Value, ...]) -> None:
    """Every part is text."""
    for part in text:
        if isinstance(part, Value) and part.type != TEXT:
            raise op.fail(f"{part} is {part.type}, text is needed", 'convert it with py.call "format"')


def expect_keywords(op: Op, keywords: tuple[str, ...], arguments: int) -> None:
    """Keywords name different ones of the last arguments."""
    if len(keywords) > arguments:
        raise op.fail("more keywords than arguments")
    if len(set(keywords)) != len(keywords):
        raise op.fail("a keyword is given twice")


def expect_results(op: Op, *types: object) -> None:
    """The results are of ``types``, in order."""
    found = tuple(value.type for value in op.results)
    if found != types:
        raise op.fail(f"results are ({', '.join(map(str, found))}), should be ({', '.join(map(str, types))})")


def expect_plan(op: Op, wave: int | None, group: str | None) -> None:
    """Wave and group fit together.

    ``wave`` is the round of model calls an op is planned for (0 is the first; None: no plan was made), ``group`` names
    the calls of one wave that share a prefix and run together.
    """
    if wave is not None and wave < 0:
        raise op.fail(f"wave is {wave}", "waves count from 0")
    if group is not None and (wave is None or not group):
        raise op.fail(f"group {group!r} has no wave or no name", "plan-fork-join gives both")


LOGIT_BIAS_RULE = "pairs of a token id and a float in [-100, 100], ids ascending"


def is_logit_bias(pairs: tuple[tuple[int | float, ...], ...]) -> bool:
    """Return True if ``pairs`` follows ``LOGIT_BIAS_RULE``."""
    ids = [pair[0] for pair in pairs if len(pair) == 2 and type(pair[0]) is int and type(pair[1]) is float]
    if len(ids) < len(pairs) or not all(-100.0 <= pair[1] <= 100.0 for pair in pairs):
        return False
    return min(ids, default=0) >= 0 and all(one < other for one, other in pairwise(ids))


def expect_sampling(op: Op, sampling: SamplingParams) -> None:
    """Every parameter lies in its range."""
    checks = (
        (sampling.max_tokens >= 1, "max_tokens is at least 1"),
        (0 <= sampling.min_tokens <= sampling.max_tokens, "min_tokens lies between 0 and max_tokens"),
        (0.0 <= (sampling.temperature or 0.0) < math.inf, "temperature is finite and not negative"),
        (0.0 < sampling.top_p <= 1.0, "top_p lies in (0, 1]"),
        (sampling.top_k >= 0, "top_k is not negative"),
        (0.0 <= sampling.min_p <= 1.0, "min_p lies in [0, 1]"),
        (-2.0 <= sampling.frequency_penalty <= 2.0, "frequency_penalty lies in [-2, 2]"),
        (-2.0 <= sampling.presence_penalty <= 2.0, "presence_penalty lies in [-2, 2]"),
        (0.01 <= sampling.repetition_penalty <= 100.0, "repetition_penalty is between 0.01 and 100"),
        (is_logit_bias(sampling.logit_bias), f"logit_bias is {LOGIT_BIAS_RULE}"),
        (sampling.logprobs is None or 0 <= sampling.logprobs <= 100, "logprobs lies between 0 and 100"),
        (all(sampling.stop), "a stop string is not empty"),
        (min(sampling.stop_token_ids, default=0) >= 0, "a stop token id is not negative"),
    )
    for holds, rule in checks:
        if not holds:
            raise op.fail(rule)
