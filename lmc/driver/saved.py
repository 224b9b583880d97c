"""Running a saved artifact: a plan or IR that was compiled before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmc.backend.lower import lower
from lmc.backend.plan import Plan
from lmc.backend.plan_json import MAX_CHARACTERS, load_plan
from lmc.backend.schedule import schedule_batch
from lmc.driver.defaults import resolve_target
from lmc.driver.execute import OnResult
from lmc.driver.opt import read_module
from lmc.driver.programs import UsageError
from lmc.driver.result import Result
from lmc.driver.rows import Signature
from lmc.driver.service import service
from lmc.driver.start import Arguments, Options, iterate_in_background
from lmc.frontend.capture import capture
from lmc.frontend.function import JittedFunction
from lmc.ir.core import HostFunction
from lmc.ir.errors import InputError
from lmc.ir.ops import BreakOp
from lmc.ir.target import Target
from lmc.ir.types import BOOL, FLOAT, INT, NONE, TEXT, ListType, Type
from lmc.runtime.executor import Executor, Finished, Instance

SUFFIXES = (".json", ".lmir")
_PYTHON: dict[Type, Any] = {TEXT: str, INT: int, FLOAT: float, BOOL: bool, NONE: None}


def is_saved(name: str) -> bool:
    """Whether a command line names a saved artifact and not a program."""
    return name.endswith(SUFFIXES)


@dataclass(frozen=True)
class SavedRunner:
    """A saved plan with the options it runs under and the user's functions that it calls."""

    plan: Plan
    target: Target
    seed: int
    hosts: Mapping[str, Callable[..., Any]]

    @classmethod
    def load(cls, path: str, options: Options, program: JittedFunction | None) -> SavedRunner:
        """Read a plan (``.json``) or IR (``.lmir``, lowered now).

        The functions it calls are those that ``program`` calls back, found by name and digest of their source: no
        file can name a function that the user's program does not use. Raises ``UsageError``, ``PlanError``,
        ``ParseError``, ``VerifyError``, ``LoweringError``, and ``InputError`` where a function is not there.
        """
        target = resolve_target(options.wish)
        plan = lower(read_module(path), target) if path.endswith(".lmir") else load_plan(_read(path))
        _refuse_break(plan)
        return cls(plan, target, options.seed, _resolve(plan, program))

    @property
    def signature(self) -> Signature:
        """The plan's parameters. Those of structured arguments go by their paths."""
        types = {parameter.name: _annotation(parameter.value.type) for parameter in self.plan.parameters}
        return Signature(self.plan.name, tuple(types), (), types)

    def iterate(self, batch: Sequence[Arguments]) -> Iterator[tuple[int, Result]]:
        """Numbers and results as the instances finish. Closing the iterator cancels the others."""
        home = service()
        home.loop.check_outside()
        engine = home.engines.engine(self.target)
        instances = [Instance(number, inputs) for number, (_, inputs) in enumerate(batch)]
        order = schedule_batch(self.plan, [instance.inputs for instance in instances]).order

        async def work(on_result: OnResult) -> None:
            def finished(number: int, end: Finished) -> None:
                on_result(number, _result(end))

            await Executor(engine, self.plan, self.hosts).run_batch(instances, order, finished, run_seed=self.seed)

        return iterate_in_background(home, work)


def _result(end: Finished) -> Result:
    if end.outcome is None:
        assert end.error is not None
        return Result.failed(end.error, end.profile)
    return Result(end.outcome.value, end.outcome.variables, end.outcome.text, end.profile)


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
    last = plan.instructions[-1].op
    if isinstance(last, BreakOp):
        raise InputError(
            f"the plan ends where capture of the program ended: {last.cause}",
            remedy="run the program itself, which goes on from there, or compile it with inputs",
            location=last.location,
        )


def _resolve(plan: Plan, program: JittedFunction | None) -> dict[str, Callable[..., Any]]:
    if not plan.hosts:
        return {}
    if program is None:
        raise UsageError(
            f"the plan calls {', '.join(host.target for host in plan.hosts)}",
            remedy="name the program that has them: --program PROGRAM.py[:name]",
        )
    captured = capture(program, None)
    known = {(host.target, host.digest): captured.hosts[host.name] for host in captured.module.hosts}
    missing = [host for host in plan.hosts if (host.target, host.digest) not in known]
    if missing:
        raise _not_there(missing[0], captured.module.hosts, program)
    return {host.name: known[host.target, host.digest] for host in plan.hosts}


def _not_there(host: HostFunction, known: Sequence[HostFunction], program: JittedFunction) -> InputError:
    changed = any(entry.target == host.target for entry in known)
    cause = "has changed since the plan was compiled" if changed else f"is not called by {program.name}"
    return InputError(f"the function {host.target} {cause}", remedy="compile the plan again, or run the program itself")


def _annotation(kind: Type) -> Any:
    if isinstance(kind, ListType):
        return list[_annotation(kind.element)]
    return _PYTHON.get(kind, Any)
