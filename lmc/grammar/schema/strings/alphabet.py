"""Characters as written in a JSON string."""

from __future__ import annotations

from functools import cache

from lmc.grammar.automata.alphabets import UTF8, Alphabet
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import ANY, CharSet
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Node
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
_HEXADECIMAL = byte_mask("0123456789abcdefABCDEF")


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
    arena = Arena()
    hexadecimal = arena.byte_set(_HEXADECIMAL)
    two = arena.repeat(hexadecimal, 2, 2)
    first = arena.byte_set(byte_mask("dD"))
    low_half = arena.concat(arena.literal(b"\\u"), first, arena.byte_set(byte_mask("cdefCDEF")), two)
    after_d = arena.union(
        [
            arena.concat(arena.byte_set(byte_mask("01234567")), two),
            arena.concat(arena.byte_set(byte_mask("89abAB")), two, low_half),
        ]
    )
    plain = arena.byte_set(_HEXADECIMAL & ~byte_mask("dD"))
    spelled = arena.union([arena.concat(plain, arena.repeat(hexadecimal, 3, 3)), arena.concat(first, after_d)])
    short = arena.byte_set(byte_mask('"\\/bfnrt'))
    escape = arena.union([short, arena.concat(arena.literal(b"u"), spelled)])
    return shared(arena, arena.union([UTF8.encode(arena, _PLAIN), arena.concat(arena.literal(b"\\"), escape)]))
