"""From the syntax tree of ``.lmir`` text to a module: finds op classes, resolves names, checks what fields hold."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, cast

from lark import Token, Tree

import lmc.ir.dialects.region_ops  # pyright: ignore[reportUnusedImport]  (fills the registry of ops)
import lmc.ir.dialects.section_ops  # noqa: F401  # pyright: ignore[reportUnusedImport]
from lmc.ir.core import Block, Constraint, Effect, HostFunction, Op, Value, op_class
from lmc.ir.errors import Location, ParseError
from lmc.ir.module import Function, Module
from lmc.ir.op_schema import Field, OpSchema, layout_of, nearest_op_names
from lmc.ir.text.diagnostics import SourceText, shown
from lmc.ir.text.literals import Branch, LiteralReader, Node, children, nodes, token_of
from lmc.ir.types import Type

_CONSTRAINT_ATTRIBUTES = ("digest", "whitespace")


def read_module(tree: Node, source: SourceText, places: dict[Op, Token] | None = None) -> Module:
    """The module of a tree that ``lmir.lark`` gave. Raises ``ParseError``. ``places`` takes the name of each op."""
    read = LiteralReader(source)
    places = {} if places is None else places
    name, *declarations = tree.children
    found = nodes(declarations)
    return Module(
        name=read.name(token_of(name)),
        functions=tuple(_FunctionReader(read, places).function(node) for node in found if node.data == "function"),
        constraints=tuple(_constraint(read, node) for node in found if node.data == "constraint"),
        hosts=tuple(_host(read, node) for node in found if node.data == "host"),
    )


def _constraint(read: LiteralReader, node: Node) -> Constraint:
    name, kind, text = map(token_of, node.children[:3])
    found: dict[str, str] = {}
    for key, value in _attributes(read, node.children[3], "a constraint", _CONSTRAINT_ATTRIBUTES):
        if not isinstance(value, Token) or value.type != "STRING":
            raise read.error(key, f"{shown(key)} of a constraint is a string", "write it in double quotes")
        found[str(key)] = read.string(value)
    return Constraint(
        read.name(name), read.string(kind) if kind.type == "STRING" else str(kind), read.string(text), **found
    )


def _host(read: LiteralReader, node: Node) -> HostFunction:
    name, target, digest, effect = map(token_of, node.children[:4])
    effects = [member.value for member in Effect]
    if effect not in effects:
        raise read.error(effect, f"unknown effect {shown(effect)}", f"use one of {', '.join(effects)}")
    early = False
    for key, value in _attributes(read, node.children[4], "a host function", ("early",)):
        given = read.literal(value)
        if type(given) is not bool:
            raise read.error(key, f"{shown(key)} of a host function is a truth value", "write true or false")
        early = given
    return HostFunction(read.name(name), read.string(target), read.string(digest), Effect(str(effect)), early)


def _attributes(read: LiteralReader, node: Branch, owner: str, known: Sequence[str]) -> Iterator[tuple[Token, Branch]]:
    """The attributes of a symbol, each once, and only such as it has."""
    seen: set[str] = set()
    for attribute in nodes(children(node)):
        name, value = attribute.children
        key = token_of(name)
        if key not in known:
            raise read.error(key, f"{owner} has no attribute {shown(key)}", f"it has: {', '.join(known)}")
        if key in seen:
            raise read.error(key, f"{shown(key)} is given twice", "leave one of them out")
        seen.add(str(key))
        yield key, value


class _FunctionReader:
    """Reads one function; ``_values`` are the values defined in it so far."""

    def __init__(self, read: LiteralReader, places: dict[Op, Token]) -> None:
        self._read = read
        self._places = places
        self._values: dict[str, Value] = {}

    def function(self, node: Node) -> Function:
        name, parameters, body = node.children
        return Function(self._read.name(token_of(name)), self._block(parameters, body))

    def value(self, token: Token) -> Value:
        """The value that a use names."""
        found = self._values.get(self._read.name(token))
        if found is None:
            near = difflib.get_close_matches(token[1:65], self._values, n=1)
            remedy = f"did you mean %{shown(near[0])}?" if near else "define it above, in this function"
            raise self._read.error(token, f"{shown(token)} is not defined", remedy)
        return found

    def _block(self, parameters: Branch, body: Branch) -> Block:
        """A block. Recursion is as deep as regions are nested, which the parser has bounded."""
        defined = tuple(self._define(*node.children) for node in nodes(children(parameters)))
        return Block(defined, tuple(self._op(node) for node in nodes(children(body))))

    def _op(self, node: Node) -> Op:
        results, name_token, operands, attributes, types, regions, location = node.children
        name = token_of(name_token)
        kind = op_class(str(name))
        if kind is None:
            near = nearest_op_names(str(name))
            remedy = f"did you mean {' or '.join(near)}?" if near else "lmc/ir/dialects/core_ops.py lists the ops"
            raise self._read.error(name, f"unknown op {shown(name)}", remedy)
        fields = _FieldsReader(self._read, self, name, layout_of(kind))
        fields.operands(children(operands))
        fields.attributes(nodes(children(attributes)))
        for region in nodes(children(regions)):
            word, parameters, body = region.children
            fields.region(token_of(word), self._block(parameters, body))
        fields.check_complete()
        defined = self._results(name, children(results), children(types))
        op = kind(results=defined, location=self._location(location), **fields.found)
        self._places[op] = name
        return op

    def _results(self, op: Token, names: Sequence[Branch], types: Sequence[Branch]) -> tuple[Value, ...]:
        if len(names) != len(types):
            counts = f"{shown(op)} has {len(names)} results but {len(types)} types"
            raise self._read.error(op, counts, "give each result one type after the colon")
        return tuple(self._define(name, kind) for name, kind in zip(names, types, strict=True))

    def _define(self, name: Branch, kind: Branch) -> Value:
        token = token_of(name)
        value = Value(self._read.name(token), self._type(kind))
        if value.name in self._values:
            raise self._read.error(
                token, f"{shown(token)} is defined twice", "give each value of a function its own name"
            )
        self._values[value.name] = value
        return value

    def _type(self, node: Branch) -> Type:
        return self._read.type(cast("Node", node))

    def _location(self, node: Branch | None) -> Location | None:
        if node is None:
            return None
        file, line = map(token_of, children(node))
        number = self._read.number(line)
        if not isinstance(number, int):
            raise self._read.error(line, "a line is a whole number", 'write loc("file.py":12)')
        return Location(self._read.string(file), number)


class _FieldsReader:
    """Gives the operands, attributes and regions of one op the fields that its class declares; see ``found``."""

    def __init__(self, read: LiteralReader, scope: _FunctionReader, op: Token, layout: OpSchema) -> None:
        self.found: dict[str, Any] = {}
        self._read = read
        self._scope = scope
        self._op = op
        self._layout = layout

    def operands(self, items: Sequence[Branch]) -> None:
        """Give each item the next field that it fits."""
        waiting = iter(self._layout.positional)
        for item in items:
            field = next((field for field in waiting if not field.keyword or _is_keyword(field, item)), None)
            if field is None:
                raise self._error(item, f"{self._op} does not take this operand", f"it takes {self._form()}")
            self.found[field.name] = self._operand(field, item)

    def attributes(self, items: Sequence[Node]) -> None:
        """Give each ``name = literal`` its field."""
        known = {field.name: field for field in self._layout.attributes}
        for item in items:
            name, literal = item.children
            token = token_of(name)
            field = known.get(token)
            if field is None:
                names = ", ".join(known) or "none"
                raise self._read.error(token, f"{self._op} has no attribute {shown(token)}", f"it has: {names}")
            if field.name in self.found:
                raise self._read.error(token, f"{shown(token)} is given twice", "leave one of them out")
            self.found[field.name] = self._attribute(field, literal)

    def region(self, name: Token, block: Block) -> None:
        """Give the field called ``name`` its block."""
        names = [field.name for field in self._layout.regions]
        if name not in names:
            raise self._read.error(
                name, f"{self._op} has no region {shown(name)}", f"it has: {', '.join(names) or 'none'}"
            )
        if name in self.found:
            raise self._read.error(name, f"the region {shown(name)} is given twice", "leave one of them out")
        self.found[str(name)] = block

    def check_complete(self) -> None:
        """Raise ``ParseError`` where a field without a default was not given."""
        for field in self._layout.positional:
            if field.required and field.name not in self.found:
                raise self._read.error(
                    self._op, f"{self._op} lacks its operand {field.name}", f"it takes {self._form()}"
                )
        for field in self._layout.attributes:
            if field.required and field.name not in self.found:
                raise self._read.error(
                    self._op, f"{self._op} lacks its attribute {field.name}", f"add {{{field.name} = …}} ({field.type})"
                )
        for field in self._layout.regions:
            if field.name not in self.found:
                raise self._read.error(
                    self._op, f"{self._op} lacks its region {field.name}", f"add ^{field.name}() {{ … }}"
                )

    def _operand(self, field: Field, item: Branch) -> Any:
        if field.keyword:
            token = token_of(item)
            return self._read.name(token) if token.type == "SYMBOL" else str(token)
        if field.kind == "operand":
            if isinstance(item, Token) and item.type == "VALUE":
                return self._scope.value(item)
        elif isinstance(item, Tree) and item.data == ("parts" if field.kind == "parts" else "arguments"):
            return tuple(self._entry(field, entry) for entry in children(item))
        raise self._error(item, f"this is no {field.name} of {self._op}", f"it takes {self._form()}")

    def _entry(self, field: Field, entry: Branch) -> Any:
        if isinstance(entry, Token) and entry.type == "VALUE":
            return self._scope.value(entry)
        if field.kind == "operands":
            raise self._error(entry, f"{field.name} of {self._op} holds values only", "name a value (%name)")
        literal = self._read.literal(entry)
        if field.kind == "parts" and not isinstance(literal, str):
            raise self._error(entry, f"{field.name} of {self._op} holds text only", "write a string or a value (%name)")
        return literal

    def _attribute(self, field: Field, branch: Branch) -> Any:
        value = self._read.literal(branch)
        if isinstance(value, int) and not isinstance(value, bool) and not field.type.accepts(value):
            value = self._widened(field, value)
        if not field.type.accepts(value):
            raise self._error(branch, f"{field.name} of {self._op} is {field.type}", "write a literal of that type")
        return value

    @staticmethod
    def _widened(field: Field, value: int) -> int | float:
        """``value`` as a float where only a float fits: people write ``temperature = 1``."""
        try:
            return float(value) if field.type.accepts(0.0) else value
        except OverflowError:
            return value

    def _error(self, branch: Branch, cause: str, remedy: str) -> ParseError:
        first = branch if isinstance(branch, Token) else next(branch.scan_values(lambda _: True), self._op)
        return self._read.error(first, cause, remedy)

    def _form(self) -> str:
        """Return the textual form of the op's operands."""
        forms = {"operand": "%{}", "operands": "(%{} …)", "parts": "[{} …]", "arguments": "({} …)"}
        written = [
            f"a keyword ({field.name})" if field.keyword else forms[field.kind].format(field.name)
            for field in self._layout.positional
        ]
        return ", ".join(written) or "no operands"


def _is_keyword(field: Field, item: Branch) -> bool:
    return isinstance(item, Token) and item.type == ("SYMBOL" if field.symbol is not None else "WORD")
