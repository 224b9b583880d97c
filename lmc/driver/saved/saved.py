"""Execution of a saved artifact: a plan or IR that was compiled before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmc.backend.json.plan_json import MAX_CHARACTERS, load_plan
from lmc.backend.lower import lower
from lmc.backend.plan import Plan
from lmc.cache.batch_order.ranks import Layout
from lmc.driver.batch.rows import Signature
from lmc.driver.batch.windows import Part, Waiting, WindowedRun
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.run.ending import OnResult, RunEnd
from lmc.driver.run.execute import BatchOrder, limits_of, put_in_order
from lmc.driver.run.journals import acquire_engine, release_engine
from lmc.driver.run.money import RunMoney
from lmc.driver.run.result import Result, stopped
from lmc.driver.run.start import Arguments
from lmc.driver.saved.artifacts import read_module
from lmc.driver.saved.plan_classes import readers_of
from lmc.driver.saved.saved_arguments import signature_of
from lmc.driver.targets.constraints import check, compiler
from lmc.driver.targets.defaults import resolve_grammar_cache, resolve_target
from lmc.driver.targets.service import Service, service
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import Captured
from lmc.ir.builtins.builtins import PureBuiltin, lookup
from lmc.ir.core import HostFunction
from lmc.ir.dialects.core_ops import BreakOp
from lmc.ir.engine.observing import Observer
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError
from lmc.ir.profile import Profile
from lmc.ir.semantics.constraint_runtime import Constraints, Reader
from lmc.runtime.executor import Executor, Finished, Instance, Resources
from lmc.runtime.journal.calls import JournaledCalls
from lmc.runtime.journal.journal import RunJournal

SUFFIXES = (".json", ".lmir")


def is_saved(name: str) -> bool:
    """Return True if a command line names a saved artifact and not a program."""
    return name.endswith(SUFFIXES)


def load_saved_plan(path: str, options: Options) -> Plan:
    """A plan (``.json``), or that of IR (``.lmir``, lowered now). Raises as ``SavedRunner.load`` does."""
    return lower(read_module(path), resolve_target(options)) if path.endswith(".lmir") else load_plan(_read(path))


@dataclass(frozen=True)
class SavedRunner:
    """A saved plan with the options it runs under, the functions that it calls and the classes of its values."""

    plan: Plan
    target: Target
    options: Options
    hosts: Mapping[str, Callable[..., Any]]
    readers: Mapping[str, Reader]

    @classmethod
    def load(cls, path: str, options: Options, program: JittedFunction | None) -> SavedRunner:
        """Read a plan (``.json``) or IR (``.lmir``, lowered now).

        The functions it calls are those that ``program`` calls back, found by name and digest of their source: no
        file can name a function that the user's program does not use. Its values are instances of the classes of
        ``program`` (IR does not know them), else the data that they are made of. Raises ``UsageError``, ``PlanError``,
        ``ParseError``, ``VerifyError``, ``LoweringError``, and ``InputError`` where a function is not there.
        """
        target = resolve_target(options)
        plan = load_saved_plan(path, options)
        _refuse_break(plan)
        captured = None
        if program is not None and (plan.hosts or plan.classes):
            from lmc.frontend.capture import capture  # most plans call nothing

            captured = capture(program, None)
        return cls(plan, target, options, _hosts_of(plan, captured), readers_of(plan, captured))

    @property
    def program(self) -> str:
        """Name of the program."""
        return self.plan.name

    @property
    def signature(self) -> Signature:
        """Return the arguments of the plan's program; for IR, which doesn't know them, parameters by path."""
        return signature_of(self.plan)

    def place(self, arguments: Arguments) -> tuple[Plan, Mapping[str, Any]]:
        """The plan, and its inputs. Nothing is run, and no engine is loaded."""
        return self.plan, arguments[1]

    def run_rows(
        self,
        parts: Iterable[Part],
        layout: Layout | None = None,
        observer: Observer | None = None,
        journal: RunJournal | None = None,
    ) -> WindowedRun:
        """Numbers and results of rows that are read while others run, as they finish: as ``Runner.run_rows`` does."""
        home = service()
        home.loop.check_outside()
        is_replay = journal is not None and journal.is_replay
        money = RunMoney.of(None if is_replay else self.options.budget, self.target)
        tokenizer = home.engines.tokenizer(self.target)
        engine = acquire_engine(home, self.target, journal, tokenizer)
        cache = home.constraints.of(resolve_grammar_cache())
        try:
            check(cache, self.plan.module, tokenizer)
        except BaseException:
            release_engine(home, engine)
            raise
        constraints = Constraints.of(self.plan.constraints, compiler(cache, tokenizer), self.readers)
        windows = _Windows(
            self, engine, constraints, given=layout, home=home, observer=observer, journal=journal, money=money
        )
        return WindowedRun(home, parts, windows)


class _Windows:
    """Windows of a saved plan's rows."""

    def __init__(
        self,
        saved: SavedRunner,
        engine: Engine,
        constraints: Constraints,
        *,
        given: Layout | None,
        home: Service,
        observer: Observer | None,
        journal: RunJournal | None,
        money: RunMoney,
    ) -> None:
        self._observer = observer
        self._calls = None if journal is None else JournaledCalls(journal)
        self._saved = saved
        self._home = home
        self._own = engine
        self.money = money
        self._engine = money.layered(engine, journal)
        self._executor = Executor(self._engine, saved.plan, saved.hosts, constraints=constraints)
        self._end = RunEnd(money.budget)
        self._position = 0
        self._resources: Resources | None = None
        self._given = given
        self._layout: Layout | None = None

    @property
    def program(self) -> str:
        return self._saved.plan.name

    @property
    def is_over(self) -> bool:
        return self._end.has_refused

    def prepare(self, waiting: Waiting) -> Sequence[Instance]:
        instances = [Instance(number, inputs) for number, (_, inputs) in waiting]
        waiting.clear()
        return instances

    async def run(self, prepared: Sequence[Instance], on_result: OnResult, on_stopped: OnResult) -> None:
        if self._resources is None:
            limits = limits_of(self._saved.options)
            self._resources = Resources(self._engine, limits, self._observer, self._calls, self._end.refusal)
        first, self._position = self._position, self._position + len(prepared)
        placed = await self._order(prepared)
        await self._executor.run_batch(
            prepared,
            placed.order,
            lambda index, end: self._deliver(prepared[index].number, _result(end), on_result, on_stopped),
            run_seed=self._saved.options.seed,
            resources=self._resources,
            first_position=first,
            block=placed.layout.block,
            live=placed.live,
            on_cancelled=lambda index, cost: self._stopped(prepared[index].number, cost, on_stopped),
        )

    def _deliver(self, number: int, result: Result, on_result: OnResult, on_stopped: OnResult) -> None:
        priced = replace(result, spending=self.money.spent_by(number))
        self._end.deliver(number, priced, on_result, on_stopped)

    def _stopped(self, number: int, cost: Profile, on_stopped: OnResult) -> None:
        on_stopped(number, stopped(cost, self.money.spent_by(number)))

    async def _order(self, prepared: Sequence[Instance]) -> BatchOrder:
        """The order of instances and its layout: later windows are laid out as the first one was."""
        if self._given is not None:
            return BatchOrder(range(len(prepared)), self._given)
        inputs, requests = [instance.inputs for instance in prepared], limits_of(self._saved.options).requests
        placed = await put_in_order(self._saved.plan, inputs, self._engine, requests, self._layout)
        if len(prepared) > 1:
            self._layout = placed.layout
        return placed

    def close(self) -> None:
        if self._resources is not None:
            self._resources.close()
        release_engine(self._home, self._own)


