"""A session of plain Python: each operation at once on an engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lmc.frontend.language.misuse import RoleBlocks
from lmc.frontend.language.refusals import bad, described
from lmc.frontend.language.sampling import GenerationOptions
from lmc.frontend.schemas.conversions import Conversion
from lmc.frontend.source.locations import user_location
from lmc.ir.builtins.checks import checked_choices
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import GenOp, SampleOp, SamplingOp, SelectOp
from lmc.ir.dialects.section_ops import section_order
from lmc.ir.engine.observing import Observer
from lmc.ir.engine.protocol import Engine, Handle, OnDelta, TokenDelta, timed
from lmc.ir.errors import LmcError
from lmc.ir.ids import escape
from lmc.ir.profile import OpProfile
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics import selection
from lmc.ir.semantics.constraint_runtime import Compile, Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import failed_profile, generation_profile, score_profile
from lmc.ir.types import ANY, CTX, TEXT, list_of

OnText = Callable[[str, str | None, int, str, Context], None]
"""Takes (op id, variable, number of the sample, newly settled text, what the generation continues)."""

_CONTEXT = Value("context", CTX)


class EagerSession:
    """One eager run on ``engine``: submits, waits, and counts what it cost. Not for more than one run.

    ``timeout`` is how many seconds each request may take (None: any number), ``compile`` what makes of a constraint
    that of the engine's vocabulary. ``order_sections``: movable sections of text go ahead
    (``lmc.frontend.language.sections``). ``path`` is that of the program, where calls that belong to no handle get
    their ids. ``blocks`` are the role blocks still to be opened. ``observer`` takes calls of tools.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        run_seed: int = 0,
        instance: int = 0,
        on_text: OnText | None = None,
        timeout: float | None = None,
        compile: Compile | None = None,
        order_sections: bool = False,
        observer: Observer | None = None,
    ) -> None:
        self.observer = observer
        self.path = ""
        self.blocks = RoleBlocks()
        self._counts: dict[str, int] = {}
        self.order_sections = order_sections
        self.timeout = timeout
        self.compile = compile
        self.engine = engine
        self.run_seed = run_seed
        self.instance = instance
        self.profile: dict[str, OpProfile] = {}
        self.on_text = on_text

    def allocate(self, path: str, name: str) -> str:
        """A stable id for what comes next called ``name`` on ``path``: ``path/name``, ``path/name#1`` and so on."""
        self.blocks.check()
        return self._allocate(f"{path}/{name if name.isidentifier() else escape(name)}")

    def allocate_host(self, path: str, name: str) -> str:
        """The stable id of the next host call of ``name``: ``path/@name``. No user's name begins with ``@``."""
        return self._allocate(f"{path}/@{escape(name)}")

    def _allocate(self, base: str) -> str:
        count = self._counts.get(base, 0)
        self._counts[base] = count + 1
        return base if count == 0 else f"{base}#{count}"

    def counted(self, counts: Mapping[str, int]) -> None:
        """Take over how many ids there are on each base."""
        self._counts.update(counts)

    def new_context(self) -> Context:
        """A context without text."""
        return Context.empty(self.engine.tokenizer)

    def extend(self, context: Context, role: str | None, text: str) -> Context:
        """``context`` with a message of ``role`` (or bare text) appended."""
        try:
            return context.text(text) if role is None else context.message(role, text)
        except LmcError as error:
            raise _located(error) from None

    def extend_sections(
        self, context: Context, role: str | None, kinds: Sequence[str], texts: Sequence[Any]
    ) -> Context:
        """``context`` with texts in sections appended as one; ``kinds`` are of ``lmc.ir.dialects.section_ops``."""
        plain = [self.as_text(text) for text in texts]
        order = section_order(kinds) if self.order_sections else range(len(plain))
        return self.extend(context, role, "".join(plain[index] for index in order))

    def begin(self, context: Context, role: str) -> Context:
        """``context`` with a turn of ``role`` opened."""
        try:
            return context.begin(role)
        except LmcError as error:
            raise _located(error) from None

    def end(self, context: Context) -> Context:
        """``context`` with its open turn closed."""
        return context.end()

    def extend_or_end(self, context: Context, text: str, answer: Any) -> Context:
        """``context``, whose open turn ends with ``answer``, with an assistant message ``text``.

        Where ``text`` is the answer, white space at both ends aside, that is this turn, which is closed.
        """
        said = str(answer) if type(answer) in (str, int, float, bool) else context.message_list()[-1]["content"]
        return self.end(context) if text.strip() == said.strip() else self.extend(context, "assistant", text)

    def generate(
        self, context: Context, op_id: str, name: str | None, options: GenerationOptions
    ) -> tuple[Context, Any, Any | None]:
        """Context, value and meta data (with ``logprobs``) of one generation."""
        types = (CTX, options.type, *((ANY,) if options.logprobs is not None else ()))
        op = self._sampling_op(GenOp, types, op_id, name, options)
        results = self.run_sampling(op, context, options.constraints(self.compile))
        value = self._converted(results[1], op_id, options)
        return results[0], value, results[2] if len(results) > 2 else None

    def sample(
        self, context: Context, op_id: str, name: str | None, options: GenerationOptions, count: int
    ) -> tuple[Any, Any | None]:
        """``count`` values drawn from one context, and their meta data."""
        types = (list_of(options.type), *((ANY,) if options.logprobs is not None else ()))
        op = self._sampling_op(SampleOp, types, op_id, name, options, n=count)
        results = self.run_sampling(op, context, options.constraints(self.compile))
        return self._converted(results[0], op_id, options), results[1] if len(results) > 1 else None

    def select(
        self, context: Context, op_id: str, name: str | None, choices: Any, method: str | None
    ) -> tuple[Context, str, Any]:
        """Context, choice and meta data of a choice among ``choices``."""
        make: type[Any] = SelectOp  # pyright does not see that its decorator makes it a dataclass
        op: SelectOp = make(
            context=_CONTEXT,
            choices=tuple(choices),
            id=op_id,
            name=name,
            method=method,
            results=_results((CTX, TEXT, ANY)),
            location=user_location(),
        )
        results = self.run_select(op, context)
        return results[0], results[1], results[2]

    def transcript(self, context: Context) -> str:
        """The text of the whole context."""
        return context.transcript()

    def added(self, context: Context, before: Context) -> str:
        """Return what was appended to ``before`` to make it ``context``, all to one turn; else ``CaptureError``."""
        try:
            return context.added_since(before)
        except LmcError as error:
            raise _located(error) from None

    def message_list(self, context: Context) -> list[dict[str, str]]:
        """Roles and contents of a chat."""
        return context.message_list()

    def as_text(self, value: Any) -> str:
        """``value``, which is a text, as a plain ``str``."""
        return str.__getitem__(value, slice(None))

    def choices(self, value: Any) -> list[str]:
        """The choices of a select, checked."""
        if type(value) not in (list, tuple):
            raise bad(f"choices is {described(value)}", "give a list of texts")
        return checked_choices(value, user_location())

    def run_sampling(self, op: SamplingOp, context: Context, constraints: Constraints) -> tuple[Any, ...]:
        """Results of a generation or of draws."""
        start = time.perf_counter()
        requests = semantics.generation_requests(
            op,
            context,
            op_id=op.id,
            run_seed=self.run_seed,
            instance=self.instance,
            info=self.engine.info,
            constraints=constraints,
        )
        asked = enumerate(timed(requests, self.timeout))
        handles = (self.engine.submit(request, self._watch(op, index, context)) for index, request in asked)
        cost = partial(generation_profile, self.engine.tokenizer)
        generations = self._wait(op.id, requests, handles, cost)
        self._record(op.id, cost(requests, generations, time.perf_counter() - start))
        return semantics.generation_results(op, context, generations, constraints)

    def run_conversion(self, conversion: Conversion, text: Any, op_id: str) -> Any:
        """Convert the text of a generation by a class that runs code of the user's."""
        return conversion(text, op_id)

    def run_select(self, op: SelectOp, context: Context) -> tuple[Any, ...]:
        """Results of a choice."""
        start = time.perf_counter()
        choices = selection.choices_of(op, {})
        if selection.is_written(op, self.engine.info):
            generation, constraints = selection.written_op(op, choices, Constraints(compile=self.compile))
            return selection.written_results(self.run_sampling(generation, context, constraints), choices)
        requests = selection.requests_of(
            op, context, choices, op_id=op.id, instance=self.instance, info=self.engine.info
        )
        handles = (self.engine.score(request) for request in timed(requests, self.timeout))
        cost = partial(score_profile, self.engine.tokenizer)
        scores = self._wait(op.id, requests, handles, cost)
        self._record(op.id, cost(requests, scores, time.perf_counter() - start))
        results = selection.results_of(op, context, requests, choices, scores)
        if self.on_text is not None:
            self.on_text(op.id, op.name, 0, results[1], context)
        return results

    def _sampling_op(
        self,
        kind: type[SamplingOp],
        types: Sequence[Any],
        op_id: str,
        name: str | None,
        options: GenerationOptions,
        **more: Any,
    ) -> SamplingOp:
        constraint = options.constraint
        return kind(
            context=_CONTEXT,
            id=op_id,
            name=name,
            constraint=None if constraint is None else constraint.kind,
            results=_results(types),
            location=user_location(),
            **options.attributes,
            **more,
        )

    def _converted(self, value: Any, op_id: str, options: GenerationOptions) -> Any:
        conversion = options.conversion
        return value if conversion is None else self.run_conversion(conversion, value, op_id)

    def _watch(self, op: SamplingOp, index: int, context: Context) -> OnDelta | None:
        on_text = self.on_text
        if on_text is None:
            return None

        def report(delta: TokenDelta) -> None:
            on_text(op.id, op.name, index, delta.text, context)

        return report

    def _wait(
        self,
        op_id: str,
        requests: Sequence[Any],
        handles: Iterator[Handle[Any]],
        cost: Callable[[Sequence[Any], Sequence[Any], float], OpProfile],
    ) -> list[Any]:
        """All answers. Where a request fails, those of the others are counted that are there, at their ``cost``."""
        start, tokenizer = time.perf_counter(), self.engine.tokenizer
        submitted: list[Handle[Any]] = []
        try:
            for handle in handles:
                submitted.append(handle)
                if handle.future.done():
                    handle.future.result()  # of an engine that answers at once no more is asked after a failure
            return [handle.future.result() for handle in submitted]
        except BaseException:
            seconds = time.perf_counter() - start
            for request, future in zip(requests, (handle.future for handle in submitted), strict=False):
                if future.done() and not future.cancelled():
                    error = future.exception()
                    entry = (
                        cost([request], [future.result()], seconds)
                        if error is None
                        else failed_profile(tokenizer, request, error, seconds)
                    )
                    if entry is not None:
                        self._record(op_id, entry)
            for handle in submitted:
                handle.cancel()
            raise

    def _record(self, op_id: str, entry: OpProfile) -> None:
        known = self.profile.get(op_id)
        self.profile[op_id] = entry if known is None else known + entry


def _results(types: Sequence[Any]) -> tuple[Value, ...]:
    return tuple(Value(f"r{index}", kind) for index, kind in enumerate(types))


def _located(error: LmcError) -> LmcError:
    """The error of a context with the line of the user's that it comes from."""
    error.location = error.location or user_location()
    return error
