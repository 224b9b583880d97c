"""``@sgl.function``: a program in sglang's language, compiled by lmc."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, overload

from lmc.driver import Compiled, InputError, JittedFunction, Runner, Variants
from lmc.driver.saved import artifacts
from lmc.frontend.language.core import META, Core
from lmc.frontend.language.refusals import bad, described, near
from lmc.frontend.language.running import ACTIVE
from lmc.frontend.language.state import State
from lmc.frontend.source.locations import user_location
from lmc.ir.errors import EngineError
from lmc.sglang.arguments import bound_signature, checked_threads, rows_of
from lmc.sglang.backends import Backend, backend_of
from lmc.sglang.batches import progress, run_all
from lmc.sglang.options import SAMPLING, Sampling, copied
from lmc.sglang.results import ProgramState
from lmc.sglang.state import SglState

_MAX_TWINS = 32


class SglFunction(JittedFunction):
    """A function of yours whose first parameter is the state ``s``; no method.

    ``run`` gives a ``ProgramState``; called, it does the same. Inside another program it is a part of that one, with a
    state of its own. ``sampling`` is what its generations get that don't say otherwise.
    """

    may_be_method = False

    def __init__(
        self,
        func: Callable[..., Any],
        num_api_spec_tokens: int | None = None,
        bind_arguments: Mapping[str, Any] | None = None,
        *,
        sampling: Sampling | None = None,
    ) -> None:
        super().__init__(func)
        self.num_api_spec_tokens = _checked_tokens(num_api_spec_tokens)
        self.bind_arguments = dict(bind_arguments or {})
        self.arg_names = list(self.signature.parameters)
        self.signature = bound_signature(self.signature, self.bind_arguments)
        self.guarded = (*self.guarded, (self, "bind_arguments"))
        self.sampling = sampling or Sampling()
        self._twins: OrderedDict[Sampling, SglFunction] = OrderedDict()
        self._language: Any = None
        self._variants = Variants()
        self._lock = threading.Lock()

    # What capture and eager runs ask for

    def new_state(self, core: Core, path: str) -> State:
        return SglState(core, path, self.sampling)

    @property
    def language(self) -> Any:
        if self._language is None or self._language.sampling is not self.sampling:
            from lmc.sglang.captured import language_with

            self._language = language_with(self.sampling)
        return self._language

    @property
    def bound_arguments(self) -> Mapping[str, Any]:
        return self.bind_arguments

    def outputs(self, state: State) -> Mapping[str, Any]:
        core = state.core
        return {**core.variables, **{f"{META}{name}": kept for name, kept in core.metas.items()}}

    def result(self, state: State, value: Any) -> Any:
        cast(SglState, state).ret_value = value
        return state

    def called_with(self, keywords: dict[str, Any]) -> tuple[JittedFunction, dict[str, Any]]:
        if "backend" in keywords or "stream" in keywords:
            raise bad(
                f"{self.name}() is called by another program, with a backend or a stream of its own",
                "leave them out: it runs as a part of that program",
            )
        self.check_free(keywords)
        asked = {name: copied(keywords[name]) for name in SAMPLING if name in keywords}
        rest = {name: value for name, value in keywords.items() if name not in asked}
        return (self._with(Sampling.of(asked)) if asked else self), rest

    def run_alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ProgramState:
        return self.run(*args, **kwargs)

    # Running it

    def run(
        self,
        *args: Any,
        max_new_tokens: int = 128,
        stop: str | Sequence[str] = (),
        stop_token_ids: Sequence[int] = (),
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = -1,
        min_p: float = 0.0,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        ignore_eos: bool = False,
        return_logprob: bool | None = None,
        logprob_start_len: int | None = None,
        top_logprobs_num: int | None = None,
        return_text_in_logprobs: bool | None = None,
        stream: bool = False,
        backend: Any = None,
        **kwargs: Any,
    ) -> ProgramState:
        """Run it with the arguments of the function, without the state.

        The sampling arguments are for the generations that don't say otherwise. With ``stream`` it returns at once, and
        ``text_iter`` of the state gives its text as it comes. ``backend`` is what
        ``set_default_backend`` takes.

        What an engine can't serve is in ``error()`` of the state; raises everything else.
        """
        given = locals()
        asked = {name: given[name] for name in SAMPLING}
        frame = ACTIVE.get()
        if frame is not None:
            _check_inside(self.name, stream=stream, backend=backend)
            return frame.call(self, args, {**kwargs, **asked})
        self.check_free(kwargs)
        runner = self._runner(Sampling.of(asked), backend_of(backend))
        if stream:
            return ProgramState(self.name, runner.stream((args, kwargs)))
        (result,) = run_all(runner, [(args, kwargs)])
        if result.error is not None and not isinstance(result.error, EngineError):
            raise result.error
        return ProgramState(self.name, result)

    def run_batch(
        self,
        batch_kwargs: Sequence[Any],
        *,
        max_new_tokens: int = 128,
        stop: str | Sequence[str] = (),
        stop_token_ids: Sequence[int] = (),
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = -1,
        min_p: float = 0.0,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        ignore_eos: bool = False,
        return_logprob: bool | None = None,
        logprob_start_len: int | None = None,
        top_logprobs_num: int | None = None,
        return_text_in_logprobs: bool | None = None,
        backend: Any = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
    ) -> list[ProgramState]:
        """Run it once for each row; states in order. What fails has its ``error()`` in its own state.

        A row is a dict of arguments, or a list of them in the order of the parameters. ``num_threads`` is how many
        rows, and requests to the model, may be under way at the same time ("auto": 256). ``progress_bar`` shows on
        stderr how many rows are done. The other arguments are those of ``run``.
        """
        given = locals()
        sampling = Sampling.of({name: given[name] for name in SAMPLING})
        rows = rows_of(self.check_free, batch_kwargs)
        if not rows:
            return []
        runner = self._runner(sampling, backend_of(backend), checked_threads(num_threads))
        with progress(self.name, len(rows), shown=progress_bar) as step:
            return [ProgramState(self.name, result) for result in run_all(runner, rows, step)]

    def eager(self, *args: Any, backend: Any = None, **kwargs: Any) -> ProgramState:
        """Run it as plain Python, operation by operation: what every other way of running it must agree with."""
        asked = {name: kwargs.pop(name) for name in SAMPLING if name in kwargs}
        self.check_free(kwargs)
        runner = self._runner(Sampling.of(asked), backend_of(backend))
        return ProgramState(self.name, runner.eager((args, kwargs)))

    # Other forms of it

    def bind(self, **kwargs: Any) -> SglFunction:
        """The program with some of its arguments given; they can't be given again."""
        for name in kwargs:
            if name not in self.arg_names:
                raise InputError(
                    f"{self.name}() has no argument {name!r} to bind",
                    remedy=near(name, self.arg_names),
                    location=user_location(),
                )
        bound = {**self.bind_arguments, **kwargs}
        return SglFunction(self.function, self.num_api_spec_tokens, bound, sampling=self.sampling)

    def trace(self, *, backend: Any = None, **kwargs: Any) -> Compiled:
        """Return the captured graph; for the given arguments, if capture can do without the others."""
        return self._compiled(replace(backend_of(backend), level="O0"), kwargs)

    def compile(self, *, backend: Any = None, **kwargs: Any) -> CompiledFunction:
        """Return the compiled program. Running it compiles it too: this need not come first."""
        return CompiledFunction(self, self._compiled(backend_of(backend), kwargs))

    def cache(self, backend: Any = None) -> None:  # noqa: ARG002
        """Refused: there is nothing to do."""
        raise bad(
            f"{self.name}.cache(): prefixes that runs share are found when they run, and kept by the engine",
            "leave it out",
        )

    def _with(self, sampling: Sampling) -> SglFunction:
        """The program under other sampling; compiled forms are kept for the ones used last."""
        if sampling == self.sampling:
            return self
        with self._lock:
            twin = self._twins.get(sampling)
            if twin is None:
                twin = SglFunction(self.function, self.num_api_spec_tokens, self.bind_arguments, sampling=sampling)
                self._twins[sampling] = twin
            self._twins.move_to_end(sampling)
            while len(self._twins) > _MAX_TWINS:
                self._twins.popitem(last=False)
            return twin

    def check_free(self, arguments: Mapping[str, Any]) -> None:
        """Raise ``InputError`` for an argument that is bound already."""
        for name in arguments:
            if name in self.bind_arguments:
                raise InputError(
                    f"{self.name}(): the argument {name!r} is bound already",
                    remedy="leave it out, or bind another value to the program before",
                    location=user_location(),
                )

    def _runner(self, sampling: Sampling, backend: Backend, requests: int | None = None) -> Runner:
        twin = self._with(sampling)
        return Runner(twin, backend.options(requests), twin._variants)

    def _compiled(self, backend: Backend, arguments: Mapping[str, Any]) -> Compiled:
        return Runner(self.bind(**arguments) if arguments else self, backend.options()).compile(None)


