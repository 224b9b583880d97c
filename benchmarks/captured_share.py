"""Count which share of the generations of programs is in the static graph, and what keeps the others out.

python benchmarks/captured_share.py [--write]

The headline counts programs written for their own sake: every example, the programs in sglang's language of
tests/sglang, and the ordinary programs of tests/frontend/ordinary. The corpora of tests/frontend/corpus are
counted apart: most of their programs are there because something in them is hard to capture. Each program runs as
plain Python on the toy engine, where its generations are counted, then compiled at -O2: the eager continuation behind
a break runs the generations that are not in the graph. Both runs must have the same result.
"""

import argparse
import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from io import StringIO
from types import ModuleType
from typing import Any

from benchmarks.results import table, write_section
from lmc.driver.compile.compile import compile_program
from lmc.driver.targets.constraints import compiler
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import inputs_of
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import LmcError
from lmc.ir.semantics.interpreter import Outcome
from lmc.passes.pipelines import PipelineOptions
from lmc.runtime.executor import Executor, Finished, Instance
from tests.examples.cases import EXAMPLES
from tests.frontend.corpus.cases import CASES
from tests.frontend.corpus.conditions.cases import Condition
from tests.frontend.ordinary.cases import CASES as ORDINARY
from tests.frontend.ordinary.cases import Ordinary
from tests.project.layers import REPOSITORY, module_name
from tests.sglang.programs import EVERY

AIM = 0.9
LEVEL = "O2"
HEADLINE = ("examples", "sglang", "ordinary")
"""Groups of programs that were written for their own sake."""
GROUPS = ["programs of", "programs", "captured whole", "share of programs", "generations", "in the graph", "share"]
HEAD = ["program", "generations", "in the graph", "share", "break", "cause"]
CORPUS_FOLDER = REPOSITORY / "tests" / "frontend" / "corpus"
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Run = Callable[[], Arguments]
CACHE = ConstraintCache()


@dataclass(frozen=True)
class Program:
    """A program, and what finds its runs, each of which makes its arguments anew."""

    group: str
    name: str
    function: JittedFunction
    runs: Callable[[], Sequence[Run]]


@dataclass(frozen=True)
class Share:
    """What was counted over all runs of a program. ``breaks``: each once, as (file:line, cause)."""

    group: str
    name: str
    generations: int
    in_graph: int
    breaks: tuple[tuple[str, str], ...]

    @property
    def share(self) -> float:
        return self.in_graph / self.generations


def corpus() -> Iterator[Program]:
    """Every program of the corpus."""
    for file in sorted(CORPUS_FOLDER.rglob("*.py")):
        import_module(module_name(file))  # which puts its programs into a corpus
    for name, example in EXAMPLES.items():
        yield Program("examples", name, example.program, partial(_named, example.rows))
    for name, (function, row) in EVERY.items():
        yield Program("sglang", name, function, partial(_named, [row]))
    for name, ordinary in ORDINARY.items():
        yield Program("ordinary", name, ordinary.program, partial(_without_names, ordinary))
    for name, case in CASES.items():
        yield Program("corpus", name, case.program, partial(_made, [case.args]))
    for file in sorted(CORPUS_FOLDER.glob("*/cases.py")):
        for name, condition in _conditions(import_module(module_name(file))).items():
            yield Program(file.parent.name, name, condition.program, partial(_taking_every_way, condition))


def _conditions(cases: ModuleType) -> dict[str, Condition]:
    """The corpus that a folder's cases.py holds."""
    tables = [value for value in vars(cases).values() if type(value) is dict]
    return next(table for table in tables if table and all(isinstance(value, Condition) for value in table.values()))


def _named(rows: Sequence[dict[str, Any]]) -> list[Run]:
    return [lambda row=row: ((), row) for row in rows]


def _made(given: Sequence[tuple[Any, ...] | Callable[[], tuple[Any, ...]]]) -> list[Run]:
    return [lambda args=args: (args if isinstance(args, tuple) else args(), {}) for args in given]


def _without_names(ordinary: Ordinary) -> list[Run]:
    return [lambda make=make: (make(), {}) for make in ordinary.runs()]


def _taking_every_way(condition: Condition) -> list[Run]:
    return _made(condition.inputs)


def measure(program: Program) -> Share:
    """Run it in both ways and count. Raises ``SystemExit`` where they differ."""
    generations = in_graph = 0
    breaks: dict[tuple[str, str], None] = {}
    for run in program.runs():
        plain, asked = _run_eagerly(program.function, run())
        compiled, continued, found = _run_compiled(program.function, run())
        if compiled != plain:
            raise SystemExit(f"{program.group}/{program.name}: compiled it gave {compiled}, as plain Python {plain}")
        generations += asked
        in_graph += asked - continued
        breaks.update(dict.fromkeys(found))
    return Share(program.group, program.name, generations, in_graph, tuple(breaks))


