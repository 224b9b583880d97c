"""A constraint by its definition: the outputs, of ASCII, are listed, and a token of the toy is a byte.

For tests of what lies below the grammar.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmc.ir.core import Constraint
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import ConstraintError
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Constraints


class FiniteState:
    """After ``said``, bytes of which at least one output goes on or ends here."""

    def __init__(self, outputs: frozenset[bytes], said: bytes) -> None:
        self._outputs = outputs
        self._said = said

    @property
    def accepting(self) -> bool:
        return self._said in self._outputs

    @property
    def complete(self) -> bool:
        return self.accepting and not self._next

    @cached_property
    def _next(self) -> dict[int, bytes]:
        length = len(self._said)
        found = {text[: length + 1] for text in self._outputs if text.startswith(self._said) and len(text) > length}
        return {toy_tokenizer().encode(chr(said[-1]))[0]: said for said in sorted(found)}

    def mask(self) -> NDArray[np.uint32]:
        tokenizer = toy_tokenizer()
        mask = np.zeros((tokenizer.vocabulary_size + 31) // 32, np.uint32)
        for token_id in (*self._next, *(tokenizer.eos_ids if self.accepting else ())):
            mask[token_id // 32] |= np.uint32(1 << token_id % 32)
        return mask

    def advance(self, token_id: int) -> FiniteState:
        if token_id not in self._next:
            raise ConstraintError(f"token {token_id} is not allowed")
        return FiniteState(self._outputs, self._next[token_id])

    def forced(self) -> list[int]:
        return []


class FiniteConstraint:
    """Exactly ``texts``."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._outputs = frozenset(text.encode() for text in texts)
        self.digest = hashlib.sha256(repr(sorted(self._outputs)).encode()).hexdigest()

    def start(self) -> FiniteState:
        return FiniteState(self._outputs, b"")

    def matches(self, output: str | bytes) -> bool:
        return (output if isinstance(output, bytes) else output.encode()) in self._outputs

    def shortest_beyond(self, limit: int) -> int | None:
        shortest = min(map(len, self._outputs))
        return shortest if shortest > limit else None


def compile_choices(symbol: Constraint) -> FiniteConstraint:
    """What a symbol of kind choices stands for. Raises ``ConstraintError`` for one of another kind."""
    if symbol.kind != "choices":
        raise ConstraintError(f"{symbol.kind} is not listed", remedy="list it", pointer="/a")
    return FiniteConstraint(json.loads(symbol.text))


def finite_constraints(module: Module) -> Constraints:
    """The constraints of ``module``, which are choices."""
    return Constraints.of(module.constraints, compile_choices)
