"""The rules that every module keeps. Runs after parsing and after every pass; linear and never recursive.

Checks are ordered so that each may rely on those before it: what fields hold, then names and scopes, then the op's own
``verify``, then symbols. A module that passes can be printed, parsed back, interpreted and lowered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lmc.ir.builtins.live import hosts_of
from lmc.ir.core import Attribute, Block, Effect, HostFunction, Op, Value
from lmc.ir.dialects.core_ops import BreakOp, HostCallOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.errors import VerifyError
from lmc.ir.module import Function, Module
from lmc.ir.op_schema import MAX_INTEGER_BITS, Field, OpSchema, exceeds_bounds, is_tuple_of_values, layout_of
from lmc.ir.printer import print_name, print_symbol, print_type, print_value
from lmc.ir.types import SIMPLE_TYPES, JsonType, ListType, Type
from lmc.ir.verify.cache_hint_rules import KvHintRules
from lmc.ir.verify.constraint_rules import verify_constraint
from lmc.ir.verify.unique_ids import UniqueIds
from lmc.ir.wording import with_article

MAX_REGION_DEPTH = 64
MAX_TYPE_DEPTH = 32


def verify(module: Module, *, verified: set[Op] | None = None) -> None:
    """Raise ``VerifyError`` where ``module`` breaks a rule of the IR.

    Whoever verifies after every small change passes one set ``verified`` each time: the ops in it are known to keep the
    rules that concern an op alone, and the ops of ``module`` are added to it.
    """
    verified = set() if verified is None else verified
    _verify_names(module)
    for constraint in module.constraints:
        verify_constraint(constraint)
    for host in module.hosts:
        if host.effect in (Effect.SAMPLES, Effect.LOCAL):
            raise VerifyError(
                f"host @{host.name} can't have the effect {host.effect.value}", remedy="use pure, reads or writes"
            )
        if host.early and host.effect is Effect.WRITES:
            raise VerifyError(
                f"host @{host.name} may be called early, but writes", remedy="only what reads or is pure may be"
            )
    for function in module.functions:
        _FunctionVerifier(function, (entry.name for entry in module.constraints), module.hosts, verified).run()


def _verify_names(module: Module) -> None:
    functions = [function.name for function in module.functions]
    if (twice := _first_repeated(functions)) is not None:
        raise VerifyError(f"two functions are called @{twice}", remedy="rename one of them")
    if module.name not in functions:
        raise VerifyError(
            f"module @{module.name} has no function @{module.name}",
            remedy="the program is the function called like the module",
        )
    symbols = [symbol.name for symbol in (*module.constraints, *module.hosts)]
    if (twice := _first_repeated(symbols)) is not None:
        raise VerifyError(f"two symbols are called @{twice}", remedy="rename one of them")


@dataclass(frozen=True, slots=True)
class _Enter:
    """Work: ``block`` begins, region ``number`` of ``owner`` (None: it is the function's body)."""

    block: Block
    owner: RegionOp | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class _Leave:
    """Work: the innermost open block ends."""


@dataclass(frozen=True, slots=True)
class _Finish:
    """Work: ``op`` ends after its regions; its results come into being."""

    op: RegionOp


_Work = _Enter | Op | _Leave | _Finish
_ENDS = {
    "function": "end it with lm.return or lm.break",
    "region": "end it with cf.yield, cf.condition, lm.return or lm.break",
}


class _FunctionVerifier:
    """Checks one function, with a stack of work instead of recursion.

    ``_defined`` are all values so far, ``_visible`` the names that may be used at this place, ``_open`` the names that
    each open block defines.
    """

    def __init__(
        self, function: Function, constraints: Iterable[str], hosts: Iterable[HostFunction], verified: set[Op]
    ) -> None:
        self._function = function
        self._verified = verified
        self._constraints = frozenset(constraints)
        self._hosts = {host.name: host for host in hosts}
        self._defined: dict[str, Value] = {}
        self._visible: set[str] = set()
        self._open: list[list[str]] = []
        self._ids = UniqueIds()
        self._kept = KvHintRules()

    def run(self) -> None:
        """Raise ``VerifyError`` for the first rule that is broken, in the order of the text."""
        work: list[_Work] = [_Enter(self._function.body, None)]
        while work:
            item = work.pop()
            if isinstance(item, _Enter):
                work.append(_Leave())
                work.extend(reversed(item.block.ops))
                self._enter(item)
            elif isinstance(item, RegionOp):
                self._check_op(item)
                work.append(_Finish(item))
                regions = [_Enter(region, item, number) for number, region in enumerate(item.regions)]
                work.extend(reversed(regions))
            elif isinstance(item, Op):
                self._check_op(item)
                self._verified.add(item)
                self._define_results(item)
            elif isinstance(item, _Leave):
                self._leave()
            else:
                self._finish(item.op)

    def _enter(self, entered: _Enter) -> None:
        block, owner = entered.block, entered.owner
        kind = "function" if owner is None else "region"
        if not block.ops:
            raise self._error(owner, f"{with_article(kind)} is empty", _ENDS[kind])
        if len(self._open) > MAX_REGION_DEPTH:
            cause = f"regions are nested deeper than {MAX_REGION_DEPTH}"
            raise self._error(owner, cause, "capture less at once: call a part of the program with .eager()")
        for op in block.ops[:-1]:
            if op.IS_TERMINATOR:
                raise op.fail("stands before the end of its block", "a terminator is the last op")
        if not block.terminator.IS_TERMINATOR:
            raise block.terminator.fail("ends a block, but is no terminator", "add one, such as lm.return")
        if kind not in block.terminator.ENDS:
            raise block.terminator.fail(f"can't end {with_article(kind)}", _ENDS[kind])
        self._open.append([])
        self._kept.enter()
        for parameter in block.parameters:
            self._check_type(parameter, None)
            self._define(parameter, None)
        self._ids.enter(owner, entered.number)

    def _leave(self) -> None:
        names = self._open.pop()
        self._kept.leave(names)
        self._visible.difference_update(names)
        self._ids.leave()

    def _finish(self, op: RegionOp) -> None:
        self._ids.join(op, [not isinstance(region.terminator, LEAVING) for region in op.regions])
        if op not in self._verified:
            op.verify_regions()
            self._verified.add(op)
        self._define_results(op)

    def _define_results(self, op: Op) -> None:
        for value in op.results:
            self._define(value, op)
        self._ids.define(op)

    def _define(self, value: Value, op: Op | None) -> None:
        if value.name in self._defined:
            raise self._error(op, f"{print_value(value)} is defined twice", "give each value its own name")
        self._defined[value.name] = value
        self._visible.add(value.name)
        self._open[-1].append(value.name)

    def _check_op(self, op: Op) -> None:
        layout = layout_of(type(op))
        is_new = op not in self._verified
        if is_new:
            self._check_fields(op, layout)
        for value in op.operands:
            if value.name not in self._visible or value is not self._defined[value.name]:
                self._check_use(value, op)
        if is_new:
            op.verify()
        self._kept.check(op)
        for field in layout.symbols:
            self._check_symbol(op, field, getattr(op, field.name))
        if isinstance(op, BreakOp):
            self._check_break(op)
        if layout.has_id and getattr(op, "id", None) is not None:
            self._check_id(op)

    def _check_break(self, op: BreakOp) -> None:
        for name in sorted(hosts_of(op.record, len(op.values))):
            if name not in self._hosts:
                raise op.fail(f"no host function is called {print_symbol(name)}", "declare it at the top of the module")

    def _check_fields(self, op: Op, layout: OpSchema) -> None:
        if not is_tuple_of_values(op.results):
            raise op.fail("results are a tuple of values")
        for value in op.results:
            self._check_type(value, op)
        fields = vars(op)
        for field in layout.holders:
            held = fields[field.name]
            if held is not field.default and not field.accepts(held):
                raise op.fail(f"{field.name} does not hold {field.held}")
        for field in layout.attributes:
            value = fields[field.name]
            kind = type(value)
            if value is not field.default and (kind is int or kind not in field.type.scalars):
                self._check_attribute(op, field, value)

    def _check_attribute(self, op: Op, field: Field, value: Attribute) -> None:
        if not field.type.accepts(value):
            raise op.fail(f"{field.name} is {field.type}, not {type(value).__name__}")
        if exceeds_bounds(value):
            raise op.fail(f"{field.name} holds a number of more than {MAX_INTEGER_BITS} bits")

    def _check_use(self, value: Value, op: Op) -> None:
        defined = self._defined.get(value.name)
        if defined is None:
            raise op.fail(f"{print_name(value.name)} is used before it is defined", "define it above, in this function")
        if value.name not in self._visible:
            raise op.fail(f"{print_name(value.name)} is not visible here", "it belongs to another region")
        if value is defined:
            return
        self._check_type(value, op)
        if value.type != defined.type:
            raise op.fail(
                f"{print_value(value)} is used as {print_type(value.type)}, but defined as {print_type(defined.type)}"
            )

    def _check_symbol(self, op: Op, field: Field, name: str | None) -> None:
        if name is None:
            return
        if field.symbol == "constraint":
            if name not in self._constraints:
                raise op.fail(f"no constraint is called {print_symbol(name)}", "declare it at the top of the module")
            return
        host = self._hosts.get(name)
        if host is None:
            raise op.fail(f"no host function is called {print_symbol(name)}", "declare it at the top of the module")
        if host.effect is not op.effect:
            raise op.fail(
                f"its effect is {op.effect.value}, but {print_symbol(name)} is declared {host.effect.value}",
                "make both the same",
            )
        if isinstance(op, HostCallOp) and op.early and not host.early:
            raise op.fail(
                f"starts early, but {print_symbol(name)} may not", "declare that it may: host … {early = true}"
            )

    def _check_id(self, op: Any) -> None:
        if not self._ids.take((op.id, getattr(op, "occurrences", ()))):
            raise op.fail(
                f"two ops have the id {op.id!r}",
                "an id is unique in its function, but for arms of a cf.cond; give those in a region occurrences",
            )

    def _check_type(self, value: Value, op: Op | None) -> None:
        kind = value.type
        if type(kind) is Type and kind.name in SIMPLE_TYPES:
            return
        for _ in range(MAX_TYPE_DEPTH):
            if type(kind) is not ListType:
                break
            kind = kind.element
        else:
            raise self._error(
                op,
                f"the type of {print_name(value.name)} is nested deeper than {MAX_TYPE_DEPTH}",
                "use !any for the inner part",
            )
        if type(kind) is not JsonType and not (type(kind) is Type and kind.name in SIMPLE_TYPES):
            raise self._error(op, f"the type of {print_name(value.name)} is unknown", "see lmc/ir/types.py")

    def _error(self, op: Op | None, cause: str, remedy: str) -> VerifyError:
        if op is not None:
            return op.fail(cause, remedy)
        return VerifyError(f"func @{self._function.name}: {cause}", remedy=remedy)


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
