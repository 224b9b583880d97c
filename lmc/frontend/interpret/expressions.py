"""Expressions: one function for each kind of node. What is not in the table ends the capture."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.emit.known import decided
from lmc.frontend.emit.operands import class_of, concat, pure
from lmc.frontend.heap.cells import DictCell, GeneratorCell, ListCell
from lmc.frontend.heap.reach import current
from lmc.frontend.heap.values import NONE, Abstract, Const, Function, Ref, Slice, Symbol, Tuple, Union
from lmc.frontend.interpret import calls, comprehensions, names
from lmc.frontend.python import attributes, constructors, items, iteration, operators

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

_CONVERSIONS = {ord("s"): "str", ord("r"): "repr", ord("a"): "ascii"}


def evaluate(machine: Machine, node: ast.expr) -> Abstract:
    """The value of an expression."""
    if type(node) is ast.Constant:
        return Const(node.value)
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise machine.unsupported(f"`{type(node).__name__}`")
    graph = machine.graph
    around = graph.location
    machine.at(node)
    value = handler(machine, node)
    graph.location = around
    return current(machine.state, value) if type(value) is Ref else value


def _name(machine: Machine, node: ast.Name) -> Abstract:
    return names.read_name(machine, node.id)


def _binary(machine: Machine, node: ast.BinOp) -> Abstract:
    left = evaluate(machine, node.left)
    right = evaluate(machine, node.right)
    return operators.binary(machine, operators.BINARY[type(node.op)], left, right)


def _unary(machine: Machine, node: ast.UnaryOp) -> Abstract:
    value = evaluate(machine, node.operand)
    if isinstance(node.op, ast.Not):
        return operators.negated(machine, value)
    return operators.unary(machine, operators.UNARY[type(node.op)], value)


def _compare(
    machine: Machine, node: ast.Compare, wanted: Callable[[Machine, Abstract], Abstract] | None = None
) -> Abstract:
    """Comparisons in a row: the result of the last one that is made, or what ``wanted`` makes of it."""

    def further(index: int, left: Abstract) -> Abstract:
        right = evaluate(machine, node.comparators[index])
        found = operators.compare(machine, node.ops[index], left, right)
        if wanted is not None:
            found = wanted(machine, found)
        if index + 1 == len(node.ops):
            return found
        return if_true(machine, found, lambda: further(index + 1, right), lambda: found)

    return further(0, evaluate(machine, node.left))


def if_true(
    machine: Machine, value: Abstract, then: Callable[[], Abstract], otherwise: Callable[[], Abstract]
) -> Abstract:
    """One of two expressions, by whether ``value`` is true."""
    return _choose(machine, operators.truth(machine, value), then, otherwise)


def _choose(
    machine: Machine, truth: Abstract, then: Callable[[], Abstract], otherwise: Callable[[], Abstract]
) -> Abstract:
    flag = decided(machine, truth)
    if isinstance(flag, Const):
        return then() if flag.value else otherwise()
    assert isinstance(flag, Symbol)
    return machine.choose(flag, then, otherwise)


def test(machine: Machine, node: ast.expr) -> Abstract:
    """Return whether an expression is true as a condition: `and`, `or`, `not` ask each operand for its truth once."""
    if not isinstance(node, ast.UnaryOp | ast.BoolOp | ast.IfExp | ast.Compare):
        return operators.truth(machine, evaluate(machine, node))
    around = machine.graph.location
    machine.at(node)
    found = _test(machine, node)
    machine.graph.location = around
    return found


def _test(machine: Machine, node: ast.UnaryOp | ast.BoolOp | ast.IfExp | ast.Compare) -> Abstract:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return operators.negated(machine, test(machine, node.operand))
    if isinstance(node, ast.IfExp):
        flag = test(machine, node.test)
        return _choose(machine, flag, lambda: test(machine, node.body), lambda: test(machine, node.orelse))
    if isinstance(node, ast.Compare):
        return _compare(machine, node, operators.truth)
    if isinstance(node, ast.BoolOp):
        found = partial(test, machine, node.values[-1])
        for each in reversed(node.values[:-1]):
            found = partial(_tested, machine, each, found, ends=isinstance(node.op, ast.Or))
        return found()
    return operators.truth(machine, _unary(machine, node))


def _tested(machine: Machine, node: ast.expr, further: Callable[[], Abstract], *, ends: bool) -> Abstract:
    """The truth of an operand of `and` or `or` and of what follows it; ``ends`` is the one that ends the expression."""
    flag = test(machine, node)
    if ends:
        return _choose(machine, flag, lambda: Const(True), further)
    return _choose(machine, flag, further, lambda: Const(False))


def _bool_op(machine: Machine, node: ast.BoolOp) -> Abstract:
    return _first_to_decide(machine, node, lambda last: evaluate(machine, last), lambda value, _flag: value)


def _first_to_decide(
    machine: Machine,
    node: ast.BoolOp,
    last: Callable[[ast.expr], Abstract],
    decided: Callable[[Abstract, Abstract], Abstract],
) -> Abstract:
    """Return ``last`` of the last operand, or ``decided`` of one before it and its truth, which is asked once."""
    ends = isinstance(node.op, ast.Or)

    def further(index: int) -> Abstract:
        operand = node.values[index]
        if index + 1 == len(node.values):
            return last(operand)
        value, flag = _with_truth(machine, operand)

        def take() -> Abstract:
            return decided(_known_to_be(value, there=ends), Const(ends))

        def go_on() -> Abstract:
            return further(index + 1)

        return _choose(machine, flag, take if ends else go_on, go_on if ends else take)

    return further(0)


def _with_truth(machine: Machine, node: ast.expr) -> tuple[Abstract, Abstract]:
    """The value of an operand of `and` or `or`, and whether it is true; operands of its own are asked once, too."""
    if not isinstance(node, ast.BoolOp):
        value = evaluate(machine, node)
        return value, operators.truth(machine, value)
    pair = _first_to_decide(
        machine,
        node,
        lambda last: Tuple(_with_truth(machine, last)),
        lambda value, flag: Tuple((value, flag)),
    )
    if isinstance(pair, Tuple) and len(pair.items) == 2:
        return pair.items[0], pair.items[1]
    raise machine.unsupported("`and` and `or` in each other here")


def _known_to_be(value: Abstract, *, there: bool) -> Abstract:
    """A value whose truth is known: of an object or None the one that it is."""
    if not isinstance(value, Union) or value.second is not NONE:
        return value
    if not isinstance(value.first, Symbol) or value.first.kind not in operators.ALWAYS_TRUE:
        return value
    return value.first if there else value.second


def _if_expression(machine: Machine, node: ast.IfExp) -> Abstract:
    flag = test(machine, node.test)
    return _choose(machine, flag, lambda: evaluate(machine, node.body), lambda: evaluate(machine, node.orelse))


def _joined(machine: Machine, node: ast.JoinedStr) -> Abstract:
    return concat(machine, [evaluate(machine, part) for part in node.values])


def _formatted(machine: Machine, node: ast.FormattedValue) -> Abstract:
    value = evaluate(machine, node.value)
    spec = Const("") if node.format_spec is None else evaluate(machine, node.format_spec)
    if node.conversion >= 0:
        value = calls.to_text(machine, value, _CONVERSIONS[node.conversion])
    return calls.formatted(machine, value, spec)


def _elements(machine: Machine, nodes: list[ast.expr]) -> list[Abstract]:
    """The values of a display, ``*items`` taken apart."""
    found: list[Abstract] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found += iteration.known_items(machine, evaluate(machine, node.value), "`*` takes apart what it gives")
        else:
            found.append(evaluate(machine, node))
    return found


def _list(machine: Machine, node: ast.List) -> Abstract:
    if not any(isinstance(each, ast.Starred) for each in node.elts):
        return machine.new(ListCell(tuple(_elements(machine, node.elts))))
    made = machine.new(ListCell(()))
    for each in node.elts:
        if isinstance(each, ast.Starred):
            calls.method(machine, made, "extend", [_starred(machine, evaluate(machine, each.value))], {})
        else:
            calls.method(machine, made, "append", [evaluate(machine, each)], {})
    return made


def _starred(machine: Machine, value: Abstract) -> Abstract:
    """The items of ``*value`` in a display; of what only a run knows to be iterable, in a list."""
    if isinstance(value, Symbol) and class_of(machine, value) not in (str, list, tuple):
        return pure(machine, "starred_from", (value,))
    return value


def _tuple(machine: Machine, node: ast.Tuple) -> Abstract:
    def known() -> Abstract:
        return Tuple(tuple(_elements(machine, node.elts)))

    if not any(isinstance(each, ast.Starred) for each in node.elts):
        return known()
    items = ast.copy_location(ast.List(node.elts, node.ctx), node)
    return machine.attempt(known, lambda: constructors.new_tuple(machine, _list(machine, items)), CaptureBreak)


def _set(machine: Machine, node: ast.Set) -> Abstract:
    first = next((index for index, each in enumerate(node.elts) if isinstance(each, ast.Starred)), len(node.elts))
    made = items.new_set(machine, _elements(machine, node.elts[:first]))
    for each in node.elts[first:]:  # added before the next one is evaluated
        if isinstance(each, ast.Starred):
            calls.method(machine, made, "update", [_starred(machine, evaluate(machine, each.value))], {})
        else:
            calls.method(machine, made, "add", [evaluate(machine, each)], {})
    return made


def _dict(machine: Machine, node: ast.Dict) -> Abstract:
    made = machine.new(DictCell((), ()))
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        if key_node is None:
            items.update_dict(machine, made, evaluate(machine, value_node))
        else:
            key = evaluate(machine, key_node)
            items.set_item(machine, made, key, evaluate(machine, value_node))
    return made


def _attribute(machine: Machine, node: ast.Attribute) -> Abstract:
    owner = evaluate(machine, node.value)
    return attributes.read(machine, owner, machine.activation.definition.mangled(node.attr))


def _subscript(machine: Machine, node: ast.Subscript) -> Abstract:
    owner = evaluate(machine, node.value)
    return items.get_item(machine, owner, evaluate(machine, node.slice))


def _slice(machine: Machine, node: ast.Slice) -> Abstract:
    bounds = [NONE if part is None else evaluate(machine, part) for part in (node.lower, node.upper, node.step)]
    return Slice(*bounds)


def _call(machine: Machine, node: ast.Call) -> Abstract:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and names.frame_of(machine, "super") is None:
        return calls.super_call(machine, [evaluate(machine, part) for part in node.args])
    function = evaluate(machine, node.func)
    args = _elements(machine, node.args)
    kwargs: dict[str, Abstract] = {}
    for keyword in node.keywords:
        value = evaluate(machine, keyword.value)
        if keyword.arg is None:
            for name, each in items.keyword_arguments(machine, value):
                if name in kwargs:
                    raise machine.stop(f"`**` gives the argument {name!r}, which is given already", "give it once")
                kwargs[name] = each
        else:
            kwargs[keyword.arg] = value
    machine.direct = node
    return calls.call(machine, function, args, kwargs)


def _lambda(machine: Machine, node: ast.Lambda) -> Abstract:
    return make_function(machine, node)


def make_function(machine: Machine, node: ast.FunctionDef | ast.Lambda) -> Function:
    """A function that the program defines here; its defaults are evaluated now."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, Abstract] = {}
    for argument, default in zip(
        positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
    ):
        defaults[argument.arg] = evaluate(machine, default)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[argument.arg] = evaluate(machine, default)
    activation = machine.activation
    return Function(activation.definition.inner(node), activation.frames, defaults)


