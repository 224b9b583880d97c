"""Characters as written in a JSON string, and JSON within such a string."""

from __future__ import annotations

from functools import cache

from lmc.grammar import regex
from lmc.grammar.automata.alphabets import UTF8, Alphabet
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import ANY, CharSet
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import ALL_BYTES, Kind, Node, fold
from lmc.grammar.schema.values import string_text

_CONTROLS = CharSet([(0, 0x1F)])
_ESCAPED = _CONTROLS | CharSet.of('"\\')
_PLAIN = ANY - _ESCAPED
_SHORT = {'"': '"', "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


@cache
def byte_mask(characters: str) -> int:
    """The bit set of ASCII characters."""
    mask = 0
    for character in characters:
        mask |= 1 << ord(character)
    return mask


DIGIT = byte_mask("0123456789")


def shared(arena: Arena, node: Node) -> Node:
    """A node that several constraints may use: its arcs are found at once, so that none of them has to keep some."""
    Derivatives(arena).derive_all(node)
    return node


class Json(Alphabet):
    r"""Characters in the one spelling that `json.dumps` gives them with ``ensure_ascii=False``.

    As they are, but for quotes, backslashes and controls: the short escape where there is one, else ``\u00`` and two
    lower-case digits.
    """

    def encode_text(self, arena: Arena, text: str) -> Node:
        return arena.literal(string_text(text, None)[1:-1])

    def encode_new(self, arena: Arena, charset: CharSet) -> Node:
        if not charset & _ESCAPED:
            return UTF8.encode(arena, charset)
        short = byte_mask("".join(letter for character, letter in _SHORT.items() if character in charset))
        long: dict[str, str] = {"0": "", "1": ""}
        for code in range(0x20):
            if chr(code) in charset and chr(code) not in _SHORT:
                long[f"{code:02x}"[0]] += f"{code:02x}"[1]
        spelled = [
            arena.concat(arena.literal(b"u00" + first.encode()), arena.byte_set(byte_mask(seconds)))
            for first, seconds in long.items()
            if seconds
        ]
        escape = arena.concat(arena.literal(b"\\"), arena.union([arena.byte_set(short), *spelled]))
        return arena.union([UTF8.encode(arena, charset & _PLAIN), escape])


JSON = Json()


@cache
def any_character() -> Node:
    """One character in its one spelling; made once for all constraints."""
    arena = Arena()
    return shared(arena, JSON.encode(arena, ANY))


@cache
def any_spelling() -> Node:
    """One character in any spelling that JSON has for it; a code point beyond U+FFFF may be a pair of escapes."""
    x = "[0-9a-fA-F]"
    half = rf"[dD](?:[0-7]{x}{{2}}|[89abAB]{x}{{2}}\\u[dD][cdefCDEF]{x}{{2}})"
    escape = rf"\\(?:[\"\\/bfnrt]|u(?:[0-9abcefABCEF]{x}{{3}}|{half}))"
    arena = Arena()
    return shared(arena, regex.to_node(rf"[^\"\\\x00-\x1f]|{escape}", arena))


_PLAIN_BYTES = ALL_BYTES & ~(byte_mask('"\\') | (1 << 0x20) - 1)


def embedded(node: Node, arena: Arena) -> Node:
    """The contents of strings whose value is one of the node's texts. Raises ``ConstraintError`` beyond a budget.

    Every byte of the inner text is in the outer one as itself or as its one escape (``Json``). This maps different
    texts to different texts and no escape is part of another, so it goes through all operations on languages; only a
    complement has to be held to the texts that can come out.
    """

    def written(top: Node, parts: list[Node]) -> Node:
        match top.kind:
            case Kind.BYTE:
                return _byte(top.mask, arena)
            case Kind.LITERAL:
                return arena.concat(*(_byte(1 << byte, arena) for byte in top.data))
            case Kind.COMPLEMENT:
                any_text = arena.repeat(_byte(ALL_BYTES, arena), 0, None)
                return arena.intersection([any_text, arena.complement(parts[0])])
            case Kind.STATE:
                return parts[0]
            case _:
                return arena.rebuilt(top, parts)

    return fold(node, dict[Node, Node](), written, lambda top: top.parts)


def _byte(mask: int, arena: Arena) -> Node:
    """Return one byte out of a set as written in a string."""
    escaped = CharSet.of("".join(chr(byte) for byte in range(128) if mask & ~_PLAIN_BYTES & 1 << byte))
    return arena.union([arena.byte_set(mask & _PLAIN_BYTES), JSON.encode(arena, escaped)])
