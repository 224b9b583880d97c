from __future__ import annotations

import pytest

from lmc.ir.builder import Builder
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import ContextOp, GenOp, ReturnOp
from lmc.ir.errors import Location
from lmc.ir.module import Function, Module
from lmc.ir.types import CTX, TEXT
from lmc.ir.verify.verifier import verify


def test_results_are_numbered_around_names_that_are_taken():
    builder = Builder([Value("1", TEXT)])
    (first,) = builder.emit(ContextOp, [CTX])
    second, text = builder.emit(GenOp, [CTX, TEXT], context=first, id="a")
    assert [first.name, second.name, text.name] == ["0", "2", "3"]


def test_wishes_are_granted_while_they_are_free():
    builder = Builder([Value("x", TEXT)])
    names = [builder.fresh_name(wish) for wish in ("x", "x", "y", "x_1", "y")]
    assert names == ["x_1", "x_2", "y", "x_1_1", "y_1"]


def test_wishes_stand_for_the_first_results():
    builder = Builder()
    (context,) = builder.emit(ContextOp, [CTX], names=["s"])
    after, text = builder.emit(GenOp, [CTX, TEXT], names=[None, "verdict"], context=context, id="a")
    assert (context.name, after.name, text.name) == ("s", "0", "verdict")


def test_more_wishes_than_results_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        Builder().emit(ContextOp, [CTX], names=["a", "b"])


def test_the_block_holds_what_was_emitted_so_far():
    builder = Builder([Value("x", TEXT)])
    (context,) = builder.emit(ContextOp, [CTX], location=Location("a.py", 1))
    before = builder.block()
    builder.emit(ReturnOp, context=context)
    assert len(before.ops) == 1
    assert before.ops[0].location == Location("a.py", 1)
    verify(Module("m", (Function("m", builder.block()),)))
