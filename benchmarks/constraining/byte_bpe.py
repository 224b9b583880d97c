"""Byte-level BPE tokenizers of realistic size, trained here once and kept under `build/benchmark`.

The text is what every environment of this project has (sources and docstrings of the standard library and of the pinned
packages), and text made by seed: JSON records, addresses and dates, and prose in twelve scripts, so that tokens hold
several characters, parts of characters, and whatever JSON is made of. What is made is the same everywhere; the sources
are those of the versions in `constraints.txt`, so another machine trains nearly the same tokens.
"""

import json
import random
import sysconfig
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = Path(__file__).parents[2] / "build" / "benchmark" / "byte_bpe"
SIZES = {"32k": 32_000, "128k": 128_000}
END = "<|end|>"
SPECIAL = (END, "<|begin|>", "<|user|>", "<|assistant|>")
SEED = 20
SOURCE_CHARACTERS = 90_000_000
PROSE_SENTENCES = 6_000  # of each script
WORDS = 2_500  # of each script
RECORDS = 30_000
PACKAGES = (
    "huggingface_hub",
    "mpmath",
    "networkx",
    "numpy",
    "pydantic",
    "pygments",
    "rich",
    "sympy",
    "torch",
    "transformers",
)

# A word takes one character before it along, digits come in threes, line ends stay with what ends the line.
_WORDS = "|".join(
    (
        r"'(?i:s|t|m|d|re|ve|ll)",
        r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

# Of each script: what a syllable starts with, and goes on with; syllables of a word at most; what is between words.
_SCRIPTS: dict[str, tuple[str, str, int, str]] = {
    "latin": ("bcdfghjklmnprstvz", "aeiouáéíóúàèìòùâêîôûäëïöüñçãõåøæ", 4, " "),
    "central": ("bcčćdďđfghjklłmnňprřsśštťvzźž", "aeiouyąęáéíóúůý", 4, " "),
    "cyrillic": ("бвгджзклмнпрстфхцчшщ", "аеёийоуыэюяіїє", 4, " "),
    "greek": ("βγδζθκλμνξπρστφχψ", "αεηιουωάέήίόύώ", 4, " "),
    "hebrew": ("אבגדהוזחטיכלמנסעפצקרשת", "אהוילמנת", 3, " "),
    "arabic": ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "اويةلمن", 3, " "),
    "devanagari": ("कखगघचछजटडतथदधनपफबभमयरलवशसह", "ािीुूेैोौंः", 3, " "),
    "thai": ("กขคงจชซดตทนบปผพมยรลวสหอ", "ะาิีึืุูเแโใไ่้", 4, ""),
    "kana": (
        "かきくけこさしすせそたちつてとなにぬねのはまみめもやゆよらりるれろカキサシスタナハマラ",
        "んーいうっ",
        3,
        "",
    ),
    "hangul": ("".join(map(chr, range(0xAC00, 0xD7A4, 19))), "이가은를의에서", 2, " "),
    "han": ("".join(map(chr, range(0x4E00, 0x9F00, 9))), "的一是不了人在有我他", 2, ""),
    "signs": ("✓→★≤≥∞€£°§•–—…“”", "😀🎉🚀👍🔥💡🌍🎶🍀⚡", 1, " "),
}


def tokenizer(name: str, folder: Path = FOLDER) -> Tokenizer:
    """The tokenizer of ``SIZES[name]`` tokens, trained if it is not in the folder yet (a minute or two)."""
    path = folder / f"{name}.json"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        made = trained(SIZES[name], corpus())
        partial = path.with_suffix(".partial")
        made.save(str(partial))
        partial.replace(path)
    return Tokenizer.from_file(str(path))


def trained(size: int, texts: Iterator[str]) -> Tokenizer:
    """A byte-level BPE tokenizer of ``size`` tokens, the special ones first."""
    made = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_WORDS), behavior="isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        max_token_length=64,
    )
    made.train_from_iterator(texts, trainer)
    return made


def token_bytes(made: Tokenizer) -> list[bytes]:
    """The bytes of every token by id; nothing for the special ones."""
    byte_of = _byte_of_character()
    tokens = [b""] * made.get_vocab_size()
    for text, identifier in made.get_vocab().items():
        if text not in SPECIAL:
            tokens[identifier] = bytes(byte_of[character] for character in text)
    return tokens


def _byte_of_character() -> dict[str, int]:
    """Bytes by the characters that stand for them: printable ones for themselves, the others follow from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + at): byte for at, byte in enumerate(others)}


def corpus(
    characters: int = SOURCE_CHARACTERS, sentences: int = PROSE_SENTENCES, records: int = RECORDS
) -> Iterator[str]:
    """All texts to train on."""
    yield from sources(characters)
    for script in _SCRIPTS:
        yield from prose(script, sentences)
    yield from json_records(records)


def sources(characters: int) -> Iterator[str]:
    """Files of the standard library and the pinned packages, in an order of their own, up to so many characters."""
    library, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    files = [path for path in library.rglob("*.py") if "site-packages" not in path.parts]
    files += [path for name in PACKAGES for path in (packages / name).rglob("*.py")]
    files.sort(key=lambda path: path.as_posix().rpartition("lib/python")[2])
    random.Random(SEED).shuffle(files)
    for path in files:
        text = path.read_text(encoding="utf-8", errors="ignore")
        yield text[:characters]
        characters -= len(text)
        if characters <= 0:
            return


def prose(script: str, sentences: int) -> Iterator[str]:
    """Sentences of invented words, whose frequencies fall as those of real ones do."""
    chance = random.Random(f"{SEED} {script}")
    first, rest, syllables, space = _SCRIPTS[script]
    words = ["".join(_syllable(chance, first, rest) for _ in range(chance.randint(1, syllables))) for _ in range(WORDS)]
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
    stop = "。" if script in ("han", "kana") else ". "
    for _ in range(sentences):
        chosen = chance.choices(words, cum_weights=weights, k=chance.randint(6, 24))
        yield space.join(chosen).capitalize() + stop


def _syllable(chance: random.Random, first: str, rest: str) -> str:
    return chance.choice(first) + "".join(chance.choice(rest) for _ in range(chance.choice((1, 1, 2))))


def json_records(count: int) -> Iterator[str]:
    """Objects of several shapes as JSON, compact and over lines, with what stands in such objects."""
    chance = random.Random(SEED)
    letters = "abcdefghijklmnopqrstuvwxyz"

    def name() -> str:
        return "".join(chance.choices(letters, k=chance.randint(2, 9))).capitalize()

    for number in range(count):
        record = {
            "id": number,
            "name": f"{name()} {name()}",
            "email": f"{name().lower()}.{name().lower()}@{name().lower()}.{chance.choice(('com', 'org', 'net', 'io'))}",
            "created": f"20{chance.randint(10, 39)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T"
            f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}Z",
            "active": chance.random() < 0.5,
            "score": round(chance.uniform(-90, 90), 2),
            "tags": [name().lower() for _ in range(chance.randint(0, 4))],
            "address": {"street": f"{chance.randint(1, 300)} {name()}", "city": name(), "note": None},
        }
        indent = chance.choice((None, None, 2, 4))
        yield json.dumps(record, indent=indent, separators=(",", ":") if number % 3 == 0 else None) + "\n"
