"""Requests and results of engines as data: the parts that decide about a result, without texts, and results whole."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, astuple, fields
from functools import lru_cache
from typing import Any, NamedTuple

import pydantic

from lmc.ir import errors
from lmc.ir.engine.protocol import Generation, Request, SamplingParams, Score, ScoreRequest
from lmc.ir.errors import ConstraintError, EngineError, JournalError, LmcError
from lmc.ir.usage import Attempt, Usage
from lmc.runtime.budget.account import attempts_of
from lmc.runtime.budget.bounds import TokenBound
from lmc.runtime.journal.file import BEGUN, DONE, DROPPED, FAILED, LOST
from lmc.runtime.journal.journal import AskedEntry, Outcome, Recorded, RunJournal, stored_id

_ENCODER = json.JSONEncoder(separators=(",", ":"), default=asdict)
_NOT_KEPT = "timing"
"""Times are those of the run that measured them."""
_MOST_COUNT = 1 << 53
"""Tokens and attempts of a request, at most: a file may hold anything."""


class SentRequest(NamedTuple):
    """A request that an earlier session of a run has sent.

    ``bound`` is that of an attempt, ``attempts`` those that have left to each target, or more. ``result``: None where
    there is none; ``stored`` is the id of the answer then, if its provider keeps it.
    """

    bound: TokenBound
    attempts: Sequence[int]
    result: Any
    stored: str | None


def asked_generation(request: Request, bound: TokenBound, attempts: tuple[int, ...]) -> AskedEntry:
    """Return the parts of a request; two that are equal have the same results.

    ``bound`` is that of an attempt, ``attempts`` the most at each target.
    """
    parts = {
        "prompt": _tokens(request.prompt),
        "sampling": _sampling(request.sampling),
        "seed": request.seed,
        "constraint": None if request.constraint is None else request.constraint.digest,
        "may_be_cut": request.may_be_cut,
        "jump_forward": request.jump_forward,
    }
    return AskedEntry("generate", request.instance, request.op_id, request.number, parts, *bound, attempts)


def asked_score(request: ScoreRequest, bound: TokenBound, attempts: tuple[int, ...]) -> AskedEntry:
    """Return the parts of a request for scores."""
    flat = [token_id for row in request.continuations for token_id in (*row, -1)]
    parts = {"prompt": _tokens(request.prompt), "continuations": _tokens(flat)}
    return AskedEntry("score", request.instance, request.op_id, request.number, parts, *bound, attempts)


def end_of(result: Any) -> Outcome | None:
    """Return the end of a request to write: its result, or its error; None for one whose end is not known.

    Errors that end the run are no ends. One whose cost is known (a quota is exhausted) is asked again.
    """
    if isinstance(result, Generation):
        return Outcome(DONE, _text(result, _GENERATION), result.usage)
    if isinstance(result, Score):
        return Outcome(DONE, _text(result, _SCORE), result.usage)
    if not isinstance(result, Exception):
        return None
    usage = result.usage if isinstance(result, LmcError) else None
    if isinstance(result, LmcError) and result.ends_run:
        is_known = isinstance(result, EngineError) and usage is not None and not result.unknown_calls
        return Outcome(DROPPED, json.dumps(error_data(result)), usage or Usage()) if is_known else None
    return Outcome(FAILED, json.dumps(error_data(result)), usage or Usage())


def result_of(answer: Recorded, kind: type[Any]) -> Any:
    """Return the result of class ``kind`` that an answer holds, or its error. Raises ``JournalError`` for any other."""
    try:
        data = json.loads(answer.text)
        return error_of(data) if answer.state != DONE else _READERS[kind].validate_python(data)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable() from error


def sent_requests(journal: RunJournal, targets: int) -> Iterator[SentRequest]:
    """Yield all requests that earlier sessions of a run have sent to the target and its fallbacks, ``targets`` of them.

    Raises ``JournalError`` for figures that no journal of lmc holds.
    """
    for sent in journal.sent():
        result: Any = None
        if sent.state in (DONE, FAILED, DROPPED):
            kind = Generation if sent.kind == "generate" else Score
            result = result_of(Recorded(sent.state, sent.result or ""), kind)
        elif sent.state not in (BEGUN, LOST):
            raise _unreadable()
        attempts = _attempts(sent.attempts, targets)
        counts = [sent.bound, sent.most, *attempts]
        counts += [count for attempt in attempts_of(result) or () for count in astuple(attempt.usage)]
        if not all(0 <= count <= _MOST_COUNT for count in counts):
            raise _unreadable()
        stored = stored_id(sent.kind, sent.state, sent.result)
        yield SentRequest(TokenBound(sent.bound, sent.most), attempts, result, stored)


def _attempts(text: str, targets: int) -> Sequence[int]:
    """Return the most attempts at each target that an entry holds."""
    try:
        found = _COUNTS.validate_json(text, strict=True)
    except ValueError as error:
        raise _unreadable() from error
    if len(found) != targets:
        raise _unreadable()
    return found


def error_data(error: BaseException) -> dict[str, Any]:
    """An error of a request as JSON data."""
    if not isinstance(error, EngineError | ConstraintError):
        return {"type": "EngineError", "cause": f"{type(error).__name__}: {error}"}
    data: dict[str, Any] = {"type": type(error).__name__, "cause": error.cause, "remedy": error.remedy}
    if error.usage is not None:
        data["usage"] = asdict(error.usage)
    if error.attempts:
        data["attempts"] = [asdict(each) for each in error.attempts]
    if isinstance(error, ConstraintError):
        data |= {"pointer": error.pointer, "position": error.position}
    return data


def error_of(data: Mapping[str, Any]) -> LmcError:
    """The error of ``error_data``. A class that is no error of engines is an ``EngineError``."""
    kind = getattr(errors, data["type"], EngineError)
    if not (isinstance(kind, type) and issubclass(kind, EngineError | ConstraintError)):
        kind = EngineError
    error = kind(str(data["cause"]), remedy=data.get("remedy"))
    if isinstance(error, ConstraintError):
        error.pointer, error.position = data.get("pointer"), data.get("position")
    error.attempts = _ATTEMPTS.validate_python(data.get("attempts", ()))
    if data.get("usage") is not None:
        error.usage = pydantic.TypeAdapter(Usage).validate_python(data["usage"])
    return error


def _kept(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Names and defaults of the fields of a result that are kept."""
    return tuple((each.name, _default(each)) for each in fields(kind) if each.name != _NOT_KEPT)


