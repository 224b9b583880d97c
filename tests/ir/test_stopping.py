from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models

from lmc.ir.engine.protocol import Generation, SamplingParams, TokenDelta, TokenLogprob
from lmc.ir.engine.stopping import Stopper
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.tokens.tokenizer import Tokenizer
from tests.ir.tokenizers_for_tests import trained

TOKENIZER = trained("llama3")
TEXT = "I'll say the essay is on topic: yes or no? é日😀 hello world\n"


def follow(stopper: Stopper, ids: tuple[int, ...]) -> tuple[Generation, str]:
    """Feed ``ids`` until the generation ends; gives it and all streamed text."""
    streamed = ""
    for token_id in ids:
        delta = stopper.append(token_id)
        streamed += delta.text if delta is not None else ""
        if stopper.finish_reason is not None:
            break
    return stopper.generation(), streamed


def run(text: str, **sampling: object) -> tuple[Generation, str]:
    ids = TOKENIZER.encode(text)
    params = SamplingParams(**{"max_tokens": len(ids), **sampling})  # type: ignore[arg-type]
    return follow(Stopper(TOKENIZER, params), ids)


def test_it_ends_at_max_tokens():
    generation, streamed = run(TEXT, max_tokens=5)
    assert generation.finish_reason == "length"
    assert generation.token_ids == TOKENIZER.encode(TEXT)[:5]
    assert generation.text == streamed == TOKENIZER.decode(generation.token_ids)
    assert generation.generated_tokens == 5


def test_it_ends_at_an_end_token_which_is_not_kept():
    ids = (*TOKENIZER.encode("yes"), TOKENIZER.eos_ids[0])
    generation, streamed = follow(Stopper(TOKENIZER, SamplingParams()), ids)
    assert (generation.finish_reason, generation.matched_stop) == ("eos", TOKENIZER.eos_ids[0])
    assert (generation.token_ids, generation.text, streamed) == (ids[:-1], "yes", "yes")
    assert generation.generated_tokens == len(ids)


def test_it_ends_at_a_stop_token_which_is_not_kept():
    ids = TOKENIZER.encode("yes no")
    generation, _ = follow(Stopper(TOKENIZER, SamplingParams(stop_token_ids=(ids[-1],))), ids)
    assert (generation.finish_reason, generation.matched_stop) == ("stop", ids[-1])
    assert generation.token_ids == ids[:-1]


def test_the_earliest_stop_string_wins():
    generation, _ = run(TEXT, stop=("no", "yes"))
    assert generation.matched_stop == "yes"
    assert generation.text == TEXT[: TEXT.index("yes")]


@given(st.integers(0, len(TEXT) - 1), st.integers(1, 6))
def test_a_stop_string_anywhere_splits_the_text_and_keeps_whole_tokens(start: int, length: int):
    stop = TEXT[start : start + length]
    generation, streamed = run(TEXT, stop=(stop,))
    assert generation.finish_reason == "stop"
    assert generation.text == TEXT[: TEXT.index(stop)]
    assert streamed == generation.text
    ids = TOKENIZER.encode(TEXT)
    assert generation.token_ids == ids[: len(generation.token_ids)]
    assert TOKENIZER.decode(generation.token_ids) + generation.remainder == generation.text
    # No more whole tokens would fit before the stop.
    longer = TOKENIZER.decode(ids[: len(generation.token_ids) + 1])
    assert longer.endswith("\ufffd") or len(longer) > len(generation.text)


@given(st.integers(1, 20))
def test_no_stop_is_honoured_before_min_tokens(min_tokens: int):
    ids = TOKENIZER.encode("aaa " * 10)
    stopper = Stopper(TOKENIZER, SamplingParams(max_tokens=len(ids), min_tokens=min_tokens, stop=("a",)))
    generation, _ = follow(stopper, ids)
    assert generation.generated_tokens >= min(min_tokens, len(ids))


def test_end_and_stop_tokens_are_forbidden_before_min_tokens():
    stopper = Stopper(TOKENIZER, SamplingParams(min_tokens=2, stop_token_ids=(7,)))
    for _ in range(2):
        assert stopper.forbidden == {7, *TOKENIZER.eos_ids}
        stopper.append(TOKENIZER.encode("a")[0])
    assert stopper.forbidden == frozenset()


