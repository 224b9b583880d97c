"""The worth of each pass: programs without it, at -O0 and at -O2, on the local engine and on servers that people run.

python benchmarks/ablation.py [--write] [--case single] [--place vllm] [--program react] [--repeats 3]

- passes: batches of the programs of `programs.py`, and of ordinary ones that have what those have not (constraints,
  tools, loops, the same question twice). Each runs at -O2, at -O0, and at -O2 without each pass that changes its IR;
  where a pass changes nothing, so does leaving it out. Forms take turns, each begins with an empty cache. Ratios
  are those of seconds to -O2 in the same repeat: above 1 the pass pays. `computed` are tokens that the engine or server
  computed, by its own count.
- single: one row, compiled beside eager.

Places: the local engine with a pool that holds all, and with one for a quarter of the distinct tokens; vLLM's server
where `LMC_BENCH_VLLM` names its interpreter, and that of llama-cpp-python where `LMC_BENCH_LLAMA_CPP` does (README.md).
The small random model of `agents.py` in float32, greedy: a run is long against a step, and results are equal.
"""

import argparse
import math
import os
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

import lmc
from benchmarks.engine import FOLDER
from benchmarks.peer_servers import BLOCK, llama_cpp_server, vllm_server
from benchmarks.peers.shapes import ALL_SHAPES, Row, words
from benchmarks.programs import PROGRAMS
from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import versions
from benchmarks.servers import CAPABILITIES, distinct_tokens, text_target
from benchmarks.workloads import make_small_model
from lmc.ir.wording import with_count
from lmc.passes.pipelines import pipeline

DTYPE = "float32"
POOL = 40_000
INSTANCES = 6
BATCHES = (INSTANCES, 1)
"""Rows of a batch. What only lets more run at the same time pays where few rows are there."""
LATENCY = 0.3
"""Seconds of a tool that looks something up."""


@lmc.tool(effect="reads", early=True)
def look_up(name: str) -> str:
    """Look up a name in a system that takes its time."""
    time.sleep(LATENCY)
    return f" known as {name.strip().split(' ')[0]}"


@lmc.jit
def records(s: Any, page: str) -> Any:
    """Read fields of a page, each in a form."""
    s += " Read the page and give its fields." + page
    s += " Title:"
    s.gen("title", regex="( [a-z]{4,6}){3}", max_tokens=24)
    s += " Names:"
    s.gen("names", regex="( [a-z]{6}){3}", max_tokens=24)
    return [s["title"], s["names"]]


def language_of(s: Any) -> str:
    s += " The language is:"
    return s.gen("language", max_tokens=8, min_tokens=8)


@lmc.jit
def review(s: Any, text: str) -> Any:
    """Two reviewers: each asks for the language first; notes of the second are not used."""
    s += " Review this text." + text
    first, second = s.fork(2)
    style = language_of(first)
    first += " Style:"
    first.gen("style", max_tokens=32, min_tokens=32)
    facts = language_of(second)
    notes = second.fork(1)[0]
    notes += " Notes:"
    notes.gen("notes", max_tokens=32, min_tokens=32)
    second += " Facts:"
    return [style, first["style"], facts, second.gen("facts", max_tokens=32, min_tokens=32)]


@lmc.jit
def summaries(s: Any, pages: list[str]) -> Any:
    """Sum up pages one after the other in a loop that appends to a text."""
    notes = ""
    for page in pages:
        reader = s.fork(1)[0]
        reader += " Sum up this page." + page
        notes += reader.gen("summary", max_tokens=32, min_tokens=32)
    s += " Notes:" + notes + " Report:"
    return [s.gen("report", max_tokens=32, min_tokens=32)]


@lmc.jit
def assistant(s: Any, question: str) -> Any:
    """Look something up where the model wants it."""
    s += " Answer the question." + question
    s += " Plan:"
    plan = s.gen("plan", max_tokens=32, min_tokens=32)
    if " zzz" not in plan:
        s += look_up(question)
    s += " Answer:"
    return [plan, s.gen("answer", max_tokens=16, min_tokens=16)]


@lmc.jit
def grounded(s: Any, history: str, question: str) -> Any:
    """Answer at the end of a long history, with facts that are looked up."""
    s += history
    s += " Question:" + question + " Facts:"
    s += look_up(question)
    s += " Answer:"
    return [s.gen("answer", max_tokens=16, min_tokens=16)]


@lmc.jit
def dossier(s: Any, page: str) -> Any:
    """Many short notes on a page, and one long line of thought, which is written last."""
    s += " Read the page." + page
    notes: list[str] = []
    for number in range(24):
        writer = s.fork(1)[0]
        writer += f" Note {number}:"
        notes.append(writer.gen("note", max_tokens=8, min_tokens=8))
    thought = s.fork(1)[0]
    for step in ("Causes", "Effects", "Doubts", "Verdict"):
        thought += f" {step}:"
        thought.gen(step.lower(), max_tokens=16, min_tokens=16)
    return [*notes, thought["verdict"]]


