"""The walk of ``canonicalize``, and its folds of texts and Python values."""

from __future__ import annotations

import dataclasses
import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.builtins import builtins
from lmc.ir.core import Attribute, Block, Op, Value, walk
from lmc.ir.dialects.core_ops import BeginOp, ConcatOp, ExtendOp, HostCallOp, PrefillOp, PyCallOp
from lmc.ir.errors import Location
from lmc.ir.types import ANY, SCALARS, TEXT, ListType, Type, type_of
from lmc.passes.analysis.liveness import exposed_values
from lmc.passes.rewriting import make_op


class Rope:
    """Immutable text made of literals, ``!text`` values and other ropes.

    ``size`` is the number of its parts, adjacent literals counting as one, ``characters`` the length of its literals,
    ``is_literal`` says that it holds no value. None of them is recomputed when ropes are nested.
    """

    __slots__ = ("characters", "ends_literal", "is_literal", "pieces", "size", "starts_literal")

    def __init__(self, pieces: Sequence[str | Value | Rope]) -> None:
        self.pieces = tuple(piece for piece in pieces if not _is_nothing(piece))
        self.starts_literal = bool(self.pieces) and _starts_literal(self.pieces[0])
        self.ends_literal = bool(self.pieces) and _ends_literal(self.pieces[-1])
        joints = zip(self.pieces, self.pieces[1:], strict=False)
        joined = sum(_ends_literal(left) and _starts_literal(right) for left, right in joints)
        self.size = sum(piece.size if isinstance(piece, Rope) else 1 for piece in self.pieces) - joined
        self.characters = sum(
            piece.characters if isinstance(piece, Rope) else len(piece)
            for piece in self.pieces
            if not isinstance(piece, Value)
        )
        self.is_literal = self.size == 0 or (self.size == 1 and self.starts_literal)

    @property
    def is_empty(self) -> bool:
        """True for the empty text, whatever values there are."""
        return not self.pieces

    def parts(self) -> tuple[str | Value, ...]:
        """The parts of an op: adjacent literals joined, no empty ones."""
        found: list[str | Value] = []
        literal: list[str] = []
        for leaf in self._leaves():
            if isinstance(leaf, str):
                literal.append(leaf)
                continue
            if literal:
                found.append("".join(literal))
                literal.clear()
            found.append(leaf)
        if literal:
            found.append("".join(literal))
        return tuple(found)

    def values(self) -> Iterator[Value]:
        """Every value in it, in order, repeats included."""
        return (leaf for leaf in self._leaves() if isinstance(leaf, Value))

    def text(self) -> str:
        """The text of a rope that ``is_literal``."""
        return "".join(leaf for leaf in self._leaves() if isinstance(leaf, str))

    def _leaves(self) -> Iterator[str | Value]:
        stack = [iter(self.pieces)]
        while stack:
            piece = next(stack[-1], None)
            if piece is None:
                stack.pop()
            elif isinstance(piece, Rope):
                stack.append(iter(piece.pieces))
            else:
                yield piece


def _is_nothing(piece: str | Value | Rope) -> bool:
    return not piece if isinstance(piece, str) else isinstance(piece, Rope) and not piece.pieces


def _starts_literal(piece: str | Value | Rope) -> bool:
    return piece.starts_literal if isinstance(piece, Rope) else isinstance(piece, str)


def _ends_literal(piece: str | Value | Rope) -> bool:
    return piece.ends_literal if isinstance(piece, Rope) else isinstance(piece, str)


_MAX_CHARACTERS = 4096
_MAX_BITS = 1024

