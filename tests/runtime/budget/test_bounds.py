"""Bounds of requests: no fewer tokens than the bytes of all messages that are sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.protocol import Request, SamplingParams
from lmc.ir.tokens.messages import conversation_of, message_tokenizer
from lmc.runtime.budget.bounds import TokenBounds
from lmc.runtime.remote.asking import Asked

TEXTS = st.text(max_size=300) | st.text(min_size=4, max_size=9).map(lambda text: text * 400)


@pytest.mark.parametrize("spec", ["openai:gpt-4.1", "anthropic:claude-haiku-4-5"])
@given(question=TEXTS, turn=TEXTS)
def test_an_open_turn_that_is_quoted_is_in_the_bound(spec: str, question: str, turn: str):
    target = hosted_target(spec, {"continuation": "turns", "reasoning_tokens": 7})
    encode = message_tokenizer().encode
    prompt = (256, *encode(f"user\n{question}"), 257, 256, *encode(f"assistant\n{turn}"))
    request = Request(prompt, SamplingParams(max_tokens=11))
    asked = Asked(request, conversation_of(prompt), (), None, 11, 1.0)
    sent = asked.messages(keeps_open=target.capabilities.continuation != "turns")
    bound = TokenBounds(target.spec, target.capabilities).most(request)
    assert bound.prompt >= sum(len(f"{each['role']}{each['content']}".encode()) for each in sent)
    assert bound.output == 18
