"""The tree of all prompts of a batch: which tokens are computed, found in the cache, and computed again."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from lmc.cache.node import Tokens, common_prefix_length
from lmc.report.analysis.costs import number_of
from lmc.report.given import Batch, Span
from lmc.report.model import MeasuredPart, PromptNode
from lmc.report.redact import length_of
from lmc.report.text import one_line

MAX_PARTS = 1_000
MAX_CHILDREN = 50
MAX_TEXT = 160


@dataclass(slots=True)
class _Run:
    """Tokens of a part in a run, over all requests.

    One of them has had all of the part since ``held``. It is at ``end`` of the first prompt that goes as planned.
    """

    computed: int = 0
    cached: int = 0
    recomputed: int = 0
    held: int | None = None
    end: int | None = None


@dataclass(eq=False, slots=True)
class _Part:
    """Tokens ``start`` to ``end`` of some prompts. ``prompts`` are the requests whose prompts end here.

    ``cached_whole`` counts the prompts of the parts below, and of this one, that find all of it in the cache;
    ``computed`` and ``cached`` are the tokens of those that do not. ``least`` is the first token that one computes.
    ``evicted`` counts each token as often as it was evicted. ``parts``, ``weight`` and ``first`` are of the subtree:
    its size, its tokens in prompts, its first request. ``run`` has the tokens in a run, once a request has begun it.
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
    evicted: int = 0
    is_answer: bool = False
    parts: int = 1
    weight: int = 0
    first: int | None = None
    run: _Run | None = None

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PromptUse:
    """The prompt of a request of a run: its tokens, those found in the cache, and those computed, also again.

    It is ``admitted``, has computed its prompt at ``first``, and its answer at ``ended``. ``differs``: it begins as the
    planned one, and then has other texts or ends; ``is_prefix``: it is a prefix of planned ones. ``is_lossy``: before
    its end the engine evicted tokens or preempted requests; ``again`` are those of the computed tokens that it then
    computed beyond its prompt.
    """

    tokens: int
    cached: int
    computed: int
    admitted: int
    first: int
    ended: int
    differs: bool = False
    is_prefix: bool = False
    is_lossy: bool = False
    again: int = 0

    @property
    def goes_as_planned(self) -> bool:
        return not (self.differs or self.is_prefix)


@dataclass(frozen=True, slots=True)
class PromptTree:
    """The nodes, outer before inner, and for each request the one at which its prompt ends.

    ``unplaced`` are tokens that a run found in the cache, and that no part of its requests before can have left there.
    """

    nodes: list[PromptNode]
    node_of: list[int]
    part_count: int
    unplaced: int = 0


def prompt_tree(
    batch: Batch, keys: Sequence[str], uses: Mapping[int, Sequence[PromptUse]] | None = None, *, redact: bool
) -> PromptTree:
    """Return the tree of the prompts of a batch.

    ``keys`` are those of the calls that make the requests of a row, ``uses`` those of prompts in a run.

    A simulation says for each request how many tokens of its prompt are in the cache when it is admitted. They are the
    first ones, so of each part of the tree a prompt finds all, a beginning, or nothing. What several calls generate is
    never equal, so an answer is at most once in the tree. Time and memory are linear in the tokens, but for sorting.
    """
    root, ends, found = _radix_tree(batch)
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
    for each in batch.report.timeline.evicted:
        _, part = found[bisect_left(found, _key(each.prefix), key=itemgetter(0))]
        for above in _path(part):
            above.evicted += max(min(above.end, each.prefix.size) - max(above.start, each.kept), 0)
    _sum_up(root)
    in_order = [(use, position) for position, each in (uses or {}).items() for use in each]
    in_order.sort(key=lambda entry: (entry[0].admitted, entry[0].cached, entry[1]))
    unplaced = sum(
        _follow(use, ends[2 * position], ends[2 * position + 1], batch.spans(position)) for use, position in in_order
    )
    return replace(_folded(root, batch, keys, redact=redact), unplaced=unplaced)