def _result(end: Finished) -> Result:
    if end.outcome is None:
        assert end.error is not None
        return Result.failed(end.error, end.profile)
    if end.outcome.broken_at is not None:
        return Result.failed(_broken(end.outcome.broken_at), end.profile)
    return Result.of(end.outcome, end.profile)


def _read(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(MAX_CHARACTERS + 1)
    except OSError as error:
        raise UsageError(
            f"{path} can't be read: {error.strerror}", remedy="name a file written by lmc compile --emit plan -o"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text", remedy="name a file written by lmc compile --emit plan -o") from error


def _refuse_break(plan: Plan) -> None:
    """Accept a plan that breaks in one arm of a condition: only the instances that reach it fail."""
    last = plan.instructions[-1].op
    if isinstance(last, BreakOp):
        raise _broken(last)


def _broken(op: BreakOp) -> InputError:
    return InputError(
        f"the plan ends where capture of the program ended: {op.cause}",
        remedy="run the program itself, which goes on from there, or compile it with inputs",
        location=op.location,
    )


def _hosts_of(plan: Plan, captured: Captured | None) -> dict[str, Callable[..., Any]]:
    """The functions that the plan calls: builtins, which any IR may call, and those of the program."""
    found = {host.name: builtin.run for host in plan.hosts if (builtin := _builtin(host)) is not None}
    own = [host for host in plan.hosts if host.name not in found]
    if not own:
        return found
    if captured is None:
        raise UsageError(
            f"the plan calls {', '.join(host.target for host in own)}",
            remedy="name the program that has them: --program PROGRAM.py[:name]",
        )
    wanted, known = _alike(own), _alike(captured.module.hosts)
    for key, hosts in wanted.items():
        if len(known[key]) != len(hosts):
            raise _not_there(hosts[0], captured, ambiguous=len(known[key]) > 0)
        found |= {host.name: captured.hosts[each.name] for host, each in zip(hosts, known[key], strict=True)}
    return found


def _builtin(host: HostFunction) -> PureBuiltin | None:
    module, _, name = host.target.partition(":")
    return lookup(name) if module == PureBuiltin.__module__ else None


def _alike(hosts: Sequence[HostFunction]) -> dict[tuple[str, str], list[HostFunction]]:
    """Group ``hosts`` by their entries in a plan; functions made twice, or objects of one class, are in order."""
    found: dict[tuple[str, str], list[HostFunction]] = defaultdict(list)
    for host in hosts:
        found[host.target, host.digest].append(host)
    return found


def _not_there(host: HostFunction, captured: Captured, *, ambiguous: bool) -> InputError:
    changed = any(entry.target == host.target for entry in captured.module.hosts)
    cause = "has changed since the plan was compiled" if changed else f"is not called by {captured.function.name}"
    if ambiguous:
        cause = f"is one of several alike in {captured.function.name}, which the plan does not tell apart"
    return InputError(f"the function {host.target} {cause}", remedy="compile the plan again, or run the program itself")
