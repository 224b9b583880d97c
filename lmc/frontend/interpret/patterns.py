"""``match``: each pattern is tested in order; names are bound in the arm of the case that fits."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lmc.frontend.control.conditions import adopt, branch
from lmc.frontend.emit.known import concrete, decided, length_of
from lmc.frontend.emit.operands import class_of, describe, may_run_code, operand, pure
from lmc.frontend.heap.cells import DictCell, ObjectCell
from lmc.frontend.heap.values import FALSE, NONE, TRUE, UNBOUND, Abstract, Const, Symbol, Tuple, Union
from lmc.frontend.interpret import names
from lmc.frontend.python import attributes, items, iteration, operators
from lmc.frontend.python.functions import FUNCTIONS
from lmc.frontend.python.inspection import is_instance
from lmc.frontend.python.iterators import row
from lmc.frontend.python.methods import call_method
from lmc.ir.types import ANY, ListType, list_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Bindings = dict[str, Abstract]


def run_match(machine: Machine, node: ast.Match) -> None:
    """``match subject: case …``."""
    subject = machine.rules.evaluate(node.subject)

    def from_case(index: int) -> None:
        if index == len(node.cases):
            return
        case = node.cases[index]
        machine.at(case.pattern)
        bindings: Bindings = {}
        fits = matches(machine, case.pattern, subject, bindings)

        def bind() -> None:
            for name, value in bindings.items():
                names.store_name(machine, name, value)

        def guard() -> Abstract:
            bind()
            assert case.guard is not None
            return machine.rules.test(case.guard)

        def take() -> None:
            bind()
            machine.rules.execute(case.body)

        flag = decided(machine, fits)
        if case.guard is not None and isinstance(flag, Const):
            flag = decided(machine, guard()) if flag.value else flag
        elif case.guard is not None:
            assert isinstance(flag, Symbol)
            flag = machine.choose(flag, guard, lambda: FALSE)
        _either(machine, flag, take, lambda: from_case(index + 1))

    from_case(0)


def _either(machine: Machine, flag: Abstract, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    if isinstance(flag, Const):
        return then() if flag.value else otherwise()
    assert isinstance(flag, Symbol)
    adopt(machine, branch(machine, flag, then, otherwise))
    return None


def matches(machine: Machine, pattern: ast.pattern, subject: Abstract, bindings: Bindings) -> Abstract:
    """Return whether a pattern fits; what it binds is put into ``bindings``."""
    match pattern:
        case ast.MatchValue():
            return operators.truth(
                machine, operators.binary(machine, "eq", subject, machine.rules.evaluate(pattern.value))
            )
        case ast.MatchSingleton():
            return operators.identical(machine, subject, Const(pattern.value), negate=False)
        case ast.MatchAs():
            fits = TRUE if pattern.pattern is None else matches(machine, pattern.pattern, subject, bindings)
            if pattern.name is not None:
                bindings[pattern.name] = subject
            return fits
        case ast.MatchOr():
            return _any(machine, pattern, subject, bindings)
        case ast.MatchSequence():
            return _sequence(machine, pattern, subject, bindings)
        case ast.MatchMapping():
            return _mapping(machine, pattern, subject, bindings)
        case ast.MatchClass():
            return _class(machine, pattern, subject, bindings)
        case ast.MatchStar():
            if pattern.name is not None:
                bindings[pattern.name] = subject
            return TRUE
        case _:
            raise machine.unsupported(f"the pattern `{type(pattern).__name__}`")


def _any(machine: Machine, pattern: ast.MatchOr, subject: Abstract, bindings: Bindings) -> Abstract:
    """Alternatives, the first of which that fits binds the names; all of them bind the same ones."""
    bound = sorted({name for part in ast.walk(pattern) for name in _bound_by(part)})

    def further(index: int) -> Abstract:
        own: Bindings = {}
        flag = matches(machine, pattern.patterns[index], subject, own)
        if index + 1 < len(pattern.patterns):
            if isinstance(flag, Symbol):
                return machine.choose(flag, lambda: fitting(TRUE, own), lambda: further(index + 1))
            if isinstance(flag, Const) and not flag.value:
                return further(index + 1)
        return fitting(flag, own)

    def fitting(flag: Abstract, own: Bindings) -> Abstract:
        return Tuple((flag, *(own.get(name, UNBOUND) for name in bound)))

    return _bind_parts(further(0), bound, bindings)


def _bound_by(part: ast.AST) -> list[str]:
    """The name that a node of a pattern binds itself."""
    found = part.rest if isinstance(part, ast.MatchMapping) else None
    if isinstance(part, ast.MatchAs | ast.MatchStar):
        found = part.name
    return [] if found is None else [found]


def _bind_parts(found: Abstract, bound: Iterable[str], bindings: Bindings) -> Abstract:
    """Return the first part of ``found``: whether a pattern fits. The others are bound where it does."""
    assert isinstance(found, Tuple)
    fits, *values = found.items
    for name, value in zip(bound, values, strict=True):
        bindings[name] = value.first if isinstance(value, Union) and value.second is UNBOUND else value
    return fits


def _all(machine: Machine, tests: list[Callable[[], Abstract]], bindings: Bindings) -> Abstract:
    """Return whether all tests hold. What a later one binds is a value of the arm where the earlier ones hold."""

    def further(index: int) -> Abstract:
        if index == len(tests):
            return TRUE
        flag = tests[index]()
        if isinstance(flag, Const):
            return further(index + 1) if flag.value else flag
        if index + 1 == len(tests):
            return flag
        assert isinstance(flag, Symbol)
        bound: Bindings = {}

        def rest() -> Abstract:
            before = dict(bindings)
            fits = further(index + 1)
            bound.update((name, value) for name, value in bindings.items() if before.get(name) is not value)
            return Tuple((fits, *bound.values()))

        found = machine.choose(flag, rest, lambda: Tuple((FALSE, *[UNBOUND] * len(bound))))
        return _bind_parts(found, bound, bindings)

    return further(0)


def _sequence(machine: Machine, pattern: ast.MatchSequence, subject: Abstract, bindings: Bindings) -> Abstract:
    kind = class_of(machine, subject)
    if kind is not None and (not issubclass(kind, Sequence) or issubclass(kind, str | bytes | bytearray)):
        return Const(False)
    if kind is None and isinstance(subject, Symbol):
        checks = [
            lambda: decided(machine, is_instance(machine, subject, Const((list, tuple, range, deque)))),
            lambda: _items(machine, pattern, subject, bindings),
        ]
        return _all(machine, checks, bindings)
    return _items(machine, pattern, subject, bindings)


def _items(machine: Machine, pattern: ast.MatchSequence, subject: Abstract, bindings: Bindings) -> Abstract:
    """A sequence pattern for what is a sequence."""
    given = iteration.items_of(machine, subject)
    starred = next((i for i, part in enumerate(pattern.patterns) if isinstance(part, ast.MatchStar)), None)
    least = len(pattern.patterns) - (starred is not None)
    if isinstance(given, iteration.Counted) and not given.value.foreign:
        return _counted(machine, pattern, given.value, starred, bindings)
    if not isinstance(given, list):
        raise machine.unsupported(f"a sequence pattern for {describe(machine, subject)}")
    if len(given) < least or (starred is None and len(given) > least):
        return Const(False)
    parts: list[Abstract] = list(given)
    if starred is not None:
        end = len(given) - (len(pattern.patterns) - 1 - starred)
        rest = machine.lifted([])

        call_method(machine, rest, "extend", [Tuple(tuple(given[starred:end]))], {})
        parts = [*given[:starred], rest, *given[end:]]
    tests: list[Callable[[], Abstract]] = []
    for part, value in zip(pattern.patterns, parts, strict=True):
        tests.append(lambda part=part, value=value: matches(machine, part, value, bindings))
    return _all(machine, tests, bindings)


def _counted(
    machine: Machine, pattern: ast.MatchSequence, subject: Symbol, starred: int | None, bindings: Bindings
) -> Abstract:
    """A sequence pattern for items that only a run counts: its length is tested first."""
    count = len(pattern.patterns) - (starred is not None)
    length = length_of(machine, subject)

    def fits() -> Abstract:
        compared = operators.binary(machine, "eq" if starred is None else "ge", length, Const(count))
        return decided(machine, compared)

    def part_fits(index: int, part: ast.pattern) -> Abstract:
        behind = index - len(pattern.patterns)
        if starred == index:
            end = NONE if behind == -1 else Const(behind + 1)
            kind = subject.type if isinstance(subject.type, ListType) else list_of(ANY)
            value: Abstract = machine.list_of(pure(machine, "slice", (subject, Const(index), end, NONE), gives=kind))
        else:
            value = row(machine, subject, Const(behind if starred is not None and index > starred else index))
        return matches(machine, part, value, bindings)

    tests = [partial(part_fits, index, part) for index, part in enumerate(pattern.patterns)]
    return _all(machine, [fits, *tests], bindings)


def _mapping(machine: Machine, pattern: ast.MatchMapping, subject: Abstract, bindings: Bindings) -> Abstract:
    cell = machine.cell(subject)
    kind = class_of(machine, subject)
    is_open = isinstance(subject, Symbol) and (kind is None or kind is dict)
    if (is_open and not may_run_code(machine, "getitem", [operand(machine, subject)])) or isinstance(cell, ObjectCell):
        return _mapping_of_run(machine, pattern, subject, bindings)
    if not isinstance(cell, DictCell):
        if class_of(machine, subject) in (str, int, float, bool, list, tuple, type(None)):
            return Const(False)
        raise machine.unsupported(f"a mapping pattern for {describe(machine, subject)}")
    tests: list[Callable[[], Abstract]] = []
    taken: list[object] = []
    for key_node, part in zip(pattern.keys, pattern.patterns, strict=True):
        key = concrete(machine, machine.rules.evaluate(key_node))
        taken.append(key)
        if cell.index(key) is None:
            return Const(False)
        value = items.get_item(machine, subject, Const(key))
        tests.append(lambda part=part, value=value: matches(machine, part, value, bindings))
    if pattern.rest is not None:
        rest = machine.lifted({})
        for key, value in zip(cell.keys, cell.values, strict=True):
            if key not in taken:
                items.set_item(machine, rest, Const(key), value)
        bindings[pattern.rest] = rest
    return _all(machine, tests, bindings)


def _mapping_of_run(machine: Machine, pattern: ast.MatchMapping, subject: Abstract, bindings: Bindings) -> Abstract:
    """A mapping pattern for what may be a dict of the run: its keys are tested before values are looked at."""
    if pattern.rest is not None:
        raise machine.unsupported("`**` in a mapping pattern for what only a run knows")
    keys = [Const(concrete(machine, machine.rules.evaluate(node))) for node in pattern.keys]

    def part_fits(key: Const, part: ast.pattern) -> Abstract:
        return matches(machine, part, items.get_item(machine, subject, key), bindings)

    tests: list[Callable[[], Abstract]] = [lambda: decided(machine, is_instance(machine, subject, Const(Mapping)))]
    tests += [partial(operators.contains, machine, subject, key) for key in keys]
    tests += [partial(part_fits, *pair) for pair in zip(keys, pattern.patterns, strict=True)]
    return _all(machine, tests, bindings)


def _class(machine: Machine, pattern: ast.MatchClass, subject: Abstract, bindings: Bindings) -> Abstract:
    kind = machine.rules.evaluate(pattern.cls)
    if not isinstance(kind, Const) or not isinstance(kind.value, type):
        raise machine.unsupported("a class pattern of a class that only a run knows")
    held = kind.value
    flag = FUNCTIONS[isinstance](machine, subject, kind)
    tests: list[Callable[[], Abstract]] = [lambda: flag]
    own = held in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
    names_of_fields = getattr(held, "__match_args__", ())
    if len(pattern.patterns) > (1 if own else len(names_of_fields)):
        raise machine.unsupported("a class pattern with more parts than the class names")
    for index, part in enumerate(pattern.patterns):
        if own:
            tests.append(lambda part=part: matches(machine, part, subject, bindings))
        else:
            name = names_of_fields[index]
            tests.append(lambda part=part, name=name: _field(machine, part, subject, name, bindings))
    for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        tests.append(lambda part=part, name=name: _field(machine, part, subject, name, bindings))
    return _all(machine, tests, bindings)


def _field(machine: Machine, part: ast.pattern, subject: Abstract, name: str, bindings: Bindings) -> Abstract:
    return matches(machine, part, attributes.read(machine, subject, name), bindings)