def _run_eagerly(function: JittedFunction, arguments: Arguments) -> tuple[Any, int]:
    """How a program ends as plain Python, and how many of its generations ran."""
    session = EagerSession(ToyEngine(), compile=compiler(CACHE, toy_tokenizer()))
    end = _end(lambda: run_eager(function, bind(function, *arguments), session))
    return end, len(session.profile)


def _run_compiled(function: JittedFunction, arguments: Arguments) -> tuple[Any, int, list[tuple[str, str]]]:
    """How it ends compiled, how many generations ran behind its break, and that break."""
    bound = bind(function, *arguments)
    compiled = compile_program(
        function, bound, Target.parse("toy"), PipelineOptions(LEVEL), toy_tokenizer(), cache=CACHE
    )
    compile = compiler(CACHE, toy_tokenizer())
    session = EagerSession(ToyEngine(), compile=compile)

    def run() -> Outcome:
        finished: list[Finished] = []
        executor = Executor(ToyEngine(), compiled.prepared, compiled.hosts, constraints=compiled.constraints(compile))
        instances = [Instance(0, inputs_of(compiled.captured, bound))]
        asyncio.run(executor.run_batch(instances, [0], lambda _, end: finished.append(end)))
        [end] = finished
        if end.outcome is None:
            assert end.error is not None
            raise end.error
        live = end.outcome.live
        return end.outcome if live is None else go_on(compiled.captured, bound, live, session)

    end = _end(run)
    return end, len(session.profile), [(_place(entry.location), entry.cause) for entry in compiled.breaks]


def _end(run: Callable[[], Outcome]) -> tuple[Any, ...]:
    """What is the same in every way of running a program: what it gave, or the error that it ended with."""
    try:
        outcome = run()
    except LmcError as error:
        return type(error), error.cause
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # some programs raise what no Exception is
        return type(error), str(error)
    return repr(outcome.value), outcome.text


def _place(location: object) -> str:
    """A line of the user's, as seen from the repository."""
    return str(location).removeprefix(f"{REPOSITORY}/")


def line_of(share: Share) -> list[str]:
    """A row of the table."""
    places = ", ".join(place for place, _ in share.breaks)
    causes = "; ".join(dict.fromkeys(cause for _, cause in share.breaks)).replace("|", "\\|").replace("\n", " ")
    counts = [f"{share.generations}", f"{share.in_graph}", f"{share.share:.0%}"]
    return [f"{share.group}/{share.name}", *counts, places, causes]


def summary(shares: Sequence[Share]) -> list[list[str]]:
    """Rows of a table of groups. The last row is the sum of all of them."""
    groups: dict[str, list[Share]] = {}
    for share in shares:
        groups.setdefault(share.group, []).append(share)
    lines: list[list[str]] = []
    for group, members in [*groups.items(), ("all", list(shares))]:
        asked = sum(share.generations for share in members)
        answered = sum(share.in_graph for share in members)
        whole = sum(not share.breaks for share in members)
        counts = [f"{len(members)}", f"{whole}", f"{whole / len(members):.1%}", f"{asked}", f"{answered}"]
        lines.append([group, *counts, f"{answered / asked:.1%}"])
    return lines


def report(measured: Sequence[Share]) -> str:
    """Both tables of groups, and the programs that break."""
    shares = [share for share in measured if share.generations]
    headline = [share for share in shares if share.group in HEADLINE]
    adversarial = [share for share in shares if share.group not in HEADLINE]
    note = (
        f"Counted over all inputs of a program; a program with a break on one path of one input is not captured whole. "
        f"{len(measured) - len(shares)} programs generate nothing and are left out.\n"
    )
    return "\n".join(
        (
            f"Aim: {AIM:.0%} of the generations of examples, programs for sglang and ordinary programs.\n",
            table(GROUPS, summary(headline)),
            "Corpora of programs that are hard to capture:\n",
            table(GROUPS, summary(adversarial)),
            note,
            "Programs that break:\n",
            table(HEAD, [line_of(share) for share in (*headline, *adversarial) if share.breaks]),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    options = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())  # some programs log,
    with redirect_stdout(StringIO()):  # and some print
        measured = [measure(program) for program in corpus()]
    text = report(measured)
    print(text, end="")
    if options.write:
        write_section("captured_share", "python benchmarks/captured_share.py --write", text)


if __name__ == "__main__":
    main()
