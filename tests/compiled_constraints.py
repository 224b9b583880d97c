"""Constraints in the toy's tokens, and generations under a few of them that can't be cut off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from lmc.driver.targets.constraints import compiler
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.core import Constraint
from lmc.ir.engine.protocol import JUMP_FORWARD
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Compile, Constraints, Reader, constraints_of
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, Type, json_of

CACHE = ConstraintCache()
_OBJECT = '{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}},"required":["b"]}'
# What the toy brings to an end long before that many tokens.
_ENOUGH = 300
CASES: tuple[tuple[Constraint, Type], ...] = (
    (Constraint("letters", "regex", "[a-c]{1,3}"), TEXT),
    (Constraint("words", "choices", '["yes","no","one"]'), TEXT),
    (Constraint("again", "regex", "(?:[a-c]){1,3}"), TEXT),
    (Constraint("forced", "regex", "(ab){2}"), TEXT),
    (Constraint("nothing", "regex", "()"), TEXT),
    (Constraint("whole", "dtype", "int"), INT),
    (Constraint("number", "dtype", "float"), FLOAT),
    (Constraint("truth", "dtype", "bool"), BOOL),
    (Constraint("object", "schema", _OBJECT), json_of("object")),
    (Constraint("spaced", "schema", '{"type":"array","items":{"type":"boolean"}}', "flexible"), json_of("spaced")),
    (Constraint("fixed", "schema", '{"const":{"k":[1,null]}}'), json_of("fixed")),
    (Constraint("nested", "grammar", 'start: "(" start ")" | "x"'), TEXT),
)
SYMBOLS = tuple(symbol for symbol, _ in CASES)


def compile_for_toy() -> Compile:
    """What compiles symbols for the toy; all tests of a process share what it made."""
    return compiler(CACHE, toy_tokenizer())


def toy_constraints(module: Module, readers: Mapping[str, Reader] | None = None) -> Constraints:
    """The constraints of ``module`` in the toy's tokens."""
    return constraints_of(module, compile_for_toy(), readers)


@st.composite
def constrained_sampling(draw: st.DrawFn) -> tuple[Type, dict[str, Any]]:
    """The type of a generation's value, and what of its fields a constraint asks for; mostly none does."""
    if draw(st.integers(0, 2)):
        return TEXT, {}
    symbol, kind = draw(st.sampled_from(CASES))
    fields = {"constraint": symbol.name, "max_tokens": _ENOUGH, "stop": ()}
    return kind, {**fields, "jump_forward": draw(st.sampled_from(JUMP_FORWARD))}
