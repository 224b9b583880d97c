"""The constraints of a run: compiled ones by symbol, and the readers that turn outputs into values."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lmc.ir.core import Constraint, Value
from lmc.ir.dialects.model_ops import SamplingOp
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import Generation
from lmc.ir.errors import ConstraintError, InputError
from lmc.ir.module import Module
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, JsonType
from lmc.ir.wording import with_count

Reader = Callable[[str], Any]
"""Makes a value of JSON text; raises ``ValueError`` where its class does not take it."""


class CompiledConstraint(TokenConstraint, Protocol):
    """A constraint with the additional methods of a run."""

    def shortest_beyond(self, limit: int) -> int | None:
        """Tokens of a shortest output where that is known to be more than ``limit``; else None."""
        ...


Compile = Callable[[Constraint], CompiledConstraint]
"""Gives what a symbol stands for, for one vocabulary. Raises ``ConstraintError``."""


@dataclass(frozen=True)
class Constraints:
    """The constraints of one module, for one vocabulary.

    ``compile`` is asked once for each request, so it keeps what it made; None where nothing can compile any.
    ``readers`` are those of the classes that schemas were made of, by the name in ``!json<name>``; without one a value
    is what its JSON text says.
    """

    symbols: Mapping[str, Constraint] = field(default_factory=dict[str, Constraint])
    compile: Compile | None = None
    readers: Mapping[str, Reader] = field(default_factory=dict[str, Reader])

    @classmethod
    def of(
        cls, symbols: Sequence[Constraint], compile: Compile | None, readers: Mapping[str, Reader] | None = None
    ) -> Constraints:
        """Return the constraints of a module with these ``symbols``."""
        return cls({entry.name: entry for entry in symbols}, compile, readers or {})

    def defined(self, op: SamplingOp, environment: Mapping[Value, Any]) -> tuple[SamplingOp, Constraints]:
        """``op`` and its constraints, where a value of the run defines one."""
        if not op.definition or op.definition_kind is None:
            return op, self
        symbol = Constraint("definition", op.definition_kind, environment[op.definition[0]])
        changed = replace(op, constraint=symbol.name, definition=(), definition_kind=None)
        return changed, replace(self, symbols={symbol.name: symbol})

    def find(self, op: SamplingOp) -> CompiledConstraint | None:
        """Return the constraint of ``op``, or None.

        Raises ``ConstraintError`` at its line if that is refused, or has too many tokens.
        """
        if op.constraint is None:
            return None
        if self.compile is None or op.constraint not in self.symbols:
            raise InputError(
                f"generation {op.id!r} has a constraint, and this run was given nothing that compiles it",
                remedy="run the program through lmc.jit or lmc run, or pass the run its constraints",
                location=op.location,
            )
        return compiled(self.compile, self.symbols[op.constraint], op)

    def value(self, op: SamplingOp, generation: Generation) -> Any:
        """The value of a generation's text. Raises ``ConstraintError`` where the constraint forbids it after all."""
        found = self.find(op) if op.forced is None else None
        if found is not None and not _allows(found, generation):
            raise ConstraintError(
                f"generation {op.id!r} gave {reprlib.repr(generation.text)}, which its constraint forbids",
                remedy="this is a bug of the engine or of the constraint: report it with this text",
                location=op.location,
            )
        return self.read(op, generation.text)

    def read(self, op: SamplingOp, text: str) -> Any:
        """``text`` as a value of the op's type. Raises ``ConstraintError`` where it is none."""
        kind = op.value_type
        if kind == TEXT:
            return text
        try:
            return _READERS[kind](text) if kind in _READERS else self._from_json(kind, text)
        except (ValueError, RecursionError) as error:
            raise unreadable(op.id, text, str(kind), error, op) from error

    def _from_json(self, kind: Any, text: str) -> Any:
        reader = self.readers.get(kind.schema) if isinstance(kind, JsonType) else None
        return json.loads(text) if reader is None else reader(text)


def constraints_of(module: Module, compile: Compile | None, readers: Mapping[str, Reader] | None = None) -> Constraints:
    """Return the constraints of ``module``."""
    return Constraints.of(module.constraints, compile, readers)


def compiled(compile: Compile, symbol: Constraint, op: SamplingOp) -> CompiledConstraint:
    """Compile ``symbol`` for ``op``. Raises ``ConstraintError`` at its line."""
    try:
        found = compile(symbol)
    except ConstraintError as error:
        raise refused(error, op) from error
    check_length(op, found.shortest_beyond(op.max_tokens))
    return found


def check_length(op: SamplingOp, shortest: int | None) -> None:
    """Raise ``ConstraintError`` where ``op`` has no room for any output: the shortest has so many tokens (None: few).

    What a stop string ends may have fewer.
    """
    if shortest is not None and shortest > op.max_tokens and not op.stop:
        raise ConstraintError(
            f"generation {op.id!r} can't end within max_tokens ({op.max_tokens}): the shortest output that its "
            f"constraint allows has {with_count(shortest, 'token')}",
            remedy=f"give it max_tokens={shortest} or more",
            location=op.location,
        )


def refused(error: ConstraintError, op: SamplingOp) -> ConstraintError:
    """``error`` of compiling the constraint of ``op``, at its line."""
    return ConstraintError(
        f"the constraint of {op.id!r} is refused: {error.cause}",
        remedy=error.remedy,
        location=op.location,
        pointer=error.pointer,
        position=error.position,
    )


def unreadable(op_id: str, text: str, kind: str, error: Exception, op: SamplingOp | None = None) -> ConstraintError:
    """The error for ``text`` that a schema allows, but the class it was made of does not take."""
    return ConstraintError(
        f"generation {op_id!r} gave {reprlib.repr(text)}, which is no {kind}: {error}",
        remedy="say in the schema what the class demands (bounds, patterns, lengths), "
        "or take the text and make the value in the program",
        location=None if op is None else op.location,
    )


def _allows(constraint: TokenConstraint, generation: Generation) -> bool:
    """Return True if the output is allowed: its text, or its tokens if decoding loses their bytes."""
    if constraint.matches(generation.text):
        return True
    if generation.remainder:
        return False
    state = constraint.start()
    try:
        for token_id in generation.token_ids:
            state = state.advance(token_id)
    except ConstraintError:
        return False
    return state.accepting


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("it is too large for a float")
    return number


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_READERS: dict[Any, Reader] = {INT: int, FLOAT: _finite, BOOL: _truth}
