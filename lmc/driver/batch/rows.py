"""Inputs from files and command lines: rows and ``key=value``, typed by the program's annotations."""

from __future__ import annotations

import difflib
import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pydantic

from lmc.driver.batch.lines import MAX_ROW_BYTES, Line, is_array, is_plain_file, read_array, read_lines, shown_path
from lmc.driver.batch.tables import Table, TableRow, count_records, is_table, read_table
from lmc.driver.errors import UsageError
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import InputError, Location

_SHOWN = 60
_JSON_LINES = (".jsonl", ".ndjson", ".jsonlines")
_KINDS_READ = "give JSON Lines, a JSON array (named .json), or a table with a header row (named .csv or .tsv)"
_ARRAY_REMEDY = "write one JSON object to a line; `jq -c '.[]' FILE` makes such lines of an array"


@dataclass(frozen=True)
class Row:
    """An instance of a batch: its arguments by name, or its error; ``size`` is the length of its line in bytes."""

    arguments: Mapping[str, Any]
    error: InputError | None = None
    size: int = 0


@dataclass(frozen=True)
class Signature:
    """The parameters of a program: ``needed`` and ``optional`` names, ``open`` for any name, types where known.

    ``arrange`` converts given arguments to inputs, if they differ; raises ``InputError``.
    """

    program: str
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    types: Mapping[str, Any]
    open: bool = False
    arrange: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

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

    def complete(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments of one run, as it takes them. Raises ``UsageError`` where one without a default is missing."""
        self.check_complete(arguments)
        try:
            return self._arranged(arguments)
        except InputError as error:
            raise UsageError(error.cause, remedy=error.remedy) from error

    def check_complete(self, arguments: Mapping[str, Any]) -> None:
        """Raise ``UsageError`` where an argument without a default is missing."""
        missing = self._missing(arguments)
        if missing:
            words = " ".join(f"{name}=…" for name in missing)
            raise UsageError(
                f"{self._signature.program} needs {', '.join(missing)}",
                remedy=f"give {words}, or rows with --input DATA.jsonl",
            )

    def rows(self, path: str, fixed: Mapping[str, Any]) -> Iterator[Row]:
        """The rows of a file (``-``: standard input), each read when it is asked for.

        A file named ``.csv`` or ``.tsv`` is a table whose header names the arguments; its cells are typed as
        ``key=value`` words are, and an empty cell leaves out an argument that is no text and has a default. A file
        named ``.json`` may be an array of objects. Any other holds JSON Lines: an object of arguments on each.

        ``fixed`` arguments are added to every row. A row that can't be used comes with its error; blank lines are left
        out. Raises ``UsageError`` where the file can't be read, is of another kind, or holds no row; where its first
        row is not JSON, a file counts as another kind unless its name is that of JSON Lines.
        """
        if is_table(path):
            return self._table_rows(path, fixed)
        lines = read_array(path) if is_array(path) else read_lines(path)
        first = list(itertools.islice(lines, 2 if is_plain_file(path) else 1))
        if not first:
            raise UsageError(f"{shown_path(path)} holds no rows", remedy="write one JSON object of arguments to a line")
        _check_one_line_each(first, path)
        _check_is_json(first[0], path)
        return (self._row(line, fixed) for line in itertools.chain(first, lines))

    def row(self, data: bytes) -> dict[str, Any]:
        """The arguments of one row, as a line of JSON Lines has them. Raises ``InputError``."""
        return self._arguments_of(Line(Location("row", 1), data, len(data)), {})

    def _table_rows(self, path: str, fixed: Mapping[str, Any]) -> Iterator[Row]:
        table = read_table(path)
        try:
            for name in table.names:
                self._check_not_fixed(name, fixed)
        except InputError as error:
            raise UsageError(error.cause, remedy=error.remedy, location=table.location) from error
        first = next(table.records, None)
        if first is None:
            raise UsageError(f"{path} holds no rows", remedy="write a row of arguments below the header")
        return (self._table_row(table, record, fixed) for record in itertools.chain([first], table.records))

    def _table_row(self, table: Table, record: TableRow, fixed: Mapping[str, Any]) -> Row:
        try:
            if record.error is not None:
                raise record.error
            cells = zip(table.names, record.cells, strict=True)
            arguments = {name: self._from_text(name, cell) for name, cell in cells if not self._is_left_out(name, cell)}
            return Row(self._completed(arguments, fixed), size=record.size)
        except InputError as error:
            return Row({}, InputError(error.cause, remedy=error.remedy, location=record.location), record.size)

    def _is_left_out(self, name: str, cell: str) -> bool:
        is_text = name not in self._signature.types or self._signature.types[name] is str
        return not cell and name in self._signature.optional and not is_text

    def _row(self, line: Line, fixed: Mapping[str, Any]) -> Row:
        try:
            return Row(self._arguments_of(line, fixed), size=line.size)
        except InputError as error:
            return Row({}, InputError(error.cause, remedy=error.remedy, location=line.location), line.size)

    def _arguments_of(self, line: Line, fixed: Mapping[str, Any]) -> dict[str, Any]:
        data = parse_row(line)
        if not isinstance(data, dict):
            remedy = _ARRAY_REMEDY if isinstance(data, list) else 'write {"argument": value, …} on each line'
            raise InputError(f"the row is {describe_value(data)}, no object", remedy=remedy)
        for key in data:
            self._check_not_fixed(key, fixed)
        return self._completed({key: self._convert(key, value) for key, value in data.items()}, fixed)

    def _check_not_fixed(self, key: str, fixed: Mapping[str, Any]) -> None:
        """Raise ``InputError`` for a name that the program does not take, or that the command gives too."""
        self._check_known(key)
        if key in fixed:
            raise _about(key, InputError(f"argument {key!r} is in the row and in the command", remedy="leave out one"))

    def _completed(self, arguments: dict[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
        arguments.update(fixed)
        if missing := self._missing(arguments):
            error = InputError(f"the row lacks {', '.join(missing)}", remedy=f"add it: {self._signature}")
            raise _about(missing[0], error)
        return self._arranged(arguments)

    def _arranged(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        arrange = self._signature.arrange
        return dict(arguments) if arrange is None else dict(arrange(arguments))

    def _missing(self, given: Mapping[str, Any]) -> list[str]:
        return [name for name in self._signature.needed if name not in given]

    def _check_known(self, key: str) -> None:
        if key in self._signature.names or self._signature.open:
            return
        near = difflib.get_close_matches(key, self._signature.names, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else str(self._signature)
        raise _about(key, UsageError(f"{self._signature.program} has no argument {key!r}", remedy=remedy))

    def _from_text(self, key: str, text: str) -> Any:
        adapter = self._adapter(key)
        if adapter is None or self._signature.types[key] is str:
            return text
        try:
            return adapter.validate_json(text)
        except pydantic.ValidationError as error:
            as_json = error
        try:
            return adapter.validate_python(text)
        except pydantic.ValidationError:
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
            cause, remedy = self._why_not(key, as_json)
            raise UsageError(f"{key}={shown}: {cause}", remedy=remedy) from None

    def _why_not(self, key: str, error: pydantic.ValidationError) -> tuple[str, str]:
        """Return cause and remedy of text that is not a valid value; for a scalar, invalid JSON is not mentioned."""
        annotation = self._signature.types[key]
        if get_origin(annotation) is Literal:
            return f"is none of {', '.join(map(repr, get_args(annotation)))}", "give one of these"
        if isinstance(annotation, type) and annotation in _SCALARS:
            return f"is {_SCALARS[annotation]}", f"give {self._type_name(key)}, as JSON"
        return _reason(error), f"give {self._type_name(key)}, as JSON"

    def _convert(self, key: str, value: Any) -> Any:
        adapter = self._adapter(key)
        try:
            return value if adapter is None else adapter.validate_python(value)
        except pydantic.ValidationError as error:
            cause = f"argument {key} is {describe_value(value)}: {_reason(error)}"
            raise _about(key, InputError(cause, remedy=f"give {self._type_name(key)}")) from None

    def _make_adapter(self, key: str) -> pydantic.TypeAdapter[Any] | None:
        """Return a validator of one argument; None without an annotation that pydantic supports."""
        annotation = self._signature.types.get(key)
        if annotation is None or key not in self._signature.names:
            return None
        try:
            return pydantic.TypeAdapter(annotation)
        except pydantic.PydanticUserError:
            return None

    def _type_name(self, key: str) -> str:
        return inspect.formatannotation(self._signature.types[key])


def _about(argument: str, error: InputError) -> InputError:
    """``error``, which is one of this argument."""
    error.argument = argument
    return error


def count_rows(path: str, limit: int) -> int | None:
    """Return the number of rows of a plain file; None for another kind, over ``limit`` bytes, or if it is invalid."""
    if not is_plain_file(path) or Path(path).stat().st_size > limit:
        return None
    try:
        if is_table(path):
            return count_records(path)
        return sum(1 for _ in (read_array(path) if is_array(path) else read_lines(path)))
    except InputError:  # the run reports it
        return None


def _check_one_line_each(first: Sequence[Line], path: str) -> None:
    """Raise ``UsageError`` for a JSON text spread over lines: its first line opens it, and the second is no row."""
    opening = first[0].data.strip()
    if len(first) < 2 or opening not in (b"[", b"{"):
        return
    try:
        parse_row(first[1])
    except InputError:
        what, command, more = ("object", "jq -c .", "")
        if opening == b"[":
            what, command, more = ("array", "jq -c '.[]'", ", or name it .json")
        raise UsageError(
            f"{path} holds a JSON {what} over several lines, not one row to a line",
            remedy=f"write JSON Lines: {command} {path} > rows.jsonl{more}",
        ) from None


def _check_is_json(first: Line, path: str) -> None:
    """Raise ``UsageError`` where the first row of a plain file is not JSON and its name does not promise JSON Lines."""
    if not is_plain_file(path) or Path(path).suffix.lower() in _JSON_LINES:
        return
    try:
        parse_row(first)
    except InputError as error:
        if isinstance(error.__cause__, json.JSONDecodeError | UnicodeDecodeError):
            raise UsageError(
                f"the file is of no kind that can be read: {error.cause}", remedy=_KINDS_READ, location=first.location
            ) from None


_SCALARS: Mapping[Any, str] = {int: "no int", float: "no float", bool: "no bool: write true or false"}


def describe_value(value: Any) -> str:
    """A value read from JSON, in words and no longer than a part of a line: ``3, a number``."""
    said = json.dumps(value, ensure_ascii=False, default=repr)
    said = said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"
    return said if value is None or isinstance(value, bool) else f"{said}, {_KINDS.get(type(value), 'a value')}"


_KINDS: Mapping[type, str] = {
    str: "a string",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def parse_row(line: Line) -> Any:
    """Parse a line as strict JSON of bounded size. Raises ``InputError``, without the place."""
    if line.size > MAX_ROW_BYTES:
        raise InputError(f"a row of {line.size} bytes is too large", remedy=f"at most {MAX_ROW_BYTES}")
    data = line.data
    try:
        return json.loads(
            data.rstrip(b"\r\n").decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except UnicodeDecodeError as error:
        raise InputError(f"the row is not UTF-8: {error}", remedy="save the file as UTF-8") from error
    except RecursionError as error:
        raise InputError("the row is nested too deep", remedy="write a flatter value") from error
    except json.JSONDecodeError as error:
        remedy = _ARRAY_REMEDY if data.startswith(b"[") else "write one JSON object to a line"
        raise InputError(f"the row is not JSON: {error.msg} at column {error.colno}", remedy=remedy) from error
    except ValueError as error:
        raise InputError(f"the row is not JSON: {error}", remedy="write one JSON object to a line") from error


def _refuse_constant(text: str) -> Any:
    raise InputError(
        f"the row is not JSON: it has no number {text}",
        remedy=f'write null, or the text "{text}" where the argument is a float',
    )


def _finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        raise InputError(f"{shown} is too large for a float", remedy="write a number below 1.8e308")
    return number


def _reason(error: pydantic.ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    path = ".".join(map(str, first["loc"]))
    if not path or first["type"] == "missing":
        return f"{path}: {first['msg']}" if path else first["msg"]
    return f"{path} is {describe_value(first['input'])}: {first['msg']}"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, each key once. Raises ``InputError`` where plain JSON would keep the last and drop the others."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the key {twice!r} is in one object twice", remedy="keep one of them")
    return found
