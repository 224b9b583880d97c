"""What a runner is told and what it answers; standard library only, since peers run in environments of their own.

A job holds `model` (folder), `dtype`, `device`, `threads` and `batches`; the first batch warms up and is not counted.
For plain generation a batch is a list of prompts (token ids), `new_tokens` long answers are asked for, and the runner
answers seconds and tokens of each batch. For a `workload` a batch is a list of rows of that shape, `texts` holds the
tokens of every text in them, and the runner answers seconds and what was `Done` of each batch. Seconds are those of the
clock, and those of the processor that the runner and all processes of its engine used. A job may say
`kv_tokens`, `max_running` and `longest`: the size of the KV pool, how many requests run at once, and tokens of the
longest request; then the cache is empty when the job starts.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.shapes import ALL_SHAPES, Call, Program, Row

Job = dict[str, Any]
Generate = Callable[[list[list[int]], int], list[list[int]]]
RunPrograms = Callable[[Sequence[Program]], int | None]  # answers tokens of prompts that were cached, where it can tell

LARGEST = 64  # prompts that a padded batch holds


@dataclass(frozen=True)
class Done:
    """Tokens of all calls of some rows, and the answers of each row in the order of its shape: tokens, or texts.

    ``cached_tokens`` are those of prompts that were in the cache; None where the engine does not say.
    """

    prompt_tokens: int
    new_tokens: int
    cached_tokens: int | None
    answers: list[list[Any]]


RunRows = Callable[[list[Row]], Done]


def serve(load: Callable[[Job], Generate], load_rows: Callable[[Job], RunRows] | None = None) -> None:
    """For every job, one a line: load the engine, run every batch once, and answer in a line of its own.

    `load_rows` gives what runs the rows of a workload; without it they go call by call, in step, through `load`.
    """
    for line in sys.stdin:
        job: Job = json.loads(line)
        if "workload" in job:
            _answer(job, _measured_rows((load_rows or (lambda job: call_by_call(job, in_step(load(job)))))(job), job))
        else:
            _answer(job, _measured_prompts(load(job), job))


def _measured_prompts(generate: Generate, job: Job) -> Callable[[Any], dict[str, Any]]:
    return lambda prompts: {"tokens": generate(prompts, job["new_tokens"])}


def _measured_rows(run: RunRows, _job: Job) -> Callable[[Any], dict[str, Any]]:
    return lambda rows: vars(run(rows))


def _answer(job: Job, run: Callable[[Any], dict[str, Any]]) -> None:
    answers: list[dict[str, Any]] = []
    for batch in job["batches"]:
        cpu, start = cpu_seconds(), time.perf_counter()
        answer = run(batch)
        seconds = time.perf_counter() - start
        answers.append({"seconds": seconds, "cpu_seconds": cpu_seconds() - cpu, **answer})
    counted = answers[1:]
    print("\n" + json.dumps({key: [answer[key] for answer in counted] for key in counted[0]}), flush=True)


def cpu_seconds(processes: Path = Path("/proc")) -> float:
    """Seconds of the processor that this process and its descendants have used; its own where there is no `/proc`."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for path in processes.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(path.parent.name)
        parents[process], used[process] = int(fields[1]), int(fields[11]) + int(fields[12])
    if os.getpid() not in used:
        return time.process_time()
    family, grown = {os.getpid()}, True
    while grown:
        children = {process for process, parent in parents.items() if parent in family} - family
        family |= children
        grown = bool(children)
    return sum(used[process] for process in family) / os.sysconf("SC_CLK_TCK")


def call_by_call(job: Job, run_programs: RunPrograms) -> RunRows:
    """Run rows of the job's workload as calls of an engine, and count their tokens."""
    texts: dict[str, list[int]] = job["texts"]
    calls = ALL_SHAPES[job["workload"]].calls

    def run(rows: list[Row]) -> Done:
        counts = [0, 0]
        answers: list[list[list[int]]] = [[] for _ in rows]
        programs = [calls(row, texts.__getitem__) for row in rows]
        cached = run_programs([counted(program, counts, own) for program, own in zip(programs, answers, strict=True)])
        return Done(counts[0], counts[1], cached, answers)

    return run


def counted(program: Program, counts: list[int], said: list[list[int]]) -> Program:
    """The same program; adds the tokens of its prompts and answers to `counts`, and its answers to `said`."""
    answers: list[list[int]] | None = None
    while True:
        try:
            calls = next(program) if answers is None else program.send(answers)
        except StopIteration:
            return
        answers = yield calls
        counts[0] += sum(len(call.prompt) for call in calls)
        counts[1] += sum(map(len, answers))
        said += answers


def in_step(generate: Generate, largest: int = LARGEST) -> RunPrograms:
    """One batch per program step over all instances: what a script does whose engine takes a list of prompts."""

    def run(programs: Sequence[Program]) -> int | None:
        waiting = [(program, next(program)) for program in programs]
        while waiting:
            answers = _in_batches(generate, [call for _, calls in waiting for call in calls], largest)
            following: list[tuple[Program, list[Call]]] = []
            for program, calls in waiting:
                own, answers = answers[: len(calls)], answers[len(calls) :]
                try:
                    following.append((program, program.send(own)))
                except StopIteration:
                    continue
            waiting = following
        return None

    return run


def _in_batches(generate: Generate, calls: list[Call], largest: int) -> list[list[int]]:
    """All calls of a step ask for equally many tokens, so no batch waits for its longest member."""
    (new_tokens,) = {call.new_tokens for call in calls}
    answers: list[list[int]] = []
    for start in range(0, len(calls), largest):
        answers += generate([call.prompt for call in calls[start : start + largest]], new_tokens)
    return answers
