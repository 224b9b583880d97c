"""The tokenizer: any bytes come back, digits stand alone, special tokens in text stay text."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from lmc import builtin_model
from training.document import SPECIAL_TOKENS
from training.tokenizer import CHAT_TEMPLATE

TOKENIZER = Tokenizer.from_file(str(builtin_model.path() / "tokenizer.json"))
PLAIN = Tokenizer.from_file(str(builtin_model.path() / "tokenizer.json"))
PLAIN.encode_special_tokens = True


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_text_round_trips(text):
    assert PLAIN.decode(PLAIN.encode(text).ids, skip_special_tokens=False) == text


def test_digits_are_single_tokens():
    assert [PLAIN.decode([token]) for token in PLAIN.encode("12345").ids] == list("12345")


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_special_tokens_can_be_text(token):
    special = TOKENIZER.token_to_id(token)
    assert TOKENIZER.encode(token).ids == [special]
    as_text = PLAIN.encode(f"a {token} b").ids
    assert special not in as_text
    assert PLAIN.decode(as_text, skip_special_tokens=False) == f"a {token} b"


def test_size_and_template():
    assert TOKENIZER.get_vocab_size() == 2048
    config = json.loads((builtin_model.path() / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["chat_template"] == CHAT_TEMPLATE
