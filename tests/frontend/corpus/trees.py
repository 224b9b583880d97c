"""Trees of the program's own objects, whose nodes refer to their parents and children."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.frontend.corpus.cases import case


@dataclass
class Node:
    text: str
    parent: Node | None = None
    children: list[Node] = field(default_factory=list["Node"])
    visits: int = 0


@case("apple pie", 2)
def a_tree_of_words(s, a: str, n: int):
    root = Node(a)
    node = root
    for word in s.gen("words", max_tokens=12).split():
        child = Node(word, parent=node)
        node.children.append(child)
        if "e" in word:
            node = child
    path = []
    while node is not None:
        path.append(node.text)
        node = node.parent
    return path, len(root.children)


@case("apple pie", 2)
def visits_of_a_small_tree(s, a: str, n: int):
    root = Node(a)
    for _ in range(3):
        child = Node(s.gen("t", max_tokens=3), root)
        root.children.append(child)
        at = child
        while at is not None:
            at.visits += 1
            at = at.parent
    best = max(root.children, key=lambda c: c.visits)
    return best.text, root.visits


def most_visited(node):
    while node.children:
        node = max(node.children, key=lambda c: c.visits)
    return node


@case("apple pie", 2)
def a_tree_that_is_searched(s, a: str, n: int):
    root = Node(a)
    for _ in range(n):
        leaf = most_visited(root)
        child = Node(s.gen("t", max_tokens=3), leaf)
        leaf.children.append(child)
        at = child
        while at is not None:
            at.visits += 1
            at = at.parent
    return root.visits, len(root.children)


@case("apple pie", 2)
def a_tree_from_a_worklist(s, a: str, n: int):
    root = Node(a)
    todo = [root]
    while todo and root.visits < 4:
        node = todo.pop()
        root.visits += 1
        for word in s.gen("t", max_tokens=6).split():
            child = Node(word, node)
            node.children.append(child)
            todo.append(child)
    return root.visits, [c.text for c in root.children], [c.parent is root for c in root.children]
