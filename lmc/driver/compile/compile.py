"""From a program to a plan: capture, passes, lowering. Compiled variants are kept and found again by their guards."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lmc.backend.lower import lower
from lmc.driver.compile.compiled import Compiled, pass_context
from lmc.driver.targets.constraints import check, start, warn
from lmc.frontend.program.arguments import Bound
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import Captured, VariantCache, inputs_of
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.engine.target import Target
from lmc.ir.module import Module
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.wording import with_count
from lmc.passes.base import Remark
from lmc.passes.pipelines import PipelineOptions

MAX_VARIANTS = 64


@contextmanager
def collection_paused() -> Generator[None]:
    """Disable garbage collection in the block.

    Compilation results stay alive; repeated searches for garbage cost more than linear time in large programs.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def compile_program(
    function: JittedFunction,
    bound: Bound | None,
    target: Target,
    options: PipelineOptions,
    tokenizer: Tokenizer,
    *,
    cache: ConstraintCache | None = None,
) -> Compiled:
    """Capture for ``bound`` (None: for any values of the annotations), optimize, lower.

    ``cache`` holds compiled constraints (None: for this program alone).
    """
    with collection_paused():
        captured = _capture(function, bound)
        return compile_captured(captured, target, options, tokenizer, cache=cache)


def _capture(function: JittedFunction, bound: Bound | None) -> Captured:
    from lmc.frontend.capture import capture  # a saved plan is run without it

    return capture(function, bound)


def compile_captured(
    captured: Captured,
    target: Target,
    options: PipelineOptions,
    tokenizer: Tokenizer,
    *,
    cache: ConstraintCache | None = None,
) -> Compiled:
    """Optimize and lower a capture.

    Raises ``LoweringError``, ``ConstraintError``, and ``InputError`` for an unknown level and for a profile of another
    program.
    """
    cache = ConstraintCache() if cache is None else cache
    passes = options.passes
    if passes.passes:
        start(cache, captured.module, tokenizer)
    optimized = passes.run(captured.module, pass_context(target, tokenizer, cache, options.profile), valid=True)
    check(cache, captured.module, tokenizer)  # unused constraints are refused too, as plain Python does
    warn(captured.module)
    return Compiled(
        module=optimized.module,
        plan=lower(optimized.module, target),
        remarks=(*optimized.remarks, *_target_remarks(optimized.module, target)),
        breaks=captured.breaks,
        hosts=captured.hosts,
        target=target,
        options=options,
        captured=captured,
        tokenizer=tokenizer,
        cache=cache,
        changing=optimized.changing,
    )


def _target_remarks(module: Module, target: Target) -> Iterator[Remark]:
    """Yield remarks on what a hosted model does in another way than a local one, each at its first line."""
    ops = list(walk([module.main.body]))
    drawn = [op for op in ops if isinstance(op, SamplingOp) and op.temperature is None and op.forced is None]
    drawing = next((each.spec for each in target.chain if not each.capabilities.greedy), None)
    if drawn and drawing is not None:
        message = f"no temperature is sent: {drawing} has no greedy outputs, so {with_count(len(drawn), 'call')} draw"
        yield Remark("target", "missed", message, drawn[0].location, drawn[0].id)
    written = [op for op in ops if isinstance(op, SamplingOp) or (isinstance(op, SelectOp) and op.method is None)]
    for each in target.chain:
        if written and each.capabilities.reasoning and not each.capabilities.reasoning_tokens:
            message = (
                f"reasoning of {each.spec} uses up max_tokens: a call may end without text; set reasoning_tokens for "
                "the target, which are added"
            )
            yield Remark("target", "missed", message, written[0].location, written[0].id)
    chosen = [op for op in ops if isinstance(op, SelectOp) and op.method is None]
    if chosen and not target.capabilities.scores:
        message = (
            f"the model writes the choice, under a schema of all: {target.spec} gives no log-probabilities of texts"
        )
        yield Remark("target", "missed", message, chosen[0].location, chosen[0].id)


class Variants:
    """The compiled variants of one program, for the targets it ran on. Safe to use from several threads.

    Captures are kept by their guards, compiled forms by capture, target, tokenizer and options; the oldest of either go
    first.
    """

    def __init__(self, limit: int = MAX_VARIANTS) -> None:
        self._limit = limit
        self._captures = VariantCache(limit)
        self._compiled: OrderedDict[tuple[object, ...], Compiled] = OrderedDict()
        self._lock = threading.RLock()
        self.latest: Compiled | None = None
        """The compiled form that was used last."""

    def find(
        self,
        function: JittedFunction,
        bound: Bound,
        target: Target,
        options: PipelineOptions,
        tokenizer: Tokenizer,
        *,
        cache: ConstraintCache | None = None,
    ) -> tuple[Compiled, Mapping[str, Any]]:
        """Return a variant valid for ``bound``, compiled now if there is none, and its inputs."""
        with self._lock:
            captured = self._captures.find(bound)
            if captured is None:
                with collection_paused():
                    captured = _capture(function, bound)
                self._captures.add(captured)
            # A compiled form keeps its capture alive, so the id stays its own.
            key = (id(captured), target, tokenizer, options.key)
            compiled = self._compiled.get(key)
            if compiled is None:
                with collection_paused():
                    compiled = compile_captured(captured, target, options, tokenizer, cache=cache)
                self._compiled[key] = compiled
            self._compiled.move_to_end(key)
            while len(self._compiled) > self._limit:
                self._compiled.popitem(last=False)
            self.latest = compiled
            return compiled, inputs_of(captured, bound)
