"""Ops, functions and symbols as ``.lmir`` text, of which ``module.py`` makes that of a module.

The text of an op follows from the declarations of its class. Attributes are sorted, those that have their default are
left out, and nothing depends on the machine, so that a difference between two texts is one between the modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lmc.ir.core import WHITESPACE, Attribute, Block, Constraint, HostFunction, Op, Value
from lmc.ir.op_schema import Field, exact_key, layout_of
from lmc.ir.types import JsonType, ListType, Type

RESERVED_WORDS = frozenset({"none", "true", "false", "inf", "nan", "loc"})
_BARE_NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
INDENT = "  "
_LOCATION_COLUMN = 100
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def print_op(op: Op) -> str:
    """The first line of an op: without its regions and its location."""
    results = f"{', '.join(map(print_value, op.results))} = " if op.results else ""
    types = f" : {', '.join(print_type(value.type) for value in op.results)}" if op.results else ""
    head, attributes = _operands(op), _attributes(op)
    if not head and not attributes and not types:
        attributes = " {}"  # else the next op's name would read as an operand
    return f"{results}{op.NAME}{head}{attributes}{types}"


def print_value(value: Value) -> str:
    """``%name``, quoted where it is not made of letters, digits, ``_`` and inner dots."""
    return print_name(value.name)


def print_name(name: str) -> str:
    """``%name`` of the value called ``name``."""
    return f"%{_name(name)}"


def print_symbol(name: str) -> str:
    """``@name``, quoted where needed."""
    return f"@{_name(name)}"


def print_type(kind: Type) -> str:
    """The text of a type: ``!text``, ``!list<!text>``, ``!json<Verdict>``."""
    depth = 0
    while isinstance(kind, ListType):
        kind = kind.element
        depth += 1
    inner = f"!json<{_name(kind.schema)}>" if isinstance(kind, JsonType) else f"!{kind.name}"
    return "!list<" * depth + inner + ">" * depth


def print_string(text: str) -> str:
    r"""``text`` in double quotes, escaped as in JSON, where ``\U0001f600`` may also stand for one code point.

    Only what does not print is escaped. Surrogates take the long form: two short ones would join to one character.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escape, text))}"'


def print_attribute(value: Attribute) -> str:
    """A literal: ``none``, ``true``, ``1``, ``0.5``, ``inf``, ``"text"`` or ``[…]``."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return print_string(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(print_attribute, value))}]"
    return repr(value)


def is_word(text: str) -> bool:
    """Return True if ``text`` can be a bare word among operands."""
    return _WORD.fullmatch(text) is not None and text not in RESERVED_WORDS


def print_constraint(constraint: Constraint) -> str:
    """Return the line of a constraint's symbol."""
    kind = constraint.kind if is_word(constraint.kind) else print_string(constraint.kind)
    given = {"digest": constraint.digest, "whitespace": constraint.whitespace}
    shown = ", ".join(
        f"{name} = {print_string(value)}" for name, value in given.items() if value not in (None, WHITESPACE[0])
    )
    attributes = f" {{{shown}}}" if shown else ""
    return f"constraint {print_symbol(constraint.name)} = {kind} {print_string(constraint.text)}{attributes}"


def print_host(host: HostFunction) -> str:
    """Return the line of a host function's symbol."""
    target, digest = print_string(host.target), print_string(host.digest)
    attributes = " {early = true}" if host.early else ""
    return f"host {print_symbol(host.name)} = {target} sha256 {digest} {host.effect.value}{attributes}"


def print_function(name: str, body: Block) -> Iterator[str]:
    """Return the lines of a function in a module."""
    yield f"{INDENT}func {print_symbol(name)}{_parameters(body.parameters)} {{"
    yield from _ops(body, 2)
    yield INDENT + "}"


def _ops(body: Block, depth: int) -> Iterator[str]:
    """The lines of a block's ops. Regions wait on a stack, so that their depth is no matter."""
    stack: list[Iterator[str | _Region]] = [_steps(body, depth)]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
        elif isinstance(step, str):
            yield step
        else:
            stack.append(_steps(step.block, step.depth))


class _Region:
    """A block whose ops come next."""

    def __init__(self, block: Block, depth: int) -> None:
        self.block = block
        self.depth = depth


def _steps(block: Block, depth: int) -> Iterator[str | _Region]:
    margin = INDENT * depth
    for op in block.ops:
        text = margin + print_op(op)
        for field in layout_of(type(op)).regions:
            region = getattr(op, field.name)
            yield f"{text} ^{field.name}{_parameters(region.parameters)} {{"
            yield _Region(region, depth + 1)
            text = margin + "}"
        if op.location is None:
            yield text
        else:
            yield f"{text:<{_LOCATION_COLUMN}} loc({print_string(op.location.file)}:{op.location.line})"


def _operands(op: Op) -> str:
    """Operands and keywords, each with what separates it from what stands before it."""
    pieces: list[str] = []
    pending = ""  # empty lists, written only where something follows
    for field in layout_of(type(op)).positional:
        held = getattr(op, field.name)
        if field.kind == "operand":
            piece = print_value(held)
        elif field.keyword:
            if not _is_bare_keyword(field, held):
                continue
            piece = print_symbol(held) if field.symbol is not None else held
        elif not held and field.default == ():
            pending += " []" if field.kind == "parts" else " ()"
            continue
        else:
            piece = _listed(field, held)
        comma = "," if (pieces or pending) and piece[0] not in "([" else ""
        pieces.append(f"{pending}{comma} {piece}")
        pending = ""
    return "".join(pieces)


def _listed(field: Field, held: Sequence[Any]) -> str:
    inner = ", ".join(print_value(entry) if isinstance(entry, Value) else print_attribute(entry) for entry in held)
    return f"[{inner}]" if field.kind == "parts" else f"({inner})"


def _attributes(op: Op) -> str:
    shown = [
        f"{field.name} = {_attribute(field, value)}"
        for field in layout_of(type(op)).attributes
        if not _is_left_out(field, value := getattr(op, field.name))
    ]
    return f" {{{', '.join(shown)}}}" if shown else ""


def _is_left_out(field: Field, value: Attribute) -> bool:
    if field.keyword and _is_bare_keyword(field, value):
        return True
    if field.required:
        return False
    return value is field.default or exact_key(value) == exact_key(field.default)


def _is_bare_keyword(field: Field, value: Attribute) -> bool:
    return isinstance(value, str) and (field.symbol is not None or is_word(value))


def _attribute(field: Field, value: Attribute) -> str:
    return print_symbol(value) if field.symbol is not None and isinstance(value, str) else print_attribute(value)


def _parameters(parameters: Sequence[Value]) -> str:
    return f"({', '.join(f'{print_value(value)}: {print_type(value.type)}' for value in parameters)})"


def _name(name: str) -> str:
    return name if _BARE_NAME.fullmatch(name) else print_string(name)


def _escape(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0xD800 or 0xE000 <= code <= 0xFFFF else f"\\U{code:08x}"
