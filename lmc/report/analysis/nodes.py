"""Ops as nodes: kind, label, line, inputs. A key names the same op in every stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.analysis.ordering import Objects, objects_of, waits_of
from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.core_ops import (
    AssumeOp,
    BeginOp,
    BreakOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    HostCallOp,
    LocalCallOp,
    MessagesOp,
    PrefillOp,
    PyCallOp,
    ReturnOp,
    SampleOp,
    SamplingOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.dialects.region_ops import CondOp, LoopOp, MapOp, RaceOp, TryOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.errors import Location
from lmc.ir.module import Module
from lmc.ir.printer import print_op
from lmc.ir.types import holds_context
from lmc.report.model import Input, InputKind, Kind, OpNode, SourceLine
from lmc.report.text import one_line, shortened, visible

MAX_LABEL = 64
MAX_TEXT = 2_000
_REGIONS: dict[type[Op], str] = {CondOp: "if", LoopOp: "loop", MapOp: "for each", RaceOp: "race", TryOp: "try"}
_KINDS: tuple[tuple[tuple[type[Op], ...], Kind], ...] = (
    ((RegionOp,), "control"),
    ((BreakOp,), "break"),
    ((SamplingOp, SelectOp), "call"),
    ((HostCallOp,), "tool"),
    ((PrefillOp,), "prefix"),
    ((KeepOp, FreeOp), "hint"),
    ((ContextOp, ExtendOp, SectionsOp, BeginOp, EndOp), "text"),
    ((PyCallOp, LocalCallOp, AssumeOp, ConcatOp, TranscriptOp, MessagesOp), "python"),
)
Shown = Callable[[Op], Op]
"""The op whose texts are shown for an op: itself, or one without texts."""


class SourceFiles:
    """The files of locations, numbered in the order in which they are asked for."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    def place(self, location: Location | None) -> SourceLine | None:
        """Return a location as a line."""
        if location is None:
            return None
        return SourceLine(source=self.files.setdefault(location.file, len(self.files)), line=location.line)

    def column(self, location: Location | None) -> SourceLine | None:
        """Return a location as a place in a line."""
        place = self.place(location)
        return place if place is None or location is None else place.model_copy(update={"column": location.column})


@dataclass(frozen=True, slots=True)
class Placed:
    """An op of a stage: its key, and the op and the region that hold it."""

    op: Op
    key: str
    parent: str | None
    region: str | None


class Keys:
    """Keys of ops: ``n0``, ``n1`` … in the order in which stages first have them.

    In a stage, an op gets the key of the op of earlier stages that it is: the same object, else one with the same id,
    else one with the same first result, else one without results that takes the same operands in the same block. Ids
    and names may repeat (arms of a condition); the order tells equal ones apart.
    """

    def __init__(self) -> None:
        self._ops: dict[Op, str] = {}
        self._names: dict[object, str] = {}
        self._count = 0

    def of(self, module: Module) -> list[Placed]:
        """Return the ops of the program's function, outer before inner, in order."""
        found = list(_walk(module.main.body))
        ops = [op for op, _, _ in found]
        keys: dict[int, str] = {}
        used: set[str] = set()

        def take(index: int, key: str | None) -> None:
            if key is not None and key not in used:
                keys[index] = key
                used.add(key)

        for index, op in enumerate(ops):
            take(index, self._ops.get(op))
        names: list[dict[str, object]] = [{} for _ in ops]
        repeats: dict[object, int] = {}
        for index, (op, parent, _) in enumerate(found):
            around = None if parent is None else ops[parent].NAME
            for rank, name in _names(op, around):
                number = repeats[name] = repeats.get(name, -1) + 1
                names[index][rank] = (name, number)
        for rank in ("id", "result", "operands"):
            for index in range(len(ops)):
                if index not in keys and rank in names[index]:
                    take(index, self._names.get(names[index][rank]))
        for index, op in enumerate(ops):
            if index not in keys:
                keys[index] = f"n{self._count}"
                self._count += 1
            self._ops[op] = keys[index]
            self._names.update((name, keys[index]) for name in names[index].values())
        return [
            Placed(op, keys[index], None if parent is None else keys[parent], region)
            for index, (op, parent, region) in enumerate(found)
        ]


def _names(op: Op, around: str | None) -> Iterator[tuple[str, object]]:
    """The names by which an op is found again, the surest first."""
    op_id = getattr(op, "id", None)
    if op_id is not None:
        yield "id", (op.NAME, op_id)
    if op.results:
        yield "result", (op.NAME, op.results[0].name)
    elif op_id is None:
        yield "operands", (op.NAME, around, tuple(value.name for value in op.operands))


def _walk(body: Block) -> Iterator[tuple[Op, int | None, str | None]]:
    """Every op with the place of the op that holds it, and the name of the region. Never recursive."""
    stack: list[Iterator[tuple[Op, int | None, str | None]]] = [_ops_of(body, None, None)]
    count = 0
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        yield step
        op = step[0]
        inner = reversed(list(zip(op.REGION_FIELDS, op.regions, strict=True)))
        stack += [_ops_of(block, count, field) for field, block in inner]
        count += 1


def _ops_of(block: Block, parent: int | None, region: str | None) -> Iterator[tuple[Op, int | None, str | None]]:
    return ((op, parent, region) for op in block.ops)