def test_streamed_text_never_holds_part_of_a_stop_string():
    ids = TOKENIZER.encode("ab<<STOP>> c")
    stopper = Stopper(TOKENIZER, SamplingParams(max_tokens=len(ids), stop=("<<STOP>>",)))
    for token_id in ids:
        delta = stopper.append(token_id)
        assert delta is None or "<" not in delta.text
        if stopper.finish_reason is not None:
            break
    assert stopper.generation().text == "ab"


def test_text_that_only_began_like_a_stop_string_is_streamed_later():
    generation, streamed = run("ab<<STEP>> c", stop=("<<STOP>>",))
    assert streamed == generation.text == "ab<<STEP>> c"


def test_code_points_are_streamed_whole():
    toy = _bytes_only()
    stopper = Stopper(toy, SamplingParams(max_tokens=99))
    deltas = [stopper.append(token_id) for token_id in toy.encode("é日😀")]
    assert [delta.text for delta in deltas if delta is not None] == ["é", "日", "😀"]


def test_bytes_that_are_no_text_do_not_hold_it_back_forever():
    toy = _bytes_only()
    broken = toy.encode("😀")[0]
    stopper = Stopper(toy, SamplingParams(max_tokens=99))
    streamed = "".join(
        delta.text for token_id in [broken] * 8 + [toy.encode("a")[0]] if (delta := stopper.append(token_id))
    )
    assert streamed.endswith("a")
    assert streamed.startswith("\ufffd")


def test_logprobs_of_dropped_tokens_are_dropped():
    ids = TOKENIZER.encode("yes no")
    stopper = Stopper(TOKENIZER, SamplingParams(max_tokens=9, stop=(" no",)))
    follow(stopper, ids)
    logprobs = tuple(TokenLogprob(token_id, -1.0) for token_id in stopper.token_ids)
    generation = stopper.generation(logprobs=logprobs)
    assert generation.logprobs == logprobs[: len(generation.token_ids)]
    assert len(generation.token_ids) < len(logprobs)


def test_a_running_generation_has_no_result():
    with pytest.raises(RuntimeError, match="still running"):
        Stopper(TOKENIZER, SamplingParams()).generation()


def _bytes_only() -> Tokenizer:
    return toy_tokenizer()


def test_a_complete_generation_ends_as_at_an_end_token_but_without_one():
    stopper = Stopper(TOKENIZER, SamplingParams(max_tokens=50, stop=("<<STOP>>",)))
    deltas = [stopper.append(token_id) for token_id in TOKENIZER.encode("ab<<")]
    deltas.append(stopper.complete())
    generation = stopper.generation()
    assert (generation.finish_reason, generation.matched_stop, generation.text) == ("eos", None, "ab<<")
    assert generation.token_ids == TOKENIZER.encode("ab<<")
    assert "".join(delta.text for delta in deltas if delta is not None) == "ab<<"


def test_a_complete_generation_has_not_run_out_of_tokens_but_a_stop_stays_a_stop():
    ids = TOKENIZER.encode("yes no")
    full = Stopper(TOKENIZER, SamplingParams(max_tokens=len(ids)))
    follow(full, ids)
    assert full.finish_reason == "length"
    full.complete()
    assert full.generation().finish_reason == "eos"
    stopped = Stopper(TOKENIZER, SamplingParams(stop=("no",)))
    follow(stopped, ids)
    stopped.complete()
    assert (stopped.generation().finish_reason, stopped.generation().text) == ("stop", "yes ")


@given(st.integers(0, 30), st.sampled_from([(), ("zz",), ("o\n\n",)]))
def test_tokens_that_are_taken_back_can_be_given_in_other_tokens(cut: int, stop: tuple[str, ...]):
    """What is streamed stays what it was."""
    toy = _bytes_only()
    ids = toy.encode(TEXT)
    stopper = Stopper(toy, SamplingParams(max_tokens=999, stop=stop))
    streamed = ""
    for token_id in (*ids[: cut + 9], None, *ids[cut:]):
        if token_id is None:
            stopper.rewind(cut)
            assert stopper.token_ids == list(ids[:cut])
            continue
        delta = stopper.append(token_id)
        streamed += delta.text if delta is not None else ""
    delta = stopper.complete()
    streamed += delta.text if delta is not None else ""
    assert (stopper.generation().text, streamed, stopper.generation().token_ids) == (TEXT, TEXT, ids)
    with pytest.raises(RuntimeError, match="has ended"):
        stopper.rewind(0)


