"""Where ``lm.keep`` and ``lm.free`` may stand."""

from __future__ import annotations

import pytest

from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import VerifyError
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse
from lmc.ir.verify.verifier import verify

START = """
    %0 = lm.context : !ctx
    %1, %a = lm.gen %0 {id = "f/a", max_tokens = 3} : !ctx, !text
"""
LOOP = """
    %r = cf.loop (%1) : !ctx ^condition(%p: !ctx) {
      %go = py.call eq (%a, "") : !bool
      cf.condition %go (%p)
    } ^body(%q: !ctx) {
      BODY
    }
    lm.return %r
"""


def program(body: str) -> str:
    return f"module @f {{ func @f(%x: !text) {{ {START} {body} }} }}"


@pytest.mark.parametrize(
    "body",
    [
        "lm.keep %1 {next_use = 0} lm.return %1",
        'lm.keep %1 {next_use = 1} %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text lm.free %1 (%2, %b) lm.return %1',
        # Text may still be read, and appended for nobody.
        "lm.free %1 %t = lm.transcript %1 : !text %2 = lm.extend %1 [%t] : !ctx lm.return %2",
        # What is let go may be used again.
        'lm.free %1 {next_use = 1} %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text lm.return %2',
        # A branch that is still used keeps its own beginning.
        'lm.keep %1 {next_use = 1} %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text lm.free %1 (%2)'
        ' %3, %c = lm.gen %2 {id = "f/c"} : !ctx, !text lm.return %3',
        LOOP.replace(
            "BODY",
            'lm.keep %q {next_use = 0} %2, %b = lm.gen %q {id = "f/b"} : !ctx, !text lm.free %q (%2) cf.yield (%2)',
        ),
    ],
)
def test_what_is_right_verifies(body: str):
    verify(parse(program(body)))


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ('lm.free %1 %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text lm.return %2', "it starts from %1, which is freed"),
        (
            'lm.free %1 %2 = lm.extend %1 [%x] : !ctx %3, %b = lm.gen %2 {id = "f/b"} : !ctx, !text lm.return %2',
            "it starts from %1, which is freed above",
        ),
        (
            "%2 = lm.begin %1, user : !ctx lm.free %1"
            ' %s = lm.sample %2 {id = "f/b", n = 2} : !list<!text> lm.return %2',
            "lm.sample: it starts from %1, which is freed above",
        ),
        ("lm.free %1 %2 = lm.prefill %1 : !ctx lm.return %2", "lm.prefill: it starts from %1, which is freed above"),
        ("lm.free %1" + LOOP.replace("BODY", "cf.yield (%q)"), "cf.loop: it starts from %1, which is freed above"),
        (LOOP.replace("BODY", "lm.free %q cf.yield (%q)"), "cf.yield: it starts from %q, which is freed above"),
        (LOOP.replace("BODY", "lm.free %1 cf.yield (%q)"), "lm.free: %1 belongs to a block around this one"),
        (LOOP.replace("BODY", "lm.keep %1 {next_use = 0} cf.yield (%q)"), "lm.keep: %1 belongs to a block around"),
        ("%2 = lm.extend %1 [%x] : !ctx lm.free %2 lm.return %2", "%2 is %1 with text appended"),
        ("lm.free %1 lm.free %1 lm.return %1", "lm.free: %1 is freed above already"),
        ("lm.free %1 lm.keep %1 {next_use = 0} lm.return %1", "lm.keep: %1 is freed above already"),
    ],
)
def test_what_is_wrong_is_told(body: str, cause: str):
    with pytest.raises(VerifyError) as caught:
        verify(parse(program(body)))
    assert cause in caught.value.cause
    assert caught.value.remedy


def test_the_interpreter_takes_no_notice_of_them():
    rest = 'MARK %2, %b = lm.gen %1 {id = "f/b", max_tokens = 3} : !ctx, !text lm.return %2'
    texts = [
        interpret(parse(program(rest.replace("MARK", mark))), {"x": ""}, ToyEngine()).text
        for mark in ("", "lm.keep %1 {next_use = 7}", "lm.free %1 {next_use = 1}")
    ]
    assert len(set(texts)) == 1
