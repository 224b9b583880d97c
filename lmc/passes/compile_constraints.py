"""The pass ``compile-constraints``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lmc.grammar.compiling import remark_of
from lmc.grammar.sharing import Built, ConstraintCache, checked_digest, source_of
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.core import Block, Constraint, Op, Value, walk
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.errors import ConstraintError
from lmc.ir.module import Module
from lmc.ir.rewriter import with_regions
from lmc.ir.semantics.constraint_runtime import check_length, refused
from lmc.ir.semantics.ops import forced_generation
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.wording import with_count
from lmc.passes.base import Pass, PassContext
from lmc.passes.rewriting import with_ops


@dataclass(frozen=True, slots=True)
class Unforced:
    """The reason for a model call in spite of a single text."""

    reason: str


def forced_tokens(
    op: SamplingOp, built: Built, tokenizer: Tokenizer, *, reads_logprobs: bool
) -> tuple[int, ...] | Unforced:
    """The tokens that ``op`` says whatever the model; ``built`` allows one text."""
    text = built.facts.only
    assert text is not None
    if reads_logprobs:
        return Unforced("its log-probabilities are read")
    if any(stop in text for stop in op.stop):
        return Unforced("a stop string is in it")
    token_ids = _only_sequence(built, op.max_tokens)
    if isinstance(token_ids, Unforced):
        return token_ids
    if op.min_tokens > len(token_ids):
        return Unforced(f"min_tokens is {op.min_tokens}, more than its {len(token_ids)} tokens")
    if not set(token_ids).isdisjoint(op.stop_token_ids):
        return Unforced("a stop token is in it")
    if forced_generation(op, token_ids, tokenizer).text != text:
        return Unforced("its tokens are decoded to another text")
    return token_ids


def _only_sequence(built: Built, limit: int) -> tuple[int, ...] | Unforced:
    """The tokens, at most ``limit``, if every state up to the end allows one alone, and the last one none."""
    state = built.constraint.start()
    found: list[int] = []
    while not state.complete:
        mask = state.mask()
        words = np.flatnonzero(mask)
        if state.accepting or len(words) != 1 or int(mask[words[0]]).bit_count() != 1:
            return Unforced("it can be spelled in several ways with the tokens of this vocabulary")
        if len(found) == limit:
            return Unforced(f"it has more tokens than max_tokens ({limit})")
        found.append(32 * int(words[0]) + int(mask[words[0]]).bit_length() - 1)
        state = state.advance(found[-1])
    return tuple(found)


# What stands for the vocabulary of a target that is not known: each byte is a token.
_BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], special_ids=[256], eos_id=256)


@dataclass(frozen=True)
class CompileConstraints(Pass):
    r"""Compile what generations may say, merge what is equal, and use what is known of the outputs.

    Each symbol that a generation uses is compiled for the target's vocabulary and gets the ``digest`` of that; symbols
    that allow the same become one, and unused ones are dropped. A constraint that is refused, that no output
    meets, or whose shortest output has more tokens than ``max_tokens`` is a ``ConstraintError`` at the user's line:
    the first one in the order of the program.

    Where no output has more than n tokens, ``max_tokens`` is lowered to n + 1. Sound, because after n tokens a
    generation is complete and ends as at EOS, without a draw; the one more keeps ``max_tokens`` from being what ended
    it.

    A generation with one possible output becomes ``forced``, and asks no model: where one sequence of tokens alone
    spells that output, ``max_tokens`` and ``min_tokens`` let it be said, no stop string is in it, none of its tokens is
    a stop token, and its log-probabilities are not read. Sound, because an engine could have drawn nothing else.

    Generations in regions are no others: what a constraint allows does not depend on how often one runs.

    Without a tokenizer constraints are compiled for single bytes: what is refused is refused, and nothing is changed
    that depends on tokens.

    Before::

        constraint @c0 = choices "[\"yes\",\"no\"]"
        constraint @c1 = choices "[\"!\"]"
        ...
        %2, %a = lm.gen %1 {constraint = @c0, id = "f/a"} : !ctx, !text
        %3, %b = lm.gen %2 {constraint = @c1, id = "f/b"} : !ctx, !text

    After::

        constraint @c0 = choices "[\"yes\",\"no\"]" {digest = "5f…"}
        constraint @c1 = choices "[\"!\"]" {digest = "a2…"}   // in the target's tokens "!" is 0
        ...
        %2, %a = lm.gen %1 {constraint = @c0, id = "f/a", max_tokens = 4} : !ctx, !text
        %3, %b = lm.gen %2 {constraint = @c1, forced = [0], id = "f/b"} : !ctx, !text
    """

    NAME: ClassVar[str] = "compile-constraints"

    def run(self, module: Module, context: PassContext) -> Module:
        users = _users(module)
        if not users:
            return dataclasses.replace(module, constraints=()) if module.constraints else module
        symbols = {entry.name: entry for entry in module.constraints}
        cache = ConstraintCache() if context.constraints is None else context.constraints
        built = {name: self._built(symbols[name], ops[0], cache, context) for name, ops in users.items()}
        first = _first_of_equal(built)
        for name, ops in users.items():
            self._remark(symbols[name], ops, built[name], first[name], context)
        bodies = {
            function.name: _Rewrite(self, function.body, built, first, context).run() for function in module.functions
        }
        kept = tuple(_named(entry, context) for entry in module.constraints if first.get(entry.name) == entry.name)
        return dataclasses.replace(module.with_bodies(bodies), constraints=kept)

    def _built(self, symbol: Constraint, op: SamplingOp, cache: ConstraintCache, context: PassContext) -> Built:
        tokenizer = _BYTES if context.tokenizer is None else context.tokenizer
        try:
            return cache.built(source_of(symbol.kind, symbol.text, symbol.whitespace), tokenizer)
        except ConstraintError as error:
            raise refused(error, op) from error

    def _remark(
        self, symbol: Constraint, ops: list[SamplingOp], built: Built, first: str, context: PassContext
    ) -> None:
        """Return the remark on a symbol, at the line of its first generation."""
        op = ops[0]
        who = repr(op.id) if len(ops) == 1 else f"{op.id!r} and {len(ops) - 1} more"
        if first != symbol.name:
            self.applied(context, op, f"the constraint of {who} ({symbol.kind}) equals @{first} and becomes it")
            return
        ignored = remark_of(source_of(symbol.kind, symbol.text, symbol.whitespace), built.constraint)
        if ignored is not None:
            self.missed(context, op, f"the constraint of {who}: {ignored.text}")
        if context.tokenizer is None:
            message = f"the constraint of {who} ({symbol.kind}) was compiled without tokens: no target's are known"
            self.missed(context, op, message)
            return
        self.applied(context, op, f"the constraint of {who} ({symbol.kind}) {_sizes(built)}")
        if built.unbuilt is not None and built.facts.kind == "regular":
            message = f"the constraint of {who} is made as it is reached, not ahead of time: {built.unbuilt}"
            self.missed(context, op, message)


class _Rewrite:
    """One walk over a body: what constraints say of its generations becomes attributes."""

    def __init__(
        self,
        owner: CompileConstraints,
        body: Block,
        built: Mapping[str, Built],
        first: Mapping[str, str],
        context: PassContext,
    ) -> None:
        self.owner = owner
        self.body = body
        self.built = built
        self.first = first
        self.context = context
        self.read: set[Value] = {value for op in walk((body,)) for value in op.operands}

    def run(self) -> Block:
        return self._block(self.body)

    def _block(self, block: Block) -> Block:
        """Recursion is as deep as regions are nested."""
        return with_ops(block, [self._op(op) for op in block.ops])

    def _op(self, op: Op) -> Op:
        if op.regions:
            return with_regions(op, [self._block(region) for region in op.regions])
        if not isinstance(op, SamplingOp) or op.constraint is None:
            return op
        built = self.built[op.constraint]
        if self.first[op.constraint] != op.constraint:
            op = dataclasses.replace(op, constraint=self.first[op.constraint])
        if self.context.tokenizer is None or op.forced is not None:
            return op
        check_length(op, built.facts.shortest_tokens)
        op = self._forced(op, built)
        return op if op.forced is not None else self._tightened(op, built)

    def _tightened(self, op: SamplingOp, built: Built) -> SamplingOp:
        longest = built.facts.longest_tokens
        if longest is None or longest > op.max_tokens:
            bound = "no bound" if longest is None else f"up to {with_count(longest, 'token')}"
            message = f"outputs of {op.id!r} have {bound}: one that max_tokens ({op.max_tokens}) cuts off is an error"
            self.owner.missed(self.context, op, message)
            return op
        enough = max(longest + 1, op.min_tokens)
        if enough >= op.max_tokens:
            return op
        bound = with_count(longest, "token")
        message = f"outputs of {op.id!r} have at most {bound}: max_tokens is {enough}, not {op.max_tokens}"
        self.owner.applied(self.context, op, message)
        expected = None if op.expected_tokens is None else min(op.expected_tokens, enough)
        return dataclasses.replace(op, max_tokens=enough, expected_tokens=expected)

    def _forced(self, op: SamplingOp, built: Built) -> SamplingOp:
        if built.facts.only is None:
            return op
        assert self.context.tokenizer is not None
        reads_logprobs = op.logprobs is not None and op.results[-1] in self.read
        found = forced_tokens(op, built, self.context.tokenizer, reads_logprobs=reads_logprobs)
        if isinstance(found, Unforced):
            message = f"{op.id!r} can say nothing but {_excerpt(built.facts.only)}, but {found.reason}"
            self.owner.missed(self.context, op, message)
            return op
        calls = getattr(op, "n", 1)
        message = f"{op.id!r} can say nothing but {_excerpt(built.facts.only)}: it asks no model"
        self.owner.applied(self.context, op, message, saved_calls=calls, saved_tokens=calls * len(found))
        results = op.results if op.logprobs is None else op.results[:-1]
        return dataclasses.replace(op, forced=found, logprobs=None, results=results, wave=None, group=None)


def _users(module: Module) -> dict[str, list[SamplingOp]]:
    """The generations of each constraint, in the order of the program."""
    users: dict[str, list[SamplingOp]] = {}
    for op in walk(function.body for function in module.functions):
        if isinstance(op, SamplingOp) and op.constraint is not None:
            users.setdefault(op.constraint, []).append(op)
    return users


def _first_of_equal(built: Mapping[str, Built]) -> dict[str, str]:
    """For each symbol the first one that allows the same."""
    first: dict[str, str] = {}
    return {name: first.setdefault(found.language, name) for name, found in built.items()}


def _named(symbol: Constraint, context: PassContext) -> Constraint:
    """The symbol with the digest of what it stands for in the tokens of the target."""
    if context.tokenizer is None:
        return symbol
    source = source_of(symbol.kind, symbol.text, symbol.whitespace)
    return dataclasses.replace(symbol, digest=checked_digest(source, context.tokenizer, symbol.digest))


def _sizes(built: Built) -> str:
    """Return how large a constraint is, and how much of an output it says itself."""
    facts = built.facts
    parts = ["is context-free, with states that are made as they are reached"]
    if facts.kind == "regular":
        parts = ["has states that are made as they are reached"]
    if facts.states is not None:
        classes = with_count(facts.token_classes or 0, "class", "classes")
        parts = [
            f"has {with_count(facts.states, 'state')}",
            f"{classes} of tokens",
            f"{facts.table_bytes} bytes of tables",
        ]
    if facts.forced_share is not None:
        parts.append(f"{facts.forced_share:.0%} of the tokens of an example forced")
    return ", ".join(parts)


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")
