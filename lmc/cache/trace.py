"""Recorded or made-up requests: what was asked, what it had to wait for, and how long the answer was.

A trace is JSON Lines, one request a row, in an order in which they may be served:

    {"id": "a", "tokens": [1, 2, 3], "output": 40, "after": [], "arrival": 0.0}

`tokens` is the prompt and `output` the number of tokens generated; `after` names rows before this one whose answers it
waits for, `arrival` is in seconds. Optional: `instance` (default: all that hang together through `after`), `known`, how
many leading tokens of the prompt are known before anything is answered, `expected`, the output length that a profile
foresees (default: the mean of the trace), and `priority`.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, cast

import numpy as np

from lmc.cache.node import Tokens, common_prefix_length
from lmc.ir.errors import InputError, Location

MAX_REQUESTS = 2**20
MAX_TOKENS = 2**27  # of all prompts and outputs together
MAX_TOKEN = 2**31 - 1
MAX_SECONDS = 1e9
MAX_PRIORITY = 1000
_LONG = 64
"""An output that may be longer is taken to be half as long as it may, where no profile says more."""

_REQUIRED = ("id", "tokens", "output")
_OPTIONAL = ("after", "arrival", "instance", "known", "expected", "priority")
_EXAMPLE = '{"id": "a", "tokens": [1, 2, 3], "output": 40, "after": [], "arrival": 0.0}'


def likely_length(max_tokens: int) -> int:
    """Return the length of an output of which only the limit is known."""
    return max_tokens if max_tokens <= _LONG else max_tokens // 2


@dataclass(frozen=True, slots=True, eq=False)
class TraceRequest:
    """One request of a trace.

    `after` are ids of requests before it. `generated` is what it answers: the tokens that follow its prompt in the
    first request after it that goes on from it, then negative ones that occur nowhere else. The first `known` tokens of
    its prompt are known before anything is answered; `expected` is how long the answer is foreseen to be, in tokens.
    `arrival` is in seconds; instances are numbered as they come.
    """

    id: str | int
    tokens: Tokens
    generated: Tokens
    after: tuple[str | int, ...]
    arrival: float
    instance: int
    known: int
    expected: int
    priority: int
    location: Location | None

    @property
    def cached_length(self) -> int:
        """Tokens whose keys and values it leaves: all but the last one generated, which is never computed."""
        return self.tokens.size + max(self.generated.size - 1, 0)


def read_trace(rows: Iterable[tuple[Location | None, object]]) -> list[TraceRequest]:
    """The requests of a trace from its rows, as JSON data with the place where each stands.

    Raises:
        InputError: a row is no request, names a row that does not stand before it, or the trace is too large.
    """
    reader = _Reader()
    for location, value in rows:
        reader.add(location, value)
    return reader.requests()


@dataclass(slots=True, eq=False)
class _Row:
    """A request as in the file, checked; None for each part left out."""

    id: str | int
    tokens: Tokens
    output: int
    after: tuple[int, ...]
    arrival: float
    instance: str | int | None
    known: int | None
    expected: int | None
    priority: int
    location: Location | None


class _Reader:
    """Collects rows; what is left out in one of them depends on the others."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._positions: dict[str | int, int] = {}
        self._tokens = 0

    def add(self, location: Location | None, value: object) -> None:
        fields = _Fields(value, location)
        if len(self._rows) == MAX_REQUESTS:
            fields.refuse("the trace is too long", f"at most {MAX_REQUESTS:,} requests")
        name = fields.name("id")
        if name is None:
            fields.refuse("the id is null", "give a text or a whole number that no other request has")
        if name in self._positions:
            first = self._rows[self._positions[name]].location
            where = "" if first is None else f" (first at {first})"
            fields.refuse(f"the id {name!r} is given twice{where}", "give each request an id of its own")
        tokens = fields.tokens()
        row = _Row(
            name,
            tokens,
            fields.whole("output", most=MAX_TOKENS),
            self._after(fields),
            fields.seconds("arrival"),
            fields.name("instance"),
            fields.whole("known", most=tokens.size) if fields.has("known") else None,
            fields.whole("expected", most=MAX_TOKENS) if fields.has("expected") else None,
            fields.whole("priority", least=-MAX_PRIORITY, most=MAX_PRIORITY) if fields.has("priority") else 0,
            location,
        )
        self._tokens += tokens.size + row.output
        if self._tokens > MAX_TOKENS:
            fields.refuse("the trace is too large", f"at most {MAX_TOKENS:,} tokens in all prompts and outputs")
        self._positions[name] = len(self._rows)
        self._rows.append(row)

    def requests(self) -> list[TraceRequest]:
        rows = self._rows
        mean = round(sum(row.output for row in rows) / len(rows)) if rows else 0
        generated = self._generated()
        instances = self._instances()
        known: list[int] = []
        for row in rows:
            known.append(self._known(row, known) if row.known is None else row.known)
        return [
            TraceRequest(
                row.id,
                row.tokens,
                generated[position],
                tuple(self._rows[each].id for each in row.after),
                row.arrival,
                instances[position],
                known[position],
                mean if row.expected is None else row.expected,
                row.priority,
                row.location,
            )
            for position, row in enumerate(rows)
        ]

    def _after(self, fields: "_Fields") -> tuple[int, ...]:
        found: dict[int, None] = {}
        for name in fields.names("after"):
            position = self._positions.get(name)
            if position is None:
                remedy = "name ids of rows that stand before this one"
                fields.refuse(f"it is to come after {name!r}, which no row before it has as its id", remedy)
            found[position] = None
        return tuple(found)

    def _known(self, row: _Row, known: list[int]) -> int:
        """Return the default of a prompt's known length: its longest prefix in the known part of one it waits for."""
        if not row.after:
            return row.tokens.size
        shared = (common_prefix_length(row.tokens, self._rows[each].tokens[: known[each]]) for each in row.after)
        return max(shared)

    def _generated(self) -> list[Tokens]:
        """Return the answer of each request, by the first row that continues it; tokens of its own if there is none."""
        answers: dict[int, Tokens] = {}
        for row in self._rows:
            for each in row.after:
                before = self._rows[each].tokens
                if each not in answers and common_prefix_length(row.tokens, before) == before.size < row.tokens.size:
                    answers[each] = row.tokens[before.size :]
        generated: list[Tokens] = []
        unseen = -1
        for position, row in enumerate(self._rows):
            said = answers.get(position, row.tokens[:0])[: row.output]
            own = np.arange(unseen, unseen - (row.output - said.size), -1, dtype=np.int32)
            unseen -= own.size
            generated.append(np.concatenate([said, own]))
        return generated

    def _instances(self) -> list[int]:
        """Instances by number: those named, and for rows that name none, all that hang together."""
        component: list[int] = []
        for position, row in enumerate(self._rows):
            component.append(position)
            for each in row.after:
                component[_top(component, each)] = position
        numbers: dict[tuple[bool, str | int], int] = {}
        found: list[int] = []
        for position, row in enumerate(self._rows):
            named = row.instance is not None
            key = (named, _top(component, position) if row.instance is None else row.instance)
            found.append(numbers.setdefault(key, len(numbers)))
        return found