def _default(each: Field[Any]) -> Any:
    return MISSING if each.default is MISSING else each.default


_COUNTS = pydantic.TypeAdapter(list[int])
_ATTEMPTS = pydantic.TypeAdapter(tuple[Attempt, ...])
_GENERATION, _SCORE = _kept(Generation), _kept(Score)
_READERS: dict[type[Any], pydantic.TypeAdapter[Any]] = {
    Generation: pydantic.TypeAdapter(Generation),
    Score: pydantic.TypeAdapter(Score),
}


def _text(result: Generation | Score, kept: Sequence[tuple[str, Any]]) -> str:
    """A result as JSON, without the fields that have their defaults."""
    data = {name: value for name, default in kept if (value := getattr(result, name)) is not default}
    return _ENCODER.encode(data)


def _tokens(token_ids: Sequence[int]) -> dict[str, Any]:
    count = len(token_ids)
    try:
        data = struct.pack(f"{count}i", *token_ids)
    except struct.error:
        data = struct.pack(f"{count}q", *token_ids)
    digest = hashlib.blake2b(data, digest_size=16)
    return {"length": count, "digest": digest.hexdigest()}


@lru_cache(maxsize=256)
def _sampling(sampling: SamplingParams) -> dict[str, Any]:
    """The sampling parameters that have no default. Shared: not to be changed."""
    plain = SamplingParams()
    data = {each.name: getattr(sampling, each.name) for each in fields(sampling)}
    return {name: value for name, value in data.items() if value != getattr(plain, name)}


def _unreadable() -> JournalError:
    return JournalError("the journal holds a result that can't be read", remedy="name another file for --journal")
