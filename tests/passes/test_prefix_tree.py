from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.core import Value
from lmc.ir.types import TEXT
from lmc.passes.analysis.prefix_tree import (
    ContextUser,
    Measure,
    Parts,
    PrefixNode,
    PrefixTree,
    joined,
    text_measure,
)


class Letters:
    """One token to a letter, three to the header of a turn, two to its end mark."""

    def tokens(self, text: str) -> int:
        return len(text)

    def turn_tokens(self, role: str) -> tuple[int, int]:
        return (3, 2)


VALUES = [Value(name, TEXT) for name in "xy"]
texts = st.lists(st.sampled_from(["a", "ab", "abc", "b", *VALUES]), min_size=1, max_size=5).map(joined)


def _root(members: int, *, constant: bool) -> PrefixNode:
    return PrefixNode(None, (), None, Measure(), Measure(), Measure(), constant, members, None)


def _path(node: PrefixNode) -> Parts:
    parts: Parts = ()
    at: PrefixNode | None = node
    while at is not None:
        parts = (*at.parts, *parts)
        at = at.parent
    return parts


@given(st.lists(texts, min_size=1, max_size=6), st.booleans(), st.integers(1, 4))
def test_each_member_still_appends_its_text(texts: list[Parts], constant: bool, minimum_tokens: int):
    root = _root(len(texts), constant=constant)
    tree = PrefixTree(root, minimum_tokens, Letters())
    tree.build(ContextUser(index, None, text, None) for index, text in enumerate(texts))
    assert sorted(tree.place) == list(range(len(texts)))
    for index, (node, rest) in tree.place.items():
        assert joined((*_path(node), *rest)) == texts[index]


@given(st.lists(texts, min_size=1, max_size=6), st.booleans())
def test_nodes_come_after_their_parents_and_only_literal_ones_are_constant(texts: list[Parts], constant: bool):
    root = _root(len(texts), constant=constant)
    tree = PrefixTree(root, 1, Letters())
    tree.build(ContextUser(index, None, text, None) for index, text in enumerate(texts))
    seen: set[PrefixNode] = set()
    for node in tree.nodes:
        assert node.parent is None or node.parent in seen
        seen.add(node)
        assert node.constant == (constant and not any(isinstance(part, Value) for part in _path(node)))
        assert node is root or node.members > 1 or node.constant


def test_roles_do_not_share_turns():
    tree = PrefixTree(_root(2, constant=False), 1, Letters())
    tree.build([ContextUser(0, "user", ("abc",), None), ContextUser(1, "system", ("abc",), None)])
    assert tree.nodes == [tree.root]


def test_branches_that_part_twice():
    texts = ["Judge the style: form", "Judge the style: words", "Judge the tone: warm", "Judge the tone: cold"]
    tree = PrefixTree(_root(4, constant=False), 4, Letters())
    tree.build(ContextUser(index, None, (text,), None) for index, text in enumerate(texts))
    assert [node.parts for node in tree.nodes[1:]] == [("Judge the ",), ("style: ",), ("tone: ",)]
    assert [rest for _, rest in tree.place.values()] == [("form",), ("words",), ("warm",), ("cold",)]


def test_measures():
    assert text_measure(("abcd", VALUES[0]), "user", Letters()) == Measure(4 + 3, 1)
    assert str(Measure(1)) == "about 1 token"
    assert str(Measure(7, 2)) == "about 7 tokens and 2 texts known at run time"
    assert Measure(0, 1).reaches(100)
    assert not Measure(9).reaches(10)
