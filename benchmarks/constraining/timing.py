"""What is timed of a constraint, in seconds; ours and the peers' by the same loops."""

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.constraining.cases import Case
from benchmarks.constraining.checks import Output
from benchmarks.constraining.peers import Compiled, Peer
from lmc import grammar
from lmc.ir.errors import ConstraintError

RUNS = 21  # at most, of what is made anew; the first of them is not counted
LONG = 1.0  # seconds after which no further run of it is started
ROUNDS = 50  # of all states, for masks that are handed out
WALKS = 4  # of a peer over all outputs; the first of them is not counted


@dataclass(frozen=True)
class Built:
    """Our complete token index: seconds to build it and to load it from the cache; what it holds."""

    build: float
    load: float
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
    found = [_seconds(run)]
    if found[0] < LONG:
        found = []
        while len(found) < (runs or RUNS) and sum(found) < 3 * LONG:
            found.append(_seconds(run))
    return statistics.median(found)


def _seconds(run: Callable[[], Any]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        kept = run()
        end = time.perf_counter()
    finally:
        gc.enable()
    del kept  # to free it is not part of making it
    return end - start


def our_first_mask(case: Case, vocabulary: grammar.Vocabulary) -> float:
    """A constraint and the mask of its first state."""

    def run() -> Any:
        constraint = grammar.compile(**case.given(), tokenizer=vocabulary)
        constraint.start().mask()
        return constraint

    return median(run)


def first_mask(case: Case, peer: Peer) -> float:
    """The same of a peer. Raises ``RefusedError``."""

    def run() -> Compiled:
        compiled = peer.compile(case)
        compiled.start().fill()
        return compiled

    return median(run)


def index(case: Case, peer: Peer) -> float:
    """A peer's compilation alone, which for outlines-core is the complete index. Raises ``RefusedError``."""
    return median(lambda: peer.compile(case), runs=3)


def built(case: Case, vocabulary: grammar.Vocabulary) -> Built | str:
    """Our complete index, or why it is refused."""

    def make(cache: Path | None) -> Any:
        constraint = grammar.compile(**case.given(), tokenizer=vocabulary, cache=cache)
        constraint.build()
        constraint.start().mask()
        return constraint

    try:
        facts = make(None).facts()
    except ConstraintError as error:
        return str(error)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        load = median(lambda: make(Path(folder)))
    build = median(lambda: make(None), runs=5)
    return Built(build, load, facts.states, facts.token_classes, facts.masks, facts.table_bytes, size)


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
    gc.collect()
    gc.disable()
    try:
        start = now()
        for _ in range(ROUNDS):
            for state in states:
                state.mask()
        whole = now() - start
        for _ in range(ROUNDS):
            for state in states:
                start = now()
                state.mask()
                each.append(now() - start)
        start = now()
        for _ in range(ROUNDS):
            for state in states:
                buffer[:] = state.mask()
        copied = now() - start
        start = now()
        for _ in range(ROUNDS):
            for output in found:
                state = constraint.start()
                for token in output.tokens:
                    state = state.advance(token)
        walked = now() - start
    finally:
        gc.enable()
    calls, steps = ROUNDS * len(states), ROUNDS * sum(len(output.tokens) for output in found)
    return Handed(whole / calls / 1e9, float(np.percentile(each, 99)) / 1e9, copied / calls / 1e9, walked / steps / 1e9)


def fills(case: Case, peer: Peer, found: Sequence[Output]) -> float:
    """Mean seconds in which a peer fills a mask along outputs that it has walked before. Raises ``RefusedError``."""
    compiled = peer.compile(case)
    seconds, count = 0.0, 0
    for walk_number in range(WALKS):
        for output in found:
            walk = compiled.start()
            for token in (*output.tokens, None):
                start = time.perf_counter()
                walk.fill()
                spent = time.perf_counter() - start
                if walk_number:
                    seconds, count = seconds + spent, count + 1
                if token is None or not walk.accept(token):
                    break
    return seconds / count
