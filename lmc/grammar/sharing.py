"""Compiled constraints of one process: each definition and vocabulary once, whoever asks for it."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lmc.grammar.automata.building import UNBOUNDED_TOKENS, WorkLimit
from lmc.grammar.compiling import KINDS, Source, Whitespace, compile_source
from lmc.grammar.constraint import Constraint
from lmc.grammar.facts import Facts
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.store import IndexFolder, IndexStore
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.cached import cached_property
from lmc.ir.engine.forks import at_work
from lmc.ir.errors import ConstraintError, InputError

_LIMIT = 256
_WORKERS = 2
# States of a constraint that is indexed ahead of time: a larger one would hold up the compiler for seconds.
MAX_STATES = 20_000

# The texts that stand for a value of a Python type. JSON writes numbers so; truth values as JSON or Python does.
DTYPES = {
    "int": "-?(0|[1-9][0-9]*)",
    "float": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?",
    "bool": "[Tt]rue|[Ff]alse",
    "str": r"[\s\S]*",
}

Key = tuple[str, str]
"""Digests of a source and of a vocabulary."""


@dataclass(frozen=True)
class Built:
    """A constraint, with the parts that could be computed ahead of time.

    ``facts`` are what there is to say of it. ``unbuilt`` is why it has no complete index (None: it has one): it is
    enforced all the same, and masks are made as generations reach them. Constraints with one ``language`` allow the
    same; those with two may.
    """

    constraint: Constraint
    facts: Facts
    language: str
    unbuilt: str | None = None


def source_of(kind: str, text: str, whitespace: str = "compact") -> Source:
    """The canonical form of a module's symbol: ``kind`` is one of ``KINDS``, or dtype and ``text`` a type's name."""
    if kind == "dtype":
        return Source("regex", DTYPES[text])
    if kind not in KINDS:
        raise ConstraintError(f"unknown kind of constraint {kind!r}", remedy=f"use one of {', '.join(KINDS)} or dtype")
    return Source(kind, text, cast(Whitespace, whitespace))


def checked_digest(source: Source, tokenizer: Any, expected: str | None = None) -> str:
    """The name of what a definition is compiled to for one vocabulary: 64 hexadecimal digits.

    Raises ``InputError`` where another one is ``expected``: limits and forced tokens of its program follow from that.
    """
    found = hashlib.sha256(f"{source.digest} {Vocabulary.of(tokenizer).digest}".encode()).hexdigest()
    if expected not in (None, found):
        raise InputError(
            f"a constraint ({source.kind}) was compiled for the tokens of another model, or by another version of lmc",
            remedy="compile the program again for this target",
        )
    return found


def _language(index: TokenIndex) -> str:
    """The name of what an index says: its states are numbered by what leads to them, not by how they were made."""
    digest = hashlib.sha256()
    for name, array in index.arrays().items():
        digest.update(f"{name} {len(array)} ".encode())
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


class ConstraintCache:
    """Keeps what it compiled, the last used ones first to stay. Safe for threads: two that ask get one.

    ``folder`` is where complete token indexes are kept between processes; None is nowhere, and so is one that can't be
    trusted or written to. What is refused is not kept. ``budget`` is that of each constraint.
    """

    def __init__(
        self,
        *,
        folder: str | Path | IndexFolder | None = None,
        limit: int = _LIMIT,
        budget: WorkLimit = UNBOUNDED_TOKENS,
    ) -> None:
        self._budget = budget
        self._named = IndexFolder(Path(folder)) if isinstance(folder, str | Path) else folder
        self._limit = limit
        self._compiled: OrderedDict[Key, Future[Constraint]] = OrderedDict()
        self._built: OrderedDict[Key, Future[Built]] = OrderedDict()
        self._lock = threading.Lock()

    def compiled(self, source: Source, tokenizer: Any) -> Constraint:
        """The constraint, ready to start with. Raises ``ConstraintError``, anew each time."""
        vocabulary = Vocabulary.of(tokenizer)
        return self._once(self._compiled, source, vocabulary, lambda: self._compile(source, vocabulary))

    def built(self, source: Source, tokenizer: Any) -> Built:
        """The constraint, with its complete index if that is not too large. Raises ``ConstraintError``."""
        vocabulary = Vocabulary.of(tokenizer)
        return self._once(self._built, source, vocabulary, lambda: self._build(source, vocabulary))

    def start(self, sources: Iterable[Source], tokenizer: Any) -> None:
        """Begin to make in the background what ``built`` will be asked for; in this order, a few at a time."""
        waiting = list(dict.fromkeys(sources))
        waiting.reverse()

        def work() -> None:
            while True:
                try:
                    source = waiting.pop()
                except IndexError:
                    return
                with contextlib.suppress(Exception), at_work():  # whoever asks for it gets the error
                    self.built(source, tokenizer)

        for number in range(min(_WORKERS, len(waiting))):
            threading.Thread(target=work, name=f"lmc-constraints-{number}", daemon=True).start()

    def __len__(self) -> int:
        return len(self._compiled)

    @cached_property
    def _store(self) -> IndexStore | None:
        if self._named is None:
            return None
        try:
            return IndexStore(*self._named)
        except ConstraintError:
            return None

    def _compile(self, source: Source, vocabulary: Vocabulary) -> Constraint:
        found = compile_source(source, vocabulary, cache=self._store, budget=self._budget)
        found.source = source
        return found

    def _build(self, source: Source, vocabulary: Vocabulary) -> Built:
        constraint = self.compiled(source, vocabulary)
        try:
            index = constraint.build(max_states=MAX_STATES)
            unbuilt = "values or rules nest without bound, so there is no end of states"
        except ConstraintError as error:
            index, unbuilt = None, error.cause
        if index is None:
            return Built(constraint, constraint.facts(), source.digest, unbuilt)
        return Built(constraint, constraint.facts(), _language(index))

    def _once(self, kept: OrderedDict[Key, Future[Any]], source: Source, vocabulary: Vocabulary, make: Any) -> Any:
        """Return what ``make`` gives, from the first thread that asks; the others wait for it."""
        key = (source.digest, vocabulary.digest)
        with self._lock:
            found = kept.get(key)
            mine = found is None
            if found is None:
                found = kept[key] = Future()
            kept.move_to_end(key)
            while len(kept) > self._limit:
                kept.popitem(last=False)
        if not mine:
            try:
                return found.result()
            except ConstraintError as error:
                # An error of its own: callers add the line at which they met it.
                raise ConstraintError(
                    error.cause, remedy=error.remedy, pointer=error.pointer, position=error.position
                ) from error
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                kept.pop(key, None)
            found.set_exception(error)
            raise
        found.set_result(made)
        return made
