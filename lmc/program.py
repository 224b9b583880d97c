"""``@lmc.jit``: the program as an object that compiles and runs itself."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, Never, Protocol, Self, overload

from typing_extensions import ParamSpec, TypeVar  # with defaults, which typing has from Python 3.13 on

from lmc import driver
from lmc.driver import JittedFunction, Options, check_option_names
from lmc.ir.cached import cached_property
from lmc.ir.engine.forks import at_work, is_at_work
from lmc.ir.errors import InputError

if TYPE_CHECKING:  # loaded when a program first runs
    from lmc.cost.budget import Budget
    from lmc.driver import (
        AsyncStream,
        Compiled,
        ProfileOption,
        RemoteTarget,
        Result,
        Resumption,
        Runner,
        Stream,
        Variants,
    )
    from lmc.frontend.language.state import State

P = ParamSpec("P", default=...)
R = TypeVar("R", default=Any)
Owner = TypeVar("Owner")
Level = Literal["O0", "O1", "O2"]


class Program(JittedFunction, Generic[P, R]):
    """A function of yours whose first parameter is the state of a conversation with a model.

    A call returns the value of the function. ``run`` returns a ``Result``, ``batch`` many, ``stream`` the tokens as
    they are generated; ``arun``, ``abatch``, ``astream`` are the same for use in an event loop. It runs on the target
    that ``on`` bound it to, else on ``LMC_TARGET``, else on that of ``[tool.lmc]`` in the nearest pyproject.toml, else
    on the built-in model.

    Written in a class it is a method, ``def run(self, s, …)``: ``Agent(…).run`` is the program.

    To a type checker ``P`` are the parameters of the function behind its state, ``R`` what it returns.
    """

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
        def on_state(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.options = Options()
        """The options set by ``@lmc.jit(…)`` and ``on``."""
        self._origin = self

    @cached_property
    def _variants(self) -> Variants:
        """The compiled variants that this program shares with its twins: those under other options, bound methods."""
        return driver.Variants()

    @property
    def _runner(self) -> Runner:
        """A runner under these options. Raises ``CaptureError`` for a method that is bound to no object.

        Use it in an ``at_work`` block: that refuses forked children before the import here may wait for a lock.
        """
        if self.is_method and not self.receiver:
            raise self.without_object()
        return driver.Runner(self, self.options, self._origin._variants)

    def on(
        self,
        target: str | RemoteTarget | None = None,
        *,
        dtype: Literal["float32", "bfloat16"] | None = None,
        kv_tokens: int | Literal["auto"] | None = None,
        deterministic: bool | None = None,
        device: str | None = None,
        prefill_tokens: int | None = None,
        seed: int | None = None,
        level: Level | None = None,
        timeout: float | None = None,
        profile: ProfileOption | None = None,
        order_sections: bool | None = None,
        disabled_passes: Sequence[str] | None = None,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        budget: Budget | None = None,
        resume: bool | Resumption | None = None,
        **unknown: Never,
    ) -> Program[P, R]:
        """Return the same program with other options; options that are not given stay as they are.

        Programs of one target share an engine; where any option up to ``prefill_tokens`` differs, each has its own,
        with weights and KV pool of its own.

        Args:
            target: ``"builtin"``, ``"toy"``, ``"local:PATH"`` (a model folder) or ``"hf:ORG/NAME[@REVISION]"``
                (a model on the Hugging Face Hub, downloaded into its cache where it is not there).
            dtype: precision of a local model.
            kv_tokens: size of a local model's KV pool, in tokens (``"auto"``: a share of the free memory).
            deterministic: whether a local model gives a request the same text whatever else runs (slower; CPU only).
            device: where a local model computes: ``"cpu"``, ``"cuda:1"`` … (``"auto"``: on CUDA where there is one).
            prefill_tokens: tokens of prompts that a local model computes in a step, beside one of each text that is
                being generated (512): more is faster for prompts, less is steadier for streams.
            seed: seed of the random draws (0).
            level: optimization level (``"O2"``).
            timeout: seconds that each request to the model may take (any number); one that is not done by then fails
                with ``RequestTimeoutError``. Computing a prefix that requests share comes before and is not counted.
                ``math.inf`` for none.
            profile: what earlier runs measured, a ``Profile`` or the file that ``lmc run --profile-generate`` wrote,
                which is read now: output lengths and branch probabilities. It changes plans, and no result.
            order_sections: whether movable sections of text precede the others (``lmc.section``), so that prompts
                start with the same text. It changes prompts, also those of an eager run.
            disabled_passes: names of passes of the level that are left out, to see what each of them does.
            priority: requests of higher priority go before others of a local engine (0; -1 for what may wait). Half of
                the admitted requests are those that wait longest, so none starves. It changes no result.
            journal: a file that records each request and each call of a tool, before it leaves and before its result
                is used. A call that ends in order can't be resumed; the next one replaces it.
            budget: the most that each call may cost, a batch as a whole: ``lmc.Budget(usd=5)``. A request that does
                not fit waits for others to end; where none is under way, it and all later ones fail with
                ``BudgetError``. Rows that are finished keep their results.
            resume: whether the run goes on that the journal is of, with the same program, rows, model and settings.
                Requests that are finished are answered from the journal, and rows that failed run again.
                ``lmc.Resumption(…)`` lets requests in flight fail, and calls tools that write again.
            unknown: refused; for error messages.

        Raises ``InputError`` for an option of another name, and for a profile of another program.
        """
        made = self.twin()
        made.options = self.options.updated(
            self.name,
            target=target,
            dtype=dtype,
            kv_tokens=kv_tokens,
            deterministic=deterministic,
            device=device,
            prefill_tokens=prefill_tokens,
            seed=seed,
            level=level,
            timeout=timeout,
            profile=profile,
            order_sections=order_sections,
            disabled_passes=disabled_passes,
            priority=priority,
            journal=journal,
            budget=budget,
            resume=resume,
            **unknown,
        )
        return made

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:
        """Run it once. Raises the exceptions of the program."""
        with at_work():
            return self._runner.run((args, kwargs))

    async def arun(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:
        """``run`` for use in an event loop."""
        with at_work():
            return await self._runner.arun((args, kwargs))

    def batch(self, rows: Iterable[Mapping[str, Any]]) -> list[Result[R]]:
        """Run it once for each row of arguments by name; results in order.

        Arguments are passed as they are, as in a call: a dict does not become the pydantic model or dataclass that the
        annotation names, it is refused.

        A sequence is scheduled as a whole. The rows of a generator are read while others run, in this thread: a few
        hundred ahead, which are scheduled together. A row is copied when it is read, but not the values in it. An
        exception of the generator is raised, and stops the rows that run.

        A row that fails has its ``error`` in its own result. An exhausted quota, a refused key or an unknown model is
        the error of all rows that need a further request; the others keep their results. Ctrl-C raises
        ``BatchInterruptedError``, which holds the results so far. Raises ``InputError`` for no rows at all, for an
        argument that is no iterable of rows, and for a list with a row that is no dict; such a row of a generator has
        that error in its own result.
        """
        with at_work():
            return self._runner.batch(driver.batch_arguments(rows))

    async def abatch(self, rows: Iterable[Mapping[str, Any]]) -> list[Result[R]]:
        """``batch`` for use in an event loop."""
        with at_work():
            return await self._runner.abatch(driver.batch_arguments(rows))

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> Stream:
        """Run it and iterate over the tokens of every branch: ``for event in program.stream(…)``."""
        with at_work():
            return self._runner.stream((args, kwargs))

    def astream(self, *args: P.args, **kwargs: P.kwargs) -> AsyncStream:
        """``stream`` for use in an event loop: ``async for event in program.astream(…)``."""
        with at_work():
            return self._runner.astream((args, kwargs))

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Compile it for these arguments; without any, for unknown ones. Runs and loads no model."""
        with at_work():
            return self._runner.compile((args, kwargs) if args or kwargs else None)

    def eager(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:
        """Run it as plain Python, operation by operation. Every other execution mode returns the same results."""
        with at_work():
            return self._runner.eager((args, kwargs))

    def __copy__(self) -> Self:
        return self.twin()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The program itself, as for functions; a bound one is bound to a copy of its object, as for methods."""
        if not self.receiver:
            return self
        if self.template is None:  # made of a bound method
            made = type(self)(copy.deepcopy(self.function, memo))
        else:
            made = self.template.bound_to(copy.deepcopy(self.receiver[0], memo))
        made.options = self.options
        return made

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name, as functions are pickled, with its options. Raises ``InputError`` where no name leads to it."""
        if self.receiver:
            place, found = self.receiver[0], getattr(self.receiver[0], self.definition.__name__, None)
        else:
            place, found = None, _named(self.definition)
        if found is self:
            return self.definition.__qualname__
        if found == self.function:  # decorated under another name
            return _made_of, (type(self), self.function, self.options)
        if isinstance(found, Program) and found.definition is self.definition:
            if place is None:
                return _under, (found, self.options)
            return _bound, (place, self.definition.__name__, self.options)
        raise InputError(
            f"the program {self.name}() can't be pickled: no name in {self.definition.__module__} leads to it",
            remedy="define it at the top level of a module, or pass its name and look it up in the other process",
            location=self.location,
        )

    @property
    def _latest(self) -> Compiled | None:
        """The variant that was used last, if it is of these options. Compiles nothing and waits for nothing."""
        variants: Variants | None = vars(self._origin).get("_variants")
        found = None if variants is None else variants.latest
        if found is None or found.options.key != self.options.pipeline.key:
            return None
        return found if self.options.target in (None, found.target.spec) else None

    def _repr_html_(self) -> str:
        compiled = self._latest
        return driver.program_html(self, self.options, None if compiled is None else compiled.view)

    def run_alone(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self.run(*args, **kwargs).value


def _named(definition: Any) -> Any:
    """The object that module and qualified name of a function lead to; None where there is none."""
    found: Any = sys.modules.get(definition.__module__)
    for part in definition.__qualname__.split("."):
        found = getattr(found, part, None)
    return found


def _under(program: Program[..., Any], options: Options) -> Program[..., Any]:
    """The program under these options."""
    made = program.twin()
    made.options = options
    return made


def _bound(receiver: Any, name: str, options: Options) -> Program[..., Any]:
    """The program that is the method of that name, under these options."""
    return _under(getattr(receiver, name), options)


def _made_of(kind: type[Program[..., Any]], function: Callable[..., Any], options: Options) -> Program[..., Any]:
    """The program that a function makes, under these options."""
    return _under(kind(function), options)


def _finish_imports() -> None:
    """Wait for the modules of lmc that other threads import now: a child would wait for their locks for ever."""
    if is_at_work():
        with contextlib.suppress(ImportError, AttributeError):  # this thread itself forks while it imports
            _ = driver.Runner, driver.close_engine


os.register_at_fork(before=_finish_imports)


class Method(Program[Concatenate[Owner, P], R]):
    """The type of a program in a class body, for type checkers: read from an object it is the program bound to that."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: object, owner: Owner) -> Program[P, R]: ...  # of a classmethod
        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(self, instance: Owner, owner: type | None = None) -> Program[P, R]: ...
        def __get__(self, instance: Any, owner: Any = None) -> Any: ...


class Decorator(Protocol):
    """``@lmc.jit(…)`` with options."""

    @overload
    def __call__(self, function: Callable[Concatenate[State, P], R], /) -> Program[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Owner, State, P], R], /) -> Method[Owner, P, R]: ...
    @overload
    def __call__(self, function: Callable[..., R], /) -> Program[..., R]: ...


@overload
def jit(function: Callable[Concatenate[State, P], R], /) -> Program[P, R]: ...
@overload
def jit(function: Callable[Concatenate[Owner, State, P], R], /) -> Method[Owner, P, R]: ...
@overload
def jit(function: Callable[..., R], /) -> Program[..., R]: ...
@overload
def jit(
    *,
    target: str | RemoteTarget | None = None,
    dtype: Literal["float32", "bfloat16"] | None = None,
    kv_tokens: int | Literal["auto"] | None = None,
    deterministic: bool | None = None,
    device: str | None = None,
    prefill_tokens: int | None = None,
    seed: int | None = None,
    level: Level | None = None,
    timeout: float | None = None,
    profile: ProfileOption | None = None,
    order_sections: bool | None = None,
    disabled_passes: Sequence[str] | None = None,
    priority: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    budget: Budget | None = None,
    resume: bool | Resumption | None = None,
) -> Decorator: ...


def jit(function: Any = None, /, **options: Any) -> Any:
    """Make a function a program: ``@lmc.jit``, or with the options of ``Program.on``: ``@lmc.jit(target="toy")``."""
    if function is not None:
        return Program(function)
    check_option_names(options)
    return lambda given: Program(given).on(**options)
