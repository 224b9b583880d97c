"""Constraints beyond regular ones: the protocol of ``lmc/grammar/constraint.py`` over llguidance's matchers."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from itertools import product
from typing import TypeAlias

import numpy as np

from lmc.grammar.automata.building import UNBOUNDED_TOKENS, Arena, WorkLimit
from lmc.grammar.automata.nodes import Node
from lmc.grammar.constraint import Constraint
from lmc.grammar.context_free.derivations import Derivations
from lmc.grammar.context_free.lowering import rules_of_grammar
from lmc.grammar.context_free.matching import Matcher, byte_tokenizer, emit, first_bytes, tokenizer_of
from lmc.grammar.context_free.rules import RuleSet, find_trap, regular_node
from lmc.grammar.facts import SEEDS, Facts, decoded, forced_share, if_quick
from lmc.grammar.index.indexing import unwritable
from lmc.grammar.index.states import MAX_MASK_BYTES, Masks, Words
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

MAX_DERIVED = 4_000  # bytes of examples of a grammar, after which no other is tried; of one that is walked


def context_free_facts(constraint: Constraint, derivations: Derivations) -> Facts:
    """Return the facts of a context-free constraint with such outputs. The caller holds its lock."""
    example = if_quick(lambda: next(filter(constraint.matches, _derived(derivations)), None))
    only = if_quick(lambda: derivations.only)
    share = None
    if example is not None and len(example) <= MAX_DERIVED:  # a step of a parser costs more, the more came before it
        share = forced_share(constraint.start(), constraint.vocabulary, example)
    return Facts(
        "context-free",
        constraint.digest,
        longest_tokens=if_quick(lambda: derivations.longest),
        only=decoded(only),
        example=decoded(example),
        forced_share=share,
    )


def _derived(derivations: Derivations) -> list[bytes]:
    """Return texts of a grammar, the most telling ones first."""
    texts: list[bytes] = []
    for seed, spaced in product(range(SEEDS), (False, True)):
        if sum(map(len, texts)) > MAX_DERIVED:
            break
        texts.append(derivations.example(seed, spaced=spaced))
    texts.sort(key=lambda text: (len(text) > 80, -len(text) if len(text) <= 80 else len(text)))
    return [*texts, derivations.shortest()]


_STATES_KEPT = 2_048  # the last ones used, whoever holds them
_MATCHERS_KEPT = 96  # of two kinds; each has some 100 kB
_FORCED_BYTES = 4_096

_Path: TypeAlias = "tuple[_Path, int] | None"
"""The tokens that led to a state, the last one first."""


class ContextFreeState:
    """The state of a generation in a ``ContextFreeConstraint``. Immutable to its users and shared by all generations.

    Generations that took the same tokens have the same state as long as anyone holds it, or it was used lately.
    Matchers are kept for the last states only; a state without one finds its place again by the tokens that led to it.
    """

    __slots__ = ("__weakref__", "accepting", "children", "constraint", "length", "matcher", "path", "reader", "words")

    def __init__(self, constraint: ContextFreeConstraint, path: _Path, length: int, matcher: Matcher) -> None:
        self.constraint = constraint
        self.path = path
        self.length = length
        self.accepting = matcher.accepts
        self.matcher: Matcher | None = matcher
        self.reader: Matcher | None = None  # the same place, over bytes
        self.words: Words | None = None
        self.children: weakref.WeakValueDictionary[int, ContextFreeState] = weakref.WeakValueDictionary()

    @property
    def complete(self) -> bool:
        """Return whether the output has to end here: it may, and no token may follow."""
        return self.accepting and self.constraint.is_complete(self)

    def mask(self) -> Words:
        """Tokens allowed next: bit ``i % 32`` of word ``i // 32`` is token i; EOS ids where ``accepting``.

        Read-only, and the same array each time. Raises ``ConstraintError`` where no token can follow and the output may
        not end, or where the grammar is too ambiguous to say.
        """
        words = self.words
        return self.constraint.mask_of(self) if words is None else words

    def advance(self, token_id: int) -> ContextFreeState:
        """The state after an allowed token that is not EOS. Raises ``ConstraintError`` for any other."""
        child = self.children.get(token_id)
        return self.constraint.state_after(self, token_id) if child is None else child

    def forced(self) -> list[int]:
        """Canonical tokens of the text that has to follow, empty where there is a choice or the output may end."""
        return self.constraint.draft_of(self)

    def __repr__(self) -> str:
        return f"ContextFreeState({self.length} tokens, accepting={self.accepting})"


class ContextFreeConstraint(Constraint):
    """A grammar in Lark's notation.

    Outputs are those of the grammar, and none else; where a terminal could end in several places it takes as much as it
    can, so some outputs of an ambiguous grammar are left out (README.md says which).

    Args:
        text: the grammar.
        vocabulary: the tokens.
        digest: names what the constraint says.
        budget: of its terminals.

    Raises:
        ConstraintError: what is given is wrong, can't be enforced, nothing meets it, or none of it can be written with
            the bytes that tokens have.
    """

    def __init__(self, text: str, vocabulary: Vocabulary, digest: str, budget: WorkLimit = UNBOUNDED_TOKENS) -> None:
        super().__init__(vocabulary, digest)
        rules, names = rules_of_grammar(text, Arena(budget))
        self.rules = rules.trimmed()
        if self.rules.is_empty:
            raise ConstraintError(
                "nothing meets the constraint (grammar)",
                remedy="look for rules that never end, such as one all of whose alternatives hold itself",
            )
        if not vocabulary.has_all_bytes:
            self.rules = self.rules.within(sum(1 << byte for byte in set().union(*vocabulary.tokens)))
            if self.rules.is_empty:
                raise unwritable()
        node = regular_node(self.rules)
        if node is not None:  # as one terminal nothing of it is left out
            self.rules = RuleSet({self.rules.start: [(node,)]}, self.rules.start, self.rules.derivatives)
        _check_traps(self.rules, names)
        emitted = emit(self.rules)
        self._lock = threading.RLock()
        self._masks = Masks(MAX_MASK_BYTES)
        self._recent: OrderedDict[ContextFreeState, None] = OrderedDict()
        self._with_matchers: OrderedDict[ContextFreeState, None] = OrderedDict()
        self._beginnings: dict[int, Words] = {}
        self._reader = Matcher.of(byte_tokenizer(), emitted)
        self._matcher = Matcher.of(tokenizer_of(vocabulary), emitted)
        self._start = ContextFreeState(self, None, 0, self._matcher)
        self.derivations = Derivations(self.rules)

    def start(self) -> ContextFreeState:
        return self._start

    def matches(self, output: str | bytes) -> bool:
        """Return whether a whole output is allowed. Raises ``ConstraintError`` where the grammar is too ambiguous."""
        data = output.encode("utf-8", "surrogatepass") if isinstance(output, str) else output
        with self._lock:
            reader = self._reader.copy()
            return reader.take(data) and reader.accepts

    def facts(self) -> Facts:
        """Return what there is to say of it."""
        with self._lock:
            return context_free_facts(self, self.derivations)

    def mask_of(self, state: ContextFreeState) -> Words:
        """The mask of a state that has none yet."""
        with self._lock:
            if state.words is not None:
                return state.words
            words = self._allowed(state)
            if state.accepting:
                for token_id in self.vocabulary.eos_ids:
                    words[token_id // 32] |= np.uint32(1 << token_id % 32)
            elif not words.any():
                raise ConstraintError(
                    f"no token can follow {self._tail(state)!r}, and the output may not end there",
                    remedy="use a vocabulary with a token for each byte, and terminals that do not begin as others do",
                )
            return self._masks.give(words, state)

    def is_complete(self, state: ContextFreeState) -> bool:
        """Return whether an output that has come to this accepting state has to end."""
        with self._lock:
            words = self.mask_of(state)
            allowed = sum(int(word).bit_count() for word in words[words != 0])
            return allowed == len(self.vocabulary.eos_ids)

    def state_after(self, state: ContextFreeState, token_id: int) -> ContextFreeState:
        """The state after a token, remembered. Raises ``ConstraintError`` where it is not allowed."""
        vocabulary = self.vocabulary
        with self._lock:
            matcher: Matcher | None = None
            if 0 <= token_id < vocabulary.size and vocabulary.tokens[token_id]:
                matcher = self._matcher_of(state).copy()
            if matcher is None or not matcher.take((token_id,)):
                raise ConstraintError(
                    f"{vocabulary.describe(token_id)} may not follow here",
                    remedy="take a token that the mask of the state allows",
                )
            child = ContextFreeState(self, (state.path, token_id), state.length + 1, matcher)
            state.children[token_id] = child
            self._touch(child)
            return child

    def draft_of(self, state: ContextFreeState) -> list[int]:
        """The tokens of the text that has to follow a state."""
        with self._lock:
            if state.accepting or not self._has_one_beginning(self.mask_of(state)):
                return []
            reader = self._reader_of(state).copy()
            forced = bytearray()
            while len(forced) < _FORCED_BYTES and not reader.accepts:
                words = reader.mask(8)
                if sum(int(word).bit_count() for word in words) != 1:
                    break
                (at,) = np.flatnonzero(words)
                forced.append(32 * int(at) + int(words[at]).bit_length() - 1)
                reader.take(forced[-1:])
            return self.vocabulary.encode_cut(bytes(forced))

    def _allowed(self, state: ContextFreeState) -> Words:
        """The tokens that may follow, without EOS."""
        size = self.vocabulary.size
        words = self._matcher_of(state).mask(self.vocabulary.words)
        if size % 32:
            words[-1] &= np.uint32((1 << size % 32) - 1)  # the bit of the end of the text is the next one
        return words

    def _has_one_beginning(self, words: Words) -> bool:
        """Return whether all tokens of a mask begin with the same byte; then some text may be forced."""
        (filled,) = np.nonzero(words)
        word = int(words[filled[0]])
        lowest = 32 * int(filled[0]) + (word & -word).bit_length() - 1
        beginning = self.vocabulary.tokens[lowest][0]
        known = self._beginnings.get(beginning)
        if known is None:
            others = np.ones(32 * self.vocabulary.words, np.bool_)
            others[: self.vocabulary.size] = first_bytes(self.vocabulary) != beginning
            known = self._beginnings[beginning] = np.packbits(others, bitorder="little").view(np.uint32)
        return not (words & known).any()

    def _matcher_of(self, state: ContextFreeState) -> Matcher:
        """A matcher at the place of a state, to be copied and not to be changed."""
        matcher = state.matcher
        if matcher is None:
            matcher = state.matcher = self._matcher.copy()
            if not matcher.take(_tokens(state)):
                raise AssertionError("tokens that were allowed once are not any more")
        self._touch(state)
        return matcher

    def _reader_of(self, state: ContextFreeState) -> Matcher:
        """The same over bytes."""
        reader = state.reader
        if reader is None:
            reader = state.reader = self._reader.copy()
            if not reader.take(self.vocabulary.text(_tokens(state))):
                raise AssertionError("a text that was allowed in tokens is not in bytes")
        self._touch(state)
        return reader

    def _touch(self, state: ContextFreeState) -> None:
        """Keep a state and its matchers, as one that was used last."""
        if state is self._start:
            return
        for kept, limit in ((self._recent, _STATES_KEPT), (self._with_matchers, _MATCHERS_KEPT)):
            kept[state] = None
            kept.move_to_end(state)
            if len(kept) > limit:
                oldest, _ = kept.popitem(last=False)
                oldest.matcher = oldest.reader = None

    def _tail(self, state: ContextFreeState) -> bytes:
        return self.vocabulary.text(_tokens(state))[-20:]


def _tokens(state: ContextFreeState) -> list[int]:
    found: list[int] = []
    path = state.path
    while path is not None:
        path, token_id = path
        found.append(token_id)
    found.reverse()
    return found


def _check_traps(rules: RuleSet, names: dict[Node, str]) -> None:
    trap = find_trap(rules)
    if trap is None:
        return
    node, after = trap
    name = names.get(node)
    who = "a terminal" if name is None else f"the terminal {name}"
    allowed = bytes(byte for byte in range(256) if after >> byte & 1)
    shown = f"{allowed[:10].decode('latin-1')!r}{' and others' if len(allowed) > 10 else ''}"
    raise ConstraintError(
        f"{who} takes all that may follow it ({shown}), so no output that holds it could go on",
        remedy="leave what follows out of its pattern, or make one terminal of both",
    )
