"""Outputs that call tools, or are text: an alternative of both, in which a call is valid once it has begun."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from lmc.grammar import regex as regexes
from lmc.grammar import schema as schemas
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.layout import Whitespace
from lmc.ir.errors import ConstraintError

TextForm = Literal["none", "any", "schema"]
_ANYTHING = r"[\s\S]*"


@dataclass(frozen=True)
class CallForm:
    """One kind of call: ``begin``, JSON that meets ``schema``, ``end``. ``name`` is for errors."""

    name: str
    begin: str
    schema: dict[str, Any] | bool
    end: str


@dataclass(frozen=True)
class Outputs:
    """The outputs of a model that may call tools.

    Args:
        calls: their forms; several calls have ``separator`` between them (None: there is one at most).
        trigger: the beginning of every call; a text that has it goes on as a call.
        is_anywhere: the trigger may come after any text, and not only at the beginning.
        text: the texts that are allowed besides calls: none, any, or JSON that meets ``definition``.
        answer: what a text may begin with besides; it says that no call follows.
        whitespace: that of a text of ``definition``.
    """

    calls: Sequence[CallForm]
    trigger: str
    separator: str | None = None
    is_anywhere: bool = False
    text: TextForm = "any"
    definition: Any = None
    answer: str = ""
    whitespace: Whitespace = "compact"

    @property
    def data(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)


def to_node(data: dict[str, Any], arena: Arena) -> Node:
    """Return the node of ``Outputs`` given as JSON data.

    Raises ``ConstraintError`` where a schema can't be enforced; its cause names the tool.
    """
    outputs = replace(Outputs(**data), calls=[CallForm(**each) for each in data["calls"]])
    calls = _calls(outputs, arena)
    if outputs.text == "none":
        return calls
    if outputs.text == "any":
        text = regexes.to_node(_ANYTHING, arena)
        trigger = arena.literal(outputs.trigger.encode())
        if outputs.is_anywhere:
            without = regexes.without_match_to_node(re.escape(outputs.trigger), arena)
            # A call may follow the text, and no text a call.
            return arena.concat(arena.intersection([text, without]), arena.optional(calls))
        others = arena.intersection([text, arena.complement(arena.concat(trigger, arena.everything))])
    else:
        text = others = schemas.any_node(outputs.definition, arena, whitespace=outputs.whitespace)
    alternatives = [calls, others]
    if outputs.answer:
        alternatives.append(arena.concat(arena.literal(outputs.answer.encode()), text))
    return arena.union(alternatives)


def _calls(outputs: Outputs, arena: Arena) -> Node:
    """Return the node of one call or, with a separator, one and more."""
    forms: dict[str, Node] = {}
    kinds: list[Node] = []
    for call in outputs.calls:
        key = json.dumps(call.schema)
        if key not in forms:
            try:
                forms[key] = schemas.any_node(call.schema, arena, whitespace="flexible")
            except ConstraintError as error:
                raise ConstraintError(
                    f"the arguments of the tool {call.name!r}: {error.cause}",
                    remedy=error.remedy,
                    pointer=error.pointer,
                    position=error.position,
                ) from error
        begin, end = arena.literal(call.begin.encode()), arena.literal(call.end.encode())
        kinds.append(arena.concat(begin, forms[key], end))
    call = arena.union(kinds)
    if outputs.separator is None or call is arena.empty:
        return call
    more = arena.concat(arena.literal(outputs.separator.encode()), call)
    return arena.concat(call, arena.repeat(more, 0, None))
