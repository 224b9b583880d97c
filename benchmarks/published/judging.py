"""One schema by lmc, by llguidance and by the validator of its draft."""

import copy
import json
import random
import re
import resource
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import jsonschema
from jsonschema.validators import extend
from llguidance import LLMatcher

from benchmarks.published.drafts import validator_of
from lmc.grammar.compiling import Source, compile_source
from lmc.grammar.constraint import RegularConstraint
from lmc.grammar.context_free.matching import byte_tokenizer
from lmc.grammar.facts import Sampler
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

SECONDS = 20  # of the processor, for each step
MEMORY = 6 << 30  # bytes of address space of one worker
SAMPLES = 6
MUTANTS = 24
_BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], special_ids=[256], eos_id=256)
_T = TypeVar("_T")


@dataclass
class Verdict:
    """Findings on one schema; causes are None where it is accepted, seconds are those of the processor.

    ``late``: the failure of an accepted schema while texts were made. ``wrong`` and ``peer_wrong`` are
    values that were accepted and that the validator refuses. ``judged`` counts the values that were looked at.
    """

    cause: str | None = None
    seconds: float = 0.0
    late: str | None = None
    wrong: list[str] = field(default_factory=list[str])
    judged: int = 0
    peer_cause: str | None = None
    peer_seconds: float = 0.0
    peer_wrong: list[str] = field(default_factory=list[str])


class _TimeOutError(Exception):
    pass


def prepare() -> None:
    """Bound the memory of a worker process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def judge(schema: Any) -> Verdict:
    """Judge one schema."""
    verdict = Verdict()
    constraint, verdict.cause, verdict.seconds = _timed(lambda: _compiled(schema))
    peer, verdict.peer_cause, verdict.peer_seconds = _timed(lambda: _peer(schema))
    if constraint is not None:
        _compare(schema, constraint, peer, verdict)
    return verdict


def _timed(make: Callable[[], _T]) -> tuple[_T | None, str | None, float]:
    started = time.thread_time()  # the time of the process is counted in ticks while a timer of its own runs
    made, cause = None, None
    try:
        with _limited():
            made = make()
    except ConstraintError as error:
        cause = error.cause
    except _TimeOutError:
        cause = f"takes more than {SECONDS} s"
    except (RecursionError, MemoryError) as error:
        cause = type(error).__name__
    return made, cause, time.thread_time() - started


@contextmanager
def _limited() -> Generator[None]:
    def stop(*_: object) -> None:
        raise _TimeOutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _compiled(schema: Any) -> RegularConstraint:
    made = compile_source(Source.of(schema=schema), _BYTES)
    assert isinstance(made, RegularConstraint)
    made.start().mask()
    return made


def _peer(schema: Any) -> LLMatcher:
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides={"whitespace_flexible": False})
    made = LLMatcher(byte_tokenizer(), grammar, log_level=0)
    if made.is_error():
        raise ConstraintError(made.get_error(), remedy="")
    return made


def _compare(schema: Any, constraint: Any, peer: LLMatcher | None, verdict: Verdict) -> None:
    """Judge sampled values and mutants of them by the validator of the draft."""
    try:
        with _limited():
            samples = list(_samples(constraint))
    except (_TimeOutError, MemoryError):
        verdict.late = f"no sample within {SECONDS} s"
        return
    except ConstraintError as error:
        verdict.late = error.cause
        return
    if not samples:
        verdict.late = "no sample within the bounds of the sampler"
    validator = _validator(schema)
    chance = random.Random(0)
    values = [json.loads(sample) for sample in samples]
    mutants = [mutant for value in values for mutant in _mutants(value, chance)]
    chance.shuffle(mutants)
    try:
        with _limited():
            for value in [*values, *mutants[:MUTANTS]]:
                text = _compact(value)
                verdict.judged += 1
                if validator.is_valid(value):
                    continue
                if constraint.matches(text):
                    verdict.wrong.append(text)
                if peer is not None and _peer_matches(peer, text):
                    verdict.peer_wrong.append(text)
            for sample, value in zip(samples, values, strict=True):
                if not validator.is_valid(value) and sample not in verdict.wrong:
                    verdict.wrong.append(sample)
    except (_TimeOutError, ConstraintError, re.error, RecursionError):
        return


def _samples(constraint: RegularConstraint) -> Iterator[str]:
    for seed in range(SAMPLES):
        made = Sampler(constraint.automaton, random.Random(seed)).sample()
        if made is not None:
            yield made.decode()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _peer_matches(peer: LLMatcher, text: str) -> bool:
    peer.reset()
    data = list(text.encode())
    return peer.try_consume_tokens(data) == len(data) and peer.is_accepting()


def _mutants(value: Any, chance: random.Random) -> list[Any]:
    """Values that differ from one in one place."""
    found: list[Any] = []
    places = list(_places(value))
    for path in chance.sample(places, min(len(places), 10)):
        found += [_with(value, path, each) for each in _changes(_at(value, path), chance)]
    return found


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _places(each, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    if not path:
        return change
    made = copy.deepcopy(value)
    _at(made, path[:-1])[path[-1]] = change
    return made


def _changes(value: Any, chance: random.Random) -> list[Any]:
    if isinstance(value, dict):
        fewer = [{name: each for name, each in value.items() if name != gone} for gone in value]
        return [*chance.sample(fewer, min(len(fewer), 3)), {**value, "more": 1}, {}, [], None]
    if isinstance(value, list):
        return [value[1:], [*value, *value[:1]], [*value, 17], {}, "x"]
    if isinstance(value, str):
        return [value[1:], value + "x", "", 5, None, value * 3]
    if isinstance(value, bool) or value is None:
        return ["true", 0, not value]
    return [value + 1, -value - 1, value + 0.5, value * 1000, str(value), None]


@cache
def _kind(kind: Any) -> Any:
    def multiple_of(_validator: Any, step: Any, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
        """As decimals, which the specification asks for; the library divides floats."""
        is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
        if is_number and (Fraction(repr(instance)) / Fraction(repr(step))).denominator > 1:
            yield jsonschema.ValidationError("no multiple")

    return extend(kind, {"multipleOf": multiple_of})


def _validator(schema: Any) -> Any:
    kind = validator_of(schema)
    assert kind is not None
    return _kind(kind)(schema, format_checker=kind.FORMAT_CHECKER)