def _follow(use: PromptUse, end: _Part, answered: _Part, spans: Sequence[Span]) -> int:
    """Add a prompt of a run to the parts up to ``end``; uses come in the order in which they were admitted.

    A run has lengths and no tokens, and those of the parts are estimates. So what is known of a cache decides: tokens
    are only found in parts that an earlier use began, and before a loss all parts are found that one had finished.
    Returns the found tokens of which no part can be the place.
    """
    path = _path(end)
    if use.is_prefix:
        path = [path[0], *takewhile(lambda part: part.requests > 1, path[1:])]
    bounds = _bounds(path, use, spans)
    path = path[: bounds.size - 1]
    begun = sum(1 for _ in takewhile(lambda part: part.run is not None, path))
    finished = sum(1 for _ in takewhile(lambda part: _is_held(part, use.admitted), path))
    cut = min(max(use.cached, 0 if use.is_lossy else bounds[finished]), bounds[begun])
    bounds = np.interp(bounds, [0, cut, use.tokens], [0, use.cached, use.tokens])
    ends = bounds.astype(np.int64).tolist()
    found, budget = use.cached if begun else 0, use.computed
    for place, part in enumerate(path, 1):
        is_last, size = part is path[-1], ends[place] - ends[place - 1]
        cached = found if place >= begun else min(size, found)
        computed = budget if is_last else min(max(size - cached, 0), budget)
        found, budget = found - cached, budget - computed
        run = part.run = part.run or _Run()
        run.end = ends[place] if run.end is None and use.goes_as_planned else run.end
        run.cached += cached
        run.computed += computed
        if use.is_lossy and not use.differs:
            run.recomputed += computed if place <= finished else min(use.again, computed) if is_last else 0
        if not (is_last and use.differs):
            _hold(run, use.first)
    if use.goes_as_planned:
        for part in _path(answered)[len(path) :]:
            part.run = part.run or _Run()
            _hold(part.run, use.ended)
    return 0 if begun else use.cached


def _path(end: _Part) -> list[_Part]:
    """Return the parts from the beginning of prompts to one."""
    found: list[_Part] = []
    while end.parent is not None:
        found.append(end)
        end = end.parent
    return found[::-1]


def _is_held(part: _Part, time: int) -> bool:
    return part.run is not None and part.run.held is not None and part.run.held <= time


def _hold(run: _Run, time: int) -> None:
    run.held = time if run.held is None else min(run.held, time)


def _bounds(path: Sequence[_Part], use: PromptUse, spans: Sequence[Span]) -> NDArray[np.float64]:
    """Return where the parts that a prompt of a run reaches begin and end in it.

    Parts of an earlier prompt end where they do there. Then, in a prompt that only begins as the planned one, the last
    part takes up the difference; else texts do whose lengths only the run knows, at most the longest ones; all of them
    do for the rest.
    """
    ends = np.array([0, *(part.end for part in path)], np.float64)
    if use.goes_as_planned:
        sizes = np.array([span.tokens for span in spans], np.float64)
        is_open = np.array([span.is_open for span in spans])
        known, unknown = sizes[~is_open].sum(), sizes[is_open].sum()
        rest = min(max(use.tokens - known, 0), use.tokens * unknown / (known + unknown))
        planned = np.cumsum([0, *sizes])
        sizes[is_open] *= rest / max(unknown, 1)
        sizes[~is_open] *= (use.tokens - rest) / max(known, 1)
        ends = np.interp(ends, planned, [0, *np.cumsum(sizes)[:-1], use.tokens])
    before = [0, *(part.run.end for part in path if part.run is not None and part.run.end is not None)]
    last = len(before) - 1
    scale = 1.0
    if use.goes_as_planned and ends[last] < use.tokens:
        scale = (use.tokens - before[last]) / (use.tokens - ends[last])
    ends = np.concatenate([before, before[last] + (ends[last + 1 :] - ends[last]) * scale])
    ends = np.minimum(np.maximum.accumulate(ends), use.tokens)
    reached = ends.size - 1 if use.goes_as_planned else max(1, int((ends[:-1] < use.tokens).sum()))
    return np.array([*ends[:reached], use.tokens])


def _key(tokens: Tokens) -> bytes:
    """Return bytes that sort as the tokens do."""
    return (tokens.astype(np.int64) + 2**31).astype(">u4").tobytes()


def _radix_tree(batch: Batch) -> tuple[_Part, list[_Part], list[tuple[bytes, _Part]]]:
    """Return the tree, and for each request the parts at which its prompt ends, and what it leaves in the cache.

    These parts come once more, sorted by the keys of their sequences.
    """
    sequences: list[Tokens] = []
    for request in batch.requests:
        sequences += [request.tokens, np.concatenate([request.tokens, request.generated[:-1]])]
    sorts = [_key(each) for each in sequences]
    order = sorted(range(len(sequences)), key=sorts.__getitem__)
    root = _Part(None, 0, 0)
    ends = [root] * len(sequences)
    path = [root]
    before: Tokens | None = None
    for index in order:
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
    return root, ends, [(sorts[index], ends[index]) for index in order]


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
        evicted=sum(part.evicted for part in parts),
        generated=sum(part.length for part in parts if part.is_answer),
        ends=dict(calls),
        folded=len(parts) - 1,
        measured=_measured(parts),
    )


def _measured(parts: Sequence[_Part]) -> MeasuredPart | None:
    runs = [part.run for part in parts if part.run is not None]
    if not runs:
        return None
    return MeasuredPart(
        computed=sum(run.computed for run in runs),
        cached=sum(run.cached for run in runs),
        recomputed=sum(run.recomputed for run in runs),
    )


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
