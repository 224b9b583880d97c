"""The facts of a context-free constraint: an example, the longest output, the share of forced tokens."""

from __future__ import annotations

from itertools import product

from lmc.grammar.context_free.derivations import Derivations
from lmc.grammar.facts import SEEDS, Facts, decoded, forced_share, if_quick
from lmc.grammar.interface import Constraint

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
