from __future__ import annotations

import json
import math
from typing import Any

import pytest

from lmc.ir.core import Effect, Op, Value
from lmc.ir.dialects.core_ops import (
    AssumeOp,
    BeginOp,
    BreakOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    FreeOp,
    GenOp,
    HostCallOp,
    KeepOp,
    LocalCallOp,
    MessagesOp,
    PrefillOp,
    PyCallOp,
    ReturnOp,
    SampleOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.engine.protocol import SamplingParams
from lmc.ir.errors import Location, VerifyError
from lmc.ir.types import ANY, BOOL, CTX, INT, TEXT, json_of, list_of
from tests.ir.region_ops import make

C, D = Value("c", CTX), Value("d", CTX)
B = Value("b", BOOL)
T, U, N, A = Value("t", TEXT), Value("u", TEXT), Value("n", INT), Value("a", ANY)
TEXTS = Value("l", list_of(TEXT))
JSON = Value("j", json_of("Verdict"))


RECORD = '{"cells":[],"frames":[{}]}'


def record_of(value: Any) -> str:
    return json.dumps({"cells": [], "frames": [{"names": [["x", value]]}]})


def gen(*results: Value, **fields: Any) -> Op:
    return make(GenOp, *(results or (D, U)), **{"context": C, "id": "i", **fields})


def sample(*results: Value, **fields: Any) -> Op:
    return make(SampleOp, *(results or (TEXTS,)), **{"context": C, "id": "i", "n": 2, **fields})


def select(*results: Value, **fields: Any) -> Op:
    return make(SelectOp, *(results or (D, U, A)), **{"context": C, "id": "i", "choices": ("a", "b"), **fields})


def call(*results: Value, **fields: Any) -> Op:
    return make(PyCallOp, *(results or (U,)), **{"function": "str", **fields})


def local(*results: Value, **fields: Any) -> Op:
    return make(LocalCallOp, *(results or (A,)), **{"function": "list", **fields})


def host(*results: Value, **fields: Any) -> Op:
    return make(HostCallOp, *(results or (A,)), **{"host": "h", "id": "i", **fields})


@pytest.mark.parametrize(
    "op",
    [
        make(ContextOp, C),
        make(ExtendOp, D, context=C, text=("a", T)),
        make(ExtendOp, D, context=C, role="tool"),
        make(SectionsOp, D, context=C, role="user", text=("a", T), lengths=(0, 2), kinds=("text", "movable")),
        make(SectionsOp, D, context=C, lengths=(), kinds=()),
        make(BeginOp, D, context=C, role="user"),
        make(EndOp, D, context=C),
        make(PrefillOp, D, context=C, scope="batch"),
        make(KeepOp, context=C, next_use=0),
        make(FreeOp, context=C, after=(T, D)),
        make(FreeOp, context=C, next_use=3),
        make(TranscriptOp, U, context=C),
        make(ConcatOp, U, text=("a", T)),
        gen(),
        gen(D, U, A, logprobs=0),
        gen(D, JSON, constraint="c0"),
        gen(D, N, constraint="c0", jump_forward="canonical"),
        gen(constraint="c0", forced=()),
        sample(constraint="c0", forced=(1, 2)),
        gen(wave=0, group="g"),
        gen(max_tokens=4, expected_tokens=0),
        sample(max_tokens=4, expected_tokens=4),
        sample(),
        sample(TEXTS, A, logprobs=100),
        sample(Value("l", list_of(JSON.type)), constraint="c0"),
        select(),
        select(choices=(T, "b")),
        select(choices=(TEXTS,), method="greedy_token", wave=3),
        call(arguments=(T, 1), keywords=("x",)),
        host(arguments=(T, 1), keywords=("x",), declared="pure"),
        make(AssumeOp, value=N, expected=1),
        make(ReturnOp, context=C, values=(T,), structure='{"leaf":0}', variables=(N,), variable_names=("n",)),
        make(BreakOp, values=(C, T, N), record=RECORD),
        make(
            BreakOp, values=(C, T), record='{"cells":[{"list":[{"leaf":1}]}],"frames":[{"names":[["s",{"leaf":0}]]}]}'
        ),
    ],
)
def test_what_is_right_verifies(op: Op):
    op.verify()


@pytest.mark.parametrize(
    ("op", "cause"),
    [
        (make(ContextOp), "lm.context: results are (), should be (!ctx)"),
        (make(ContextOp, T), "lm.context: results are (!text), should be (!ctx)"),
        (make(ExtendOp, D, context=T), "lm.extend: %t is !text, a context (!ctx) is needed"),
        (make(ExtendOp, D, context=C, role="boss"), "lm.extend: unknown role 'boss'"),
        (make(ExtendOp, D, context=C, text=(N,)), "lm.extend: %n is !int, text is needed"),
        (make(ExtendOp, context=C), "lm.extend: results are (), should be (!ctx)"),
        (make(SectionsOp, D, context=T, lengths=(), kinds=()), "lm.sections: %t is !text, a context (!ctx) is needed"),
        (make(SectionsOp, D, context=C, role="boss", lengths=(), kinds=()), "lm.sections: unknown role 'boss'"),
        (make(SectionsOp, D, context=C, text=(N,), lengths=(1,), kinds=("text",)), "lm.sections: %n is !int, text is"),
        (make(SectionsOp, D, context=C, lengths=(0,), kinds=("odd",)), "lm.sections: unknown kind of section 'odd'"),
        (make(SectionsOp, D, context=C, lengths=(0,), kinds=()), "lm.sections: kinds and lengths differ in number"),
        (
            make(SectionsOp, D, context=C, text=("a",), lengths=(2,), kinds=("text",)),
            "lm.sections: lengths don't add up to the parts of the text",
        ),
        (
            make(SectionsOp, D, context=C, lengths=(1, -1), kinds=("text", "text")),
            "lm.sections: lengths don't add up to the parts of the text",
        ),
        (make(SectionsOp, T, context=C, lengths=(), kinds=()), "lm.sections: results are (!text), should be (!ctx)"),
        (make(BeginOp, D, context=C, role=""), "lm.begin: unknown role ''"),
        (make(BeginOp, D, context=N, role="user"), "lm.begin: %n is !int, a context (!ctx) is needed"),
        (make(BeginOp, T, context=C, role="user"), "lm.begin: results are (!text), should be (!ctx)"),
        (make(EndOp, D, context=N), "lm.end: %n is !int, a context (!ctx) is needed"),
        (make(EndOp, context=C), "lm.end: results are (), should be (!ctx)"),
        (make(PrefillOp, D, context=N), "lm.prefill: %n is !int, a context (!ctx) is needed"),
        (make(PrefillOp, D, context=C, scope="all"), "lm.prefill: unknown scope 'all'"),
        (make(PrefillOp, context=C), "lm.prefill: results are (), should be (!ctx)"),
        (make(KeepOp, context=N, next_use=0), "lm.keep: %n is !int, a context (!ctx) is needed"),
        (make(KeepOp, context=C, next_use=-1), "lm.keep: next_use is -1"),
        (make(KeepOp, T, context=C, next_use=0), "lm.keep: results are (!text), should be ()"),
        (make(FreeOp, context=N), "lm.free: %n is !int, a context (!ctx) is needed"),
        (make(FreeOp, context=C, next_use=-1), "lm.free: next_use is -1"),
        (make(FreeOp, T, context=C), "lm.free: results are (!text), should be ()"),
        (make(TranscriptOp, U, context=T), "lm.transcript: %t is !text, a context (!ctx) is needed"),
        (make(TranscriptOp, D, context=C), "lm.transcript: results are (!ctx), should be (!text)"),
        (make(MessagesOp, A, context=T), "lm.messages: %t is !text, a context (!ctx) is needed"),
        (make(MessagesOp, U, context=C), "lm.messages: results are (!text), should be (!any)"),
        (make(ConcatOp, U, text=(A,)), "text.concat: %a is !any, text is needed"),
        (make(ConcatOp, A), "text.concat: results are (!any), should be (!text)"),
        (gen(context=T), "lm.gen: %t is !text, a context (!ctx) is needed"),
        (gen(max_tokens=0), "lm.gen: max_tokens is at least 1"),
        (gen(min_tokens=-1), "lm.gen: min_tokens lies between 0 and max_tokens"),
        (gen(min_tokens=9, max_tokens=8), "lm.gen: min_tokens lies between 0 and max_tokens"),
        (gen(temperature=-0.1), "lm.gen: temperature is finite and not negative"),
        (gen(temperature=math.inf), "lm.gen: temperature is finite and not negative"),
        (gen(temperature=math.nan), "lm.gen: temperature is finite and not negative"),
        (gen(top_p=0.0), "lm.gen: top_p lies in (0, 1]"),
        (gen(top_p=1.1), "lm.gen: top_p lies in (0, 1]"),
        (gen(top_k=-1), "lm.gen: top_k is not negative"),
        (gen(min_p=1.5), "lm.gen: min_p lies in [0, 1]"),
        (gen(frequency_penalty=2.5), "lm.gen: frequency_penalty lies in [-2, 2]"),
        (gen(presence_penalty=math.nan), "lm.gen: presence_penalty lies in [-2, 2]"),
        (gen(repetition_penalty=0.0), "lm.gen: repetition_penalty is between 0.01 and 100"),
        (gen(repetition_penalty=math.inf), "lm.gen: repetition_penalty is between 0.01 and 100"),
        (gen(logit_bias=((5, 1.0), (3, 1.0))), "lm.gen: logit_bias is pairs of a token id and a float in [-100, 100]"),
        (gen(logit_bias=((-1, 1.0),)), "lm.gen: logit_bias is pairs"),
        (gen(logit_bias=((1, 101.0),)), "lm.gen: logit_bias is pairs"),
        (gen(logit_bias=((1, math.nan),)), "lm.gen: logit_bias is pairs"),
        (gen(logit_bias=((1, 1),)), "lm.gen: logit_bias is pairs"),
        (gen(logit_bias=((1,),)), "lm.gen: logit_bias is pairs"),
        (gen(logprobs=-1), "lm.gen: logprobs lies between 0 and 100"),
        (gen(logprobs=101), "lm.gen: logprobs lies between 0 and 100"),
        (gen(stop=("a", "")), "lm.gen: a stop string is not empty"),
        (gen(stop_token_ids=(1, -1)), "lm.gen: a stop token id is not negative"),
        (gen(wave=-1), "lm.gen: wave is -1"),
        (gen(group="g"), "lm.gen: group 'g' has no wave or no name"),
        (gen(wave=1, group=""), "lm.gen: group '' has no wave or no name"),
        (gen(D, JSON), "lm.gen: an unconstrained generation gives !text, not !json<Verdict>"),
        (gen(D), "lm.gen: results are (!ctx), should be (!ctx, !text)"),
        (gen(D, U, A), "lm.gen: results are (!ctx, !text, !any), should be (!ctx, !text)"),
        (gen(D, U, logprobs=1), "lm.gen: results are (!ctx, !text), should be (!ctx, !text, !any)"),
        (sample(n=0), "lm.sample: n is 0"),
        (sample(U), "lm.sample: the result is a list, not !text"),
        (sample(Value("l", list_of(ANY))), "lm.sample: an unconstrained generation gives !text, not !any"),
        (sample(Value("l", list_of(ANY)), constraint="c0"), "lm.sample: no generation gives !any"),
        (gen(D, A, constraint="c0"), "lm.gen: no generation gives !any"),
        (gen(constraint="c0", jump_forward="fast"), "lm.gen: unknown jump_forward 'fast'"),
        (gen(jump_forward="off"), "lm.gen: jump_forward is for a generation with a constraint"),
        (gen(definition_kind="regex"), "lm.gen: definition_kind is for a generation with a definition"),
        (gen(definition=(T,)), "lm.gen: unknown definition_kind 'none'"),
        (gen(definition=(T,), definition_kind="dtype"), "lm.gen: unknown definition_kind 'dtype'"),
        (gen(definition=(A,), definition_kind="regex"), "lm.gen: a definition is one !text"),
        (
            gen(definition=(T,), definition_kind="regex", constraint="c0"),
            "lm.gen: there is a constraint and a definition",
        ),
        (gen(max_tokens=4, expected_tokens=5), "lm.gen: expected_tokens lies between 0 and max_tokens"),
        (gen(expected_tokens=-1), "lm.gen: expected_tokens lies between 0 and max_tokens"),
        (gen(forced=(1,)), "lm.gen: forced tokens follow from a constraint"),
        (gen(D, U, A, forced=(1,), constraint="c0", logprobs=0), "lm.gen: forced tokens have no log-probabilities"),
        (gen(forced=(1, 2), constraint="c0", max_tokens=1), "lm.gen: there are more forced tokens than max_tokens"),
        (gen(forced=(-1,), constraint="c0"), "lm.gen: a forced token id is not negative"),
        (gen(forced=(1,), constraint="c0", wave=0), "lm.gen: forced tokens need no call of the model"),
        (sample(TEXTS, A), "lm.sample: results are (!list<!text>, !any), should be (!list<!text>)"),
        (sample(context=N), "lm.sample: %n is !int, a context (!ctx) is needed"),
        (select(context=N), "lm.select: %n is !int, a context (!ctx) is needed"),
        (select(method="best"), "lm.select: unknown method 'best'"),
        (select(choices=()), "lm.select: no choices"),
        (select(choices=("a", "")), "lm.select: an empty choice can't be scored"),
        (select(choices=(N,)), "lm.select: choice %n is !int"),
        (select(group="g"), "lm.select: group 'g' has no wave or no name"),
        (select(D, U), "lm.select: results are (!ctx, !text), should be (!ctx, !text, !any)"),
        (call(function="eval"), "py.call: no pure builtin is called 'eval'"),
        (call(keywords=("x",)), "py.call: more keywords than arguments"),
        (call(arguments=(1, 2), keywords=("x", "x")), "py.call: a keyword is given twice"),
        (call(U, T), "py.call: has one result, not 2"),
        (call(arguments=(C,)), "py.call: a context is no Python value"),
        (call(D), "py.call: a context is no Python value"),
        (local(function="eval"), "py.local: no builtin for objects is called 'eval'"),
        (local(keywords=("x",)), "py.local: more keywords than arguments"),
        (local(A, T), "py.local: has one result, not 2"),
        (local(arguments=(C,)), "py.local: a context is no Python value"),
        (local(D), "py.local: a context is no Python value"),
        (host(declared="local"), "host.call: unknown effect 'local'"),
        (host(declared="samples"), "host.call: unknown effect 'samples'"),
        (host(keywords=("x",)), "host.call: more keywords than arguments"),
        (host(arguments=(1, 2), keywords=("x", "x")), "host.call: a keyword is given twice"),
        (host(A, T), "host.call: has one result, not 2"),
        (host(arguments=(C,)), "host.call: a context can't be passed to a host function"),
        (make(AssumeOp, value=C, expected=1), "py.assume: %c is a context"),
        (make(AssumeOp, U, value=T, expected=1), "py.assume: results are (!text), should be ()"),
        (make(ReturnOp, context=T), "lm.return: %t is !text, a context (!ctx) is needed"),
        (make(ReturnOp, context=C, values=(C,)), "lm.return: %c is a context"),
        (make(ReturnOp, context=C, variables=(C,), variable_names=("c",)), "lm.return: %c is a context"),
        (make(ReturnOp, context=C, variables=(T,)), "lm.return: variables and variable_names differ in length"),
        (
            make(ReturnOp, context=C, variables=(T, N), variable_names=("a", "a")),
            "lm.return: two variables have one name",
        ),
        (make(ReturnOp, context=C, present=(T,), present_names=("t",)), "lm.return: %t is !text, a truth value"),
        (make(ReturnOp, context=C, present_names=("t",)), "lm.return: present and present_names differ in length"),
        (
            make(ReturnOp, context=C, variables=(T,), variable_names=("t",), present=(B, B), present_names=("t", "t")),
            "lm.return: a variable has two flags",
        ),
        (
            make(ReturnOp, context=C, present=(B,), present_names=("t",)),
            "lm.return: a flag says whether a variable is present that is not listed",
        ),
        (make(ReturnOp, context=C, structure="{"), "lm.return: not a structure"),
        (make(ReturnOp, context=C, structure="[1]"), "lm.return: not a structure"),
        (make(ReturnOp, context=C, structure='{"dict":[1]}'), "lm.return: not a structure"),
        (make(ReturnOp, context=C, structure='{"list":[' * 5000), "lm.return: not a structure"),
        (make(ReturnOp, context=C, structure='{"leaf":-1}'), "lm.return: leaf index -1 is no index"),
        (
            make(ReturnOp, context=C, values=(T,), structure='{"leaf":1}'),
            "lm.return: structure names 2 leaves for 1 value",
        ),
        (make(ReturnOp, U, context=C), "lm.return: results are (!text), should be ()"),
        (make(BreakOp, U, record=RECORD), "lm.break: results are (!text), should be ()"),
        (make(BreakOp, record=""), "lm.break: not a record"),
        (make(BreakOp, record="{"), "lm.break: not a record"),
        (make(BreakOp, record="[" * 100_000), "lm.break: not a record"),
        (make(BreakOp, record="[]"), "lm.break: a record is an object"),
        (make(BreakOp, record='{"cells":[],"frames":[]}'), "lm.break: a record lists cells, and at least one frame"),
        (make(BreakOp, values=(T,), record=record_of({"leaf": 1})), "lm.break: there is no leaf 1"),
        (make(BreakOp, values=(T,), record=record_of({"leaf": True})), "lm.break: there is no leaf True"),
        (make(BreakOp, record=record_of({"cell": 0})), "lm.break: there is no cell 0"),
        (make(BreakOp, record=record_of({"host": 0})), "lm.break: 0 is no name of a host function"),
    ],
)
def test_every_rule(op: Op, cause: str):
    with pytest.raises(VerifyError) as caught:
        op.verify()
    assert caught.value.cause.startswith(cause)


def test_a_broken_rule_names_the_line_of_the_program():
    with pytest.raises(VerifyError) as caught:
        gen(max_tokens=0, location=Location("judge.py", 3)).verify()
    assert str(caught.value) == "judge.py:3: lm.gen: max_tokens is at least 1"


@pytest.mark.parametrize(
    ("op", "effect", "may_raise", "billable"),
    [
        (make(ExtendOp, D, context=C), Effect.PURE, False, False),
        (gen(), Effect.SAMPLES, True, True),
        (sample(), Effect.SAMPLES, True, True),
        (gen(constraint="c0", forced=(1,)), Effect.PURE, False, False),
        (sample(constraint="c0", forced=(1,)), Effect.PURE, False, False),
        (gen(D, JSON, constraint="c0", forced=(1,)), Effect.PURE, True, False),
        (select(), Effect.PURE, True, True),
        (call(function="str", arguments=("a",)), Effect.PURE, False, False),
        (call(function="str"), Effect.PURE, True, False),
        (call(function="str", arguments=(N,)), Effect.PURE, True, False),
        (call(function="str", arguments=("a",), keywords=("object",)), Effect.PURE, True, False),
        (call(function="int"), Effect.PURE, True, False),
        (call(function="unheard of"), Effect.PURE, True, False),
        (local(arguments=(A,)), Effect.LOCAL, False, False),
        (local(function="next", arguments=(A,)), Effect.LOCAL, True, False),
        (local(function="unheard of"), Effect.LOCAL, True, False),
        (host(declared="pure"), Effect.PURE, True, False),
        (host(declared="reads"), Effect.READS, True, False),
        (host(), Effect.WRITES, True, False),
        (make(AssumeOp, value=N, expected=1), Effect.WRITES, True, False),
        (make(ReturnOp, context=C), Effect.PURE, False, False),
    ],
)
def test_effects(op: Op, effect: Effect, may_raise: bool, billable: bool):
    assert (op.effect, op.may_raise, op.billable) == (effect, may_raise, billable)


def test_sampling_parameters_of_an_op_are_those_an_engine_takes():
    op: Any = gen(max_tokens=3, stop=("a",), temperature=0.5, logprobs=2, seed=7)
    assert op.sampling == SamplingParams(max_tokens=3, stop=("a",), temperature=0.5, logprobs=2)
    assert gen().__class__.NAME == "lm.gen"
