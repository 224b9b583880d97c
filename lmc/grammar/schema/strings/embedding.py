r"""JSON within a string of JSON: what `contentSchema` says of a text whose `contentMediaType` is `application/json`.

Every byte of the inner text is in the outer one as itself or as its one escape (`alphabet.Json`). This maps
different texts to different texts and no escape is part of another, so it goes through all operations on languages;
only a complement has to be held to the texts that can come out.
"""

from __future__ import annotations

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.automata.nodes import ALL_BYTES, Kind, Node
from lmc.grammar.schema.strings.alphabet import JSON, byte_mask

_PLAIN = ALL_BYTES & ~(byte_mask('"\\') | (1 << 0x20) - 1)


def embedded(node: Node, arena: Arena) -> Node:
    """The contents of strings whose value is one of the node's texts. Raises ``ConstraintError`` beyond a budget."""
    made: dict[Node, Node] = {}
    stack = [node]
    while stack:
        top = stack[-1]
        missing = [part for part in top.parts if part not in made]
        if missing and top not in made:
            stack += missing
            continue
        stack.pop()
        if top not in made:
            made[top] = _embedded(top, [made[part] for part in top.parts], arena)
    return made[node]


def _embedded(node: Node, parts: list[Node], arena: Arena) -> Node:
    match node.kind:
        case Kind.BYTE:
            return _byte(node.mask, arena)
        case Kind.LITERAL:
            return arena.concat(*(_byte(1 << byte, arena) for byte in node.data))
        case Kind.CONCAT:
            return arena.concat(*parts)
        case Kind.UNION:
            return arena.union(parts)
        case Kind.INTERSECTION:
            return arena.intersection(parts)
        case Kind.REPEAT:
            return arena.repeat(parts[0], node.low, node.high)
        case Kind.COMPLEMENT:
            any_text = arena.repeat(_byte(ALL_BYTES, arena), 0, None)
            return arena.intersection([any_text, arena.complement(parts[0])])
        case Kind.STATE:
            return parts[0]
        case _:
            return node


def _byte(mask: int, arena: Arena) -> Node:
    """Return one byte out of a set as written in a string."""
    escaped = CharSet.of("".join(chr(byte) for byte in range(128) if mask & ~_PLAIN & 1 << byte))
    return arena.union([arena.byte_set(mask & _PLAIN), JSON.encode(arena, escaped)])
