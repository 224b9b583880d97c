"""The order in which the instances of a batch run, and in blocks of how many: its layout."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile, zip_longest
from statistics import mean
from typing import Any

from lmc.backend.plan import Plan
from lmc.backend.schedule.fingerprints import Origin
from lmc.backend.schedule.input_text import KnownText
from lmc.backend.schedule.live_tokens import LiveTokensModel
from lmc.backend.schedule.request_model import Known, Piece, RequestModel, Unknown, known_beginnings, stages_of
from lmc.backend.schedule.trace_requests import (
    CHARACTERS,
    Length,
    characters_of_a_token,
    piece_size,
    prompts_of,
    requests_of,
    tokens_of,
)
from lmc.cache.batch_order.live import LiveTokens
from lmc.cache.batch_order.mixing import InstanceWork, mixed
from lmc.cache.batch_order.ranks import InstanceOrder, Layout, most_shared_first
from lmc.cache.simulation.layouts import affordable, choose_layout, middle, roomy_block
from lmc.cache.simulation.report import REFERENCE, Report
from lmc.cache.simulation.simulator import coarse_trial
from lmc.cache.trace import TraceRequest
from lmc.ir.core import Value
from lmc.ir.engine.protocol import Engine
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.tokens.tokens import common_length

_ONE_BY_ONE = Layout()
_MARGIN = 2
"""A prompt is taken to be too long beyond so many times the context: its tokens are estimated by its characters."""
_EVERY = 6
"""Tokens are counted in one of so many instances, of those that are tried."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the order. ``shared_characters`` leading characters of prompt text are those of the entry before.

    ``values`` are the texts that inputs say, in the order in which contexts take them: the characters of each, and how
    many of these are those of the entry before.
    """

    instance: int
    shared_characters: int
    values: tuple[Length, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order of a batch; it holds every instance once.

    ``stages`` are the requests of an instance. In blocks of ``layout.block`` instances those of one stage are served
    together; ``layout.order`` says how the order came about. ``origin`` is what it was made for, where that
    is known. A token has so many ``characters`` on average.
    """

    plan: str
    entries: tuple[Entry, ...]
    stages: tuple[RequestModel, ...] = ()
    layout: Layout = _ONE_BY_ONE
    origin: Origin | None = None
    characters: float = CHARACTERS

    @property
    def order(self) -> tuple[int, ...]:
        """The instances in the order in which they start."""
        return tuple(entry.instance for entry in self.entries)

    def requests(self) -> list[TraceRequest]:
        """Return estimated requests for the simulator, with the shared texts of the batch."""
        lengths = [(entry.instance, entry.values) for entry in self.entries]
        return requests_of(self.stages, lengths, characters=self.characters)

    def waiting(self, room: Room, page: int) -> list[LiveTokens] | None:
        """Return the tokens of entries in a pool with pages of ``page`` tokens, if they should wait for room in it.

        Instances that wait compute nothing twice. Those that don't are more at a time, so that a step of decoding
        serves more of them. None: that takes less time. Requests count as in ``stages``: those of a loop once.
        """
        model = LiveTokensModel(self.stages, page)
        live = self.live_tokens(model)
        if not live:
            return None
        most, mean_live = (
            max(mean(tokens), 1) for tokens in zip(*((each.new, each.mean) for each in live), strict=True)
        )
        waiting = min(max(room.kv_tokens // most, 1), room.batch)
        others = min(max(room.kv_tokens / mean_live, 1), room.batch)
        saved = mean([each.again for each in live]) * REFERENCE.row
        lost = model.steps * (1 / waiting - 1 / others) * REFERENCE.step
        return live if saved > lost else None

    def live_tokens(self, model: LiveTokensModel) -> list[LiveTokens]:
        """Return the tokens of each entry in a pool, in order."""
        return [self._live_tokens(model, entry, is_first=not place) for place, entry in enumerate(self.entries)]

    def _live_tokens(self, model: LiveTokensModel, entry: Entry, *, is_first: bool) -> LiveTokens:
        def size(piece: Piece) -> int:
            return piece_size(piece, self.stages, entry.values, self.characters)

        def shared(piece: Known) -> int:
            length, same = entry.values[piece.number] if piece.number < len(entry.values) else (0, 0)
            return size(piece) if same == length else int(same / self.characters)

        return model.of(size, None if is_first else shared)


@dataclass(frozen=True, slots=True)
class Room:
    """The capacity of an engine: tokens of its KV pool, concurrent requests, and prompt tokens computed in a step.

    No prompt is longer than ``context_length`` tokens, or than the pool (None: the pool is the only bound).
    ``tokens_of`` counts the tokens of a text; without it there are ``CHARACTERS`` characters to a token.
    """

    kv_tokens: int
    batch: int = 256
    prefill_tokens: int = 512
    context_length: int | None = None
    tokens_of: Callable[[str], int] | None = field(default=None, compare=False)

    @property
    def longest_prompt(self) -> int:
        """Tokens that a prompt may have."""
        return self.kv_tokens if self.context_length is None else min(self.kv_tokens, self.context_length)

    @classmethod
    def of(cls, engine: Engine, requests: int) -> Room | None:
        """Return the room of an engine for up to ``requests`` at once; None if the size of its pool is unknown."""
        info = engine.info
        if info.kv_tokens is None:
            return None
        batch = requests if info.max_running is None else min(requests, info.max_running)
        return cls(info.kv_tokens, batch, context_length=info.context_length).counted_by(engine.tokenizer)

    def counted_by(self, tokenizer: Tokenizer) -> Room:
        """The same for texts that ``tokenizer`` cuts."""
        return replace(self, tokens_of=lambda text: len(tokenizer.encode(text)))


def schedule_batch(
    plan: Plan, inputs: Sequence[Mapping[str, Any]], room: Room | None = None, layout: Layout | None = None
) -> Schedule:
    """Put instances that share long prefixes side by side. ``inputs`` holds each instance's values by parameter name.

    The text known before the run (literals, inputs, and what is computed from those alone) is compared exactly, first
    that of the request by which the batch shares most, else in the order in which the plan appends it to contexts; what
    comes after a model's answer plays no part. Of loops it is the first round, of maps the first element, of conditions
    both arms. Time is that of sorting the texts. An instance whose inputs don't fit comes first and fails when it runs,
    and so does one whose prompts are much longer than the engine's context: its texts take no part in the schedule.

    The ``layout`` is what was chosen for an earlier part of the batch. Without one it is tried out for the ``room``
    there is, on a part of the instances (``lmc.cache.simulation.layouts``): the size of blocks where the batch could
    not stay in the KV pool as a whole, and whether to mix instances that read much and instances that read little where
    these stand apart. Without room either, instances go one by one, in the order of the tree. Outputs are taken to be
    as long as the plan expects (``expected_tokens``, from a profile), else as ``max_tokens`` suggests; then a size of
    blocks has to do for answers that are as long as they may be, too.
    """
    batch = _Batch(plan, inputs, room)
    order = batch.by_text()
    entries = batch.entries(order)
    if layout is None:
        layout = _ONE_BY_ONE if room is None else batch.layout(order, entries, room)
    places = mixed(batch.work(entries)) if layout.order is InstanceOrder.MIXED else None
    if places is not None:
        entries = batch.entries([order[place] for place in places])
    return Schedule(plan.name, tuple(entries), batch.stages, layout, characters=batch.characters)


class _Batch:
    """The instances of a batch by what is known of their texts."""

    def __init__(self, plan: Plan, inputs: Sequence[Mapping[str, Any]], room: Room | None) -> None:
        self._reader = KnownText.of(plan)
        self._texts: list[tuple[str, ...]] = [self._reader.read(values) for values in inputs]
        self.stages = stages_of(plan, _numbers(self._reader))
        self.characters = self._characters_of_a_token(room)
        if room is not None:
            self._leave_out_longer_than(room.longest_prompt)
        shareable = self._reader.shareable
        beginnings = [
            tuple(takewhile(lambda number: number < shareable, each)) for each in known_beginnings(self.stages)
        ]
        places = _most_shared_first(beginnings, self._texts)
        if places is not None:
            self._reader = self._reader.reordered(places)
            self._texts = [_picked(texts, places) for texts in self._texts]
            self.stages = stages_of(plan, _numbers(self._reader))
        self._longest = stages_of(plan, _numbers(self._reader), longest=True)
        self._beginnings, self._later = _uses(self.stages)

    def by_text(self) -> list[int]:
        """Instances in the order of the tree of their texts."""
        shareable = self._reader.shareable
        return sorted(range(len(self._texts)), key=lambda index: (self._texts[index][:shareable], index))

    def entries(self, order: Sequence[int]) -> list[Entry]:
        """Instances in an order, each with what it shares with the one before."""
        found: list[Entry] = []
        before: tuple[str, ...] = ()
        for position, index in enumerate(order):
            texts = self._texts[index]
            shared = self._reader.shared(before, texts) if position else 0
            found.append(Entry(index, shared, tuple(_lengths(before, texts))))
            before = texts
        return found

    def work(self, entries: Sequence[Entry]) -> list[InstanceWork]:
        """Return the work of each instance beyond those before it, in characters, without the part common to all."""
        decode = round(self.characters * sum(stage.output for stage in self.stages))
        start = next((place for place, entry in enumerate(entries) if entry.values), None)
        if start is None:
            return [InstanceWork(0, decode, 0, 0)] * len(entries)
        lengths = common = [length for length, _ in entries[start].values]
        for entry in entries[start + 1 :]:
            common = [min(least, same) for least, (_, same) in zip(common, entry.values, strict=False)]
        first = replace(entries[start], values=tuple(zip_longest(lengths, common, fillvalue=0)))
        found: list[InstanceWork] = []
        for entry in (*entries[:start], first, *entries[start + 1 :]):
            length, shared = (sum(column) for column in zip((0, 0), *entry.values, strict=True))
            found.append(InstanceWork(self._new_characters(entry), decode, length, shared))
        return found

    def layout(self, order: Sequence[int], entries: Sequence[Entry], room: Room) -> Layout:
        """Return the best layout for a part of the batch, by simulation."""
        if len(entries) < 2:
            return _ONE_BY_ONE
        all_fit = self._tokens(entries) <= room.kv_tokens
        places = mixed(self.work(entries))
        if places is None and (all_fit or len(self.stages) < 2):
            return _ONE_BY_ONE if len(self.stages) < 2 else Layout(block=roomy_block(len(entries), room.batch))
        chosen = range(len(entries)) if places is None else places
        sizes = [
            tokens_of(self.stages, entries[place].values, self.characters) for place in chosen[middle(len(chosen))]
        ]
        tried = chosen[middle(len(chosen))][affordable(sizes)]
        sample = self.entries([order[place] for place in sorted(tried)])

        def trial(requests: Sequence[TraceRequest], layout: Layout, scale: int) -> Report:
            return coarse_trial(
                requests,
                kv_tokens=room.kv_tokens,
                batch=room.batch,
                prefill_tokens=room.prefill_tokens,
                layout=layout,
                scale=scale,
            )

        lengths = [(entry.instance, entry.values) for entry in sample]
        requests = requests_of(self.stages, lengths, characters=self.characters)
        longest = None
        if self._longest != self.stages:
            longest = requests_of(self._longest, lengths, characters=self.characters)
        return choose_layout(requests, trial, batch=room.batch, all_fit=all_fit, longest=longest)

    def _characters_of_a_token(self, room: Room | None) -> float:
        """Estimate by the engine's tokenizer on some inputs; without text in them, on the program's own."""
        if room is None or room.tokens_of is None:
            return CHARACTERS
        some = self._texts[middle(len(self._texts))][::_EVERY]
        literals = (piece for stage in self.stages for piece in stage.pieces if isinstance(piece, str))
        return characters_of_a_token([*chain(*some)] or [*literals], room.tokens_of)

    def _leave_out_longer_than(self, most: int) -> None:
        """Drop the texts of instances with a prompt of more than ``most`` tokens, with a margin for the estimate."""
        bound = _MARGIN * most
        for index, texts in enumerate(self._texts):
            if sum(map(len, texts)) > bound * self.characters:
                lengths = [(len(text), 0) for text in texts]
                if max(prompts_of(self.stages, lengths, self.characters), default=0) > bound:
                    self._texts[index] = ()

    def _tokens(self, entries: Sequence[Entry]) -> int:
        """Tokens that the requests of the batch leave in the cache at most, all of them together."""
        fixed = sum(stage.answer for stage in self._longest)
        characters = 0
        for piece in (piece for stage in self._longest for piece in stage.pieces):
            if isinstance(piece, str):
                characters += len(piece)
            elif isinstance(piece, Unknown):
                fixed += piece.tokens
            elif not isinstance(piece, Known):
                fixed += self._longest[piece.stage].answer
        characters = len(entries) * characters + sum(map(self._new_characters, entries))
        return len(entries) * fixed + math.ceil(characters / self.characters)

    def _new_characters(self, entry: Entry) -> int:
        """Characters of its values that the entry before does not have, as often as prompts hold them.

        Behind an answer nothing is what the entry before has.
        """
        return sum(
            self._beginnings[number] * (length - shared) + self._later[number] * length
            for number, (length, shared) in enumerate(entry.values)
        )


def _uses(stages: Sequence[RequestModel]) -> tuple[Counter[int], Counter[int]]:
    """Count the uses of each value in prompts, by its number: in the known beginnings, and behind them."""
    beginnings, later = Counter[int](), Counter[int]()
    known = known_beginnings(stages)
    for stage, beginning in zip(stages, known, strict=True):
        numbers = [piece.number for piece in stage.pieces if isinstance(piece, Known)]
        own = len(beginning) - (0 if stage.base is None else len(known[stage.base]))
        beginnings.update(numbers[:own])
        later.update(numbers[own:])
    return beginnings, later


def _numbers(reader: KnownText) -> dict[Value, int]:
    """The number of each value that inputs say, by its first place among the pieces."""
    numbers: dict[Value, int] = {}
    for number, value in enumerate(piece for piece in reader.pieces if isinstance(piece, Value)):
        numbers.setdefault(value, number)
    return numbers


def _most_shared_first(beginnings: Iterable[tuple[int, ...]], texts: Sequence[Sequence[str]]) -> list[int] | None:
    """Numbers of values in the order in which a batch is best sorted by them; None where that is theirs.

    ``beginnings`` are the values that requests begin with.
    """
    columns = list(dict.fromkeys(filter(None, beginnings)))
    columns = [one for one in columns if not any(one != each and one == each[: len(one)] for each in columns)]
    if len(columns) < 2:
        return None
    same: dict[str, str] = {}  # equal texts are compared at once where they are one object
    rows = [tuple(same.setdefault(text, text) for text in each) for each in texts]
    keys = [[_picked(row, column) for row in rows] for column in columns]
    order = [columns[number] for number in most_shared_first(keys, _shared_characters)]
    numbers = list(dict.fromkeys([*chain(*order), *range(max(map(len, rows), default=0))]))
    return None if numbers == sorted(numbers) else numbers


def _picked(texts: Sequence[str], numbers: Sequence[int]) -> tuple[str, ...]:
    """Texts by their numbers, up to the first that is not there."""
    return tuple(texts[number] for number in takewhile(lambda number: number < len(texts), numbers))


def _shared_characters(left: Sequence[str], right: Sequence[str]) -> int:
    shared = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            return shared + common_length(a, b)
        shared += len(a)
    return shared


def _lengths(before: Sequence[str], texts: Sequence[str]) -> list[Length]:
    return [
        (len(text), common_length(before[number], text) if number < len(before) else 0)
        for number, text in enumerate(texts)
    ]
