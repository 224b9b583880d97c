"""Text under construction: parts that are joined by reference and written out once, so long chains stay linear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmc.ir.core import Value


class Rope:
    """Immutable text made of literals, ``!text`` values and other ropes.

    ``size`` is the number of its parts, adjacent literals counting as one, ``characters`` the length of its literals,
    ``is_literal`` says that it holds no value. None of them is recomputed when ropes are nested.
    """

    __slots__ = ("characters", "ends_literal", "is_literal", "pieces", "size", "starts_literal")

    def __init__(self, pieces: Sequence[str | Value | Rope]) -> None:
        self.pieces = tuple(piece for piece in pieces if not _is_nothing(piece))
        self.starts_literal = bool(self.pieces) and _starts_literal(self.pieces[0])
        self.ends_literal = bool(self.pieces) and _ends_literal(self.pieces[-1])
        joints = zip(self.pieces, self.pieces[1:], strict=False)
        joined = sum(_ends_literal(left) and _starts_literal(right) for left, right in joints)
        self.size = sum(piece.size if isinstance(piece, Rope) else 1 for piece in self.pieces) - joined
        self.characters = sum(
            piece.characters if isinstance(piece, Rope) else len(piece)
            for piece in self.pieces
            if not isinstance(piece, Value)
        )
        self.is_literal = self.size == 0 or (self.size == 1 and self.starts_literal)

    @property
    def is_empty(self) -> bool:
        """True for the empty text, whatever values there are."""
        return not self.pieces

    def parts(self) -> tuple[str | Value, ...]:
        """The parts of an op: adjacent literals joined, no empty ones."""
        found: list[str | Value] = []
        literal: list[str] = []
        for leaf in self._leaves():
            if isinstance(leaf, str):
                literal.append(leaf)
                continue
            if literal:
                found.append("".join(literal))
                literal.clear()
            found.append(leaf)
        if literal:
            found.append("".join(literal))
        return tuple(found)

    def values(self) -> Iterator[Value]:
        """Every value in it, in order, repeats included."""
        return (leaf for leaf in self._leaves() if isinstance(leaf, Value))

    def text(self) -> str:
        """The text of a rope that ``is_literal``."""
        return "".join(leaf for leaf in self._leaves() if isinstance(leaf, str))

    def _leaves(self) -> Iterator[str | Value]:
        stack = [iter(self.pieces)]
        while stack:
            piece = next(stack[-1], None)
            if piece is None:
                stack.pop()
            elif isinstance(piece, Rope):
                stack.append(iter(piece.pieces))
            else:
                yield piece


def _is_nothing(piece: str | Value | Rope) -> bool:
    return not piece if isinstance(piece, str) else isinstance(piece, Rope) and not piece.pieces


def _starts_literal(piece: str | Value | Rope) -> bool:
    return piece.starts_literal if isinstance(piece, Rope) else isinstance(piece, str)


def _ends_literal(piece: str | Value | Rope) -> bool:
    return piece.ends_literal if isinstance(piece, Rope) else isinstance(piece, str)
