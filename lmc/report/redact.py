"""Texts replaced by their lengths: in ops and modules, in source files, and where messages quote them.

Every string of a program is a text, the names of its calls too (``s.gen("verdict")``), so these are lengths in ids as
well. Names of Python stay: programs, functions, classes, parameters, modules and files; in source files variables too.
"""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence

from lmc.ir.core import Attribute, Block, Constraint, Op, Value, walk
from lmc.ir.ids import escape
from lmc.ir.module import Module

_WORDS = frozenset(
    {
        "constraint",
        "declared",
        "definition_kind",
        "function",
        "group",
        "host",
        "jump_forward",
        "kinds",
        "method",
        "role",
        "scope",
    }
)
"""Attributes whose strings are names of Python or words of lmc."""
_NAMES = frozenset({"name", "present_names", "variable_names"})
"""Attributes that hold names of calls. Every other string of an op may hold a text."""
_WRITTEN = frozenset({"keywords"})
"""Attributes whose strings are names of Python where the source has them: ``**`` makes a name of any text."""
_PARTS_OF_IDS = frozenset({"fork", "prefill"})
_PART = re.compile(r"(?P<base>@?[^#*$]*)(?P<use>.*)", re.DOTALL)
_NUMBERED = re.compile(r"[0-9]+(\.[a-z]+)*")
_QUOTED = re.compile(r"(?<!\w)'((?:[^'\\]|\\.|'(?=\w))*)'(?!\w)|\"((?:[^\"\\]|\\.)*)\"|`([^`]*)`")
_WORD = re.compile(r"[^\s,;:()'\"`]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def length_of(text: str | bytes) -> str:
    """Return what is shown for a text."""
    return f"‹{len(text)}›"


class Redaction:
    """Replaces the texts of ``modules`` by their lengths, and those of messages about them.

    The same op always becomes the same op, so that identity still tells ops apart. Different names of one length have
    numbers: ``‹7›``, ``‹7·2›``. ``program`` is the name of the program, ``sources`` the text of its files.
    """

    def __init__(self, program: str, modules: Sequence[Module], sources: Iterable[str] = ()) -> None:
        self._ops: dict[Op, Op] = {}
        self._values: dict[str, str] = {}
        self._names: dict[str, str] = {}
        """The lengths that are shown for names of calls, by the names as ids have them."""
        self._of_length: dict[int, int] = {}
        self._ids: dict[str, str] = {}
        """The ids that differ from what is shown for them."""
        self._kept = {program}
        self._keys: dict[str, str] = {}
        """The lengths that are shown for keys of arguments and of ``**``."""
        self._written = {
            name for text in sources for line in redacted_source(text.split("\n")) for name in _IDENTIFIER.findall(line)
        }
        for module in modules:
            self._kept.update(host.name for host in module.hosts)
            self._kept.update(constraint.name for constraint in module.constraints)
            for function in module.functions:
                self._kept.add(function.name)
        ops = list({op: None for module in modules for each in module.functions for op in walk([each.body])})
        for op in ops:
            self._kept.add(op.NAME)
            self._kept.update(word for name in _WORDS for word in _strings(getattr(op, name, None)))
            for name in _NAMES:
                for text in _strings(getattr(op, name, None)):
                    self.name(text)
        self._parameters = {
            value.name: self.parameter(value.name)
            for module in modules
            for function in module.functions
            for value in function.parameters
        }
        """The names that are shown for the parameters of functions, by their names."""
        self._kept.update(self._parameters.values())
        keyed = sorted((name for name, shown in self._parameters.items() if name != shown), key=len, reverse=True)
        self._keyed = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, keyed))})(?!\w)") if keyed else None
        self._has_digits = any(name[:1].isdigit() for name in self._names)
        for op in ops:
            self.id(getattr(op, "id", None) or "")

    def name(self, text: str) -> str:
        """Return what is shown for the name of a call."""
        return self._shown(escape(text), len(text))

    def parameter(self, name: str) -> str:
        """Return what is shown for a parameter: an argument with parts has one for each, ``argument.key.key``."""
        argument, *keys = name.split(".")
        return ".".join([argument, *map(self._key, keys)])

    def id(self, op_id: str) -> str:
        """Return an id without the names of calls in it."""
        found = "/".join(self._part(part) for part in op_id.split("/"))
        if found != op_id:
            self._ids[op_id] = found
        return found

    def module(self, module: Module) -> Module:
        """Return a module whose literals are lengths."""
        functions = tuple(
            dataclasses.replace(function, body=self._block(function.body)) for function in module.functions
        )
        constraints = tuple(map(self.constraint, module.constraints))
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
        """Return a message without the texts that it quotes, and with the ids and parameters that are shown."""
        if self._keyed is not None:
            text = self._keyed.sub(lambda found: self._parameters[found[0]], text)
        return _WORD.sub(lambda found: self._ids.get(found[0], found[0]), _QUOTED.sub(self._quoted, text))

    def _quoted(self, found: re.Match[str]) -> str:
        inner = next(each for each in found.groups() if each is not None)
        mark = found.group()[0]
        if inner in self._kept:
            return found.group()
        shown = self._ids.get(inner) or self._names.get(escape(inner)) or length_of(inner)
        return f"{mark}{shown}{mark}"

    def _shown(self, name: str, length: int) -> str:
        if name not in self._names:
            self._names[name] = self._numbered(length)
        return self._names[name]

    def _key(self, text: str) -> str:
        found = self._names.get(escape(text)) or self._keys.get(text)
        if found is None:
            found = self._keys[text] = self._numbered(len(text))
        return found

    def _keyword(self, name: str) -> str:
        return name if name in self._written else self._key(name)

    def _numbered(self, length: int) -> str:
        number = self._of_length[length] = self._of_length.get(length, 0) + 1
        return f"‹{length}›" if number == 1 else f"‹{length}·{number}›"

    def _part(self, part: str) -> str:
        """Return a part of an id: names of Python, numbers and lmc's own words stay."""
        found = _PART.fullmatch(part)
        assert found is not None
        base, use = found["base"], found["use"]
        is_kept = base in self._kept or base in _PARTS_OF_IDS or base[:1] in ("", "@") or base.isdigit()
        return part if is_kept and base not in self._names else self._shown(base, len(base)) + use

    def _block(self, block: Block) -> Block:
        return Block(tuple(map(self._value, block.parameters)), tuple(map(self.op, block.ops)))

    def _value(self, value: Value) -> Value:
        """Return a value with a number for a name: a call gives its name to its results."""
        name = value.name
        if name in self._parameters:
            return Value(self._parameters[name], value.type)
        if _NUMBERED.fullmatch(name) and not self._has_digits:
            return value
        if name not in self._values:
            number = len(self._values)
            self._values[name] = f"v{number}" + "_" * (f"v{number}" in self._parameters)
        return Value(self._values[name], value.type)

    def _redacted(self, op: Op) -> Op:
        changed: dict[str, object] = {"results": tuple(map(self._value, op.results))}
        for name, kind in op.FIELDS:
            held = getattr(op, name)
            if kind == "operand":
                changed[name] = self._value(held)
            elif kind in ("operands", "parts", "arguments"):
                changed[name] = tuple(self._value(each) if isinstance(each, Value) else _literal(each) for each in held)
            elif kind == "region":
                changed[name] = self._block(held)
            elif name == "forced":  # the tokens of a text
                changed[name] = None if held is None else ()
            elif name == "id":
                changed[name] = None if held is None else self.id(held)
            elif name in _NAMES:
                changed[name] = self.name(held) if isinstance(held, str) else held and tuple(map(self.name, held))
            elif name in _WRITTEN:
                changed[name] = tuple(map(self._keyword, _strings(held)))
            elif name not in _WORDS:
                changed[name] = _literal(held)
        return dataclasses.replace(op, **changed)