# Time and size of the result are linear in the arguments.
_LINEAR = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "str", "repr", "ascii", "int", "float", "bool", "not", "and", "or", "choose"}
    | {"len", "contains", "getitem", "slice", "add", "sub", "truediv", "floordiv", "neg", "pos", "abs", "ord", "chr"}
    | {"str.strip", "str.lstrip", "str.rstrip", "str.lower", "str.upper", "str.title", "str.capitalize"}
    | {"str.casefold", "str.swapcase", "str.removeprefix", "str.removesuffix", "str.startswith", "str.endswith"}
    | {"str.isalpha", "str.isdigit", "str.isdecimal", "str.isnumeric", "str.isalnum", "str.isspace", "str.isupper"}
    | {"str.islower", "str.istitle", "str.isidentifier", "str.isprintable", "str.isascii"}
    | {"str.find", "str.rfind", "str.count", "str.index", "str.rindex", "min", "max"}
)
# The result can be far larger than the arguments: widths, repetitions, powers. Run only on small ones, whose results
# have at most about ten times as many characters as the product of their lengths.
_GROWING = frozenset(
    {"mul", "mod", "pow", "round", "percent", "format", "str.format", "str.replace", "str.center", "str.ljust"}
    | {"str.rjust", "str.zfill", "str.expandtabs"}
)
_FORMATS = {"format": 1, "str.format": 0}
_SMALL_NUMBER = 64
_MAX_PRODUCT = 16_384
_LARGE_WIDTH = re.compile(r"\d{3}")


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of a call: a literal."""

    value: Attribute


def fold_call(function: str, arguments: Sequence[Any], keywords: Sequence[str], result: Type) -> Folded | None:
    """The result of ``function`` on literal ``arguments`` (the last ones named by ``keywords``), if it is a literal.

    None where the call is not known to be cheap, raises, gives something of another type than ``result``, or a text or
    number that is too large for a module.
    """
    builtin = builtins.lookup(function)
    if builtin is None or not all(map(_is_small, arguments)):
        return None
    if function not in _LINEAR and not (function in _GROWING and _stays_small(function, arguments)):
        return None
    split = len(arguments) - len(keywords)
    try:
        value = builtin.run(*arguments[:split], **dict(zip(keywords, arguments[split:], strict=True)))
    except Exception:  # it is the user's expression: it shall raise when the program runs, not here
        return None
    return Folded(value) if _is_small(value) and result in (ANY, type_of(value)) else None


def _is_small(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _MAX_CHARACTERS
    if isinstance(value, int):
        return value.bit_length() <= _MAX_BITS
    return type(value) in SCALARS


def _stays_small(function: str, arguments: Sequence[Any]) -> bool:
    """Return True if a function that may expand its arguments has a small result for these."""
    if not all(map(_is_tiny, arguments)):
        return False
    lengths = [max(len(argument), 1) for argument in arguments if isinstance(argument, str)]
    if math.prod(lengths) > _MAX_PRODUCT:
        return False
    place = _FORMATS.get(function)
    if place is None or len(arguments) <= place:
        return True
    template = arguments[place]
    if not isinstance(template, str):
        return False
    return _is_plain(template) if function == "str.format" else not template.endswith("n")


def _is_tiny(value: object) -> bool:
    """Return True for a text without a large width, and for a small number."""
    if isinstance(value, str):
        return not _LARGE_WIDTH.search(value)
    return not isinstance(value, int | float) or abs(value) <= _SMALL_NUMBER


def _is_plain(template: str) -> bool:
    """Return True if the fields of a template for ``str.format`` only name arguments, with literal widths.

    Widths may be fields themselves (``{:{}{}{}}``), and joined they are large. Attributes of a value may show its
    address. ``n`` writes numbers as the machine's locale has it.
    """
    try:
        fields = [*string.Formatter().parse(template)]
    except ValueError:
        return False
    return all(_is_plain_field(name, spec or "") for _, name, spec, _ in fields if name is not None)


def _is_plain_field(name: str, spec: str) -> bool:
    return (not name or name.isdecimal() or name.isidentifier()) and "{" not in spec and not spec.endswith("n")


# A text that several ops use is copied into them only where it is short, so that modules can't blow up.
_SHARED_SIZE = 16
_SHARED_CHARACTERS = 1024
# All copies of one text together, or of the separator of one join.
_COPIED_CHARACTERS = 16_384
_SHORT_SEPARATOR = 64
_AS_LONG = frozenset({"enumerate", "reversed", "sorted"})
"""Builtins that give a list as long as their first argument."""


class TextWalk:
    """A forward walk over a function in which later ops may take the place of earlier ones; its folds of texts, values.

    An op that a later one absorbs is taken out of ``ops``, the ops of the open block so far; both are in one block,
    so that nothing is computed more often than before. ``uses`` counts the operands that name a value in the function
    as it stands, regions included; ``ropes`` are the texts of ``lm.extend`` and ``text.concat`` by result, written when
    their block ends. ``constants`` are values known to be a literal.
    """

    def __init__(self, block: Block) -> None:
        self.uses = Counter(value for op in walk((block,)) for value in op.operands)
        self.ops: list[Op | None] = []
        self.ropes: dict[Value, Rope] = {}
        self.replaced: dict[Value, Value] = {}
        self.exposed = exposed_values(block)
        self.constants: dict[Value, Attribute] = {}
        self.kept_lists: set[Value] = set()
        self.folded: list[Value] = []
        self._missed: dict[Value, int] = {}
        self._places: dict[Value, tuple[list[Op | None], int]] = {}

    def emit(self, op: Op) -> None:
        """Append ``op``."""
        self._places.update((value, (self.ops, len(self.ops))) for value in op.results)
        self.ops.append(op)

    def definition(self, value: Value) -> Op | None:
        """The op that gives ``value``, in this block or one around it; None for a parameter and for what is gone."""
        if value not in self._places:
            return None
        ops, position = self._places[value]
        return ops[position]

    def is_here(self, value: Value) -> bool:
        """Return True if an op of the open block defines ``value``."""
        return value in self._places and self._places[value][0] is self.ops

    def expect(self, value: Value, uses: int) -> bool:
        """Return True if ``value`` has at most ``uses`` users; else note it: they may become fewer further down."""
        if self.uses[value] <= uses:
            return True
        self._missed[value] = max(uses, self._missed.get(value, 0))
        return False

    @property
    def misses(self) -> bool:
        """Return True if a value has lost users since ``expect`` refused it: another walk would find that."""
        return any(self.uses[value] <= uses and value in self._places for value, uses in self._missed.items())

    def remove(self, value: Value) -> None:
        """Take the op that gives ``value`` out of its block."""
        ops, position = self._places[value]
        ops[position] = None

    def absorb(self, value: Value) -> None:
        """Take the op that gives ``value`` out of the block: its only user takes its place, and its operands over."""
        self.remove(value)
        self.uses[value] -= 1

    def forward(self, op: Op, value: Value) -> None:
        """Leave ``op`` out and let ``value``, its operand, stand for its only result."""
        self.uses.subtract(op.operands)
        self.stand_for(op.results[0], value)

    def stand_for(self, old: Value, new: Value) -> None:
        """Let ``new`` take over all uses of ``old``."""
        self.uses[new] += self.uses.pop(old, 0)
        self.replaced[old] = new

    def forget(self, ops: Iterable[Op]) -> None:
        """Give up what ``ops`` and their regions use: they are not visited."""
        for op in walk((Block((), tuple(ops)),)):
            self.uses.subtract(self.replaced.get(value, value) for value in op.operands)

    def reuse(self, op: ExtendOp | BeginOp | PrefillOp, context: Value) -> Any:
        """``op`` on another context."""
        self.uses[op.context] -= 1
        self.uses[context] += 1
        return dataclasses.replace(op, context=context)

    def written(self) -> list[Op]:
        """The ops of the open block that are left, with their texts."""
        return [self._written(op) for op in self.ops if op is not None]

    def _written(self, op: Op) -> Op:
        if not isinstance(op, ExtendOp | ConcatOp):
            return op
        parts = self.ropes[op.results[0]].parts()
        return op if parts == op.text else dataclasses.replace(op, text=parts)

    # Folds

    def drop_folded(self) -> None:
        """Take out the calls of the open block whose results stand as literals everywhere."""
        for value in self.folded:
            if not self.uses[value]:
                self.remove(value)
        self.folded.clear()

    def concat(self, op: ConcatOp) -> None:
        """``text.concat``: in the shortest form; one text alone stands for the op."""
        rope = self.rope_of(op.text)
        if len(rope.pieces) == 1 and isinstance(rope.pieces[0], Value):
            self.forward(dataclasses.replace(op, text=rope.pieces), rope.pieces[0])
            return
        self.ropes[op.results[0]] = rope
        self.emit(op)

    def rope_of(self, text: Sequence[str | Value]) -> Rope:
        """The text of an op, with what its parts stand for."""
        return Rope([self._piece(part) for part in text])

    def _piece(self, part: str | Value) -> str | Value | Rope:
        """Return the replacement of ``part`` in its user: the parts of a text that is short or has no other use."""
        if isinstance(part, str):
            return part
        constant = self.constants.get(part)
        if isinstance(constant, str) and len(constant) <= _SHARED_CHARACTERS:
            self.uses[part] -= 1
            return constant
        before = self.definition(part)
        if not isinstance(before, ConcatOp):
            return part
        rope = self.ropes[part]
        if self.uses[part] == 1 and self.is_here(part):
            self.absorb(part)
            return rope
        if not self._may_copy(part, rope):
            return part
        self.uses[part] -= 1
        self.uses.update(rope.values())
        return rope

    def _may_copy(self, text: Value, rope: Rope) -> bool:
        """Return True if ``text`` is so short that each of its users may hold it."""
        if rope.size > _SHARED_SIZE or rope.characters > _SHARED_CHARACTERS:
            self.expect(text, 1)
            return False
        copies = _COPIED_CHARACTERS // max(rope.characters, 1)
        return self.expect(text, copies)

    def py_call(self, op: PyCallOp) -> None:
        """``py.call``: run now where it can be, a text where it gives one."""
        op = self._measured(self.with_literals(op))
        if not op.operands:
            folded = fold_call(op.function, op.arguments, op.keywords, op.results[0].type)
            if folded is not None:
                self._fold(op, folded.value)
                return
        same = self._same_text(op)
        if same is not None:
            self.forward(op, same)
            return
        text = self._as_parts(op)
        if text is None:
            self.emit(op)
            return
        self.uses.update(part for part in text if isinstance(part, Value))
        self._release(op)
        self.concat(make_op(ConcatOp, op.results, op.location, text=text))

    def _release(self, op: PyCallOp) -> None:
        """Give up the operands of ``op``, and a list among them without other users."""
        self.uses.subtract(op.operands)
        for value in op.operands:
            listed = self.definition(value)
            if isinstance(listed, PyCallOp) and not listed.may_raise and not self.uses[value]:
                self.remove(value)
                self.uses.subtract(listed.operands)

    def _fold(self, op: PyCallOp, value: Attribute) -> None:
        if isinstance(value, str) and op.results[0].type == TEXT:
            self.concat(make_op(ConcatOp, op.results, op.location, text=(value,)))
            return
        # There is no op for other literals: users take the value, and the call goes where none needs its result.
        self.constants[op.results[0]] = value
        self.folded.append(op.results[0])
        self.emit(op)

    def define(self, value: Value, literal: Attribute, location: Location | None) -> None:
        """Give ``value``, which no op gives any more, as the literal that it is known to be."""
        if isinstance(literal, str) and value.type == TEXT:
            self.concat(make_op(ConcatOp, (value,), location, text=(literal,)))
            return
        self.constants[value] = literal
        self.folded.append(value)
        self.emit(make_op(PyCallOp, (value,), location, function="choose", arguments=(True, literal, literal)))

    def _measured(self, op: PyCallOp) -> PyCallOp:
        """``len`` of a list that has as many items as another one: the length of that."""
        match op.function, op.arguments:
            case "len", (Value() as items,):
                before = self.definition(items)
            case _:
                return op
        if not isinstance(before, PyCallOp) or before.function not in _AS_LONG or before.keywords:
            return op
        source = before.arguments[0]
        if not isinstance(source, Value) or source in self.exposed or not isinstance(source.type, ListType):
            return op
        self.uses[items] -= 1
        self.uses[source] += 1
        return dataclasses.replace(op, arguments=(source,))

    def _same_text(self, op: PyCallOp) -> Value | None:
        """The argument that ``op`` gives back unchanged, if it does."""
        if op.keywords:
            return None
        match op.function, op.arguments:
            case ("str", (Value(type=kind) as text,)) | ("format", (Value(type=kind) as text,)) if kind == TEXT:
                return text
            case "format", (Value(type=kind) as text, "") if kind == TEXT:
                return text
            case "choose", (bool(condition), when_true, when_false):
                chosen = when_true if condition else when_false
                return chosen if isinstance(chosen, Value) and chosen.type == op.results[0].type else None
            case _:
                return None

    def _as_parts(self, op: PyCallOp) -> tuple[Any, ...] | None:
        """The parts whose concatenation ``op`` gives, if it is one."""
        if op.keywords or op.results[0].type != TEXT:
            return None
        match op.function, op.arguments:
            case "add", (left, right) if _is_text(left) and _is_text(right):
                return (left, right)
            case "str.join", (separator, Value() as items) if _is_text(separator):
                return self._joined(separator, items)
            case _:
                return None

    def _joined(self, separator: Attribute | Value, items: Value) -> tuple[Any, ...] | None:
        listed = self.definition(items)
        if not isinstance(listed, PyCallOp) or listed.function not in ("list", "tuple") or listed.keywords:
            return None
        texts = listed.arguments
        if not all(map(_is_text, texts)) or not _is_short(separator, len(texts)):
            return None
        if items in self.exposed:
            self.kept_lists.add(items)
            return None
        if len(texts) > _SHARED_SIZE and not self.expect(items, 1):
            return None
        parts: list[Any] = []
        for text in texts:
            parts += [separator, text]
        return tuple(parts[1:])

    def host_call(self, op: HostCallOp) -> None:
        """``host.call``: with the literals that its arguments are known to be."""
        self.emit(self.with_literals(op))

    def with_literals(self, op: Any, field: str = "arguments") -> Any:
        """``op`` with the values in ``field`` replaced by the literals they are known to be."""
        held = getattr(op, field)
        entries = tuple(map(self.literal, held))
        if all(new is old for new, old in zip(entries, held, strict=True)):
            return op
        self.uses.subtract(op.operands)
        new = dataclasses.replace(op, **{field: entries})
        self.uses.update(new.operands)
        return new

    def literal(self, argument: Any) -> Any:
        """The literal that ``argument`` is known to be, else ``argument``."""
        if not isinstance(argument, Value):
            return argument
        if argument in self.constants:
            return self.constants[argument]
        rope = self.ropes.get(argument) if argument.type == TEXT else None
        if rope is None or not rope.is_literal or not self._may_copy(argument, rope):
            return argument
        return rope.text()


def _is_text(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, Value) and part.type == TEXT)


def _is_short(separator: Attribute | Value, count: int) -> bool:
    """Return True if ``separator`` may be written between ``count`` texts."""
    if not isinstance(separator, str) or len(separator) <= _SHORT_SEPARATOR:
        return True
    return len(separator) * count <= _COPIED_CHARACTERS