class CompiledFunction:
    """A program with its compilation: ``compiled.module``, ``.breaks``, ``.remarks``."""

    def __init__(self, function: SglFunction, compiled: Compiled) -> None:
        self.function = function
        self.compiled = compiled

    def print_graph(self) -> None:
        """Print the optimized graph."""
        sys.stdout.write(f"{artifacts.module_text(self.compiled.module)}\n")

    def run(self, **kwargs: Any) -> ProgramState:
        """``run`` of the program."""
        return self.function.run(**kwargs)

    def run_batch(self, batch_kwargs: Sequence[Any], **kwargs: Any) -> list[ProgramState]:
        """``run_batch`` of the program."""
        return self.function.run_batch(batch_kwargs, **kwargs)


@overload
def function(func: Callable[..., Any], /) -> SglFunction: ...


@overload
def function(*, num_api_spec_tokens: int | None = None) -> Callable[[Callable[..., Any]], SglFunction]: ...


def function(func: Callable[..., Any] | None = None, num_api_spec_tokens: int | None = None) -> Any:
    """Make a function a program: ``@sgl.function``, or ``@sgl.function(num_api_spec_tokens=256)``.

    ``num_api_spec_tokens`` bounds what may be asked for ahead of time in one call of an API. The targets of lmc compute
    themselves and ask for nothing ahead, so every value of it gives the same texts, from the same calls.
    """
    if func is not None:
        return SglFunction(func, num_api_spec_tokens)
    return lambda given: SglFunction(given, num_api_spec_tokens)


def _checked_tokens(num_api_spec_tokens: Any) -> int | None:
    if num_api_spec_tokens is not None and (type(num_api_spec_tokens) is not int or num_api_spec_tokens < 1):
        raise bad(f"num_api_spec_tokens is {described(num_api_spec_tokens)}", "give a whole number, at least 1")
    return num_api_spec_tokens


def _check_inside(name: str, *, stream: bool, backend: Any) -> None:
    """Raise ``CaptureError`` where a program that another one runs asks for what is that one's."""
    if stream or backend is not None:
        raise bad(
            f"{name}.run() in another program, with a backend or a stream of its own",
            "leave them out: it runs as a part of that program",
        )