def _strings(held: object) -> Iterator[str]:
    if isinstance(held, str):
        yield held
    elif isinstance(held, tuple):
        yield from (each for each in held if isinstance(each, str))


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
        texts = list(_texts_of(text, lines))
    except (tokenize.TokenError, SyntaxError):
        return [length_of(line) for line in lines]
    found = list(lines)
    for (first, start), (last, end), shown in reversed(texts):
        rest = found[last - 1][end:]
        found[first - 1] = found[first - 1][:start] + shown + ("" if first != last else rest)
        for line in range(first, last):
            found[line] = ""
        if first != last:
            found[last - 1] = rest
    return found


_Place = tuple[int, int]
_BEGINS, _ENDS = getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "FSTRING_END", None)
"""Tokens that an f-string has since Python 3.12."""


def _texts_of(text: str, lines: Sequence[str]) -> Iterator[tuple[_Place, _Place, str]]:
    """Yield the strings and comments of a file: their beginnings, their ends, and what is shown for them."""
    depth, begin = 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        depth += (token.type == _BEGINS) - (token.type == _ENDS)
        if token.type == _BEGINS and depth == 1:
            begin = token.start
        elif token.type == _ENDS and depth == 0:
            yield begin, token.end, _string(_between(lines, begin, token.end))
        elif token.type == tokenize.STRING and depth == 0:
            yield token.start, token.end, _string(token.string)
        elif token.type == tokenize.COMMENT and depth == 0:
            yield token.start, token.end, f"#{length_of(token.string[1:])}"


def _between(lines: Sequence[str], begin: _Place, end: _Place) -> str:
    taken = [*lines[begin[0] - 1 : end[0]]]
    taken[-1] = taken[-1][: end[1]]
    taken[0] = taken[0][begin[1] :]
    return "\n".join(taken)


def _string(literal: str) -> str:
    """Return what is shown for a string of Python: the length of its text, in an f-string those of its parts."""
    with warnings.catch_warnings(action="ignore"):  # such as those for escapes that Python does not know
        try:
            held = _Lengths().visit(ast.parse(literal, mode="eval").body)
            shown = held.value if isinstance(held, ast.Constant) else ast.unparse(held)[2:-1]
        except (SyntaxError, ValueError):
            held, shown = None, length_of(literal)
    return f'{"f" * isinstance(held, ast.JoinedStr)}"{shown}"'


class _Lengths(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """Replace a text."""
        return ast.Constant(length_of(node.value)) if isinstance(node.value, str | bytes) else node