EVERYDAY: dict[str, tuple[Any, Callable[[random.Random], Row]]] = {
    "records": (records, lambda rng: {"page": words(rng, 300)}),
    "review": (review, lambda rng: {"text": words(rng, 300)}),
    "summaries": (summaries, lambda rng: {"pages": [words(rng, 150) for _ in range(4)]}),
    "assistant": (assistant, lambda rng: {"question": words(rng, 60)}),
    "grounded": (grounded, lambda rng: {"history": words(rng, 600), "question": words(rng, 20)}),
    "dossier": (dossier, lambda rng: {"page": words(rng, 200)}),
}


def rows_of(program: str, seed: str, count: int) -> list[Row]:
    """Return rows of a program, decided by ``seed``."""
    rng = random.Random(f"ablation/{program}/{seed}")
    if program in EVERYDAY:
        return [EVERYDAY[program][1](rng) for _ in range(count)]
    return ALL_SHAPES[program].rows(rng, count)


def program_of(name: str) -> Any:
    """Return the program of that name."""
    return EVERYDAY[name][0] if name in EVERYDAY else PROGRAMS[name]


@dataclass(frozen=True)
class Place:
    """An engine or server that runs programs: its target, the tokens it has computed so far, and how it forgets."""

    target: Any
    computed: Callable[[], float]
    forget: Callable[[], object]


