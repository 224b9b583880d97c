from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import InputError
from lmc.ir.tokens.tokenizer import SpecialToken, Tokenizer
from tests.ir.tokenizers_for_tests import CHATML, KINDS, NORMALIZING_KINDS, SPECIAL_TOKENS, trained

# Letters of the contractions, white space of every kind, digits, marks and symbols: what pre-tokenizers tell apart.
ADVERSARIAL = st.text(st.sampled_from(list("'lstreavmdIx  \n\n\r\t11!#é日😀\u0301\u017f<|>")), max_size=14)
EVERY_TOKENIZER = st.sampled_from([toy_tokenizer, *((lambda kind=kind: trained(kind)) for kind in KINDS)])


@given(st.sampled_from(KINDS), ADVERSARIAL, ADVERSARIAL)
def test_the_stable_prefix_is_the_same_whatever_follows(kind: str, text: str, more: str):
    tokenizer = trained(kind)
    prefix = tokenizer.stable_prefix(text)
    for whole in (text, text + more):
        assert tokenizer.encode(whole)[: len(prefix)] == prefix


# Marks that join what stands before them, in one character or two, their order, Hangul, and what only K forms change.
_MARKS = "\u0301\u0308\u0323\u0338\u0345\u093c\u0915\u3099か각\u1100\u1161\u11a8𝅗𝅥🏽"
JOINING = st.text(st.sampled_from(list("aeo A\n.'s1<=éＡﬁ²½がÅ😀" + _MARKS)), max_size=14)
ANY_CHARACTERS = st.text(st.characters(codec="utf-8"), max_size=12)


@given(st.sampled_from(NORMALIZING_KINDS), JOINING | ANY_CHARACTERS, JOINING | ANY_CHARACTERS)
def test_the_stable_prefix_survives_normalization_of_whatever_follows(kind: str, text: str, more: str):
    tokenizer = trained(kind)
    prefix = tokenizer.stable_prefix(text)
    for whole in (text, text + more):
        assert tokenizer.encode(whole)[: len(prefix)] == prefix


@pytest.mark.parametrize("kind", [*KINDS, *NORMALIZING_KINDS])
def test_the_stable_prefix_is_nearly_the_whole_text(kind: str):
    tokenizer = trained(kind)
    text = "The essay is on topic: yes or no? " * 4
    prefix = tokenizer.stable_prefix(text)
    assert len(tokenizer.decode(prefix)) >= len(text) - len(" no? ")


def test_white_space_before_a_word_is_cut_as_in_the_whole_text():
    """The tokens of "x\\n\\n" alone are not the first tokens of "x\\n\\n1<"."""
    tokenizer = trained("gpt2")
    assert tokenizer.encode("\n\n1<<")[: len(tokenizer.stable_prefix("\n\n1<<"))] == tokenizer.stable_prefix("\n\n1<<")
    assert tokenizer.encode("\n\n") != tokenizer.encode("\n\n1<<")[:1]


def test_nothing_is_stable_where_boundaries_are_not_proven():
    raw = tokenizers.Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    assert Tokenizer(raw.to_str()).stable_prefix("a b a b a b") == ()
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    assert Tokenizer(raw.to_str()).stable_prefix("a b a b a b") == ()
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert Tokenizer(raw.to_str()).stable_prefix("a b a b a b") == ()
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert Tokenizer(raw.to_str()).stable_prefix("a b a b a b") != ()
    raw.normalizer = normalizers.NFC()
    assert Tokenizer(raw.to_str()).stable_prefix("a b a b a b") != ()
    assert Tokenizer(raw.to_str()).stable_prefix("日本 日本 日本") == ()
    for normalizer in (normalizers.Lowercase(), normalizers.Sequence([normalizers.NFC(), normalizers.Strip()])):
        raw.normalizer = normalizer
        assert Tokenizer(raw.to_str()).stable_prefix("a b a b a b") == ()


