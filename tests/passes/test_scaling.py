"""Compile time grows with the program, not faster: a chain, a fan-out, calls one after the other, long texts …"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from lmc.backend.lower import lower
from lmc.ir.builder import Builder
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import BeginOp, ConcatOp, ContextOp, EndOp, ExtendOp, GenOp, PyCallOp, ReturnOp, SelectOp
from lmc.ir.engine.target import Target
from lmc.ir.module import Function, Module
from lmc.ir.types import ANY, CTX, TEXT, list_of
from lmc.passes import pipeline
from tests.work import calls_of

pytestmark = pytest.mark.slow("compiles programs of thousands of ops")

SMALL = 250 if os.environ.get("LMC_TEST_FULL") == "1" else 100
GROWTH = 8
TOY = Target.parse("toy")
X = Value("x", TEXT)


def _module(builder: Builder, context: Value, text: Value) -> Module:
    builder.emit(ReturnOp, context=context, values=(text,), structure='{"leaf":0}')
    return Module("f", (Function("f", builder.block()),))


def _start(builder: Builder) -> Value:
    (context,) = builder.emit(ContextOp, [CTX])
    (context,) = builder.emit(ExtendOp, [CTX], context=context, role="system", text=("You are helpful.",))
    return context


def chain(count: int) -> Module:
    builder = Builder([X])
    context, text = _start(builder), X
    for index in range(count):
        (context,) = builder.emit(ExtendOp, [CTX], context=context, role="user", text=("Question ", str(index), X))
        context, text = builder.emit(GenOp, [CTX, TEXT], context=context, id=f"f/{index}")
    return _module(builder, context, text)


def fan_out(count: int) -> Module:
    builder = Builder([X])
    root = _start(builder)
    texts: list[Value] = []
    for index in range(count):
        (branch,) = builder.emit(ExtendOp, [CTX], context=root, role="user", text=(f"Question {index} ", X))
        _, text = builder.emit(GenOp, [CTX, TEXT], context=branch, id=f"f/{index}")
        texts.append(text)
    (items,) = builder.emit(PyCallOp, [list_of(TEXT)], function="list", arguments=tuple(texts))
    (joined,) = builder.emit(PyCallOp, [TEXT], function="str.join", arguments=("\n", items))
    (root,) = builder.emit(ExtendOp, [CTX], context=root, role="user", text=(joined,))
    return _module(builder, *builder.emit(GenOp, [CTX, TEXT], context=root, id="f/last"))


def calls(count: int) -> Module:
    builder = Builder([X])
    context, text = _start(builder), X
    for index in range(count):
        context = _start(builder)
        (context,) = builder.emit(BeginOp, [CTX], context=context, role="user")
        (context,) = builder.emit(ExtendOp, [CTX], context=context, text=("Improve: ", text))
        (context,) = builder.emit(EndOp, [CTX], context=context)
        context, text = builder.emit(GenOp, [CTX, TEXT], context=context, id=f"f/{index}")
        (text,) = builder.emit(ConcatOp, [TEXT], text=("Once more: ", text))
    return _module(builder, context, text)


def texts(count: int) -> Module:
    builder = Builder([X])
    context, left, right = _start(builder), X, X
    for _ in range(2 * count):
        (context,) = builder.emit(ExtendOp, [CTX], context=context, text=("a", X))
        (left,) = builder.emit(ConcatOp, [TEXT], text=(left, "b"))
        (right,) = builder.emit(ConcatOp, [TEXT], text=("c", right))
    (context,) = builder.emit(ExtendOp, [CTX], context=context, text=(left, right))
    return _module(builder, *builder.emit(GenOp, [CTX, TEXT], context=context, id="f/last"))


def extends(count: int) -> Module:
    builder = Builder([X])
    (context,) = builder.emit(ContextOp, [CTX])
    for index in range(2 * count):
        (context,) = builder.emit(ExtendOp, [CTX], context=context, text=(f"line {index} ", X))
    return _module(builder, *builder.emit(GenOp, [CTX, TEXT], context=context, id="f/last"))


def selects(count: int) -> Module:
    builder = Builder([X])
    context, text = _start(builder), X
    for index in range(count):
        made = builder.emit(SelectOp, [CTX, TEXT, ANY], context=context, choices=("yes", "no"), id=f"f/{index}")
        context, text, _ = made
    return _module(builder, context, text)


def forks(count: int) -> Module:
    builder = Builder([X])
    context = _start(builder)
    for index in range(count // 2):
        texts: list[Value] = []
        for name in ("style", "tone"):
            (branch,) = builder.emit(ExtendOp, [CTX], context=context, role="user", text=("Judge the ", name))
            texts += builder.emit(GenOp, [CTX, TEXT], context=branch, id=f"f/fork/{index}/{name}")[1:]
        (context,) = builder.emit(ExtendOp, [CTX], context=context, role="user", text=tuple(texts))
    return _module(builder, *builder.emit(GenOp, [CTX, TEXT], context=context, id="f/last"))


def nested(count: int) -> Module:
    """Sub-programs in sub-programs: all contexts begin before the first call, and the innermost ends first."""
    builder = Builder([X])
    contexts: list[Value] = []
    for _ in range(count // 2):
        contexts.append(_start(builder))
    text = X
    for index, context in enumerate(reversed(contexts)):
        (asked,) = builder.emit(ExtendOp, [CTX], context=context, role="user", text=("Given ", text, ", go on."))
        _, answer = builder.emit(GenOp, [CTX, TEXT], context=asked, id=f"f/{index}")
        (text,) = builder.emit(PyCallOp, [TEXT], function="str.strip", arguments=(answer,))
    return _module(builder, contexts[0], text)


@pytest.mark.parametrize("shape", [chain, fan_out, calls, texts, extends, selects, forks, nested])
def test_work_is_linear(shape: Callable[[int], Module]):
    small, large = shape(SMALL), shape(SMALL * GROWTH)
    passes = pipeline("O2")

    def calls(module: Module) -> int:
        return calls_of(lambda: lower(passes.run(module).module, TOY))

    calls(small)  # what is made once
    assert calls(large) < 1.5 * GROWTH * calls(small)  # quadratic work makes GROWTH**2 times as many
