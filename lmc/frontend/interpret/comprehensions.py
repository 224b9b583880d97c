"""Comprehensions, generator expressions and generator functions.

A generator is inverted: what its consumer does with an item is interpreted at each ``yield``. So it has to be consumed
whole, by one loop or by one function that takes all items.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lmc.frontend.emit.known import note_length
from lmc.frontend.heap.cells import GeneratorCell, GrownCell, IteratorCell, ListCell
from lmc.frontend.heap.values import Abstract, Ref, Symbol, Tuple
from lmc.frontend.interpret import names
from lmc.frontend.machine.machine import Activation
from lmc.frontend.python import iteration
from lmc.frontend.python.iterators import iterator
from lmc.frontend.python.methods import call_method

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Consume = Callable[[Abstract], None]


class Evaluated(ast.expr):
    """Stands for an expression whose value is known: the first iterable belongs to the frame around."""

    _fields = ()

    def __init__(self, value: Abstract, node: ast.AST) -> None:
        super().__init__()
        self.value = value
        ast.copy_location(self, node)


class Innermost(ast.stmt):
    """Stands for the element of a comprehension."""

    _fields = ()

    def __init__(self, work: Callable[[], None], node: ast.AST) -> None:
        super().__init__()
        self.work = work
        ast.copy_location(self, node)


def evaluate_given(_machine: Machine, node: Evaluated) -> Abstract:
    """The value that is known."""
    return node.value


def execute_innermost(_machine: Machine, node: Innermost) -> None:
    """The element of a comprehension."""
    node.work()


def run(
    machine: Machine,
    generators: Sequence[ast.comprehension],
    first: Abstract,
    innermost: Callable[[], None],
    activation: Activation | None = None,
) -> None:
    """Go over the items of a comprehension; its names are in a frame of their own.

    ``first`` is what its first part goes over, ``activation`` the call that it is written in (None: the one that runs).
    """
    around = machine.activation
    targets = [part for each in generators for part in ast.walk(each.target) if isinstance(part, ast.Name)]
    bound = {part.id for part in targets if isinstance(part.ctx, ast.Store)}
    frame = names.new_frame(machine, bound)
    within = activation or around
    begun = generators[0]
    given = ast.comprehension(begun.target, Evaluated(first, begun.iter), begun.ifs, begun.is_async)
    machine.activations[-1] = replace(within, frames=(frame, *within.frames), loops=list[int](), call=None, within=[])
    try:
        machine.rules.execute([_loop(machine, [given, *generators[1:]], innermost)])
    finally:
        machine.activations[-1] = around


def _loop(machine: Machine, generators: Sequence[ast.comprehension], innermost: Callable[[], None]) -> ast.stmt:
    """Nested ``for`` and ``if`` statements of a comprehension."""
    body: ast.stmt = Innermost(innermost, generators[-1].target)
    for generator in reversed(generators):
        if generator.is_async:
            raise machine.unsupported("`async for`")
        for test in reversed(generator.ifs):
            body = ast.copy_location(ast.If(test, [body], []), test)
        body = ast.copy_location(ast.For(generator.target, generator.iter, [body], [], None), generator.iter)
    return body


def for_each(machine: Machine, iterable: Abstract, each: Consume) -> None:
    """Interpret ``each`` for every item of an iterable."""
    node = machine.activation.statement
    name = ast.copy_location(ast.Name(".item", ast.Store()), node)
    generator = ast.comprehension(name, name, [], 0)
    run(machine, [generator], iterable, lambda: each(names.read_name(machine, ".item")))


def list_of(machine: Machine, node: ast.ListComp | ast.SetComp, element: Callable[[], Abstract]) -> Abstract:
    """The items that a comprehension gives, as a list."""
    first = machine.rules.evaluate(node.generators[0].iter)
    made = machine.new(ListCell(()))

    def put() -> None:
        call_method(machine, made, "append", [element()], {})

    before = machine.cell(first)
    run(machine, node.generators, first, put)
    found = machine.state.get(made.address)  # it may be one of several lists
    whole = len(node.generators) == 1 and not node.generators[0].ifs and machine.cell(first) is before
    if whole and isinstance(before, GrownCell) and isinstance(found, GrownCell):
        note_length(machine, found.value, before.value)
    return made


def generator(machine: Machine, node: ast.GeneratorExp) -> Abstract:
    """A generator expression: its first iterable is evaluated now, everything else on demand."""
    first = machine.rules.evaluate(node.generators[0].iter)
    activation = machine.activation
    return machine.new(GeneratorCell(node, activation.frames, (("", first),), activation))


def consume(machine: Machine, iterable: Ref, each: Consume, *, managed: bool = False) -> None:
    """Interpret ``each`` for every item of a generator, where it gives the item."""
    cell = _begun(machine, iterable)
    if cell.used:
        return
    machine.state.put(iterable.address, replace(cell, running=True))
    if isinstance(cell.definition, ast.GeneratorExp):
        _give_each(machine, cell, cell.definition, each)
    else:
        machine.rules.run_generator(cell, each, managed=managed)
    machine.state.put(iterable.address, replace(cell, used=True))


def _give_each(machine: Machine, cell: GeneratorCell, node: ast.GeneratorExp, each: Consume) -> None:
    caller = machine.activation

    def give() -> None:
        item = machine.rules.evaluate(node.elt)
        inner = machine.activations[-1]
        machine.activations[-1] = caller
        try:
            each(item)
        finally:
            machine.activations[-1] = inner

    run(machine, node.generators, cell.given[0][1], give, cell.activation)


def _begun(machine: Machine, iterable: Ref) -> GeneratorCell:
    cell = machine.cell(iterable)
    assert isinstance(cell, GeneratorCell)
    if cell.running:
        raise machine.stop(
            "items are taken from a generator that the program goes over, or did in part",
            "make a list of it first: list(x)",
        )
    return cell


def next_item(machine: Machine, iterable: Ref) -> Abstract | None:
    """The next item of a generator expression, which goes over items that are known one by one; None at its end."""
    cell = _begun(machine, iterable)
    node = cell.definition
    if cell.used:
        return None
    if not isinstance(node, ast.GeneratorExp) or len(node.generators) > 1:
        raise machine.unsupported("`next` of a generator that has a name")
    source = cell.given[0][1]
    if isinstance(source, Symbol) or (isinstance(source, Ref) and source.address in machine.read_only):
        items = iteration.known_items(machine, source, "its items are taken one by one")
        source = machine.new(IteratorCell(Tuple(tuple(items)), 0))
    else:
        source = iterator(machine, source)
    cell = replace(cell, given=(("", source),))
    machine.state.put(iterable.address, replace(cell, used=True))  # as it is where an item raises
    block = machine.graph.builder
    found: list[Abstract] = []

    def give() -> None:
        if machine.graph.builder is not block:
            raise machine.unsupported("`next` of a generator whose condition only a run knows")
        found.append(machine.rules.evaluate(node.elt))

    while not found:
        if not isinstance(machine.cell(source), IteratorCell):
            raise machine.stop(
                "the next item is taken from a generator over items that only a run counts",
                "go over the items with `for`, or make a list of them and take its items",
            )
        item = iteration.next_item(machine, source)
        if item is None:
            return None
        run(machine, node.generators, Tuple((item,)), give, cell.activation)
    machine.state.put(iterable.address, cell)
    return found[0]


def collected(machine: Machine, iterable: Ref) -> Abstract:
    """All items of a generator, as a list."""
    made = machine.new(ListCell(()))

    def put(item: Abstract) -> None:
        call_method(machine, made, "append", [item], {})

    consume(machine, iterable, put)
    return made
