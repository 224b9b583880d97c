"""A compiled program as a tree for terminals: contexts, shared prefixes, waves, savings, breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lmc.ir.wording import with_count
from lmc.report.forms.graph import tokens_text
from lmc.report.model import CallCost, CompiledView, OpNode, Prefix, SourceLine
from lmc.report.replay import State, state_at
from lmc.report.text import one_line

WIDTH = 110
MAX_LINES = 2_000
_MAX_DEPTH = 24
"""Levels that are indented; deeper ones stand below each other."""
_MARKS = {"call": "●", "prefix": "◆", "tool": "⚙", "break": "✖", "control": "▸", "folded": "…"}
_HIDDEN = frozenset({"python", "hint", "end"})


def tree(view: CompiledView) -> str:
    """Return the program as lines; those of ops have at most 110 characters."""
    state = state_at(view, -1)
    ops = (one_line(line, WIDTH) for line in _Contexts(view, state).lines())
    lines = [*_head(view), "", *ops, "", *_waves(view, state), *_savings(view)]
    lines += [line for entry in view.breaks for line in _break(view, entry.place, entry.cause, entry.remedy)]
    lines += [f"hint: {_at(view, entry.place)}{entry.message}" for entry in view.hints]
    lines += [f"note: {notice}" for notice in view.notices]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _head(view: CompiledView) -> Iterator[str]:
    program = view.program
    parameters = ", ".join(f"{name}: {kind}" for name, kind in program.parameters.items())
    target = "" if program.target is None else f", {program.target} -{program.level}"
    yield f"{program.name}({parameters}){target}"
    figures = [f"{with_count(program.model_calls, 'model call')} in {with_count(program.waves, 'wave')}"]
    if program.critical_calls is not None:
        figures.append(f"{with_count(program.critical_calls, 'call')} on the critical path (*)")
    yield ", ".join([*figures, with_count(program.ops, "op")])


@dataclass(slots=True)
class _Entry:
    """A node or a fan-out of equal nodes.

    ``inside`` is what an op with regions holds, ``beside`` are tools called with what it gives, ``below`` continues it.
    """

    node: OpNode
    count: int = 1
    inside: list[_Entry] = field(default_factory=list["_Entry"])
    beside: list[_Entry] = field(default_factory=list["_Entry"])
    below: list[_Entry] = field(default_factory=list["_Entry"])

    @property
    def is_empty(self) -> bool:
        """Return True for an op with regions in which there is nothing to show."""
        return self.node.kind == "control" and not (self.inside or self.beside or self.below)


class _Contexts:
    """The ops as a tree: an op is below the one whose context it continues.

    If that one is in a block further out, the op is inside the op that holds it, and this one below the other.
    """

    def __init__(self, view: CompiledView, state: State) -> None:
        self._calls = {call.key: call for call in view.calls}
        self._prefixes = {prefix.key: prefix for prefix in view.prefixes}
        self._nodes = state.nodes
        self._first_of = {key: fan[0] for fan in state.fans for key in fan}
        self._above: dict[str, str] = {}
        for node in state.nodes.values():
            for each in node.inputs:
                if each.kind == "context":
                    self._continue(node, state.nodes[each.key])
                    break
        self._roots = self._entries()

    def _continue(self, node: OpNode, before: OpNode) -> None:
        """Put ``node``, or the op around it that is in the block of ``before``, below ``before``."""
        while node.parent != before.parent:
            if node.parent is None:  # ``before`` is in another region
                return
            node = self._nodes[node.parent]
        self._above.setdefault(node.key, before.key)

    def _entries(self) -> list[_Entry]:
        entries: dict[str, _Entry] = {}
        homes: list[tuple[_Entry, list[_Entry]]] = []
        roots: list[_Entry] = []
        for key, node in self._nodes.items():
            first = self._first_of.get(key, key)
            if node.kind in _HIDDEN:
                continue
            if first in entries:
                entries[key] = entries[first]
                entries[key].count += 1
                continue
            entry = entries[key] = _Entry(node)
            above = entries.get(self._above.get(key, ""))
            around = None if node.parent is None else entries.get(node.parent)
            given = None if above is not None or node.kind != "tool" else self._given(node, entries)
            if above is not None:
                home = above.below
            elif given is not None:
                home = given.beside
            else:
                home = roots if around is None else around.inside
            homes.append((entry, home))
            home.append(entry)
        for entry, home in reversed(homes):
            if entry.is_empty:
                home.remove(entry)
        return roots

    def _given(self, node: OpNode, entries: Mapping[str, _Entry]) -> _Entry | None:
        """The op of the same block whose result a tool is given, directly or by way of Python values."""
        seen: set[str] = set()
        waiting = [each.key for each in node.inputs if each.kind == "value"]
        while waiting:
            key = waiting.pop()
            found = self._nodes[key]
            if key in seen or found.parent != node.parent:
                continue
            seen.add(key)
            if key in entries and found.kind != "tool":
                return entries[key]
            waiting += [each.key for each in found.inputs if each.kind == "value"]
        return None

    def lines(self) -> Iterator[str]:
        """Yield the lines; the only continuation of an op stands right below it, others are indented."""
        stack: list[tuple[_Entry, str, str]] = [(root, "", "") for root in reversed(self._roots)]
        count = 0
        while stack:
            if count == MAX_LINES:
                yield f"… {MAX_LINES:,} lines are shown"
                return
            entry, first, rest = stack.pop()
            count += 1
            yield f"{self._line_number(entry.node):>6}  {first}{self._text(entry)}"
            is_chain = len(entry.below) == 1
            branches = [*entry.inside, *entry.beside, *([] if is_chain else entry.below)]
            if is_chain:
                stack.append((entry.below[0], rest, rest))
            deep = len(rest) >= 3 * _MAX_DEPTH
            for number, each in reversed(list(enumerate(branches))):
                is_last = number == len(branches) - 1 and not is_chain
                branch, bar = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
                stack.append((each, rest, rest) if deep else (each, rest + branch, rest + bar))

    def _line_number(self, node: OpNode) -> str:
        return "" if node.place is None else str(node.place.line)

    def _text(self, entry: _Entry) -> str:
        node = entry.node
        mark = _MARKS.get(node.kind)
        text = f"{mark} {node.label}" if mark else node.label
        text = f"else: {text}" if node.region == "otherwise" and node.key not in self._above else text
        text += f" × {entry.count}" if entry.count > 1 else ""
        call, prefix = self._calls.get(node.key), self._prefixes.get(node.key)
        if call is not None:
            text += _call(call)
        if prefix is not None:
            text += _prefix(prefix)
        return text


def _call(call: CallCost) -> str:
    output = f", at most {call.output:,} out" if call.output else f", {with_count(call.choices, 'choice')}"
    critical = " *" if call.critical else ""
    constraint = "" if call.constraint is None else f", @{call.constraint}"
    measured = "" if call.measured is None else f", measured {call.measured.output:,} out"
    return f"{critical}  wave {call.wave}, about {tokens_text(call.prompt)} in{output}{constraint}{measured}"


def _prefix(prefix: Prefix) -> str:
    users = f", for {with_count(len(prefix.calls), 'call')}" if prefix.calls else ""
    return f": about {tokens_text(prefix.tokens)}{users}"


def _waves(view: CompiledView, state: State) -> Iterator[str]:
    fan_of = {key: fan[0] for fan in state.fans for key in fan}
    waves: dict[int, dict[str, list[CallCost]]] = {}
    for call in view.calls:
        waves.setdefault(call.wave, {}).setdefault(fan_of.get(call.key, call.key), []).append(call)
    for number in sorted(waves):
        found = [
            calls[0].id if len(calls) == 1 else f"{calls[0].id} × {len(calls)}" for calls in waves[number].values()
        ]
        yield f"wave {number}: {', '.join(found)}"


def _savings(view: CompiledView) -> Iterator[str]:
    program = view.program
    saved = [
        with_count(amount, unit)
        for amount, unit in (
            (program.saved_tokens, "token"),
            (program.saved_calls, "call"),
            (program.saved_steps, "step"),
        )
        if amount
    ]
    if saved or not view.comparison:
        yield f"saved: {', '.join(saved) or 'nothing'}"
    for remark in view.remarks:
        if remark.saved_tokens or remark.saved_calls or remark.saved_steps:
            yield f"  {remark.text}"


def _break(view: CompiledView, place: SourceLine | None, cause: str, remedy: str) -> Sequence[str]:
    return [f"break: {_at(view, place)}{cause}", f"  remedy: {remedy}"]


def _at(view: CompiledView, place: SourceLine | None) -> str:
    return "" if place is None else f"{view.sources[place.source].file}:{place.line}: "
