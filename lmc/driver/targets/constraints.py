"""The constraints of compiled programs: compiled in the background, kept for all programs of the process."""

from __future__ import annotations

import dataclasses
import json
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from lmc.grammar.compiling import remark_of
from lmc.grammar.index.store import IndexFolder
from lmc.grammar.sharing import ConstraintCache, checked_digest, source_of
from lmc.ir.core import Constraint, walk
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.errors import LmcWarning
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Compile, CompiledConstraint, constraints_of
from lmc.ir.tokens.tokenizer import Tokenizer


class ConstraintCaches:
    """One cache for each folder that complete token indexes are kept in."""

    def __init__(self) -> None:
        self._caches: dict[IndexFolder | None, ConstraintCache] = {}
        self._lock = threading.Lock()

    def of(self, folder: IndexFolder | None) -> ConstraintCache:
        """Return the cache of ``folder`` (None: nothing is kept on disk)."""
        with self._lock:
            found = self._caches.get(folder)
            if found is None:
                found = self._caches[folder] = ConstraintCache(folder=folder)
            return found


def start(cache: ConstraintCache, module: Module, tokenizer: Tokenizer) -> None:
    """Start compiling the constraints of ``module`` in the background, while passes run."""
    symbols = {entry.name: entry for entry in module.constraints}
    used = [symbols[op.constraint] for op in constrained(module) if op.constraint is not None]
    cache.start([source_of(entry.kind, entry.text, entry.whitespace) for entry in used], tokenizer)


def check(cache: ConstraintCache, module: Module, tokenizer: Tokenizer) -> None:
    """Compile the remaining constraints. Raises ``ConstraintError`` at the line of the first refused one."""
    constraints = constraints_of(module, compiler(cache, tokenizer))
    for op in constrained(module):
        constraints.find(op)


def warn(module: Module) -> None:
    """Warn of the keywords of schemas that are likely misspelt, at the line of the first generation of each schema."""
    symbols = {entry.name: entry for entry in module.constraints}
    for op in constrained(module):
        symbol = symbols.pop(op.constraint or "", None)
        remark = None if symbol is None else remark_of(source_of(symbol.kind, symbol.text, symbol.whitespace))
        for misspelt in remark.misspelt if remark is not None else ():
            file, line = (op.location.file, op.location.line) if op.location is not None else ("<program>", 1)
            message = f"the schema of {op.id!r} restricts nothing by {misspelt}"
            warnings.warn_explicit(message, LmcWarning, file, line)


def constrained(module: Module) -> Iterator[SamplingOp]:
    """The generations that have a constraint, in the order of the program."""
    for op in walk([module.main.body]):
        if isinstance(op, SamplingOp) and op.constraint is not None:
            yield op


def describe(
    cache: ConstraintCache, symbol: Constraint, tokenizer: Tokenizer, generations: Sequence[str]
) -> dict[str, Any]:
    """Return a constraint as JSON data: its definition, its users, its facts."""
    source = source_of(symbol.kind, symbol.text, symbol.whitespace)
    built = cache.built(source, tokenizer)
    is_json = symbol.kind in ("choices", "schema")
    return {
        "name": symbol.name,
        "digest": checked_digest(source, tokenizer),
        "kind": symbol.kind,
        "definition": json.loads(symbol.text) if is_json else symbol.text,
        "whitespace": symbol.whitespace,
        "generations": list(generations),
        "index": "complete" if built.unbuilt is None else built.unbuilt,
        "facts": dataclasses.asdict(built.facts),
    }


def compiler(cache: ConstraintCache, tokenizer: Tokenizer) -> Compile:
    """Return a compiler of a module's constraint symbols for the tokens of ``tokenizer``.

    It raises ``InputError`` for a symbol that was compiled for other tokens.
    """
    found: dict[Constraint, CompiledConstraint] = {}

    def compile(symbol: Constraint) -> CompiledConstraint:
        known = found.get(symbol)
        if known is not None:
            return known
        source = source_of(symbol.kind, symbol.text, symbol.whitespace)
        checked_digest(source, tokenizer, symbol.digest)
        return found.setdefault(symbol, cache.compiled(source, tokenizer))

    return compile
