"""Runs passes one after the other and verifies the module before the first and after each, or after the last."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from lmc.ir.core import Op
from lmc.ir.errors import VerifyError
from lmc.ir.module import Module
from lmc.ir.verify.verifier import verify
from lmc.passes.base import Pass, PassContext, Remark

AfterPass = Callable[[Pass, Module], None]


@dataclass(frozen=True, slots=True)
class PassTiming:
    """Wall-clock seconds of one pass, and of verifying its module; 0 where that was left to the end."""

    name: str
    seconds: float
    verify_seconds: float


@dataclass(frozen=True)
class PassResult:
    """The last module, what the passes remarked, in order, and how long each took."""

    module: Module
    remarks: tuple[Remark, ...]
    timings: tuple[PassTiming, ...]


@dataclass(frozen=True)
class PassManager:
    """Runs ``passes`` in order.

    ``verify_each``: verify the module after each pass. Else it is verified after the last one, and where that fails
    all passes run again, verified one by one, to name the one that broke it.
    """

    passes: tuple[Pass, ...]
    verify_each: bool = True

    def run(
        self,
        module: Module,
        context: PassContext | None = None,
        *,
        valid: bool = False,
        after: AfterPass | None = None,
    ) -> PassResult:
        """Run all passes over ``module``, which is verified before unless it is ``valid``: verified by the caller.

        ``after`` sees every pass with its module, which is verified then.

        A module that a pass leaves as it is, is not verified again, nor given to an equal pass again.

        Raises ``VerifyError`` where ``module`` is not valid, or where a pass gives a module that is not.
        """
        context = PassContext() if context is None else context
        verified: set[Op] = set()
        if not valid:
            verify(module, verified=verified)
        if self.verify_each or after is not None:
            return self._run(module, context, verified, after)
        remarks = len(context.remarks)
        result = self._run(module, context, None, None)
        if result.module is module:
            return result
        try:
            verify(result.module, verified=verified)
        except VerifyError:
            del context.remarks[remarks:]
            self._run(module, context, verified, None)
            raise
        return result

    def _run(
        self, module: Module, context: PassContext, verified: set[Op] | None, after: AfterPass | None
    ) -> PassResult:
        """Run all passes. ``verified``: the ops that are known to be valid, where each module is verified."""
        first_remark = len(context.remarks)
        timings: list[PassTiming] = []
        left: dict[Pass, Module] = {}
        for each in self.passes:
            before, start = module, time.perf_counter()
            if left.get(each) is not module:
                module = each.run(module, context)
            ran = time.perf_counter()
            if module is before:
                left[each] = module
            elif verified is not None:
                _verify_after(each, module, verified)
            timings.append(PassTiming(each.NAME, ran - start, time.perf_counter() - ran))
            if after is not None:
                after(each, module)
        return PassResult(module, tuple(context.remarks[first_remark:]), tuple(timings))


def _verify_after(each: Pass, module: Module, verified: set[Op]) -> None:
    try:
        verify(module, verified=verified)
    except VerifyError as error:
        raise VerifyError(
            f"pass {each.NAME} broke the module: {error.cause}",
            remedy="this is a bug of the pass: report it with the module before it; compile with -O0 until then",
            location=error.location,
        ) from error