@given(EVERY_TOKENIZER, st.text(st.characters(codec="utf-8"), max_size=20))
def test_text_survives_encoding(make, text: str):
    tokenizer = make()
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(EVERY_TOKENIZER, st.lists(st.one_of(st.sampled_from(SPECIAL_TOKENS), ADVERSARIAL), max_size=5).map("".join))
def test_special_strings_in_text_stay_text(make, text: str):
    tokenizer = make()
    ids = tokenizer.encode(text)
    assert tokenizer.special_ids.isdisjoint(ids)
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("special", SPECIAL_TOKENS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_special_string_stays_text(kind: str, special: str):
    tokenizer = trained(kind)
    for text in (special, f"a{special}b", special * 2, special[:-1] + special):
        assert tokenizer.special_ids.isdisjoint(tokenizer.encode(text))
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_template_text_is_cut_at_special_tokens():
    tokenizer = trained("llama3")
    ids = {token.text: token.id for token in tokenizer.special_tokens}
    assert [*tokenizer.split_template("<|im_start|>user\nhi<|im_end|><|im_end|>")] == [
        SpecialToken(ids["<|im_start|>"], "<|im_start|>"),
        "user\nhi",
        SpecialToken(ids["<|im_end|>"], "<|im_end|>"),
        SpecialToken(ids["<|im_end|>"], "<|im_end|>"),
    ]
    assert [*tokenizer.split_template("")] == []


def test_a_longer_special_token_wins_over_one_inside_it():
    raw = tokenizers.Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.add_special_tokens([AddedToken("<x>"), AddedToken("<x><x>")])
    pieces = [*Tokenizer(raw.to_str()).split_template("<x><x><x>")]
    assert [piece.text for piece in pieces if isinstance(piece, SpecialToken)] == ["<x><x>", "<x>"]


def test_a_tokenizer_without_special_tokens_cuts_nothing():
    tokenizer = Tokenizer(tokenizers.Tokenizer(models.BPE(vocab={"a": 0}, merges=[])).to_str())
    assert [*tokenizer.split_template("<|im_end|>")] == ["<|im_end|>"]
    assert [*tokenizer.split_template("")] == []


def test_a_prompt_may_start_with_bos_else_with_an_end_token():
    bos = trained("gpt2", bos=True)
    assert bos.start_ids == (bos.bos_id,)
    ends = trained("gpt2")
    assert ends.start_ids == (min(ends.eos_ids),)
    with pytest.raises(InputError, match="an empty prompt needs a tokenizer with a BOS or EOS token"):
        _ = Tokenizer(ends.definition).start_ids


def test_end_tokens_are_merged_and_sorted():
    tokenizer = trained("gpt2")
    assert tokenizer.with_eos_ids([1, tokenizer.eos_ids[0]]).eos_ids == (1, *sorted(tokenizer.eos_ids))
    assert tokenizer.vocabulary_size == max(tokenizer.special_ids) + 1


def test_text_that_is_no_unicode_is_refused():
    for make in (toy_tokenizer, lambda: trained("gpt2"), lambda: trained("qwen+nfc")):
        for read in (make().encode, make().stable_prefix):
            with pytest.raises(InputError, match="half of a surrogate pair"):
                read("a\ud800 b c")


def test_names_of_tokens_must_exist():
    with pytest.raises(InputError, match="the tokenizer has no token '<nope>'"):
        Tokenizer.from_json(trained("gpt2").definition, bos_token="<nope>")


def test_a_definition_that_is_none_is_refused():
    with pytest.raises(InputError, match=r"tokenizer\.json can't be read"):
        Tokenizer("{}").encode("a")
    with pytest.raises(InputError, match=r"tokenizer\.json can't be read"):
        Tokenizer.from_json("not json", eos_tokens=["a"])


def test_a_special_token_that_is_a_piece_of_the_model_is_refused():
    raw = tokenizers.Tokenizer(models.WordLevel({"<x>": 0, "a": 1}, unk_token="a"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.add_special_tokens([AddedToken("<x>")])
    with pytest.raises(InputError, match="this tokenizer can't keep the text '<x>' as text"):
        Tokenizer(raw.to_str()).encode("a")


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "tokenizer.json").write_text(trained("gpt2").definition)
        return tmp_path

    @staticmethod
    def configure(folder: Path, **config: object) -> Tokenizer:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return Tokenizer.from_folder(folder)

    def test_tokens_and_template_come_from_the_files(self, folder: Path):
        (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}')
        tokenizer = self.configure(
            folder,
            bos_token={"content": "<|im_start|>"},
            eos_token="<|im_end|>",
            add_bos_token=True,
            chat_template=CHATML,
        )
        ids = {token.text: token.id for token in tokenizer.special_tokens}
        assert tokenizer.bos_id == ids["<|im_start|>"]
        assert tokenizer.eos_ids == (1, 2, ids["<|im_end|>"])
        assert tokenizer.chat_template == CHATML
        assert dict(tokenizer.template_variables) == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}

    def test_a_template_file_comes_before_the_configuration(self, folder: Path):
        (folder / "chat_template.jinja").write_text("{{ messages }}")
        assert self.configure(folder, chat_template=CHATML).chat_template == "{{ messages }}"

    def test_of_several_named_templates_the_default_is_taken(self, folder: Path):
        named = [{"name": "tool_use", "template": "{{ tools }}"}, {"name": "default", "template": CHATML}]
        assert self.configure(folder, chat_template=named).chat_template == CHATML
        assert self.configure(folder, chat_template=named[:1]).chat_template is None
        assert self.configure(folder, chat_template=["nonsense"]).chat_template is None

    def test_bos_is_put_where_the_flag_or_the_post_processor_says_so(self, folder: Path):
        assert self.configure(folder, bos_token="<|im_start|>", add_bos_token=False).bos_id is None
        assert self.configure(folder, bos_token="<|im_start|>").bos_id is None
        definition = json.loads(trained("gpt2").definition)
        definition["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [],
            "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [421], "tokens": ["<|im_start|>"]}},
        }
        (folder / "tokenizer.json").write_text(json.dumps(definition))
        tokenizer = self.configure(folder, bos_token="<|im_start|>")
        assert tokenizer.bos_id is not None
        assert tokenizer.bos_id not in tokenizer.encode("a")

    def test_missing_configuration_is_fine_and_one_end_token_too(self, folder: Path):
        (folder / "generation_config.json").write_text('{"eos_token_id": 5}')
        assert Tokenizer.from_folder(folder).eos_ids == (5,)
        (folder / "generation_config.json").write_text('{"eos_token_id": null}')
        assert Tokenizer.from_folder(folder).eos_ids == ()

    def test_end_tokens_of_the_model_count_where_generation_names_none(self, folder: Path):
        (folder / "config.json").write_text('{"eos_token_id": [3, 4]}')
        assert Tokenizer.from_folder(folder).eos_ids == (3, 4)
        (folder / "generation_config.json").write_text('{"eos_token_id": 5}')
        assert Tokenizer.from_folder(folder).eos_ids == (5,)

    @pytest.mark.parametrize(
        ("name", "content", "cause"),
        [
            ("tokenizer_config.json", "{", "is not JSON"),
            ("tokenizer_config.json", "[]", "does not hold a JSON object"),
            ("generation_config.json", "[]", "does not hold a JSON object"),
        ],
    )
    def test_broken_files_are_refused(self, folder: Path, name: str, content: str, cause: str):
        (folder / name).write_text(content)
        with pytest.raises(InputError, match=cause) as caught:
            Tokenizer.from_folder(folder)
        assert name in caught.value.cause

    def test_a_folder_without_a_tokenizer_is_refused(self, tmp_path: Path):
        with pytest.raises(InputError, match=r"has no tokenizer\.json"):
            Tokenizer.from_folder(tmp_path)


LONG = st.builds(lambda text, times: text * times, ADVERSARIAL | JOINING | ANY_CHARACTERS, st.integers(1, 200))


@given(st.sampled_from([*KINDS, *NORMALIZING_KINDS]), LONG, ADVERSARIAL, st.integers(1, 6))
def test_a_text_that_surely_has_more_tokens_has_more_whatever_follows(kind: str, text: str, more: str, count: int):
    tokenizer = trained(kind)
    if tokenizer.exceeds(text, count):
        assert len(tokenizer.encode(text)) > count
        assert len(tokenizer.encode(text + more)) > count


@given(LONG, ADVERSARIAL, st.integers(1, 6))
def test_without_words_the_longest_token_says_how_many_there_are_at_least(text: str, more: str, count: int):
    tokenizer = wordless()
    assert not tokenizer.stable_prefix(text)
    if tokenizer.exceeds(text, count):
        assert len(tokenizer.encode(text + more)) > count


@pytest.mark.parametrize("kind", [*KINDS, *NORMALIZING_KINDS])
@pytest.mark.parametrize("piece", ["a word ", "abc", " ", "日本", "\n\n1<<", "e\u0301"])
def test_a_text_that_is_far_too_long_is_known_to_be(kind: str, piece: str):
    assert trained(kind).exceeds(piece * 10_000, 9)
    assert not trained(kind).exceeds(piece, 9)


def test_a_text_without_words_that_is_far_too_long_is_known_to_be():
    assert wordless().exceeds("ab" * 5_000, 9)


def test_where_characters_may_be_dropped_or_joined_nothing_is_sure():
    raw = tokenizers.Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert not Tokenizer(raw.to_str()).exceeds("a" * 10_000, 9)  # one token, and so is the next
    for bytes_too in (False, True):
        model = models.BPE({"a": 0, "[UNK]": 1}, [], unk_token="[UNK]", fuse_unk=True, byte_fallback=bytes_too)
        assert not Tokenizer(tokenizers.Tokenizer(model).to_str()).exceeds("b" * 10_000, 9)
    for normalizer in (normalizers.Strip(), normalizers.Replace("aa", "a"), normalizers.Lowercase()):
        raw = tokenizers.Tokenizer.from_str(json.dumps(json.loads(wordless().definition)))
        raw.normalizer = normalizer
        assert not Tokenizer(raw.to_str()).exceeds("a" * 10_000, 9)


@cache
def wordless() -> Tokenizer:
    """A BPE without words, as SentencePiece makes them: spaces are marks, what is in no token is bytes."""
    pieces = [f"<0x{byte:02X}>" for byte in range(256)] + [
        *"▁abcdehlnstIxmvr'1",
        "th",
        "the",
        "▁the",
        "ll",
        "11",
        "1111",
    ]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("l", "l"), ("1", "1"), ("11", "11")]
    raw = tokenizers.Tokenizer(models.BPE({piece: id for id, piece in enumerate(pieces)}, merges, byte_fallback=True))
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return Tokenizer(raw.to_str())
