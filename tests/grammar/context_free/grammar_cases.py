"""Grammars, recursive schemas and vocabularies for the tests of constraints that nest without bound."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from lmc.grammar.compiling import Source, Whitespace, compile_source
from lmc.grammar.constraint import Constraint, RegularConstraint
from lmc.grammar.context_free import ContextFreeConstraint
from lmc.grammar.vocabulary.vocabulary import Vocabulary

JSON = r"""
?start: value
?value: object | array | ESCAPED_STRING
      | SIGNED_NUMBER  -> number
      | "true" | "false"
      | "null"         -> null
array: "[" [_separated{value, ","}] "]"
object: "{" [_separated{pair, ","}] "}"   // keys are strings
pair: ESCAPED_STRING ":" value
_separated{item, separator}: item (separator item)*
%import common.ESCAPED_STRING
%import common (SIGNED_NUMBER, WS)
%ignore WS
"""

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"enum": ["a", "b"]}, "kids": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}

TREE_GRAMMAR = r"""
start: "{\"name\":\"" ("a" | "b") "\"" [",\"kids\":[" [start ("," start)*] "]"] "}"
"""

PIECES = (b'{"', b'":', b"},{", b"[]", b'","', b"null", b'"a":', b"[[", b"]]", b"ab", "é".encode(), b"\xc3")
EOS = 256 + len(PIECES)


def vocabulary() -> Vocabulary:
    """All bytes, tokens that cross borders, an end, a special token, and padding."""
    tokens = [bytes((byte,)) for byte in range(256)] + [*PIECES, b"<end>", b"<special>"]
    return Vocabulary(tokens, [EOS + 1], EOS, size=300)


def of_grammar(text: str, tokens: Vocabulary | None = None) -> ContextFreeConstraint:
    made = compile_source(Source.of(grammar=text), tokens or vocabulary())
    assert isinstance(made, ContextFreeConstraint)
    return made


def of_schema(schema: Any, whitespace: Whitespace = "compact") -> RegularConstraint:
    made = compile_source(Source.of(schema=schema, whitespace=whitespace), vocabulary())
    assert isinstance(made, RegularConstraint)
    return made


def allowed(words: np.ndarray) -> list[int]:
    """The ids in a packed mask."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()


def walked(constraint: Constraint, chance: random.Random, steps: int = 60) -> bytes | None:
    """A text out of allowed tokens at random; None where it did not end. After some steps what closes is preferred."""
    state, text = constraint.start(), b""
    tokens = constraint.vocabulary.tokens
    for step in range(steps):
        ids = [each for each in allowed(state.mask()) if tokens[each]]
        if state.accepting and (not ids or chance.random() < 0.3):
            return text
        if step > steps // 2:
            ids = [each for each in ids if tokens[each] in (b"}", b"]", b'"', b"0", b":", b"null")] or ids
        token_id = chance.choice(ids)
        state = state.advance(token_id)
        text += tokens[token_id]
    return text if state.accepting else None


def random_schema(chance: random.Random, depth: int = 0) -> Any:
    """A schema of objects, arrays and alternatives that refers to ``#/$defs/A`` and ``#/$defs/B``."""
    kind = chance.randrange(14 if depth < 3 else 6)

    def inner() -> Any:
        return random_schema(chance, depth + 1)

    if kind == 0:
        return {"type": "integer", "minimum": chance.randrange(-3, 3), "maximum": chance.randrange(3, 20)}
    if kind == 1:
        return {"type": "string", "maxLength": chance.randrange(4)}
    if kind == 2:
        return {"enum": chance.sample([1, "a", None, True, [1], {"a": 1}, "b"], 2)}
    if kind == 3:
        return {"type": chance.sample(["null", "boolean", "number"], 2)}
    if kind in (4, 5):
        return {"$ref": f"#/$defs/{chance.choice('AB')}"}
    if kind in (6, 7, 8):
        names = chance.sample("abcd", chance.randrange(4))
        schema: dict[str, Any] = {"type": "object", "properties": {name: inner() for name in names}}
        schema["required"] = [name for name in names if chance.random() < 0.4]
        if chance.random() < 0.6:
            schema["additionalProperties"] = False if chance.random() < 0.6 else inner()
        if chance.random() < 0.2:
            schema["minProperties"] = chance.randrange(3)
        if chance.random() < 0.2:
            schema["maxProperties"] = chance.randrange(4)
        if chance.random() < 0.1:
            schema["patternProperties"] = {"^x": inner()}
        return schema
    if kind in (9, 10):
        schema = {"type": "array", "items": inner()}
        if chance.random() < 0.3:
            schema["minItems"] = chance.randrange(3)
        if chance.random() < 0.3:
            schema["maxItems"] = chance.randrange(4)
        if chance.random() < 0.2:
            schema["prefixItems"] = [inner()]
        return schema
    if kind == 11:
        return {"anyOf": [inner(), inner()]}
    if kind == 12:
        return {"oneOf": [inner(), inner()]}
    return chance.choice([{"allOf": [inner(), inner()]}, {}, {"not": inner()}])


def random_value(chance: random.Random, depth: int = 0) -> Any:
    """A JSON value that may meet such a schema."""
    kind = chance.randrange(8 if depth < 4 else 5)
    if kind < 5:
        simple = (None, chance.random() < 0.5, chance.randrange(-4, 22), chance.choice(["", "a", "b", "abc"]), 1.5)
        return simple[kind]
    if kind < 7:
        return {name: random_value(chance, depth + 1) for name in chance.sample("abcdx", chance.randrange(4))}
    return [random_value(chance, depth + 1) for _ in range(chance.randrange(3))]


def random_grammar(chance: random.Random) -> str:
    """A grammar over a, b and c whose terminals begin alike, and some of which overlap."""

    def expression(names: str, depth: int = 0) -> str:
        kind = chance.randrange(10 if depth < 3 else 4)
        if kind < 2:
            return f'"{chance.choice(["a", "b", "c", "ab", "ba"])}"'
        if kind == 2:
            return chance.choice(names)
        if kind == 3:
            return chance.choice(["/a+/", "/[ab]/", "/b?c/", "T"])
        if kind < 6:
            return f"{expression(names, depth + 1)} {expression(names, depth + 1)}"
        if kind < 8:
            return f"({expression(names, depth + 1)} | {expression(names, depth + 1)})"
        if kind == 8:
            return f"({expression(names, depth + 1)}){chance.choice('*+?')}"
        return f"[{expression(names, depth + 1)}]"

    rules = [f"start: {expression('xy')}", f"x: {expression('xy')}", f"y: {expression('xy')}"]
    ignored = ['%ignore " "'] if chance.random() < 0.3 else []
    return "\n".join([*rules, 'T: "c" ("a" | "b")*', *ignored, ""])


def texts(letters: str, length: int) -> Iterator[str]:
    """All texts of at most so many letters, the shorter ones first."""
    level = [""]
    for _ in range(length + 1):
        yield from level
        level = [text + letter for text in level for letter in letters]
