"""From what a user gives, in a canonical form, to a constraint over the tokens of one vocabulary."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import pydantic
from pydantic.errors import PydanticUserError

from lmc.grammar import calls
from lmc.grammar import regex as regexes
from lmc.grammar import schema as schemas
from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import UNBOUNDED_TOKENS, Arena, WorkLimit
from lmc.grammar.calls import Outputs
from lmc.grammar.classes import UnsupportedTypeError, schema_of_class
from lmc.grammar.constraint import Constraint, RegularConstraint
from lmc.grammar.context_free import ContextFreeConstraint
from lmc.grammar.index.store import IndexStore
from lmc.grammar.schema import SchemaRemark
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.cached import cached_property
from lmc.ir.errors import ConstraintError
from lmc.ir.wording import with_article

Whitespace = Literal["compact", "flexible"]
KINDS = ("regex", "choices", "schema", "grammar")
WHITESPACE: tuple[Whitespace, ...] = get_args(Whitespace)
# To be raised when the language of any text changes, or how it becomes an automaton.
VERSION = 5


@dataclass(frozen=True)
class Source:
    """A constraint as text: ``kind`` is one of ``KINDS``, or outputs (see ``Outputs``).

    ``text`` is the pattern, the Lark grammar, or canonical JSON: the list of choices, the schema, the outputs.
    ``whitespace`` says what a schema's JSON may have between its tokens: "compact": nothing; "flexible": spaces and
    indented lines.
    """

    kind: str
    text: str
    whitespace: Whitespace = "compact"

    @classmethod
    def of(
        cls,
        *,
        regex: str | None = None,
        schema: Any = None,
        choices: Sequence[str] | None = None,
        grammar: str | None = None,
        whitespace: Whitespace = "compact",
    ) -> Source:
        """From exactly one of the four. Raises ``ConstraintError`` for what is none."""
        given = {"regex": regex, "schema": schema, "choices": choices, "grammar": grammar}
        kinds = [kind for kind, value in given.items() if value is not None]
        if len(kinds) != 1:
            raise ConstraintError(
                f"{' and '.join(kinds) if kinds else 'nothing'} given as a constraint",
                remedy=f"give exactly one of {', '.join(KINDS)}",
            )
        if whitespace not in WHITESPACE:
            raise ConstraintError(f"whitespace is {whitespace!r}", remedy=f"use one of {', '.join(WHITESPACE)}")
        (kind,) = kinds
        if kind != "schema" and whitespace != "compact":
            raise ConstraintError(
                f"whitespace is given for {with_article(kind)}", remedy="leave it out: it is an option of schema"
            )
        return cls(kind, _TEXTS[kind](given[kind]), whitespace)

    @classmethod
    def of_outputs(cls, outputs: Outputs) -> Source:
        """From calls of tools, and texts besides. Raises ``ConstraintError`` for what is no JSON."""
        return cls("outputs", _schema(outputs.data))

    @cached_property
    def digest(self) -> str:
        """The name of its content, 64 hexadecimal digits."""
        words = (str(VERSION), self.kind, self.whitespace, self.text)
        return hashlib.sha256("\x00".join(words).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def data(self) -> Any:
        """The choices, the schema or the outputs."""
        return json.loads(self.text)


_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def canonical_json(value: Any) -> str:
    """JSON without spaces. Keys stay in their order: that of a schema's properties is the order of the output."""
    return _compact(value)


def _text(kind: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConstraintError(f"{kind} is of type {type(value).__name__}", remedy=f"give the {kind} as a text")
    return value


def _choices(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise ConstraintError("choices is no list of texts", remedy="give a list or tuple of texts")
    return canonical_json(list(dict.fromkeys(value)))


def _schema(value: Any) -> str:
    made = value
    if isinstance(value, str):
        try:
            made = json.loads(value)
        except ValueError as error:
            raise ConstraintError(f"the schema is no JSON: {error}", remedy="give a JSON Schema") from None
        except RecursionError:
            raise _nested_too_deeply() from None
    elif not isinstance(value, dict | bool):
        made = _class(value)
    if not isinstance(made, dict | bool):
        raise _no_schema(made)
    try:
        return canonical_json(made)
    except RecursionError:
        raise _nested_too_deeply() from None
    except (TypeError, ValueError) as error:
        raise ConstraintError(f"the schema is no JSON: {error}", remedy="give a JSON Schema") from None


def _nested_too_deeply() -> ConstraintError:
    return ConstraintError("the schema is nested too deeply", remedy="nest less deeply")


def _class(value: Any) -> Any:
    try:
        return schema_of_class(pydantic.TypeAdapter(value))
    except UnsupportedTypeError as error:
        raise ConstraintError(str(error).partition("\n")[0], remedy=error.remedy) from None
    except (PydanticUserError, TypeError):
        raise _no_schema(value) from None


def _no_schema(value: Any) -> ConstraintError:
    return ConstraintError(
        f"schema is of type {type(value).__name__}",
        remedy="give a pydantic class or another type that pydantic knows, a JSON Schema as a dict, or its text",
    )


_TEXTS = {
    "regex": lambda value: _text("regex", value),
    "grammar": lambda value: _text("grammar", value),
    "choices": _choices,
    "schema": _schema,
}


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


def compile_source(
    source: Source,
    tokenizer: Any,
    *,
    cache: str | Path | IndexStore | None = None,
    budget: WorkLimit = UNBOUNDED_TOKENS,
) -> Constraint:
    """The same from a canonical source, within a budget. Raises like ``compile``."""
    vocabulary = Vocabulary.of(tokenizer)
    if source.kind == "grammar":
        return ContextFreeConstraint(source.text, vocabulary, source.digest, budget)
    automaton, narrowed = _automaton_of(source, budget)
    store = IndexStore(Path(cache)) if isinstance(cache, str | Path) else cache
    return RegularConstraint(automaton, vocabulary, source.digest, narrowed=narrowed, store=store)


def _automaton_of(source: Source, budget: WorkLimit) -> tuple[Automaton, dict[str, str]]:
    """The byte automaton of a source that is no grammar, and which keywords are narrowed. Raises like ``compile``."""
    narrowed: dict[str, str] = {}
    if source.kind == "choices":
        automaton = Automaton.of_strings(list(map(_encoded, source.data, count(1))))
    else:
        arena = Arena(budget)
        if source.kind == "regex":
            root = regexes.to_node(source.text, arena)
        elif source.kind == "outputs":
            root = calls.to_node(source.data, arena)
        else:
            root = schemas.any_node(source.data, arena, whitespace=source.whitespace, narrowed=narrowed)
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