def nodes_of(module: Module, ops: Sequence[Placed], sources: SourceFiles, shown: Shown) -> list[OpNode]:
    """Return the nodes of a stage, in the order of ``ops``."""
    key_of = {each.op: each.key for each in ops}
    producers = {value: each.key for each in ops for value in each.op.results}
    orders = _orders(module.main.body, key_of)
    return [_node(each, producers, orders.get(each.key, ()), sources, shown) for each in ops]


def _node(
    each: Placed, producers: Mapping[Value, str], order: Iterable[str], sources: SourceFiles, shown: Shown
) -> OpNode:
    op = each.op
    inputs: dict[str, InputKind] = {}
    for value in op.operands:
        source = producers.get(value)
        if source is not None and inputs.get(source) != "context":
            inputs[source] = "context" if holds_context(value.type) else "value"
    for source in order:
        inputs.setdefault(source, "order")
    drawn = shown(op)
    op_id = getattr(drawn, "id", None)
    return OpNode(
        key=each.key,
        op=op.NAME,
        kind=kind_of(op),
        label=one_line(_label_of(drawn), MAX_LABEL),
        text=shortened(print_op(drawn), MAX_TEXT),
        id=None if op_id is None else visible(op_id),
        place=sources.column(op.location),
        parent=each.parent,
        region=each.region,
        inputs=tuple(Input(key=key, kind=kind) for key, kind in inputs.items()),
        wave=getattr(op, "wave", None),
        group=getattr(op, "group", None),
    )


def _orders(body: Block, key_of: Mapping[Op, str]) -> dict[str, list[str]]:
    """For each op the ops that it waits for because of effects alone."""
    found: dict[str, list[str]] = {}
    objects: Objects = objects_of(body.ops)
    blocks = [body]
    while blocks:
        block = blocks.pop()
        for op, needed in zip(block.ops, waits_of(block.ops, objects), strict=True):
            used = set(op.operands) if not isinstance(op, RegionOp) else {*op.operands, *op.free_values}
            before = [block.ops[index] for index in needed]
            only = [key_of[each] for each in before if used.isdisjoint(each.results)]
            if only:
                found[key_of[op]] = only
            blocks += op.regions
    return found


def fans_of(nodes: Sequence[OpNode]) -> list[tuple[str, ...]]:
    """Return the fan-outs: nodes of one call or statement that are the same op, in the same region, on equal inputs.

    Inputs are equal that are the same node, or in one fan-out. Two ops in a row are none, as one needs the other.
    """
    class_of: dict[str, int] = {}
    classes: dict[object, list[str]] = {}
    numbers: dict[object, int] = {}
    for node in nodes:
        used = tuple(sorted({(class_of.get(each.key, -1), each.kind) for each in node.inputs if each.kind != "order"}))
        is_alone = node.place is None or node.kind in ("end", "break", "control")
        own: object = (node.op, node.kind, node.place, node.parent, node.region, node.wave, used)
        shape = node.key if is_alone else own
        class_of[node.key] = numbers.setdefault(shape, len(numbers))
        classes.setdefault(shape, []).append(node.key)
    return [tuple(keys) for keys in classes.values() if len(keys) > 1]


def kind_of(op: Op) -> Kind:
    """Return the purpose of an op. A generation whose tokens are known is text."""
    if isinstance(op, SamplingOp) and not op.billable:
        return "text"
    if isinstance(op, HostCallOp) and op.host.startswith("py."):  # a function of lmc's own
        return "python"
    for classes, kind in _KINDS:
        if isinstance(op, classes):
            return kind
    return "end" if op.IS_TERMINATOR else "python"


def _label_of(op: Op) -> str:
    """Return an op in a few words."""
    if isinstance(op, SamplingOp):
        times = f" × {op.n}" if isinstance(op, SampleOp) and op.n > 1 else ""
        return f"gen {_name_of(op)}{times}"
    if isinstance(op, SelectOp):
        return f"select {_name_of(op)}"
    if isinstance(op, ExtendOp | SectionsOp):
        return f"{op.role}: {_parts(op.text)}" if op.role is not None else _parts(op.text)
    if isinstance(op, BeginOp):
        return f"begin {op.role}"
    if isinstance(op, HostCallOp):
        return f"{op.host}()"
    if isinstance(op, PyCallOp | LocalCallOp):
        return op.function
    if isinstance(op, PrefillOp):
        return "prefix of the batch" if op.scope == "batch" else "shared prefix"
    if isinstance(op, BreakOp):
        return f"break: {op.cause}"
    return next((name for kind, name in _REGIONS.items() if isinstance(op, kind)), None) or _PLAIN.get(
        type(op), op.NAME.partition(".")[2]
    )


_PLAIN: dict[type[Op], str] = {ContextOp: "new context", EndOp: "end of turn", ReturnOp: "return"}


def _name_of(op: Any) -> str:
    return op.name or op.id.rpartition("/")[2]


def _parts(text: Sequence[str | Value]) -> str:
    """Return a text with the names of its values, without what is beyond a label."""
    found = ""
    for part in text:
        found += part[: 2 * MAX_LABEL] if isinstance(part, str) else f"{{{_value_name(part)}}}"
        if len(found) > 2 * MAX_LABEL:
            break
    return found.strip() or found


def _value_name(value: Value) -> str:
    """Return the name that the program has for a value."""
    return "…" if value.name.isdigit() else value.name
