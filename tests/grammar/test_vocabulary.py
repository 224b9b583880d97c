import gc
import json
import weakref
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

from lmc.grammar.vocabulary import vocabulary as module
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import ConstraintError
from tests.ir.tokenizers_for_tests import KINDS, trained

CORPUS = ["hello hello world, héllo wörld 日本語 日本 😀 <x> 1234 is it so? yes it is so"] * 8
END = "<|endoftext|>"
UNDERLINE = "▁"


@cache
def byte_level() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    )
    made.add_special_tokens([AddedToken(END, special=True)])
    made.add_tokens([AddedToken("<tool>"), AddedToken("é ü"), AddedToken("naïve")])
    return made


def sentencepiece_bpe(normalizer: bool) -> tokenizers.Tokenizer:
    """As of Llama 2: the space is spelled ▁, what has no token of its own is spelled in byte tokens."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += sorted({*"helowrdis日本,.?" + UNDERLINE})
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), (UNDERLINE, "hello"), (UNDERLINE, "w"), ("日", "本")]
    pieces += [left + right for left, right in merges]
    vocabulary = {piece: at for at, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if normalizer:
        made.normalizer = normalizers.Sequence([normalizers.Prepend(UNDERLINE), normalizers.Replace(" ", UNDERLINE)])
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(UNDERLINE, prepend_scheme="first", split=False)
    steps = [decoders.Replace(UNDERLINE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    return made


def metaspace_unigram() -> tokenizers.Tokenizer:
    """As of T5 and XLM-R: no byte tokens."""
    pieces = [("<unk>", 0.0), ("</s>", 0.0), *((letter, -4.0) for letter in "helowrd日" + UNDERLINE), ("▁hello", -1.0)]
    made = tokenizers.Tokenizer(models.Unigram(pieces, 0, False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(["</s>"])
    return made


KIND = {
    "byte-level": byte_level,
    "sentencepiece": cache(lambda: sentencepiece_bpe(normalizer=True)),
    "sentencepiece with metaspace": cache(lambda: sentencepiece_bpe(normalizer=False)),
    "metaspace": cache(metaspace_unigram),
}


@pytest.mark.parametrize("kind", KIND)
@given(st.data())
def test_bytes_of_tokens_are_what_decoding_them_inside_a_sequence_gives(kind: str, data: st.DataObject) -> None:
    tokenizer = KIND[kind]()
    vocabulary = Vocabulary.of(tokenizer)
    text_ids = [token_id for token_id, token in enumerate(vocabulary.tokens) if token]
    ids = data.draw(st.lists(st.sampled_from(text_ids), max_size=8))
    # In the middle of a text, and not cut within a character.
    first = next(token_id for token_id in text_ids if vocabulary.tokens[token_id] == b"h")
    written = vocabulary.text([first, *ids, first])
    try:
        expected = written.decode()
    except UnicodeDecodeError:
        return
    assert tokenizer.decode([first, *ids, first], skip_special_tokens=False) == expected


@pytest.mark.parametrize("kind", KIND)
def test_every_token_is_what_decoding_it_gives(kind: str) -> None:
    tokenizer = KIND[kind]()
    vocabulary = Vocabulary.of(tokenizer)
    frame = vocabulary.tokens.index(b"h")
    for token_id, token in enumerate(vocabulary.tokens):
        if token and not any(byte >= 0x80 for byte in token):
            assert tokenizer.decode([frame, token_id, frame], skip_special_tokens=False) == f"h{token.decode()}h"


@pytest.mark.parametrize("kind", KINDS)
def test_tokenizers_of_lmc_are_read_with_their_end_tokens(kind: str) -> None:
    tokenizer = trained(kind)
    vocabulary = Vocabulary.of(tokenizer)
    assert vocabulary.eos_ids == tokenizer.eos_ids
    assert vocabulary.special_ids == tokenizer.special_ids
    assert vocabulary.has_all_bytes
    text = "x = {'a': 1}\n\n  it's 1234 日本語 😀 <|im_end|> "
    assert tuple(vocabulary.encode(text)) == tokenizer.encode(text)
    assert vocabulary.text(vocabulary.encode(text)) == text.encode()


def test_special_tokens_are_no_text_and_added_ones_are() -> None:
    vocabulary = Vocabulary.of(byte_level())
    ids = byte_level().get_vocab()
    assert vocabulary.tokens[ids[END]] == b""
    assert vocabulary.eos_ids == (ids[END],)
    assert vocabulary.tokens[ids["<tool>"]] == b"<tool>"
    assert vocabulary.tokens[ids["é ü"]] == "é ü".encode()
    # A decoder for bytes takes the letters of an added token for bytes where all of them stand for one.
    assert vocabulary.tokens[ids["naïve"]] == b"na\xefve"
    assert vocabulary.text(vocabulary.encode(END)) == END.encode()
    assert ids["<tool>"] not in vocabulary.encode("a <tool>")


@pytest.mark.parametrize("kind", ["byte-level", "sentencepiece", "sentencepiece with metaspace"])
@given(st.text(st.sampled_from(list("helo wrd,日本é😀\n")), max_size=12))
def test_encoding_writes_the_text_and_nothing_before_it(kind: str, text: str) -> None:
    vocabulary = Vocabulary.of(KIND[kind]())
    assert vocabulary.text(vocabulary.encode(text)) == text.encode()


def test_encoding_is_canonical_in_the_middle_of_a_text() -> None:
    for kind in ("sentencepiece", "sentencepiece with metaspace"):
        vocabulary = Vocabulary.of(KIND[kind]())
        assert [vocabulary.tokens[each] for each in vocabulary.encode("hello hello w")] == [b"hello", b" hello", b" w"]


def test_the_unknown_token_is_no_text() -> None:
    vocabulary = Vocabulary.of(metaspace_unigram())
    assert vocabulary.tokens[0] == b""
    assert not vocabulary.has_all_bytes
    with pytest.raises(
        ConstraintError, match=r"no token of this vocabulary goes on with b'x' in b'hexe'\n  remedy: use a"
    ):
        vocabulary.encode("hexe")


def test_without_a_tokenizer_the_longest_token_at_each_place_is_taken() -> None:
    vocabulary = Vocabulary([b"a", b"ab", b"abc", b"c", b"ab", b"d"], [5])
    assert vocabulary.encode("abcaba") == [2, 1, 0]
    assert vocabulary.longest_tokens(b"abd") == ([1], 2)
    assert vocabulary.encode(b"") == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("hello日".encode()[:-1], [b"hello"]),
        ("日本".encode()[1:], [b"\x97", b"\xa5", "本".encode()]),
        (b"\x97", [b"\x97"]),
        (b"hello\xff", [b"hello", b"\xff"]),
        (b"", []),
    ],
)
def test_bytes_that_are_cut_within_characters_are_encoded_as_far_as_they_go(data: bytes, expected: list[bytes]) -> None:
    vocabulary = Vocabulary.of(KIND["sentencepiece"]())
    assert [vocabulary.tokens[each] for each in vocabulary.encode_cut(data)] == expected


def test_what_no_token_goes_on_with_ends_what_is_encoded() -> None:
    vocabulary = Vocabulary([b"a", b"b", "é".encode()])
    assert vocabulary.encode_cut(b"abxa") == [0, 1]
    assert vocabulary.encode_cut(b"\xa9a") == []


def test_several_ends_and_ids_beyond_the_tokens() -> None:
    vocabulary = Vocabulary([b"a", b"<end>", b"b", b"<stop>"], [], [3, 1], size=70)
    assert (vocabulary.size, vocabulary.words, vocabulary.eos_ids) == (70, 3, (1, 3))
    assert vocabulary.tokens[1] == vocabulary.tokens[3] == vocabulary.tokens[69] == b""
    assert Vocabulary([b"a"], (), 0).tokens == (b"",)
    assert Vocabulary([b"a", b"b"], np.array([0]), np.array([1])).eos_ids == (1,)
    assert Vocabulary([b"a"], (), None).eos_ids == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": [b"a"], "eos_id": 1}, r"no token 1 in a vocabulary of 1\n  remedy: check special_ids and eos_id"),
        ({"tokens": [b"a"], "special_ids": [-1]}, r"no token -1"),
        ({"tokens": [b"a", b"b"], "size": 1}, r"size 1 can't hold 2 tokens\n  remedy: give the number of token ids"),
    ],
)
def test_ids_that_are_not_there_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        Vocabulary(**arguments)


@pytest.mark.parametrize("tokens", ["ab", [b"a", "b"], b"ab"])
def test_tokens_that_are_no_bytes_are_refused(tokens: Any) -> None:
    with pytest.raises(ConstraintError, match=r"here are some of type (str|int)\n  remedy: give the bytes of every"):
        Vocabulary(tokens)


def test_the_digest_names_the_content() -> None:
    def digest(*arguments: Any, **more: int) -> str:
        return Vocabulary(*arguments, **more).digest

    same = digest([b"a", b"b", b"<e>"], [], 2)
    assert same == digest([b"a", b"b", b"other"], [2], [2])
    others = [
        digest([b"a", b"b", b"<e>"]),
        digest([b"ab", b"", b"<e>"], [], 2),
        digest([b"b", b"a", b"<e>"], [], 2),
        digest([b"a", b"b", b"<e>"], [], 2, size=4),
        digest([b"a", b"b", b"<e>"], [1], 2),
    ]
    assert len({same, *others}) == 6


def test_tokens_are_described_for_messages() -> None:
    vocabulary = Vocabulary([b"a\n", b"s", b"e"], [1], 2)
    assert [vocabulary.describe(each) for each in range(-1, 3)] == [
        "token -1 (not in this vocabulary)",
        r"token 0 (b'a\n')",
        "token 1 (a special token)",
        "token 2 (end of text)",
    ]


def test_a_vocabulary_is_made_once_for_each_tokenizer_that_stays_as_it_is() -> None:
    tokenizer = tokenizers.Tokenizer.from_str(byte_level().to_str())
    first = Vocabulary.of(tokenizer)
    assert Vocabulary.of(tokenizer) is first
    assert Vocabulary.of(first) is first
    assert Vocabulary.of(tokenizer, eos_id=5).eos_ids == (5,)
    assert Vocabulary.of(tokenizer, size=1000).size == 1000
    tokenizer.add_tokens(["<new>"])
    assert b"<new>" in Vocabulary.of(tokenizer).tokens
    assert first.digest == Vocabulary.of(tokenizers.Tokenizer.from_str(byte_level().to_str())).digest


def test_a_vocabulary_does_not_keep_its_tokenizer() -> None:
    tokenizer = tokenizers.Tokenizer.from_str(byte_level().to_str())
    vocabulary = Vocabulary.of(tokenizer)
    kept, gone = len(module._vocabularies), weakref.ref(tokenizer)
    del tokenizer
    gc.collect()
    assert gone() is None
    assert len(module._vocabularies) == kept - 1
    assert vocabulary.encode("hello")


def test_a_model_may_have_fewer_ids_than_its_tokenizer() -> None:
    whole = Vocabulary.of(byte_level())
    cut = Vocabulary.of(byte_level(), size=290)
    assert cut.tokens == whole.tokens[:290]
    assert cut.eos_ids == ()
    assert max(cut.encode("hello world, yes it is so")) < 290


def save(folder: Path, **files: object) -> Path:
    byte_level().save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_a_folder_says_what_ends_a_generation(tmp_path: Path) -> None:
    end = byte_level().token_to_id(END)
    assert Vocabulary.of(save(tmp_path)).eos_ids == (end,)
    save(tmp_path, tokenizer_config={"eos_token": {"content": END}}, config={"eos_token_id": 7})
    assert Vocabulary.of(tmp_path).eos_ids == (7, end)
    save(tmp_path, generation_config={"eos_token_id": [3, 4]})
    assert Vocabulary.of(str(tmp_path)).eos_ids == (3, 4, end)
    assert Vocabulary.of(tmp_path) is Vocabulary.of(str(tmp_path))


def test_a_folder_that_can_not_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConstraintError, match=r"has no tokenizer.json\n  remedy: name a folder"):
        Vocabulary.of(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ConstraintError, match=r"tokenizer.json can't be read: .*\n  remedy: save the tokenizer again"):
        Vocabulary.of(tmp_path)
    save(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConstraintError, match=r"config.json is not JSON"):
        Vocabulary.of(tmp_path)


def with_decoder(decoder: object) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE({"a": 0}, []))
    if decoder is not None:
        made.decoder = decoder
    return made


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (None, "no decoder"),
        (decoders.WordPiece(), "its decoder is WordPiece"),
        (decoders.BPEDecoder(), "its decoder is BPEDecoder"),
        (decoders.Replace(tokenizers.Regex("a+"), "b"), "replaces a pattern"),
        (decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "b")]), "replaces a pattern"),
        (decoders.Sequence([decoders.Strip(" ", 1, 0), decoders.Fuse()]), "strips every token"),
        (decoders.Sequence([decoders.Fuse(), decoders.ByteFallback()]), "ByteFallback to the joined text"),
        (decoders.Sequence([decoders.ByteLevel(), decoders.Replace("a", "b")]), "ByteLevel and something else"),
        (decoders.Decoder.custom(SimpleNamespace()), "Python code"),
    ],
)
def test_tokens_without_bytes_of_their_own_are_refused(decoder: object, message: str) -> None:
    with pytest.raises(ConstraintError, match=rf"can't be told: .*{message}\n  remedy: use a byte-level BPE") as caught:
        Vocabulary.of(with_decoder(decoder))
    assert "lmc.grammar.Vocabulary" in str(caught.value)


class Slow:
    """A tokenizer in Python, as transformers has them."""

    def __init__(self, *, byte_decoder: bool) -> None:
        if byte_decoder:
            self.byte_decoder = {character: byte for byte, character in enumerate(ALPHABET)}
        self.eos_token_id = 257
        self.all_special_ids = [257]
        self.added_tokens_decoder = {256: AddedToken("<tool é>"), 257: AddedToken(END, special=True)}

    def __len__(self) -> int:
        return 258

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [[*ALPHABET, "<tool é>", END][each] for each in ids]


ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def test_slow_tokenizers_that_spell_bytes_are_read() -> None:
    vocabulary = Vocabulary.of(Slow(byte_decoder=True))
    assert vocabulary.tokens[:256] == tuple(bytes((byte,)) for byte in range(256))
    assert vocabulary.tokens[256:] == ("<tool é>".encode(), b"")
    assert vocabulary.eos_ids == (257,)
    assert vocabulary.encode("ab") == [97, 98]


def test_other_slow_tokenizers_and_what_is_none_are_refused() -> None:
    with pytest.raises(ConstraintError, match="Slow is no fast tokenizer and is not byte-level"):
        Vocabulary.of(Slow(byte_decoder=False))
    with pytest.raises(ConstraintError, match=r"object is no tokenizer\n  remedy: give a tokenizer of transformers"):
        Vocabulary.of(object())


def test_fast_tokenizers_of_transformers_are_read() -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="hello")
    vocabulary = Vocabulary.of(fast)
    assert vocabulary.eos_ids == (fast.eos_token_id,)
    assert vocabulary.tokens[fast.eos_token_id] == b""
    assert Vocabulary.of(fast) is vocabulary


def test_the_toy_tokenizer_has_a_token_for_each_byte() -> None:
    vocabulary = Vocabulary.of(toy_tokenizer())
    assert sorted(token for token in vocabulary.tokens if token) == [bytes((byte,)) for byte in range(256)]
    assert vocabulary.eos_ids == toy_tokenizer().eos_ids
