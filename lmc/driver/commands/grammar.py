"""Facts of a constraint, or the error that refuses it: the implementation of ``lmc grammar``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.programs import load_program
from lmc.driver.targets.constraints import constrained
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.registry import load_tokenizer
from lmc.grammar.compiling import Source, Whitespace, compile_source, remark_of
from lmc.grammar.facts import Facts
from lmc.grammar.sharing import source_of
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError, Location
from lmc.ir.wording import with_article

__all__ = ["Explanation", "NamedSource", "excerpt", "explain", "given_file", "given_text", "vocabulary_of"]

BUILTIN = "builtin"
_SHOWN = 100  # characters of a line in an excerpt


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A constraint to explain; ``name`` is its origin."""

    name: str
    source: Source
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Facts of a constraint over the tokens of one model.

    ``facts`` is None if it is ``refused``. Seconds are those that it took on this machine; ``unbuilt`` is the reason
    for an incomplete token index (None: it is complete). ``remark`` lists the parts of a schema that are not enforced
    as written.
    """

    given: NamedSource
    facts: Facts | None = None
    refused: ConstraintError | None = None
    compile_seconds: float | None = None
    build_seconds: float | None = None
    unbuilt: str | None = None
    remark: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON data."""
        source = self.given.source
        is_json = source.kind in ("schema", "choices")
        data: dict[str, Any] = {
            "name": self.given.name,
            "kind": source.kind,
            "definition": json.loads(source.text) if is_json else source.text,
            "whitespace": source.whitespace,
        }
        if self.refused is not None:
            where = self.refused.location or self.given.location
            error = {name: getattr(self.refused, name) for name in ("cause", "remedy", "pointer", "position")}
            return {**data, "refused": {**error, "location": None if where is None else str(where)}}
        assert self.facts is not None
        facts = {**asdict(self.facts), "compile_seconds": self.compile_seconds, "build_seconds": self.build_seconds}
        index = "complete" if self.unbuilt is None else self.unbuilt
        return {**data, "facts": facts, "index": index, "remark": self.remark}


def vocabulary_of(tokenizer: str) -> Vocabulary:
    """The tokens of a target (``builtin``, ``toy``, ``local:PATH``, ``hf:ORG/NAME``), never its model.

    Raises ``InputError`` where it is not there, ``ConstraintError`` where its tokens can't be read.
    """
    return Vocabulary.of(load_tokenizer(resolve_target(Options(tokenizer))))


def given_text(kind: str, text: str, whitespace: Whitespace) -> NamedSource:
    """A constraint from a command line: a pattern, choices, or the text or file of a schema or grammar.

    Raises ``UsageError`` where it can't be read, ``ConstraintError`` where it can't be one.
    """
    option = f"--{kind}"
    if kind == "choices":
        return NamedSource(option, Source.of(choices=_choices(text)))
    if kind == "regex":
        _check_compact(kind, whitespace)
        return NamedSource(option, Source.of(regex=text))
    if kind == "grammar":
        _check_compact(kind, whitespace)
        return NamedSource(option, Source.of(grammar=text if ":" in text else _read(text)))
    is_text = text.lstrip().startswith(("{", "true", "false"))
    return NamedSource(option, Source.of(schema=text if is_text else _read(text), whitespace=whitespace))


def given_file(name: str, whitespace: Whitespace) -> list[NamedSource]:
    """The constraints in a file: a schema or choices (.json), a grammar (.lark), a pattern (.txt), a program (.py).

    Raises ``UsageError`` for any other file, and what importing and capturing a program raises.
    """
    suffix = Path(name.rpartition(":")[0] if ":" in name and not Path(name).is_file() else name).suffix
    if suffix == ".py":
        _check_compact("program", whitespace)
        return _of_program(name)
    read = _FILES.get(suffix)
    if read is None:
        remedy = "name a .json (schema, or list of choices), .lark, .txt (pattern) or .py file, or use an option"
        raise UsageError(f"{name}: what is in a file goes by the end of its name", remedy=remedy)
    return [NamedSource(name, read(name, _read(name), whitespace))]


