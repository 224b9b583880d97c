"""`lm.transcript` with `since`: what was appended to a context, where all of it belongs to one turn."""

import pytest

from lmc.ir.engine.protocol import Generation
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import CaptureError, VerifyError
from lmc.ir.module import print_module
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse
from lmc.ir.verify.verifier import verify

EMPTY = Context.empty(toy_tokenizer())
SAID = Generation(toy_tokenizer().encode("yes"), "yes", "eos")

MODULE = """module @f {
  func @f(%a: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["Q: ", %a] : !ctx
    %2 = lm.extend %1 ["!", %a] : !ctx
    %t = lm.transcript %2 (%1) : !text
    lm.return %2 (%t) {structure = "{\\"leaf\\":0}"}
  }
}
"""


def test_raw_text():
    before = EMPTY.text("a")
    assert before.text("b").generated(SAID).text("c").added_since(before) == "byesc"
    assert before.added_since(before) == ""
    assert before.added_since(EMPTY) == "a"


def test_inside_an_open_turn():
    before = EMPTY.begin("user").text("a")
    assert before.text("<|im_end|>").added_since(before) == "<|im_end|>"


def test_the_answer_to_a_closed_message():
    before = EMPTY.message("user", "a")
    assert before.generated(SAID).text(".").added_since(before) == "yes."
    assert before.added_since(before) == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (EMPTY, EMPTY.message("user", "a")),
        (EMPTY, EMPTY.begin("user")),
        (EMPTY.begin("user").text("a"), EMPTY.begin("user").text("a").end()),
        (EMPTY.message("user", "a"), EMPTY.message("user", "a").begin("user")),
        (EMPTY.message("user", "a"), EMPTY.message("user", "a").message("assistant", "b")),
        (EMPTY.text("a"), EMPTY.text("b")),
    ],
)
def test_other_turns_are_refused(before: Context, after: Context):
    with pytest.raises(CaptureError, match="messages were opened or closed") as caught:
        after.added_since(before)
    assert "begin and end inside one message" in (caught.value.remedy or "")


def test_the_op():
    module = parse(MODULE)
    verify(module)
    assert print_module(parse(print_module(module))) == print_module(module)
    assert interpret(module, {"a": "x"}, ToyEngine()).value == "!x"


def test_the_op_raises_where_messages_were_opened():
    chat = MODULE.replace("%0 [", "%0, user [").replace("%1 [", "%1, user [")
    module = parse(chat)
    with pytest.raises(CaptureError, match="messages were opened or closed"):
        interpret(module, {"a": "x"}, ToyEngine())


def test_one_beginning():
    with pytest.raises(VerifyError, match="a text has one beginning"):
        verify(parse(MODULE.replace("%2 (%1)", "%2 (%1, %0)")))
    with pytest.raises(VerifyError, match="context"):
        verify(parse(MODULE.replace("%2 (%1)", "%2 (%a)")))
