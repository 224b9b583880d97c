"""What is timed of a constraint, in seconds; ours and the peers' by the same loops."""

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.constraining.cases import Case
from benchmarks.constraining.checks import Output
from benchmarks.constraining.peers import Compiled, Peer, RefusedError
from lmc import grammar
from lmc.ir.errors import ConstraintError

RUNS = 21  # at most, of what is made anew; the first of them is not counted
LONG = 1.0  # seconds after which no further run of it is started
ROUNDS = 50  # of all states, for masks that are handed out; the middle one counts
WALKS = 6  # of a peer over all outputs; the first is not counted, of the others the middle one


@dataclass(frozen=True)
class Built:
    """Our complete token index, and what it holds.

    Seconds from the constraint as text to a mask of its index: ``build`` of one that is made, ``load`` of one that is
    in the cache; ``read`` of these for the index alone.
    """

    build: float
    load: float
    read: float
    states: int
    classes: int
    masks: int
    table_bytes: int
    file_bytes: int


@dataclass(frozen=True)
class Handed:
    """Seconds for the mask of a known state: mean, 99th of 100, copied into a buffer; for a step to the next state."""

    mean: float
    p99: float
    copied: float
    advance: float


def median(run: Callable[[], Any], runs: int | None = None) -> float:
    """Seconds of the middle one of several runs, after one that is not counted; of one alone where that takes long."""
    gc.collect()
    found = [_seconds(run)]
    if found[0] < LONG:
        found = []
        while len(found) < (runs or RUNS) and sum(found) < 3 * LONG:
            found.append(_seconds(run))
    return statistics.median(found)


def _seconds(run: Callable[[], Any]) -> float:
    gc.disable()
    try:
        start = time.perf_counter()
        kept = run()
        end = time.perf_counter()
    finally:
        gc.enable()
    del kept  # to free it is not part of making it
    return end - start


def first_masks(case: Case, vocabulary: grammar.Vocabulary, peers: Mapping[str, Peer]) -> dict[str, float | None]:
    """A constraint and the mask of its first state, ours as "lmc", by turns; None where a peer refuses it."""

    def ours() -> Any:
        constraint = grammar.compile(**case.given(), tokenizer=vocabulary)
        constraint.start().mask()
        return constraint

    def of(peer: Peer) -> Any:
        compiled = peer.compile(case)
        compiled.start().fill()
        return compiled

    turns: dict[str, Callable[[], Any]] = {"lmc": ours, **{name: partial(of, peer) for name, peer in peers.items()}}
    found: dict[str, list[float]] = {name: [] for name in turns}
    refused: set[str] = set()
    for turn in range(RUNS + 1):
        for name, run in turns.items():
            if name in refused or sum(found[name]) > LONG:
                continue
            try:
                seconds = _seconds(run)
            except RefusedError:
                refused.add(name)
                continue
            if turn or seconds > LONG:
                found[name].append(seconds)
    return {name: None if name in refused else statistics.median(seconds) for name, seconds in found.items()}


def index(case: Case, peer: Peer) -> float:
    """A peer's compilation alone, which for outlines-core is the complete index. Raises ``RefusedError``."""
    return median(lambda: peer.compile(case), runs=3)


def built(case: Case, vocabulary: grammar.Vocabulary) -> Built | str:
    """Our complete index, or why it is refused."""

    def compiled(cache: str | None = None) -> Any:
        return grammar.compile(**case.given(), tokenizer=vocabulary, cache=cache)

    def whole(cache: str | None = None) -> Any:
        constraint = compiled(cache)
        constraint.build()
        constraint.start().mask()
        return constraint

    try:
        facts = whole().facts()
    except ConstraintError as error:
        return str(error)
    with tempfile.TemporaryDirectory() as folder:
        whole(folder)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        load = median(lambda: whole(folder))
        read = statistics.median(_seconds(compiled(folder).build) for _ in range(RUNS))
    build = median(whole, runs=5)
    return Built(build, load, read, facts.states, facts.token_classes, facts.masks, facts.table_bytes, size)


def handed_out(case: Case, vocabulary: grammar.Vocabulary, found: Sequence[Output]) -> Handed:
    """Over the states of all outputs, which are visited once before."""
    constraint = grammar.compile(**case.given(), tokenizer=vocabulary)
    states: list[Any] = []
    for output in found:
        states.append(constraint.start())
        states[-1].mask()
        for token in output.tokens:
            states.append(states[-1].advance(token))
            states[-1].mask()
    buffer: npt.NDArray[np.uint32] = np.array(states[0].mask())
    now, each = time.perf_counter_ns, list[int]()

    def hand() -> None:
        for state in states:
            state.mask()

    def time_each() -> None:
        for state in states:
            start = now()
            state.mask()
            each.append(now() - start)

    def copy() -> None:
        for state in states:
            buffer[:] = state.mask()

    def walk() -> None:
        for output in found:
            state = constraint.start()
            for token in output.tokens:
                state = state.advance(token)

    for _ in range(ROUNDS):
        time_each()
    mean, copied, walked = (statistics.median(_seconds(run) for _ in range(ROUNDS)) for run in (hand, copy, walk))
    steps = sum(len(output.tokens) for output in found)
    return Handed(mean / len(states), float(np.percentile(each, 99)) / 1e9, copied / len(states), walked / steps)


def fills(compiled: Compiled, found: Sequence[Output]) -> float:
    """Mean seconds in which a peer fills a mask along outputs that it has walked before."""
    means: list[float] = []
    for _ in range(WALKS):
        seconds: list[float] = []
        for output in found:
            walk = compiled.start()
            for token in (*output.tokens, None):
                start = time.perf_counter()
                walk.fill()
                seconds.append(time.perf_counter() - start)
                if token is None or not walk.accept(token):
                    break
        means.append(statistics.fmean(seconds))
    return statistics.median(means[1:])
