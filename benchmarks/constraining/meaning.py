"""Masks by the definition: a token is allowed where some output goes on with it. Slow, and independent of lmc.

The `regex` package answers whether a text can still become a match (`partial`), which is the definition itself.
"""

import bisect
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import regex

Words = npt.NDArray[np.uint32]

# All code points beyond ASCII but the surrogates, which are no characters.
_BEYOND = np.r_[0x80:0xD800, 0xE000:0x110000]
# First byte of a character of two to four bytes: the code points that it may begin.
_LENGTHS = ((0xC2, 0xE0, 2), (0xE0, 0xF0, 3), (0xF0, 0xF5, 4))


class Meaning:
    """The language of a pattern over the tokens of a vocabulary.

    ``tokens`` holds the bytes of each token by id, none for special ones; ``end`` is the id that ends an output.
    """

    def __init__(self, pattern: str, tokens: Sequence[bytes], end: int) -> None:
        self._pattern = regex.compile(pattern, regex.V1)
        self._end, self._count = end, len(tokens)
        self._sorted = sorted((token, identifier) for identifier, token in enumerate(tokens) if token)
        self._kinds = _kinds(pattern)
        self._stand_ins: dict[bytes, list[str]] = {}

    def accepts(self, data: bytes) -> bool:
        """Whether ``data`` is an output."""
        try:
            return self._pattern.fullmatch(data.decode()) is not None
        except UnicodeDecodeError:
            return False

    def goes_on(self, data: bytes) -> bool:
        """Whether an output begins with ``data``."""
        text, rest = cut(data)
        if text is None:
            return False
        if not rest:
            return self._pattern.fullmatch(text, partial=True) is not None
        return any(self._pattern.fullmatch(text + each, partial=True) is not None for each in self._begun_by(rest))

    def _begun_by(self, rest: bytes) -> list[str]:
        """One character of each kind among those whose UTF-8 begins with ``rest``."""
        known = self._stand_ins.get(rest)
        if known is None:
            codes = np.array(code_points(rest))
            known = [chr(code) for code in codes[np.unique(self._kinds[codes], return_index=True)[1]]]
            self._stand_ins[rest] = known
        return known

    def mask(self, before: bytes) -> Words:
        """What may follow ``before``: bit i % 32 of word i // 32 for token i."""
        allowed = np.zeros(-(-self._count // 32) * 32, dtype=np.uint8)
        allowed[self._end] = self.accepts(before)
        at, tokens = 0, self._sorted
        while at < len(tokens):
            token, identifier = tokens[at]
            if self.goes_on(before + token):
                allowed[identifier] = 1
                at += 1
                continue
            # All that begin with the shortest part that fails come next to each other.
            failed = next(n for n in range(1, len(token) + 1) if not self.goes_on(before + token[:n]))
            at = bisect.bisect_left(tokens, (_after(token[:failed]), -1), lo=at + 1)
        return pack(allowed)


def _kinds(pattern: str) -> npt.NDArray[np.int32]:
    """Of every code point a number that says which bracketed classes of the pattern it is in.

    Beyond ASCII a pattern has no other way to tell characters apart, unless it spells them.
    """
    assert pattern.isascii(), "a meaning spells characters beyond ASCII as \\U…, in brackets"
    kinds = np.zeros(0x110000, dtype=np.int32)
    for each in sorted({*regex.findall(r"\[(?:\\.|[^\]\\])*\]", pattern)}):
        inside = _inside(each)
        if inside.any() and not inside.all():
            kinds[_BEYOND] = np.unique(kinds[_BEYOND] * 2 + inside, return_inverse=True)[1]
    return kinds


@cache
def _inside(bracketed: str) -> npt.NDArray[np.bool_]:
    """Of every code point beyond ASCII whether it is in a class."""
    text = _text_beyond()
    inside = np.zeros(len(_BEYOND), dtype=np.bool_)
    for run in regex.finditer(f"{bracketed}+", text):
        inside[run.start() : run.end()] = True
    return inside


@cache
def _text_beyond() -> str:
    return "".join(map(chr, _BEYOND.tolist()))


def pack(allowed: npt.NDArray[np.uint8]) -> Words:
    """One byte per token to one bit per token; a multiple of 32 tokens."""
    return np.packbits(allowed, bitorder="little").view("<u4").astype(np.uint32)


def unpack(words: Words) -> npt.NDArray[np.uint8]:
    """The other way."""
    return np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")


def _after(part: bytes) -> bytes:
    """The least byte string that is greater than all that begin with ``part``."""
    kept = part.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\xff" * 256


def cut(data: bytes) -> tuple[str | None, bytes]:
    """Whole characters and the beginning of one more; None where ``data`` begins no UTF-8."""
    try:
        return data.decode(), b""
    except UnicodeDecodeError as error:
        text, rest = data[: error.start].decode(), data[error.start :]
        if error.reason != "unexpected end of data":
            return None, b""
        return text, rest


def code_points(rest: bytes) -> range:
    """Those whose UTF-8 begins with ``rest``, which holds less than one character."""
    length = next(size for low, high, size in _LENGTHS if low <= rest[0] < high)
    bits = rest[0] & (0x7F >> length)
    for byte in rest[1:]:
        bits = bits << 6 | byte & 0x3F
    open_bits = 6 * (length - len(rest))
    low, high = bits << open_bits, (bits + 1) << open_bits
    least = (0, 0, 0x80, 0x800, 0x10000)[length]
    found = range(max(low, least), min(high, 0x110000))
    return found if found.start > 0xDFFF or found.stop <= 0xD800 else range(found.start, min(found.stop, 0xD800))