def _named(machine: Machine, node: ast.NamedExpr) -> Abstract:
    value = evaluate(machine, node.value)
    names.store_name(machine, node.target.id, value)
    return value


def _list_comprehension(machine: Machine, node: ast.ListComp) -> Abstract:
    return comprehensions.list_of(machine, node, lambda: evaluate(machine, node.elt))


def _set_comprehension(machine: Machine, node: ast.SetComp) -> Abstract:
    made = comprehensions.list_of(machine, node, lambda: evaluate(machine, node.elt))
    return constructors.set_of(machine, made)


def _dict_comprehension(machine: Machine, node: ast.DictComp) -> Abstract:
    made = machine.new(DictCell((), ()))

    def put() -> None:
        key = evaluate(machine, node.key)
        items.set_item(machine, made, key, evaluate(machine, node.value))

    first = evaluate(machine, node.generators[0].iter)
    comprehensions.run(machine, node.generators, first, put)
    return made


def _generator(machine: Machine, node: ast.GeneratorExp) -> Abstract:
    return comprehensions.generator(machine, node)


def _yield(machine: Machine, node: ast.Yield) -> Abstract:
    value = NONE if node.value is None else evaluate(machine, node.value)
    give = machine.activation.on_yield
    assert give is not None
    give(value)
    return NONE


def _yield_from(machine: Machine, node: ast.YieldFrom) -> Abstract:
    give = machine.activation.on_yield
    assert give is not None
    source = evaluate(machine, node.value)
    if not isinstance(machine.cell(source), GeneratorCell):
        source = calls.call(machine, Const(itertools.chain), [source], {})
    assert isinstance(source, Ref)
    comprehensions.consume(machine, source, give)
    return NONE


_HANDLERS: dict[type[ast.expr], Callable[[Machine, Any], Abstract]] = {
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.IfExp: _if_expression,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.ListComp: _list_comprehension,
    ast.SetComp: _set_comprehension,
    ast.DictComp: _dict_comprehension,
    ast.GeneratorExp: _generator,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    comprehensions.Evaluated: comprehensions.evaluate_given,
}