class _Fields:
    """The fields of one row; each is checked as it is read."""

    def __init__(self, value: object, location: Location | None) -> None:
        self._location = location
        if not isinstance(value, Mapping):
            self.refuse("the row is no object", f"write {_EXAMPLE} on each line")
        self._fields = cast(Mapping[str, object], value)
        for key in self._fields:
            if key not in _REQUIRED and key not in _OPTIONAL:
                near = difflib.get_close_matches(key, _REQUIRED + _OPTIONAL, n=1)
                remedy = f"did you mean {near[0]!r}?" if near else f"it may have {', '.join(_REQUIRED + _OPTIONAL)}"
                self.refuse(f"a request has no {key!r}", remedy)
        missing = [key for key in _REQUIRED if key not in self._fields]
        if missing:
            self.refuse(f"the row lacks {', '.join(missing)}", f"write {_EXAMPLE}")

    def refuse(self, cause: str, remedy: str) -> NoReturn:
        raise InputError(cause, remedy=remedy, location=self._location)

    def has(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def name(self, key: str) -> str | int | None:
        value = self._fields.get(key)
        return None if value is None else self._checked_name(key, value)

    def names(self, key: str) -> list[str | int]:
        values = self._fields.get(key, [])
        if not isinstance(values, list):
            self.refuse(f"{key} is no list", f'write "{key}": ["a", "b"], or [] for none')
        return [self._checked_name(key, value) for value in cast(list[object], values)]

    def whole(self, key: str, *, least: int = 0, most: int) -> int:
        value = self._fields[key]
        if type(value) is not int or not least <= value <= most:
            self.refuse(f"{key} is {_shown(value)}", f"give a whole number from {least} to {most}")
        return value

    def seconds(self, key: str) -> float:
        value = self._fields.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
            self.refuse(f"{key} is {_shown(value)}", f"give seconds from 0 to {MAX_SECONDS:.0e}")
        return float(value)

    def tokens(self) -> Tokens:
        values = self._fields["tokens"]
        if not isinstance(values, list) or not values:
            self.refuse(f"tokens is {_shown(values)}", "give the ids of the prompt's tokens, at least one")
        ids = cast(list[object], values)
        wrong = [each for each in ids if type(each) is not int or not 0 <= each <= MAX_TOKEN]
        if wrong:
            self.refuse(f"a token is {_shown(wrong[0])}", f"token ids are whole numbers from 0 to {MAX_TOKEN}")
        tokens = np.array(ids, dtype=np.int32)
        tokens.flags.writeable = False
        return tokens

    def _checked_name(self, key: str, value: object) -> str | int:
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.refuse(f"{key} has {_shown(value)}", "an id is a text or a whole number")
        return value


def _top(component: list[int], position: int) -> int:
    """The representative of a component; what lies on the way is pointed closer to it."""
    while component[position] != position:
        component[position] = component[component[position]]
        position = component[position]
    return position


def _shown(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 60 else said[:59] + "…"