@contextmanager
def local(program: str, *, tight: bool) -> Generator[Place]:
    """The local engine."""
    from lmc.driver.targets.engines import adopt_engine
    from lmc.runtime.local import load_local_engine

    tokens = POOL
    if tight:
        if program in EVERYDAY:
            tokens = 1_024
        else:
            tokens = max(distinct_tokens(program, rows_of(program, "0", INSTANCES)) // 4, 1_024)
    folder = make_small_model(FOLDER / "agents")
    engine: Any = load_local_engine(folder, dtype=DTYPE, kv_tokens=tokens)
    try:
        yield Place(
            adopt_engine(engine),
            lambda: engine.statistics.prefilled_tokens + engine.statistics.generated_tokens,
            engine.flush_cache,
        )
    finally:
        engine.close()


@contextmanager
def vllm(program: str) -> Generator[Place]:
    """The server of vLLM, with prefix caching."""
    del program
    folder = make_small_model(FOLDER / "agents")
    pages = str(POOL // BLOCK)
    with vllm_server(os.environ["LMC_BENCH_VLLM"], folder, DTYPE, "--num-gpu-blocks-override", pages) as found:
        target = lmc.remote(f"server:{found.url}#{found.model}", tokenizer=str(folder), capabilities=CAPABILITIES)
        yield Place(target, found.computed, found.forget)


@contextmanager
def llama_cpp(program: str) -> Generator[Place]:
    """The server of llama-cpp-python, which takes texts."""
    del program
    with llama_cpp_server(os.environ["LMC_BENCH_LLAMA_CPP"], make_small_model(FOLDER / "agents"), DTYPE) as found:
        yield Place(text_target(found.url), found.computed, found.forget)


PLACES: dict[str, Callable[[str], AbstractContextManager[Place]]] = {
    "local": lambda program: local(program, tight=False),
    "local, tight": lambda program: local(program, tight=True),
    "vllm": vllm,
    "llama.cpp": llama_cpp,
}
_NEEDS = {"vllm": "LMC_BENCH_VLLM", "llama.cpp": "LMC_BENCH_LLAMA_CPP"}
FULL, NONE = "-O2", "-O0"


@dataclass
class Form:
    """A program in one form, and what its batches took."""

    program: Any
    seconds: list[float]
    computed: list[float]
    requests: int = 0
    values: tuple[Any, ...] = ()

    def run(self, place: Place, rows: Sequence[Row]) -> None:
        """Run a batch from an empty cache."""
        place.forget()
        before, begun = place.computed(), time.perf_counter()
        results = list(self.program.batch(rows))
        self.seconds.append(time.perf_counter() - begun)
        self.computed.append(place.computed() - before)
        for result in results:
            if result.error is not None:
                raise result.error
        self.requests = sum(result.usage.calls for result in results)
        self.values += tuple(result.value for result in results)


def forms_of(program: Any, target: Any, row: Row) -> dict[str, Form]:
    """Return a program in the forms that differ, by name."""

    def form(**options: Any) -> Form:
        return Form(program.on(target, **options), [], [])

    def ir(form: Form) -> str:
        return str(form.program.compile(**row).module)

    found = {FULL: form(), NONE: form(level="O0")}
    whole = ir(found[FULL])
    for name in dict.fromkeys(each.NAME for each in pipeline("O2").passes):
        without = form(disabled_passes=(name,))
        if ir(without) != whole:
            found[f"without {name}"] = without
    return found


def measure_passes(place: Place, name: str, size: int, repeats: int) -> dict[str, Form]:
    """Run batches of so many rows in all forms of a program."""
    program = program_of(name)
    rows = [rows_of(name, f"{size}/{repeat}", size) for repeat in range(-1, repeats)]
    forms = forms_of(program, place.target, rows[0][0])
    for number, batch in enumerate(rows):
        order = list(forms) if number % 2 else list(reversed(forms))
        for form in order:
            forms[form].run(place, batch[:1] if number == 0 else batch)  # the first one warms up
    for form in forms.values():
        del form.seconds[0], form.computed[0]
    return forms


def ratio_of(form: Form, whole: Form) -> float:
    """Return how many times as long as the whole pipeline a form took."""
    return statistics.median(one / other for one, other in zip(form.seconds, whole.seconds, strict=True))


def passes_case(places: Sequence[str], names: Sequence[str], repeats: int) -> str:
    """Compare forms of programs at each place."""
    lines: list[list[str]] = []
    ratios: dict[tuple[str, str], list[float]] = {}
    tokens: dict[tuple[str, str], list[float]] = {}
    for place_name in places:
        for name in names:
            with PLACES[place_name](name) as place:
                measured = {size: measure_passes(place, name, size, repeats) for size in BATCHES}
            for size, forms in measured.items():
                whole = forms[FULL]
                for form_name, form in forms.items():
                    ratio = ratio_of(form, whole)
                    same = sum(map(_equal, form.values, whole.values))
                    seconds = statistics.median(form.seconds)
                    cells = [place_name, name, str(size), form_name, f"{seconds:.2f}", f"{ratio:.2f}"]
                    cells += [f"{form.requests:,}", f"{statistics.median(form.computed):,.0f}"]
                    lines.append([*cells, f"{same} of {len(whole.values)}"])
                    print(" | ".join(lines[-1]), flush=True)
                    if form is not whole:
                        at = form_name, f"{place_name}, {with_count(size, 'row')}"
                        ratios.setdefault(at, []).append(ratio)
                        more = statistics.median(form.computed) / statistics.median(whole.computed)
                        tokens.setdefault(at, []).append(more)
    kinds, columns = (list(dict.fromkeys(found)) for found in zip(*ratios, strict=True))
    summary = [
        [
            kind,
            *(
                cell
                for column in columns
                for cell in (_mean(ratios.get((kind, column))), _mean(tokens.get((kind, column))))
            ),
        ]
        for kind in kinds
    ]
    names = ["form", *(name for column in columns for name in (column, "computed"))]
    head = ["place", "program", "rows", "form", "seconds", "/ -O2", "requests", "computed", "equal results"]
    about = (
        f"Medians of {repeats}. Geometric means of the ratios to -O2 of seconds and of computed tokens, and of how many"
        " programs; a pass leaves all others as they are:\n\n"
    )
    return about + table(names, summary) + "\n" + table(head, lines)


def _equal(one: Any, other: Any) -> bool:
    return one == other


def _mean(ratios: list[float] | None) -> str:
    if not ratios:
        return ""
    return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f} ({len(ratios)})"


def single_case(places: Sequence[str], names: Sequence[str], repeats: int) -> str:
    """Compare one compiled run with an eager one."""
    lines: list[list[str]] = []
    for place_name in places:
        for name in names:
            with PLACES[place_name](name) as place:
                program = program_of(name).on(place.target)
                seconds: dict[str, list[float]] = {"compiled": [], "eager": []}
                runs = {"compiled": program.run, "eager": program.eager}
                for repeat, row in enumerate(rows_of(name, "single", repeats + 1)):
                    for side in sorted(runs, reverse=bool(repeat % 2)):
                        place.forget()
                        begun = time.perf_counter()
                        runs[side](**row)
                        if repeat:
                            seconds[side].append(time.perf_counter() - begun)
            ratio = statistics.median(one / other for one, other in zip(*seconds.values(), strict=True))
            cells = [f"{1000 * statistics.median(seconds[side]):,.0f}" for side in seconds]
            lines.append([place_name, name, *cells, f"{ratio:.3f}"])
            print(" | ".join(lines[-1]), flush=True)
    about = f"Single rows, each from an empty cache, medians of {repeats} rows, milliseconds.\n\n"
    return about + table(["place", "program", "compiled", "eager", "compiled / eager"], lines)


CASES = {"passes": passes_case, "single": single_case}


def main() -> None:
    """Measure, and write the sections."""
    places = [name for name in PLACES if name not in _NEEDS or os.environ.get(_NEEDS[name])]
    programs = [*PROGRAMS, *EVERYDAY]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    parser.add_argument("--case", action="append", choices=CASES, help="all without")
    parser.add_argument("--place", action="append", choices=places, help="all without")
    parser.add_argument("--program", action="append", choices=programs, help="all without")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for case in options.case or CASES:
        text = f"{machine()}, {processor()}; {versions(['lmc'])}. "
        text += CASES[case](options.place or places, options.program or programs, options.repeats)
        print(text)
        if options.write:
            command = ["python", "benchmarks/ablation.py", *sys.argv[1:]]
            write_section(f"ablation: {case}", shlex.join(command), text)


if __name__ == "__main__":
    main()