def explain(given: NamedSource, vocabulary: Vocabulary) -> Explanation:
    """Compile a constraint, build its token index and collect its facts. An error is part of the result."""
    started = time.perf_counter()
    try:
        constraint = compile_source(given.source, vocabulary)
    except ConstraintError as error:
        return Explanation(given, refused=error)
    compiled = time.perf_counter()
    unbuilt = None
    try:
        if constraint.build() is None:
            unbuilt = "values nest without bound, so there is no end of states: masks are made as they are reached"
    except ConstraintError as error:
        unbuilt = f"{error.cause}: masks are made as they are reached"
    built = time.perf_counter()
    build_seconds = built - compiled if unbuilt is None else None
    remark = remark_of(given.source, constraint)
    text = None if remark is None else remark.text
    return Explanation(given, constraint.facts(), None, compiled - started, build_seconds, unbuilt, text)


def excerpt(given: NamedSource, error: ConstraintError) -> str | None:
    """Return the line of a pattern or grammar with a caret under the error; None if the error has no place."""
    if error.position is None or given.source.kind not in ("regex", "grammar"):
        return None
    text = given.source.text
    start = text.rfind("\n", 0, error.position) + 1
    line, column = text[start:].split("\n", 1)[0], error.position - start
    first = max(0, min(column - _SHOWN // 2, len(line) - _SHOWN))
    line = line[first : first + _SHOWN]
    shown = "".join(each if each.isprintable() else "·" for each in line)
    return f"{shown}\n{' ' * (column - first)}^"


def _of_program(spec: str) -> list[NamedSource]:
    """The constraints of a program's generations, each once, in the order of the program."""
    from lmc.frontend.capture import capture  # a constraint that is given as text needs no capture

    module = capture(load_program(spec), None).module
    symbols = {entry.name: entry for entry in module.constraints}
    found: dict[str, NamedSource] = {}
    for op in constrained(module):
        assert op.constraint is not None
        symbol = symbols[op.constraint]
        source = source_of(symbol.kind, symbol.text, symbol.whitespace)
        found.setdefault(op.constraint, NamedSource(op.id, source, op.location))
    if not found:
        remedy = "give a generation regex=, choices=, schema=, grammar= or dtype="
        raise UsageError(f"no generation of {spec} has a constraint", remedy=remedy)
    return list(found.values())


def _of_json(name: str, text: str, whitespace: Whitespace) -> Source:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no JSON: {error}", remedy="write a JSON Schema, or a list of choices") from error
    if isinstance(value, list):
        _check_compact("choices", whitespace)
        return Source.of(choices=cast("list[str]", value))
    return Source.of(schema=value, whitespace=whitespace)


def _of_pattern(_name: str, text: str, whitespace: Whitespace) -> Source:
    _check_compact("regex", whitespace)
    return Source.of(regex=text.removesuffix("\n"))


def _of_grammar(_name: str, text: str, whitespace: Whitespace) -> Source:
    _check_compact("grammar", whitespace)
    return Source.of(grammar=text)


_FILES: dict[str, Callable[[str, str, Whitespace], Source]] = {
    ".json": _of_json,
    ".txt": _of_pattern,
    ".lark": _of_grammar,
}


def _choices(text: str) -> list[str]:
    """Choices of a command line: a JSON list, or separated by commas."""
    if not text.lstrip().startswith("["):
        return text.split(",")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--choices is no JSON list: {error}", remedy='write yes,no or ["yes", "no"]') from error
    return cast("list[str]", found)


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8", remedy="save it as UTF-8") from error
    except OSError as error:
        raise UsageError(f"{name} can't be read: {error.strerror}", remedy="name a file that is there") from error


def _check_compact(kind: str, whitespace: Whitespace) -> None:
    if whitespace != "compact":
        raise UsageError(f"--whitespace is for schemas, and this is {with_article(kind)}", remedy="leave it out")