def test_it_says_where_the_text_is_not_all_of_the_bytes():
    toy = _bytes_only()
    first, second = toy.encode("é")
    for ids, exact in (((first, second), True), ((first,), False), ((second, first), False), ((), True)):
        stopper = Stopper(toy, SamplingParams(max_tokens=9))
        for token_id in ids:
            stopper.append(token_id)
        stopper.complete()
        assert stopper.text_is_exact == exact


def _with_spaces_spelled_out() -> Tokenizer:
    """As of Llama 2: the first space of a text is not its own, and what has no token is spelled in bytes."""
    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁helowrdé", "▁hello", "▁w"]
    made = tokenizers.Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, [], byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    made.add_special_tokens(["</s>"])
    return Tokenizer.from_json(made.to_str(), eos_tokens=["</s>"])


SEVERAL = {"merges": TOKENIZER, "bytes": toy_tokenizer(), "spaces": _with_spaces_spelled_out()}


@given(
    st.sampled_from([*SEVERAL]),
    st.lists(st.integers(0, 399) | st.integers(30, 130), max_size=40),
    st.booleans(),
    st.lists(st.integers(1, 9), max_size=12),
    st.builds(
        SamplingParams,
        max_tokens=st.integers(1, 50),
        min_tokens=st.sampled_from([0, 0, 7]),
        stop=st.sampled_from([(), (), (), ("o", "ll"), ("yes or", "y")]),
        stop_token_ids=st.sampled_from([(), (40,)]),
    ),
)
def test_several_tokens_at_once_are_the_same_as_one_by_one(
    name: str, ids: list[int], told: bool, lengths: list[int], sampling: SamplingParams
):
    """Whatever the tokens are, wherever it ends, and also what comes after them one by one."""
    tokenizer = SEVERAL[name]
    ids = [*tokenizer.encode(TEXT)] if told else [each % tokenizer.vocabulary_size for each in ids]
    one, several = Stopper(tokenizer, sampling), Stopper(tokenizer, sampling)
    at, streamed = 0, ["", ""]
    for length in (*lengths, *([1] * len(ids))):
        some = ids[at : at + length]
        at += length
        for token_id in some:
            delta = one.append(token_id)
            streamed[0] += delta.text if delta is not None else ""
            if one.finish_reason is not None:
                break
        delta = several.extend(some) if length > 1 else several.append(some[0]) if some else None
        streamed[1] += delta.text if delta is not None else ""
        assert (one.token_ids, one.finish_reason) == (several.token_ids, several.finish_reason)
        assert streamed[0] == streamed[1]
        if one.finish_reason is not None:
            break
    one.complete()
    several.complete()
    assert one.generation() == several.generation()
    assert one.text_is_exact == several.text_is_exact


@given(st.integers(0, 30), st.integers(0, 30))
def test_what_came_at_once_can_be_taken_back_in_part(first: int, cut: int):
    ids = TOKENIZER.encode("I'll say the essay is on topic: yes or no? hello world " * 2)
    one, several = (Stopper(TOKENIZER, SamplingParams(max_tokens=999)) for _ in "12")
    for token_id in ids[:first]:
        several.append(token_id)
    several.extend(ids[first:40])
    several.rewind(cut)
    for token_id in ids[:cut]:
        one.append(token_id)
    for stopper in (one, several):
        stopper.append(ids[cut])
        stopper.complete()
    assert one.generation() == several.generation()


def test_several_ascii_tokens_are_decoded_once(monkeypatch: pytest.MonkeyPatch):
    ids = TOKENIZER.encode("the essay is on topic: yes or no?")
    stopper = Stopper(TOKENIZER, SamplingParams())
    decode, calls = Tokenizer.decode, []
    monkeypatch.setattr(Tokenizer, "decode", lambda self, ids: calls.append(ids) or decode(self, ids))
    assert stopper.extend(ids) == TokenDelta("the essay is on topic: yes or no?")
    assert len(calls) == 2
