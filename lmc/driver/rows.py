"""Inputs from files and command lines: JSON Lines and ``key=value``, typed by the program's annotations."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pydantic

from lmc.driver.programs import UsageError
from lmc.frontend.function import JittedFunction
from lmc.ir.errors import InputError, Location

MAX_ROW_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Row:
    """One instance of a batch: its arguments by name, or what is wrong with it."""

    arguments: Mapping[str, Any]
    error: InputError | None = None


@dataclass(frozen=True)
class Signature:
    """What a program takes: ``needed`` and ``optional`` names, ``open`` for names of any kind, types where known."""

    program: str
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    types: Mapping[str, Any]
    open: bool = False

    @classmethod
    def of(cls, program: JittedFunction) -> Signature:
        """The signature of a program, without its state."""
        entries = program.signature.parameters.values()
        named = [entry for entry in entries if entry.kind in (entry.POSITIONAL_OR_KEYWORD, entry.KEYWORD_ONLY)]
        return cls(
            program.name,
            tuple(entry.name for entry in named if entry.default is entry.empty),
            tuple(entry.name for entry in named if entry.default is not entry.empty),
            program.annotations,
            any(entry.kind is entry.VAR_KEYWORD for entry in entries),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return self.needed + self.optional

    def __str__(self) -> str:
        return f"{self.program} takes {', '.join(self.names) or 'no arguments'}"


class ArgumentReader:
    """Reads arguments from text and checks them against a signature."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._adapter = cache(self._make_adapter)

    def assignments(self, words: Sequence[str]) -> dict[str, Any]:
        """``key=value`` words as arguments. Raises ``UsageError``.

        A parameter annotated ``str``, or not at all, takes the text as it is; any other takes JSON, or text that its
        type can be made of.
        """
        found: dict[str, Any] = {}
        for word in words:
            key, equals, text = word.partition("=")
            if not equals:
                raise UsageError(f"{word!r} is no argument", remedy="write key=value, in quotes where value has spaces")
            if key in found:
                raise UsageError(f"argument {key!r} is given twice", remedy="give it once")
            self._check_known(key)
            found[key] = self._from_text(key, text)
        return found

    def check_complete(self, arguments: Mapping[str, Any]) -> None:
        """Raise ``UsageError`` where an argument without a default is missing."""
        missing = self._missing(arguments)
        if missing:
            words = " ".join(f"{name}=…" for name in missing)
            raise UsageError(
                f"{self._signature.program} needs {', '.join(missing)}",
                remedy=f"give {words}, or rows with --input DATA.jsonl",
            )

    def rows(self, path: str, fixed: Mapping[str, Any]) -> list[Row]:
        """The rows of a JSON Lines file, each an object of arguments; ``fixed`` ones are added to every row.

        A row that can't be used stands in the list with its error; blank lines are left out. Raises ``UsageError``
        where the file can't be read or holds no row.
        """
        try:
            lines = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}", remedy="name a JSON Lines file") from error
        rows = [
            self._row(line, Location(path, number), fixed) for number, line in enumerate(lines, start=1) if line.strip()
        ]
        if not rows:
            raise UsageError(f"{path} holds no rows", remedy="write one JSON object of arguments to a line")
        return rows

    def _row(self, line: bytes, location: Location, fixed: Mapping[str, Any]) -> Row:
        try:
            return Row(self._arguments_of(line, fixed))
        except InputError as error:
            return Row({}, InputError(error.cause, remedy=error.remedy, location=location))

    def _arguments_of(self, line: bytes, fixed: Mapping[str, Any]) -> dict[str, Any]:
        if len(line) > MAX_ROW_BYTES:
            raise InputError(f"a row of {len(line)} bytes is too large", remedy=f"at most {MAX_ROW_BYTES}")
        try:
            data = json.loads(line.decode("utf-8"), object_pairs_hook=_without_repeats)
        except UnicodeDecodeError as error:
            raise InputError(f"the row is not UTF-8: {error}", remedy="save the file as UTF-8") from error
        except RecursionError as error:
            raise InputError("the row is nested too deep", remedy="write a flatter value") from error
        except ValueError as error:
            raise InputError(f"the row is not JSON: {error}", remedy="write one JSON object to a line") from error
        if not isinstance(data, dict):
            raise InputError(
                f"the row is a {type(data).__name__}, no object", remedy='write {"argument": value, …} on each line'
            )
        for key in data:
            self._check_known(key)
            if key in fixed:
                raise InputError(f"argument {key!r} stands in the row and in the command", remedy="leave out one")
        arguments = {key: self._convert(key, value) for key, value in data.items()}
        arguments.update(fixed)
        if missing := self._missing(arguments):
            raise InputError(f"the row lacks {', '.join(missing)}", remedy=f"add it: {self._signature}")
        return arguments

    def _missing(self, given: Mapping[str, Any]) -> list[str]:
        return [name for name in self._signature.needed if name not in given]

    def _check_known(self, key: str) -> None:
        if key in self._signature.names or self._signature.open:
            return
        near = difflib.get_close_matches(key, self._signature.names, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else str(self._signature)
        raise UsageError(f"{self._signature.program} has no argument {key!r}", remedy=remedy)

    def _from_text(self, key: str, text: str) -> Any:
        adapter = self._adapter(key)
        if adapter is None or self._signature.types[key] is str:
            return text
        try:
            return adapter.validate_json(text)
        except pydantic.ValidationError as not_json:
            reason = _reason(not_json)
        try:
            return adapter.validate_python(text)
        except pydantic.ValidationError:
            raise UsageError(f"{key}={text}: {reason}", remedy=f"give {self._type_name(key)}, as JSON") from None

    def _convert(self, key: str, value: Any) -> Any:
        adapter = self._adapter(key)
        try:
            return value if adapter is None else adapter.validate_python(value)
        except pydantic.ValidationError as error:
            raise InputError(f"{key}: {_reason(error)}", remedy=f"give {self._type_name(key)}") from None

    def _make_adapter(self, key: str) -> pydantic.TypeAdapter[Any] | None:
        """Checks values of one argument; None where it has no annotation, or one that pydantic has no idea of."""
        annotation = self._signature.types.get(key)
        if annotation is None or key not in self._signature.names:
            return None
        try:
            return pydantic.TypeAdapter(annotation)
        except pydantic.PydanticUserError:
            return None

    def _type_name(self, key: str) -> str:
        return inspect.formatannotation(self._signature.types[key])


def _reason(error: pydantic.ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(map(str, first["loc"]))
    return f"{path}: {first['msg']}" if path else first["msg"]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, each key once. Raises ``InputError`` where plain JSON would keep the last and drop the others."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the key {twice!r} stands in one object twice", remedy="keep one of them")
    return found
