"""``copy.copy`` and ``copy.deepcopy`` of the program's own objects."""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.frontend.corpus.cases import case


@dataclass
class Node:
    text: str
    kids: list[Node] = field(default_factory=list)
    up: Node | None = None
    counts: dict[str, int] = field(default_factory=dict)


@case("fix the bug")
def deep_copies_keep_aliases(s, a: str):
    base: dict[str, Any] = {"xs": [1, [2]], "name": a, "t": (1, [a])}
    base["again"] = base["xs"]
    other = copy.deepcopy(base)
    other["xs"].append(len(s.gen("t", max_tokens=2)))
    other["xs"][1].append(9)
    other["t"][1].append("k")
    return base, other, other["again"] is other["xs"], other["xs"] is base["xs"]


@case("fix the bug")
def deep_copies_of_nodes(s, a: str):
    root = Node(a)
    kid = Node(s.gen("t", max_tokens=2), up=root)
    root.kids.append(kid)
    twin = copy.deepcopy(root)
    twin.kids[0].text += "!"
    twin.counts["k"] = 1
    flat = copy.copy(root)
    flat.text = "flat"
    flat.kids.append(kid)
    return (
        twin.kids[0].up is twin,
        twin.kids[0].text,
        kid.text,
        root.text,
        len(root.kids),
        len(twin.kids),
        root.counts,
        flat.text,
    )


@case("fix the bug")
def copies_of_lists_of_the_run(s, a: str):
    xs = s.gen("t", max_tokens=8).split()
    ys = copy.deepcopy(xs)
    zs = copy.copy(xs)
    ys.append("y")
    zs.append("z")
    d = copy.copy({"a": xs})
    d["a"].append("w")
    g = copy.deepcopy(defaultdict(list, k=[a]))
    g["k"].append("x")
    g["l"].append("y")
    return xs, ys, zs, d, dict(g), copy.copy(a), copy.deepcopy((1, a)), copy.copy(s["t"])


@case("fix the bug")
def beams_that_are_copied(s, a: str):
    state: dict[str, Any] = {"path": [], "score": 0}
    beams = [state]
    for _ in range(2):
        new = []
        for b in beams:
            for w in ("l", "r"):
                c = copy.deepcopy(b)
                c["path"].append(w + s.gen("w", max_tokens=1))
                c["score"] += int(s.gen("sc", regex="[0-9]"))
                new.append(c)
        beams = sorted(new, key=lambda b: -b["score"])[:2]
    return beams, state
