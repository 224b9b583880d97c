"""From what a user gives to a constraint over the tokens of one vocabulary."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from lmc.grammar import regex as regexes
from lmc.grammar import schema as schemas
from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.constraint import RegularConstraint
from lmc.grammar.context_free import ContextFreeConstraint
from lmc.grammar.index.store import IndexStore
from lmc.grammar.interface import Constraint
from lmc.grammar.schema import SchemaRemark
from lmc.grammar.sources import Source, Whitespace
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError


def compile(  # the name by which users know it
    *,
    regex: str | None = None,
    schema: Any = None,
    choices: Sequence[str] | None = None,
    grammar: str | None = None,
    tokenizer: Any,
    whitespace: Whitespace = "compact",
    cache: str | Path | IndexStore | None = None,
) -> Constraint:
    """A constraint from exactly one of ``regex``, ``schema``, ``choices`` and ``grammar``.

    Args:
        regex: a pattern that the whole output matches, in the dialect of ``lmc/grammar/regex/README.md``.
        schema: a JSON Schema (dict, text) or a pydantic class; the output is one JSON value.
        choices: the texts that the output may be.
        grammar: a context-free grammar in Lark's syntax; its rule ``start`` is the output.
        tokenizer: whose tokens they are: of transformers or ``tokenizers``, a model folder, or a ``Vocabulary``.
        whitespace: "compact": no spaces in JSON; "flexible": single spaces and indented lines; see ``Punctuation``.
        cache: a folder in which complete token indexes (``build``) are kept and looked for, those used last up to
            512 MiB; an ``IndexStore`` has another limit.

    Returns:
        The constraint; its states, masks and indexes are computed on demand.

    Warns where a keyword of a schema is likely misspelt, and so restricts nothing.

    Raises:
        ConstraintError: what is given is wrong, can't be enforced, or nothing meets it; others may write to the folder.
    """
    source = Source.of(regex=regex, schema=schema, choices=choices, grammar=grammar, whitespace=whitespace)
    made = compile_source(source, tokenizer, cache=cache)
    remark = remark_of(source, made)
    for misspelt in remark.misspelt if remark is not None else ():
        warnings.warn(f"the schema restricts nothing by {misspelt}", stacklevel=2)
    return made


def remark_of(source: Source, constraint: Constraint | None = None) -> SchemaRemark | None:
    """Return what of a schema is not enforced as it stands; None where there is nothing, and for other constraints.

    Without the ``constraint`` that it was compiled to, nothing is said of values that are left out.
    """
    if source.kind != "schema":
        return None
    return schemas.remark_of(source.data, None if constraint is None else constraint.narrowed)


def compile_source(source: Source, tokenizer: Any, *, cache: str | Path | IndexStore | None = None) -> Constraint:
    """The same from a canonical source. Raises like ``compile``."""
    vocabulary = Vocabulary.of(tokenizer)
    if source.kind == "grammar":
        return ContextFreeConstraint(source.text, vocabulary, source.digest)
    automaton, narrowed = _automaton_of(source)
    store = IndexStore(Path(cache)) if isinstance(cache, str | Path) else cache
    return RegularConstraint(automaton, vocabulary, source.digest, narrowed=narrowed, store=store)


def automaton_of(source: Source) -> Automaton:
    """The byte automaton of a source that is no grammar. Raises ``ConstraintError`` where it is refused or empty."""
    return _automaton_of(source)[0]


def _automaton_of(source: Source) -> tuple[Automaton, dict[str, str]]:
    """The same, and the keywords that are narrowed."""
    narrowed: dict[str, str] = {}
    if source.kind == "choices":
        automaton = Automaton.of_strings(list(map(_encoded, source.data, count(1))))
    else:
        if source.kind == "regex":
            arena = Arena()
            root = regexes.to_node(source.text, arena)
        else:
            root, arena, narrowed = schemas.node_of(source.data, whitespace=source.whitespace)
        automaton = Automaton(root, arena)
    if automaton.is_empty:
        raise ConstraintError(
            f"nothing meets the constraint ({source.kind})",
            remedy="look for parts that contradict each other: an empty class, bounds that cross, a required part "
            "that can't be, a length that no text of the format has as it is written here",
        )
    automaton.lift_limits()
    return automaton, narrowed


def _encoded(choice: str, number: int) -> bytes:
    try:
        return choice.encode()
    except UnicodeEncodeError:
        raise ConstraintError(
            f"choice {number} has half of a surrogate pair", remedy="write the whole character"
        ) from None
