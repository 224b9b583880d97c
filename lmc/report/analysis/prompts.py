"""The tree of all prompts of a batch: which tokens are computed, found in the cache, and computed again."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmc.cache.node import Tokens, common_prefix_length
from lmc.report.analysis.costs import number_of
from lmc.report.given import Batch
from lmc.report.model import MeasuredPart, PromptNode
from lmc.report.redact import length_of
from lmc.report.text import one_line

MAX_PARTS = 1_000
MAX_CHILDREN = 50
MAX_TEXT = 160


@dataclass(eq=False, slots=True)
class _Part:
    """Tokens ``start`` to ``end`` of some prompts. ``prompts`` are the requests whose prompts end here.

    ``cached_whole`` counts the prompts of the parts below, and of this one, that find all of it in the cache;
    ``computed`` and ``cached`` are the tokens of those that do not. ``least`` is the first token that one computes.
    ``parts``, ``weight`` and ``first`` are of the subtree: its size, its tokens in prompts, its first request. ``run``
    holds the tokens that each use in a run computed and found, ``later`` those of later rounds of loops.
    """

    parent: _Part | None
    start: int
    end: int
    children: list[_Part] = field(default_factory=list["_Part"])
    prompts: list[int] = field(default_factory=list[int])
    requests: int = 0
    cached_whole: int = 0
    computed: int = 0
    cached: int = 0
    least: int | None = None
    is_answer: bool = False
    parts: int = 1
    weight: int = 0
    first: int | None = None
    run: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    later: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PromptUse:
    """The prompt of a request of a run: its tokens, those found in the cache, and those computed, also again.

    ``is_later``: it is of a later round of a loop, of which the plan has one. It begins as the planned one does, but
    may have other texts, so nothing of it counts as computed again.
    """

    tokens: int
    cached: int
    computed: int
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class PromptTree:
    """The nodes, outer before inner, and for each request the one at which its prompt ends."""

    nodes: list[PromptNode]
    node_of: list[int]
    part_count: int


def prompt_tree(
    batch: Batch, keys: Sequence[str], uses: Mapping[int, Sequence[PromptUse]] | None = None, *, redact: bool
) -> PromptTree:
    """Return the tree of the prompts of a batch.

    ``keys`` are those of the calls that make the requests of a row, ``uses`` those of prompts in a run.

    A simulation says for each request how many tokens of its prompt are in the cache when it is admitted. They are the
    first ones, so of each part of the tree a prompt finds all, a beginning, or nothing. What several calls generate is
    never equal, so an answer is at most once in the tree. Time and memory are linear in the tokens, but for sorting.
    """
    root, ends = _radix_tree(batch)
    for position, (request, served) in enumerate(zip(batch.requests, batch.report.served, strict=True)):
        end, answered = ends[2 * position], ends[2 * position + 1]
        part = answered
        while part is not end:
            part.is_answer = True
            assert part.parent is not None
            part = part.parent
        end.prompts.append(position)
        while part is not root and part.end > served.cached:
            begins = max(served.cached - part.start, 0)
            part.cached += begins
            part.computed += part.length - begins
            part.least = begins if part.least is None else min(part.least, begins)
            assert part.parent is not None
            part = part.parent
        part.cached_whole += 1
        assert request.tokens.size == end.end
        for use in (uses or {}).get(position, ()):
            _follow(end, use)
    _sum_up(root)
    return _folded(root, batch, keys, redact=redact)


def _follow(end: _Part, use: PromptUse) -> None:
    """Add a prompt of a run to the parts up to ``end``. The last part that it reaches has what is left of it."""
    path: list[_Part] = []
    part = end
    while part.parent is not None:
        path.append(part)
        part = part.parent
    path.reverse()
    at, budget = 0, use.computed
    for index, each in enumerate(path):
        is_last = index + 1 == len(path) or at + each.length >= use.tokens
        size = use.tokens - at if is_last else each.length
        cached = min(max(use.cached - at, 0), size)
        computed = budget if is_last else min(size - cached, budget)
        (each.later if use.is_later else each.run).append((computed, cached))
        budget -= computed
        at += size
        if is_last:
            return


def _radix_tree(batch: Batch) -> tuple[_Part, list[_Part]]:
    """Return the tree, and for each request the parts at which its prompt ends, and what it leaves in the cache."""
    sequences: list[Tokens] = []
    for request in batch.requests:
        sequences += [request.tokens, np.concatenate([request.tokens, request.generated[:-1]])]
    sorts = [(each.astype(np.int64) + 2**31).astype(">u4").tobytes() for each in sequences]
    root = _Part(None, 0, 0)
    ends = [root] * len(sequences)
    path = [root]
    before: Tokens | None = None
    for index in sorted(range(len(sequences)), key=sorts.__getitem__):
        tokens = sequences[index]
        shared = 0 if before is None else common_prefix_length(before, tokens)
        before = tokens
        below: _Part | None = None
        while path[-1].end > shared:
            below = path.pop()
        if below is not None and path[-1].end < shared:  # its beginning is shared
            part = _Part(path[-1], below.start, shared, [below])
            path[-1].children[-1] = part
            below.parent, below.start = part, shared
            path.append(part)
        if tokens.size > shared:
            part = _Part(path[-1], shared, tokens.size)
            path[-1].children.append(part)
            path.append(part)
        ends[index] = path[-1]
    return root, ends


def _sum_up(root: _Part) -> None:
    """Add up what is below each part, and leave out answers that no prompt takes up."""
    order: list[_Part] = []
    stack = [root]
    while stack:
        part = stack.pop()
        order.append(part)
        stack += part.children
    for part in reversed(order):
        part.children = [child for child in part.children if child.requests]
        part.children.sort(key=lambda child: child.first or 0)
        part.requests = len(part.prompts) + sum(child.requests for child in part.children)
        part.cached_whole += sum(child.cached_whole for child in part.children)
        part.cached += part.cached_whole * part.length
        part.parts = 1 + sum(child.parts for child in part.children)
        part.weight = part.requests * part.length + sum(child.weight for child in part.children)
        firsts = [*part.prompts[:1], *(child.first for child in part.children if child.first is not None)]
        part.first = min(firsts, default=None)


def _folded(root: _Part, batch: Batch, keys: Sequence[str], *, redact: bool) -> PromptTree:
    """Return the heaviest parts as nodes; the others as one node below what they continue."""
    shown = _heaviest(root)
    nodes: list[PromptNode] = []
    node_of = [0] * len(batch.requests)
    stack = _below(root, None, shown)
    while stack:
        tops, parent = stack.pop()
        index = len(nodes)
        is_shown = tops[0] in shown
        parts = tops if is_shown else [part for top in tops for part in _subtree(top)]
        for part in parts:
            for position in part.prompts:
                node_of[position] = index
        nodes.append(_node(tops, parts, parent, batch, keys, redact=redact))
        if is_shown:
            stack += _below(tops[0], index, shown)
    return PromptTree(nodes, node_of, root.parts - 1)


def _below(part: _Part, index: int | None, shown: set[_Part]) -> list[tuple[list[_Part], int | None]]:
    """Return the parts below one, those that are shown each by itself, last first."""
    rest = [each for each in part.children if each not in shown]
    children = [each for each in part.children if each in shown]
    return [*([(rest, index)] if rest else []), *(([each], index) for each in reversed(children))]


def _heaviest(root: _Part) -> set[_Part]:
    """The parts to show: heavy ones before light ones, and never one without those above it."""
    shown: set[_Part] = set()
    waiting: list[tuple[int, int, _Part]] = [(0, 0, root)]
    count = 0
    while waiting and len(shown) < MAX_PARTS:
        part = heapq.heappop(waiting)[2]
        for child in sorted(part.children, key=lambda child: -child.weight)[:MAX_CHILDREN]:
            shown.add(child)
            count += 1
            heapq.heappush(waiting, (-child.weight, count, child))
    return shown


def _subtree(top: _Part) -> Iterator[_Part]:
    stack = [top]
    while stack:
        part = stack.pop()
        yield part
        stack += reversed(part.children)


def _node(
    tops: Sequence[_Part],
    parts: Sequence[_Part],
    parent: int | None,
    batch: Batch,
    keys: Sequence[str],
    *,
    redact: bool,
) -> PromptNode:
    calls = Counter(keys[number_of(batch.requests[each].id)] for part in parts for each in part.prompts)
    return PromptNode(
        parent=parent,
        text=_text(parts[0], batch, redact=redact) if len(parts) == 1 else "",
        tokens=sum(part.length for part in parts),
        requests=sum(part.requests for part in tops),
        computed=sum(part.computed for part in parts),
        cached=sum(part.cached for part in parts),
        recomputed=sum(map(_recomputed, parts)),
        generated=sum(part.length for part in parts if part.is_answer),
        ends=dict(calls),
        folded=len(parts) - 1,
        measured=_measured(parts),
    )


def _measured(parts: Sequence[_Part]) -> MeasuredPart | None:
    """Return the tokens of parts in a run: those of an answer, or beyond the length of a part, are computed again."""
    if not any(part.run or part.later for part in parts):
        return None
    computed = again = 0
    for part in parts:
        tokens = sum(each for each, _ in part.run)
        length = 0 if part.is_answer else max((sum(each) for each in part.run), default=0)
        computed += tokens + sum(each for each, _ in part.later)
        again += max(tokens - length, 0)
    cached = sum(each for part in parts for _, each in (*part.run, *part.later))
    return MeasuredPart(computed=computed, cached=cached, recomputed=again)


def _recomputed(part: _Part) -> int:
    """Tokens of a part that are computed although they have been before.

    Prompts compute a part from some token to its end. The one that computes most of it does so for the first time,
    unless the part is an answer.
    """
    if part.is_answer or part.least is None:
        return part.computed
    return part.computed - (part.length - part.least)


def _text(part: _Part, batch: Batch, *, redact: bool) -> str:
    """Return the text of a part, as the first prompt that has it."""
    if part.first is None:
        return ""
    shown: list[str] = []
    at = 0
    for span in batch.spans(part.first):
        begin, end = max(part.start - at, 0), min(part.end - at, span.tokens)
        if begin < end and not span.is_literal:
            shown.append(span.text)
        elif begin < end:
            rate = len(span.text) / span.tokens
            piece = span.text[int(begin * rate) : int(end * rate)]
            shown.append(length_of(piece) if redact else piece)
        at += span.tokens
        if at >= part.end or sum(map(len, shown)) > MAX_TEXT:
            break
    return one_line("".join(shown), MAX_TEXT)
