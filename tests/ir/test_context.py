from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import Generation
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import CaptureError
from lmc.ir.semantics.context import Context
from tests.ir.context_strategies import Step, chatting, continuing, generation, histories, pieces, roles, run
from tests.ir.tokenizers_for_tests import CHATML, SPECIAL_TOKENS, STRIPS_THOUGHTS, TRIMS, trained

TEMPLATES = (CHATML, STRIPS_THOUGHTS, TRIMS)
tokenizers = st.builds(trained, st.sampled_from(["gpt2", "llama3"]), st.sampled_from(TEMPLATES))
CHAT = Context.empty(trained("llama3"))
RAW = Context.empty(trained("llama3", None))


def special_count(context: Context) -> int:
    return sum(token_id in context.tokenizer.special_ids for token_id in context.prompt)


@given(tokenizers, histories())
def test_going_on_from_the_last_generation_gives_the_tokens_of_rendering_all_anew(tokenizer, steps: list[Step]):
    context = run(Context.empty(tokenizer), steps)
    if context.is_chat:
        assert context.tokens == replace(context, synced=None).tokens


@given(tokenizers, histories(), st.lists(st.one_of(continuing, chatting), max_size=4))
def test_the_stable_prefix_starts_every_continuation(tokenizer, steps: list[Step], more: list[Step]):
    context = run(Context.empty(tokenizer), steps)
    prefix = context.stable_prefix
    assert run(context, more).prompt[: len(prefix)] == prefix


@given(histories(), pieces)
def test_generated_tokens_are_kept_as_generated(steps: list[Step], text: str):
    context = run(CHAT, steps)
    again = context.generated(generation(context, text, "rest"))
    kept = context.tokenizer.encode(text)
    assert again.tokens.settled == context.prompt + kept
    assert again.tokens.pending == "rest"


@given(histories())
def test_contexts_are_values(steps: list[Step]):
    context = run(CHAT, steps)
    before = (context.prompt, context.transcript(), context.message_list())
    context.text("x").end()
    context.generated(generation(context, "x", ""))
    assert (context.prompt, context.transcript(), context.message_list()) == before
    assert run(CHAT, steps).prompt == before[0]


@given(st.lists(st.tuples(roles, pieces), min_size=1, max_size=5))
def test_a_chat_of_messages_reads_as_its_template_writes_it(messages: list[tuple[str, str]]):
    context = CHAT
    for role, text in messages:
        context = context.message(role, text)
    expected = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in messages)
    assert context.transcript() == expected
    assert context.tokenizer.decode(context.prompt) == f"{expected}<|im_start|>assistant\n"
    assert context.message_list() == [{"role": role, "content": text} for role, text in messages]
    assert special_count(context) == 2 * len(messages) + 1


@pytest.mark.parametrize("special", [*SPECIAL_TOKENS, "\ufdd0", "\ufdd1", "\ufdd01\ufdd0"])
def test_special_strings_in_messages_text_and_remainders_stay_text(special: str):
    def history(text: str) -> Context:
        context = CHAT.message("system", text).message("tool", f"a{text}").begin("user").text(text).text("b").end()
        context = context.text(text)
        context = context.generated(generation(context, "x", text))
        return context.text("y").end().message("user", text)

    context = history(special)
    assert special_count(context) == special_count(history("plain"))
    plain = context.tokenizer.decode(history("plain").prompt)
    assert context.tokenizer.decode(context.prompt) == plain.replace("plain", special)


def test_special_strings_in_raw_text_stay_text():
    for special in SPECIAL_TOKENS:
        assert special_count(RAW.text(special)) == 0


def test_bare_text_after_a_message_belongs_to_an_assistant_turn():
    context = CHAT.message("user", "hi").text("Sure: ")
    context = context.generated(generation(context, "yes", ""))
    assert context.role == "assistant"
    assert context.text("!").end().message_list() == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Sure: yes!"},
    ]


def test_without_roles_a_context_is_a_raw_completion():
    context = RAW.text("Q: ").text("a").text("")
    assert not context.is_chat
    assert context.transcript() == "Q: a"
    assert context.message_list() == []
    assert context.prompt == context.tokenizer.encode("Q: a")
    assert context.end() is context


def test_a_raw_completion_starts_with_bos_once():
    tokenizer = trained("gpt2", bos=True)
    context = Context.empty(tokenizer)
    assert context.prompt == (tokenizer.bos_id,)
    context = context.text("a")
    context = context.generated(generation(context, "b", "c")).text("d")
    assert context.prompt == (tokenizer.bos_id, *tokenizer.encode("a"), *tokenizer.encode("b"), *tokenizer.encode("cd"))


def test_an_empty_prompt_is_an_end_token():
    assert RAW.prompt == RAW.tokenizer.start_ids
    after = RAW.generated(generation(RAW, "b", ""))
    assert after.prompt == (*RAW.tokenizer.start_ids, *RAW.tokenizer.encode("b"))


def test_a_message_can_not_follow_bare_text():
    with pytest.raises(CaptureError, match="a user message can't follow bare text") as caught:
        RAW.text("a").message("user", "b")
    assert "lmc.user" in (caught.value.remedy or "")


