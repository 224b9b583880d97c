"""The model calls of the final module: tokens, waves, critical path; the cost of a line; shared prefixes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lmc.backend.plan import Plan
from lmc.ir.analysis.dependences import CriticalPath, critical_path
from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import PrefillOp, SampleOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.profile import OpProfile
from lmc.ir.types import CTX
from lmc.report.analysis.nodes import Placed, SourceFiles, kind_of
from lmc.report.given import Batch, Given, Length
from lmc.report.model import CallCost, LineCost, MeasuredCost, PlannedCost, Prefix, SourceLine, TokenCount
from lmc.report.text import visible

Call = TypeVar("Call", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Costs:
    """The calls in program order with their places, and the keys of the critical path."""

    calls: list[CallCost]
    places: list[SourceLine | None]
    path: tuple[str, ...]
    critical_calls: int

    @property
    def lines(self) -> list[LineCost]:
        """The calls by lines, in the order of lines."""
        at: dict[SourceLine, list[CallCost]] = {}
        for call, place in zip(self.calls, self.places, strict=True):
            if place is not None:
                at.setdefault(place, []).append(call)
        found = sorted(at.items(), key=lambda entry: (entry[0].source, entry[0].line))
        return [_line(place, calls) for place, calls in found]


def is_call(op: Op) -> bool:
    """Return True for an op that a model answers."""
    return isinstance(op, SamplingOp | SelectOp) and op.billable


def costs_of(given: Given, ops: Sequence[Placed], sources: SourceFiles) -> Costs:
    """Return the costs of the final module, whose ops are ``ops``."""
    waves = call_waves(given.plan, [each.op for each in ops])
    body = given.steps[-1].module.main.body
    more = len(ops) + 1  # than ops that a path can have: of equal paths the one with more tools, then with more ops

    def weight(op: Op) -> int:
        kind = kind_of(op)
        return more * more if is_call(op) else more if kind == "tool" else int(kind != "hint")

    path: CriticalPath = critical_path(body, weight)
    critical = set(path.ops)
    planned = {} if given.batch is None else planned_of(given.batch, given.batch.ops)
    calls: list[CallCost] = []
    places: list[SourceLine | None] = []
    for each in ops:
        op = each.op
        if not (isinstance(op, SamplingOp | SelectOp) and op.billable):
            continue
        whole, covered = given.lengths[op]
        measured = given.measured.get(op)
        calls.append(
            CallCost(
                key=each.key,
                id=visible(op.id),
                wave=waves[op],
                prompt=tokens(whole),
                prefilled=tokens(covered),
                output=_most_output(op),
                choices=len(op.choices) if isinstance(op, SelectOp) else 0,
                constraint=op.constraint if isinstance(op, SamplingOp) else None,
                critical=op in critical,
                planned=planned.get(op, PlannedCost()) if given.batch is not None else None,
                measured=None if measured is None else measured_cost(measured, given.medians.get(op)),
            )
        )
        places.append(sources.place(op.location))
    keys = {each.op: each.key for each in ops}
    return Costs(calls, places, tuple(keys[op] for op in path.ops), int(path.cost) // more**2)


def tokens(length: Length) -> TokenCount:
    """Return a length as data."""
    return TokenCount(known=length[0], texts=length[1])


def call_waves(plan: Plan, ops: Sequence[Op]) -> dict[Op, int]:
    """Return the wave of each op, counted from the start of the program, as if each region ran once.

    ``ops`` are those of the plan in the module that it was lowered from, outer before inner.
    """
    return dict(zip(ops, plan.op_waves().values(), strict=True))


def planned_of(batch: Batch, calls: Sequence[Call]) -> dict[Call, PlannedCost]:
    """Return the requests of each call in sum; ``calls`` are those that make the requests of a row."""
    prompts: dict[Call, list[tuple[int, int, int]]] = {}
    for request, served in zip(batch.requests, batch.report.served, strict=True):
        entry = (request.tokens.size, served.cached, request.generated.size)
        prompts.setdefault(calls[number_of(request.id)], []).append(entry)
    return {
        call: PlannedCost(
            requests=len(entries),
            prompt=sum(prompt for prompt, _, _ in entries),
            cached=sum(cached for _, cached, _ in entries),
            output=sum(output for _, _, output in entries),
            longest_prompt=max(prompt for prompt, _, _ in entries),
        )
        for call, entries in prompts.items()
    }


def number_of(request_id: str | int) -> int:
    """Return the number of a request among those of its row."""
    return int(str(request_id).rpartition("/")[2])


def prefixes_of(ops: Sequence[Placed], lengths: Mapping[Op, tuple[Length, Length]]) -> list[Prefix]:
    """Return the prefixes that are computed once, each with the calls whose nearest one it is."""
    nearest: dict[Value, str] = {}
    users: dict[str, list[str]] = {}
    found: list[tuple[Placed, PrefillOp, str | None]] = []
    for each in ops:
        op = each.op
        if isinstance(op, RegionOp):
            flows = [(source, place) for source, place in op.flows() if source in nearest]
            nearest.update((place, nearest[source]) for source, place in flows)
            continue
        before = next((nearest[value] for value in op.operands if value.type == CTX and value in nearest), None)
        if isinstance(op, PrefillOp):
            found.append((each, op, before))
            users[each.key] = []
            before = each.key
        elif before is not None and is_call(op):
            users[before].append(each.key)
        if before is not None:
            nearest.update((value, before) for value in op.results if value.type == CTX)
    return [
        Prefix(
            key=each.key,
            scope="batch" if op.scope == "batch" else "instance",
            tokens=_without(*lengths[op]),
            whole=tokens(lengths[op][0]),
            outer=outer,
            calls=tuple(users[each.key]),
        )
        for each, op, outer in found
    ]


def _without(whole: Length, covered: Length) -> TokenCount:
    return TokenCount(known=whole[0] - covered[0], texts=whole[1] - covered[1])


def _most_output(op: SamplingOp | SelectOp) -> int:
    if isinstance(op, SelectOp):
        return 0
    return op.max_tokens * (op.n if isinstance(op, SampleOp) else 1)


def measured_cost(entry: OpProfile, median: float | None) -> MeasuredCost:
    """Return a profile as data; ``median`` is that of the seconds of a request, if it is known."""
    usage = entry.usage
    return MeasuredCost(
        requests=usage.calls,
        prompt=usage.prompt_tokens,
        cached=usage.cached_tokens,
        output=usage.generated_tokens,
        seconds=entry.seconds,
        p50=entry.length_quantile(0.5),
        p50_seconds=median,
        longest=entry.longest,
    )


def _line(place: SourceLine, calls: Sequence[CallCost]) -> LineCost:
    planned = [call.planned for call in calls if call.planned is not None]
    measured = [call.measured for call in calls if call.measured is not None]
    return LineCost(
        place=place,
        calls=sum(call.ops for call in calls),
        prompt=total_tokens(call.prompt for call in calls),
        output=sum(call.output for call in calls),
        planned=total_planned(planned) if planned else None,
        measured=total_measured(measured) if measured else None,
    )


def total_tokens(lengths: Iterable[TokenCount]) -> TokenCount:
    """Return the sum of lengths."""
    all_of = list(lengths)
    return TokenCount(known=sum(each.known for each in all_of), texts=sum(each.texts for each in all_of))


def total_planned(entries: Iterable[PlannedCost]) -> PlannedCost:
    """Return the sum of requests."""
    all_of = list(entries)
    return PlannedCost(
        requests=sum(each.requests for each in all_of),
        prompt=sum(each.prompt for each in all_of),
        cached=sum(each.cached for each in all_of),
        output=sum(each.output for each in all_of),
        longest_prompt=max((each.longest_prompt for each in all_of), default=0),
        dollars=_total_dollars(all_of),
    )


def total_measured(entries: Iterable[MeasuredCost]) -> MeasuredCost:
    """Return the sum of measurements, which has no median."""
    all_of = list(entries)
    return MeasuredCost(
        requests=sum(each.requests for each in all_of),
        prompt=sum(each.prompt for each in all_of),
        cached=sum(each.cached for each in all_of),
        output=sum(each.output for each in all_of),
        seconds=sum(each.seconds for each in all_of),
        longest=max((each.longest for each in all_of), default=0),
        dollars=_total_dollars(all_of),
    )


def _total_dollars(entries: Iterable[PlannedCost | MeasuredCost]) -> float | None:
    """Return the sum of the prices that are known; None where none is."""
    known = [each.dollars for each in entries if each.dollars is not None]
    return sum(known) if known else None
