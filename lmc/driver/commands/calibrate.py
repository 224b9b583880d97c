"""Measurement of the steps of an engine: the implementation of ``lmc calibrate``."""

from __future__ import annotations

import datetime
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmc.cache.simulation.fitting import FittedModel, fit_cost_model
from lmc.cache.simulation.report import StepWork
from lmc.driver.commands.cli_options import GivenOptions
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.targets.calibrations import Calibration, keep_calibration, machine_of
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.registry import make_engine
from lmc.ir.engine.observing import Observable, ObservedStep
from lmc.ir.engine.protocol import Engine, Request, SamplingParams
from lmc.ir.engine.target import WITH_WEIGHTS
from lmc.ir.errors import EngineError

__all__ = ["SECONDS", "CalibrationReport", "run"]

SECONDS = 60.0
"""Seconds that the measurement may take, beside loading the model."""
_MOST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _Case:
    """Requests that are sent together: tokens of a prefix they share, of their own prompts, and of their outputs."""

    requests: int
    own: int
    new: int
    shared: int = 0

    @property
    def rows(self) -> int:
        """Rows that they compute at most."""
        return self.shared + self.requests * (self.own + self.new)

    def fits(self, length: int, kv_tokens: int) -> bool:
        """Return True if prompts and outputs fit an engine."""
        return self.shared + self.own + self.new <= length and self.rows <= kv_tokens


_DECODED = 10
_CASES = (
    *(_Case(requests, 8, _DECODED) for requests in (1, 2, 4, 8, 16, 32, 64)),
    *(_Case(1, own, 1) for own in (16, 64, 128, 256, 512)),
    _Case(16, 8, 1),
    _Case(8, 32, _DECODED, shared=384),
    _Case(4, 256, _DECODED),
    _Case(1, 1024, _DECODED),
    _Case(128, 8, _DECODED),
    _Case(1, 2048, _DECODED),
)


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A calibration, the fit with its errors, and the file that keeps it (None: it could not be written)."""

    target: str
    calibration: Calibration
    fit: FittedModel
    steps: int
    file: Path | None

    def to_json(self) -> dict[str, Any]:
        """Return the constants in seconds and the errors as JSON data, the same for equal fits: no date."""
        return {
            "target": self.target,
            "machine": self.calibration.machine,
            "constants": asdict(self.fit.cost),
            "mean_error": self.fit.mean_error,
            "largest_error": self.fit.largest_error,
            "steps": self.steps,
        }


def run(given: GivenOptions, *, seconds: float = SECONDS) -> CalibrationReport:
    """Load a local model, measure steps of different sizes, fit the constants and keep them in the user's cache.

    Raises ``UsageError`` for a target that is not local, ``InputError`` and ``EngineError`` where it can't be loaded.
    """
    target = resolve_target(Options(**{name: value for name, value in given.items() if value is not None}))
    if target.kind not in WITH_WEIGHTS:
        raise UsageError(
            f"{target.spec} has no steps that could be measured here",
            remedy="name a local model: --model local:PATH or --model builtin",
        )
    engine = make_engine(target)
    try:
        samples, steps = measure_steps(engine, seconds)
    finally:
        engine.close()
    if len(samples) < 6:
        raise EngineError(
            f"{target.spec} computed steps of {len(samples)} sizes only in {seconds:g} s", remedy="give more --seconds"
        )
    fit = fit_cost_model(samples)
    today = datetime.datetime.now(datetime.UTC).date()
    found = Calibration(today, machine_of(target), fit.cost, fit.mean_error)
    return CalibrationReport(target.spec, found, fit, steps, keep_calibration(target, found))


def measure_steps(engine: Engine, seconds: float) -> tuple[list[tuple[StepWork, float]], int]:
    """Return the work and the median seconds of steps of each size, and the number of all steps.

    Prompts of random tokens share nothing but what a case says. A case that would take longer than what is left of
    ``seconds``, by the slowest row so far, is left out. Raises ``EngineError`` for an engine without steps.
    """
    if not isinstance(engine, Observable):
        raise EngineError(f"the steps of {engine.info.name} can't be observed", remedy="calibrate a local model")
    draw = random.Random(0)  # noqa: S311 - tokens of prompts that mean nothing
    vocabulary = engine.tokenizer.vocabulary_size
    length, pool = engine.info.context_length, engine.info.kv_tokens or 0
    _measure(engine, engine, _CASES[1], draw, vocabulary)  # what is only slow once
    found: dict[tuple[_Case, int, int], list[tuple[StepWork, float]]] = {}
    end, slowest, count = time.monotonic() + seconds, 0.0, 0
    for _ in range(_MOST_ROUNDS):
        for case in _CASES:
            if not case.fits(length, pool) or slowest * case.rows > end - time.monotonic():
                continue
            start = time.monotonic()
            for work, duration in _measure(engine, engine, case, draw, vocabulary):
                found.setdefault((case, int(work.rows), int(work.drawn)), []).append((work, duration))
                count += 1
            if case.requests == 1 and case.own > _DECODED:
                slowest = max(slowest, (time.monotonic() - start) / case.rows)
    return [_typical(steps) for steps in found.values()], count


def _measure(
    engine: Engine, observable: Observable, case: _Case, draw: random.Random, vocabulary: int
) -> list[tuple[StepWork, float]]:
    """Run a case; return the steps with their seconds, from the end of the one before where that is in the case."""
    prefix = tuple(draw.choices(range(vocabulary), k=case.shared))
    sampling = SamplingParams(max_tokens=case.new, min_tokens=case.new, temperature=0.0)
    prompts = [prefix + tuple(draw.choices(range(vocabulary), k=case.own)) for _ in range(case.requests)]
    steps: list[ObservedStep] = []
    stop = observable.observe(lambda step: None if step is None else steps.append(step))
    try:
        handles = [engine.submit(Request(prompt, sampling, instance=number)) for number, prompt in enumerate(prompts)]
        for handle in handles:
            handle.future.result()
    finally:
        stop()
    begins = [steps[0].start, *(step.end for step in steps[:-1])] if steps else []
    return [
        (StepWork(step.rows, step.drawn, step.attended, step.held), step.end - begin)
        for begin, step in zip(begins, steps, strict=True)
    ]


def _typical(steps: Sequence[tuple[StepWork, float]]) -> tuple[StepWork, float]:
    """Return the mean work and the median seconds of steps of one size."""
    works = [work for work, _ in steps]
    mean = [statistics.fmean(getattr(work, name) for work in works) for name in ("rows", "drawn", "attended", "held")]
    return StepWork(*mean), statistics.median(duration for _, duration in steps)
