from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine import Generation, SamplingParams
from lmc.ir.stopping import Stopper
from lmc.ir.toy import toy_tokenizer

TOKENIZER = toy_tokenizer()
END = TOKENIZER.eos_ids[0]


def follow(text: str, sampling: SamplingParams) -> tuple[Generation, str]:
    """What a generation of `text` and EOS keeps, and what it streams."""
    stopper = Stopper(TOKENIZER, sampling)
    streamed = ""
    for token_id in (*TOKENIZER.encode(text), END):
        delta = stopper.append(token_id)
        streamed += "" if delta is None else delta.text
        if stopper.finish_reason is not None:
            break
    return stopper.generation(), streamed


@given(
    st.text(alphabet="abé\n漢", max_size=12), st.lists(st.text(alphabet="abé\n漢", min_size=1, max_size=3), max_size=3)
)
def test_the_text_ends_before_the_first_stop_and_is_streamed_once(text: str, stops: list[str]) -> None:
    generation, streamed = follow(text, SamplingParams(max_tokens=100, stop=tuple(stops)))
    ends = {text.index(stop) + len(stop): text.index(stop) for stop in stops if stop in text}
    expected = text if not ends else text[: min(start for end, start in ends.items() if end == min(ends))]
    assert generation.text == expected == streamed
    assert generation.finish_reason == ("stop" if ends else "eos")
    assert TOKENIZER.decode(generation.token_ids) + generation.remainder == expected


def test_bytes_of_one_character_stay_together() -> None:
    generation, _ = follow("aé", SamplingParams(stop=("é",)))
    assert (generation.text, TOKENIZER.decode(generation.token_ids)) == ("a", "a")


def test_a_character_cut_by_max_tokens_is_no_text() -> None:
    generation, streamed = follow("a漢", SamplingParams(max_tokens=2))
    assert (generation.text, streamed, generation.finish_reason) == ("a", "a", "length")
    assert len(generation.token_ids) == 2


def test_no_stop_counts_that_ends_before_min_tokens() -> None:
    generation, _ = follow("ab.ab.longer", SamplingParams(min_tokens=4, stop=(".", "longest")))
    assert generation.text == "ab.ab"
    stopper = Stopper(TOKENIZER, SamplingParams(min_tokens=1, stop_token_ids=(5,)))
    assert stopper.forbidden == {*TOKENIZER.eos_ids, 5}
    stopper.append(7)
    assert not stopper.forbidden


def test_a_stop_token_is_named_and_not_kept() -> None:
    generation, _ = follow("abc", SamplingParams(stop_token_ids=TOKENIZER.encode("c")))
    assert (generation.text, generation.finish_reason, generation.matched_stop) == (
        "ab",
        "stop",
        TOKENIZER.encode("c")[0],
    )
    assert TOKENIZER.decode(generation.token_ids) == "ab"
    assert generation.generated_tokens == 3
