"""Texts replaced by their lengths: in ops and modules, in source files, and where messages quote them."""

from __future__ import annotations

import dataclasses
import io
import re
import tokenize
from collections.abc import Sequence

from lmc.ir.core import Attribute, Block, Constraint, Op, Value
from lmc.ir.module import Module

_NAMES = frozenset(
    {
        "constraint",
        "declared",
        "definition_kind",
        "function",
        "group",
        "host",
        "id",
        "jump_forward",
        "keywords",
        "kinds",
        "method",
        "name",
        "present_names",
        "role",
        "scope",
        "variable_names",
    }
)
"""Attributes whose strings are names of the program or of lmc. Every other string of an op may hold a user's text."""
_QUOTED = re.compile(r"(?<!\w)'((?:[^'\\]|\\.|'(?=\w))*)'(?!\w)|\"((?:[^\"\\]|\\.)*)\"|`([^`]*)`")
_TEXTS = frozenset({tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)})


def length_of(text: str) -> str:
    """Return what is shown for a text."""
    return f"‹{len(text)}›"


class Redaction:
    """Replaces texts by their lengths. The same op always becomes the same op, so that identity still tells ops apart.

    ``names`` are quoted in messages and stay: ids of ops, names of parameters and functions.
    """

    def __init__(self) -> None:
        self._ops: dict[Op, Op] = {}
        self._names: set[str] = set()

    def module(self, module: Module) -> Module:
        """Return a module whose literals are lengths."""
        functions = tuple(
            dataclasses.replace(function, body=self._block(function.body)) for function in module.functions
        )
        constraints = tuple(map(self.constraint, module.constraints))
        self._names.update(host.name for host in module.hosts)
        self._names.update(constraint.name for constraint in module.constraints)
        self._names.update(value.name for function in module.functions for value in function.parameters)
        return dataclasses.replace(module, functions=functions, constraints=constraints)

    def op(self, op: Op) -> Op:
        """Return an op whose literals are lengths. Recursion is as deep as regions are nested."""
        known = self._ops.get(op)
        if known is None:
            known = self._ops[op] = self._redacted(op)
        return known

    def constraint(self, constraint: Constraint) -> Constraint:
        """Return a constraint without its definition."""
        return dataclasses.replace(constraint, text=length_of(constraint.text), digest=None)

    def message(self, text: str) -> str:
        """Return a message without the texts that it quotes."""
        return _QUOTED.sub(self._quoted, text)

    def _quoted(self, found: re.Match[str]) -> str:
        inner = next(each for each in found.groups() if each is not None)
        mark = found.group()[0]
        return found.group() if inner in self._names else f"{mark}{length_of(inner)}{mark}"

    def _block(self, block: Block) -> Block:
        return Block(block.parameters, tuple(map(self.op, block.ops)))

    def _redacted(self, op: Op) -> Op:
        self._names.add(op.NAME)
        changed: dict[str, object] = {}
        for name, kind in op.FIELDS:
            held = getattr(op, name)
            if kind in ("parts", "arguments"):
                changed[name] = tuple(each if isinstance(each, Value) else _literal(each) for each in held)
            elif kind == "region":
                changed[name] = self._block(held)
            elif name == "forced":  # the tokens of a text
                changed[name] = None if held is None else ()
            elif kind == "attribute" and name in _NAMES:
                self._names.update([held] if isinstance(held, str) else held if isinstance(held, tuple) else ())
            elif kind == "attribute":
                changed[name] = _literal(held)
        return dataclasses.replace(op, **changed) if changed else op


def _literal(value: Attribute) -> Attribute:
    if isinstance(value, str):
        return length_of(value)
    return tuple(map(_literal, value)) if isinstance(value, tuple) else value


def redacted_source(lines: Sequence[str]) -> list[str]:
    """Return the lines of a Python file with the lengths of its strings and comments.

    Where the text is not all of a Python file, each line becomes its length.
    """
    text = "".join(f"{line}\n" for line in lines)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return [length_of(line) for line in lines]
    found = list(lines)
    for token in reversed(tokens):
        if token.type not in _TEXTS:
            continue
        (first, start), (last, end) = token.start, token.end
        rest = found[last - 1][end:]
        shown = f"#{length_of(token.string)}" if token.type == tokenize.COMMENT else _string(token)
        found[first - 1] = found[first - 1][:start] + shown + ("" if first != last else rest)
        for line in range(first, last):
            found[line] = ""
        if first != last:
            found[last - 1] = rest
    return found


def _string(token: tokenize.TokenInfo) -> str:
    shown = length_of(token.string)
    return f'"{shown}"' if token.type == tokenize.STRING else shown
