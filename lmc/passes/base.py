"""Passes: their interface, context and remarks, and the manager that runs and verifies them."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from lmc.grammar.sharing import ConstraintCache
from lmc.ir.core import Block, Op
from lmc.ir.engine.capabilities import OWN, Capabilities
from lmc.ir.errors import InputError, Location, VerifyError
from lmc.ir.module import Module
from lmc.ir.profile import Profile
from lmc.ir.tokens.template import ChatTemplate, Segment, Turn, TurnSlot
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.verify.verifier import verify
from lmc.ir.wording import with_count

RemarkKind = Literal["applied", "missed"]

# Without a tokenizer: English text has about four characters in a token.
_CHARACTERS_PER_TOKEN = 4
# Without a chat template: header and end mark of a turn, both counted where it begins.
_TURN_TOKENS = (4, 0)
# The turns before one of each role that templates allow: a system turn is the first, others follow in their order.
_TURNS_BEFORE = {"system": (), "user": ("user", "assistant"), "assistant": ("user",), "tool": ("user", "assistant")}


@dataclass(frozen=True, slots=True)
class Remark:
    """A transformation done (``applied``) or not possible (``missed``), and its line in the user's program.

    ``op`` is the id of the op that it is about, if that is one with an id.
    ``saved_tokens`` and ``saved_calls`` count one instance; ``message`` states savings of further instances.
    ``saved_steps`` are rounds of model calls. Savings of a ``missed`` remark are those that were missed.
    """

    pass_name: str
    kind: RemarkKind
    message: str
    location: Location | None = None
    op: str | None = None
    saved_tokens: int = 0
    saved_calls: int = 0
    saved_steps: int = 0

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        verb = "" if self.kind == "applied" else " missed"
        savings = ", ".join(
            with_count(amount, unit)
            for amount, unit in (
                (self.saved_tokens, "token"),
                (self.saved_calls, "call"),
                (self.saved_steps, "step"),
            )
            if amount
        )
        saves = f" (saves {savings})" if savings and self.kind == "applied" else f" ({savings})" if savings else ""
        return f"{where}{self.pass_name}{verb}: {self.message}{saves}"


@dataclass(frozen=True)
class PassContext:
    """The shared state of passes in one run: the target's tokenizer, if it is known, and the remarks made so far.

    ``constraints`` caches compiled constraints (None: for this run alone), ``profile`` holds measurements of earlier
    runs of the program, if there is one. ``capabilities`` are those of the target, ``width`` the requests that it takes
    at the same time (None: as many as there are).
    """

    tokenizer: Tokenizer | None = None
    constraints: ConstraintCache | None = None
    profile: Profile | None = None
    capabilities: Capabilities = OWN
    width: int | None = None
    remarks: list[Remark] = field(default_factory=list[Remark])
    _counts: dict[str, int] = field(default_factory=dict[str, int], repr=False)
    _turns: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]], repr=False)

    def tokens(self, text: str) -> int:
        """Return the number of tokens of ``text`` alone: exact with a tokenizer, else a quarter of its characters.

        Text that can't be encoded (half a surrogate pair, to be completed at run time) is estimated too.
        """
        if not text:
            return 0
        if text not in self._counts:
            self._counts[text] = self._count(text)
        return self._counts[text]

    def turn_tokens(self, role: str) -> tuple[int, int]:
        """Return the numbers of template tokens before and after the text of a turn of ``role``."""
        if role not in self._turns:
            counted = _template_tokens(self.tokenizer, role) if self.tokenizer is not None else None
            self._turns[role] = _TURN_TOKENS if counted is None else counted
        return self._turns[role]

    def _count(self, text: str) -> int:
        if self.tokenizer is not None:
            try:
                return len(self.tokenizer.encode(text))
            except InputError:
                pass
        return max(1, len(text) // _CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Pass(abc.ABC):
    """A rewrite of verified modules to verified modules. Fields of a subclass are its options, with defaults.

    The first line of the subclass's docstring is its summary in ``lmc opt --list-passes``; the rest says when the pass
    is sound and shows IR before and after.
    """

    NAME: ClassVar[str]

    @abc.abstractmethod
    def run(self, module: Module, context: PassContext) -> Module:
        """The rewritten module; ``module`` itself is never changed."""

    def applied(
        self,
        context: PassContext,
        at: Op | Location | None,
        message: str,
        *,
        saved_tokens: int = 0,
        saved_calls: int = 0,
        saved_steps: int = 0,
    ) -> None:
        """Record a transformation of an op or at a line."""
        saved = (saved_tokens, saved_calls, saved_steps)
        context.remarks.append(Remark(self.NAME, "applied", message, *_place(at), *saved))

    def missed(self, context: PassContext, at: Op | Location | None, message: str, *, saved_tokens: int = 0) -> None:
        """Record a missed transformation and its cause; ``saved_tokens`` are those that it would have saved."""
        context.remarks.append(Remark(self.NAME, "missed", message, *_place(at), saved_tokens))


def _place(at: Op | Location | None) -> tuple[Location | None, str | None]:
    """The line of a remark, and the id of its op."""
    return (at.location, getattr(at, "id", None)) if isinstance(at, Op) else (at, None)


def _template_tokens(tokenizer: Tokenizer, role: str) -> tuple[int, int] | None:
    """Tokens of the header and the end mark of a turn; None where there is no template, or none that appends turns."""
    if tokenizer.chat_template is None:
        return None
    template = ChatTemplate(tokenizer)
    roles = (*_TURNS_BEFORE[role], role)
    turns = [Turn(each, template.slot(index)) for index, each in enumerate(roles)]
    try:
        before = template.closed(turns[:-1]) if turns[:-1] else ""
        whole = template.closed(turns)
        segments = template.segments(whole[len(before) :])
    except InputError:
        return None
    content = TurnSlot(len(turns) - 1)
    if not whole.startswith(before) or content not in segments:
        return None
    at = segments.index(content)
    return _count_all(tokenizer, segments[:at]), _count_all(tokenizer, segments[at + 1 :])


def _count_all(tokenizer: Tokenizer, segments: Sequence[Segment]) -> int:
    return sum(len(tokenizer.encode(segment)) if isinstance(segment, str) else 1 for segment in segments)


class FunctionPass(Pass):
    """A pass that rewrites each function by itself, and touches nothing else of a module."""

    def run(self, module: Module, context: PassContext) -> Module:
        bodies = {function.name: self.rewrite(function.body, context) for function in module.functions}
        changed = any(bodies[function.name] is not function.body for function in module.functions)
        return module.with_bodies(bodies) if changed else module

    @abc.abstractmethod
    def rewrite(self, block: Block, context: PassContext) -> Block:
        """The rewritten body of one function."""


AfterPass = Callable[[Pass, Module], None]


@dataclass(frozen=True, slots=True)
class PassTiming:
    """Wall-clock seconds of one pass, and of verifying its module; 0 where that was left to the end."""

    name: str
    seconds: float
    verify_seconds: float


@dataclass(frozen=True)
class PassResult:
    """The last module, what the passes remarked, in order, and how long each took.

    ``changing`` are the names of the passes that changed the module; without one of the others it would be the same.
    """

    module: Module
    remarks: tuple[Remark, ...]
    timings: tuple[PassTiming, ...]
    changing: frozenset[str]


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
        changing: set[str] = set()
        left: dict[Pass, Module] = {}
        for each in self.passes:
            before, start = module, time.perf_counter()
            if left.get(each) is not module:
                module = each.run(module, context)
            ran = time.perf_counter()
            if module is before:
                left[each] = module
            else:
                changing.add(each.NAME)
                if verified is not None:
                    _verify_after(each, module, verified)
            timings.append(PassTiming(each.NAME, ran - start, time.perf_counter() - ran))
            if after is not None:
                after(each, module)
        return PassResult(module, tuple(context.remarks[first_remark:]), tuple(timings), frozenset(changing))


def _verify_after(each: Pass, module: Module, verified: set[Op]) -> None:
    try:
        verify(module, verified=verified)
    except VerifyError as error:
        raise VerifyError(
            f"pass {each.NAME} broke the module: {error.cause}",
            remedy="this is a bug of the pass: report it with the module before it; compile with -O0 until then",
            location=error.location,
        ) from error
