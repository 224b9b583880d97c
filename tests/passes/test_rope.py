from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.core import Value
from lmc.ir.types import TEXT
from lmc.passes.canonicalize.rope import Rope

VALUES = [Value(name, TEXT) for name in "xyz"]
leaves = st.sampled_from(["", "a", "bc", *VALUES])
ropes = st.recursive(leaves.map(lambda leaf: Rope((leaf,))), lambda inner: st.lists(inner, max_size=4).map(Rope))


def _flat(rope: Rope) -> list[str | Value]:
    return [leaf for piece in rope.pieces for leaf in (_flat(piece) if isinstance(piece, Rope) else [piece])]


@given(ropes)
def test_parts_are_the_leaves_with_adjacent_literals_joined(rope: Rope):
    flat = _flat(rope)
    parts = rope.parts()
    assert "".join(map(str, parts)) == "".join(map(str, flat))
    assert [part for part in parts if isinstance(part, Value)] == [leaf for leaf in flat if isinstance(leaf, Value)]
    assert all(isinstance(one, Value) or isinstance(other, Value) for one, other in pairwise(parts))
    assert "" not in parts


@given(ropes)
def test_what_a_rope_knows_of_itself(rope: Rope):
    flat = _flat(rope)
    assert rope.size == len(rope.parts())
    assert rope.characters == sum(len(leaf) for leaf in flat if isinstance(leaf, str))
    assert rope.is_literal == (not any(isinstance(leaf, Value) for leaf in flat))
    assert rope.is_empty == (not flat)
    assert list(rope.values()) == [leaf for leaf in flat if isinstance(leaf, Value)]
    if rope.is_literal:
        assert rope.text() == "".join(map(str, flat))


def test_a_long_chain_of_joins_is_written_without_recursion():
    rope = Rope(("a",))
    for _ in range(100_000):
        rope = Rope((rope, "b"))
    assert rope.parts() == ("a" + "b" * 100_000,)
