"""Comprehensions and generator expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lmc.frontend.heap.cells import ListCell
from lmc.frontend.heap.values import Abstract
from lmc.frontend.interpret import names
from lmc.frontend.python.methods import call_method

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine


def run(machine: Machine, generators: Sequence[ast.comprehension], innermost: Callable[[], None]) -> None:
    """Go over the items of a comprehension; its names are in a frame of their own."""
    first = Evaluated(machine.rules.evaluate(generators[0].iter), generators[0].iter)
    generators = [
        ast.comprehension(generators[0].target, first, generators[0].ifs, generators[0].is_async),
        *generators[1:],
    ]
    activation = machine.activation
    bound = {part.id for each in generators for part in ast.walk(each.target) if isinstance(part, ast.Name)}
    frame = names.new_frame(machine, bound)
    inner = replace(activation, frames=(frame, *activation.frames), loops=[])
    machine.activations[-1] = inner
    try:
        machine.rules.execute([_loop(machine, generators, innermost)])
    finally:
        machine.activations[-1] = activation


class Innermost(ast.stmt):
    """Stands for the element of a comprehension."""

    _fields = ()

    def __init__(self, work: Callable[[], None], node: ast.AST) -> None:
        super().__init__()
        self.work = work
        ast.copy_location(self, node)


class Evaluated(ast.expr):
    """Stands for an expression whose value is known: the first iterable belongs to the frame around."""

    _fields = ()

    def __init__(self, value: Abstract, node: ast.AST) -> None:
        super().__init__()
        self.value = value
        ast.copy_location(self, node)


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


def evaluate_given(_machine: Machine, node: Evaluated) -> Abstract:
    """The value."""
    return node.value


def execute_innermost(_machine: Machine, node: Innermost) -> None:
    """The element."""
    node.work()


def list_of(
    machine: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, element: Callable[[], Abstract]
) -> Abstract:
    """The items that a comprehension gives, as a list."""
    made = machine.new(ListCell(()))
    run(machine, node.generators, lambda: call_method(machine, made, "append", [element()], {}) and None)
    return made


def generator(machine: Machine, node: ast.GeneratorExp) -> Abstract:
    """A generator expression. Its items are worked out where it is written, which only the order of effects tells."""
    return list_of(machine, node, lambda: machine.rules.evaluate(node.elt))