def test_a_turn_ends_where_the_next_begins():
    context = CHAT.begin("user").text("a").begin("user").text("b").end().end()
    assert context.message_list() == [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert CHAT.begin("user").message_list() == [{"role": "user", "content": ""}]


def test_what_a_generation_has_computed_is_known_until_something_is_appended():
    for start in (RAW.text("a"), CHAT.message("user", "a")):
        given = generation(start, "b", "")
        after = start.generated(given)
        assert start.computed == ()
        assert after.computed == start.prompt + given.token_ids
        assert after.text("c").computed == ()
    assert after.end().computed == after.message("user", "c").computed == ()


def test_a_template_that_is_not_prefix_stable_is_rendered_whole_and_says_so():
    context = Context.empty(trained("llama3", STRIPS_THOUGHTS)).message("user", "a")
    context = context.generated(generation(context, "thought[/T]b", "")).end().message("user", "c")
    assert context.rendered_whole
    stable = CHAT.message("user", "a")
    assert not stable.rendered_whole
    stable = stable.generated(generation(stable, "b", "")).end().message("user", "c")
    assert not stable.rendered_whole


def test_thoughts_of_older_turns_are_dropped_where_the_template_does_so():
    context = Context.empty(trained("llama3", STRIPS_THOUGHTS))
    context = context.message("user", "a").message("assistant", "thought[/T]b").message("user", "c")
    assert context.transcript() == (
        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
    )


def test_what_is_stable_reaches_to_the_last_turn():
    closed = CHAT.message("system", "You grade essays.").message("user", "Essay: long")
    assert closed.tokenizer.decode(closed.stable_prefix) == closed.transcript().removesuffix("\n")
    opened = closed.begin("user").text("Is it on topic or not? ")
    assert opened.stable_prefix[: len(closed.stable_prefix)] == closed.stable_prefix
    assert opened.tokenizer.decode(opened.stable_prefix).endswith("Is it on topic or")
    # In a chat the white space at the end may go, in a raw completion it stays.
    raw = RAW.text("Is it on topic or not? ")
    assert raw.tokenizer.decode(raw.stable_prefix) == "Is it on topic or not"
    assert RAW.stable_prefix == ()


def test_an_open_turn_is_stable_up_to_what_a_template_trims():
    trims = Context.empty(trained("llama3", TRIMS)).begin("user")
    assert trims.tokenizer.decode(trims.text("Is it on topic or not? ").stable_prefix).endswith("Is it on topic or")
    leading = trims.text(" Is it on topic or not? ")
    assert leading.stable_prefix == ()


def test_nothing_of_an_open_turn_is_stable_where_the_template_changes_it_later():
    context = Context.empty(trained("llama3", STRIPS_THOUGHTS)).message("user", "a")
    assert context.text("b c d e f").stable_prefix == context.stable_prefix
    assert context.tokenizer.decode(context.stable_prefix) == "<|im_start|>user\na<|im_end|>"
    assert context.message("assistant", "thought[/T]b").stable_prefix == ()


class TestChoices:
    @given(tokenizers, histories(), st.lists(pieces.filter(bool), min_size=1, max_size=4))
    def test_prompt_and_continuation_spell_pending_text_and_choice(self, tokenizer, steps, choices):
        context = run(Context.empty(tokenizer), steps)
        prompt, continuations = context.choices(choices)
        settled, pending = context.tokens.settled, context.tokens.pending
        assert prompt
        assert len(continuations) == len(choices)
        for choice, continuation in zip(choices, continuations, strict=True):
            joint = settled + tokenizer.encode(pending + choice)
            assert continuation
            assert prompt + continuation == joint or (prompt == tokenizer.start_ids and continuation == joint)

    @given(histories(), st.lists(pieces.filter(bool), min_size=2, max_size=4))
    def test_the_scored_span_does_not_depend_on_the_order(self, steps, choices):
        context = run(CHAT, steps)
        prompt, continuations = context.choices(choices)
        assert context.choices(choices[::-1]) == (prompt, continuations[::-1])

    @given(tokenizers, histories(), st.lists(pieces.filter(bool), min_size=1, max_size=4))
    def test_scoring_starts_at_the_first_token_that_differs(self, tokenizer, steps, choices):
        context = run(Context.empty(tokenizer), steps)
        prompt, continuations = context.choices(choices)
        settled, alone = context.tokens.settled, tokenizer.encode(context.tokens.pending)
        start = len(prompt) - len(settled)
        if not settled and prompt == tokenizer.start_ids:
            start = 0
        assert prompt == settled + alone[:start] or start == 0
        if start < len(alone):
            shortest = min(map(len, continuations))
            assert shortest == 1 or any(ids[0] != alone[start] for ids in continuations)

    def test_pending_text_and_choice_are_encoded_jointly(self):
        tokenizer = trained("gpt2")
        context = Context.empty(tokenizer).text("the wor")
        prompt, (continuation,) = context.choices(["ld"])
        assert prompt + continuation == tokenizer.encode("the world")
        assert len(continuation) < len(tokenizer.encode("wor")) + len(tokenizer.encode("ld"))

    def test_choices_of_an_empty_context_follow_a_start_token(self):
        prompt, continuations = RAW.choices(["yes", "no"])
        assert prompt == RAW.tokenizer.start_ids
        assert continuations == (RAW.tokenizer.encode("yes"), RAW.tokenizer.encode("no"))


def test_a_generation_without_tokens_still_settles_what_stands_before_it():
    context = Context.empty(toy_tokenizer()).message("user", "a").text("b")
    after = context.generated(Generation((), "", "stop"))
    assert after.tokens.settled == context.prompt
    assert after.tokens.pending == ""
