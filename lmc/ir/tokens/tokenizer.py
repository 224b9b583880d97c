"""Text to token ids and back, over Hugging Face `tokenizers` files; never loads torch.

User text is encoded with every added (special) token switched off, so text that happens to hold ``<|im_end|>`` stays
text. Only what a chat template emits may become a special token (``split_template``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tokenizers

from lmc.ir.cached import cached_property
from lmc.ir.errors import InputError
from lmc.ir.tokens.boundaries import (
    UNSTABLE_WORDS,
    before_last_ascii,
    has_stable_words,
    longest_token,
    normalizes_stably,
)

ENCODED_AT_ONCE = 6
"""Characters, for each token that a prompt may have, up to which a text is encoded without a look at its beginning."""
_PARTS = (2, ENCODED_AT_ONCE)
"""Characters, for each token that a prompt may have, of the beginnings of longer texts."""


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token that only a chat template (never user text) may emit."""

    id: int
    text: str


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer with its special tokens and chat template.

    Build one with ``Tokenizer.from_folder`` (a model folder) or ``Tokenizer.from_json`` (the text of tokenizer.json).
    ``bos_id`` is what the tokenizer puts before a raw completion (None: nothing); ``eos_ids`` end a generation.
    """

    definition: str = field(repr=False)
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    chat_template: str | None = field(default=None, repr=False)
    template_variables: tuple[tuple[str, str], ...] = ()
    folder: str = field(default="", repr=False, compare=False)
    """The folder it was read from, for error messages."""

    @classmethod
    def from_json(
        cls,
        definition: str,
        *,
        bos_token: str | None = None,
        eos_tokens: Sequence[str] = (),
        chat_template: str | None = None,
        template_variables: Sequence[tuple[str, str]] = (),
    ) -> Tokenizer:
        """A tokenizer from the text of a ``tokenizer.json``; names of special tokens are resolved to ids."""
        plain = cls(definition)

        def token_id(text: str) -> int:
            found = plain._parsing.token_to_id(text)
            if found is None:
                raise InputError(
                    f"the tokenizer has no token {text!r}", remedy="check tokenizer.json and tokenizer_config.json"
                )
            return found

        return cls(
            definition,
            bos_id=None if bos_token is None else token_id(bos_token),
            eos_ids=tuple(token_id(text) for text in eos_tokens),
            chat_template=chat_template,
            template_variables=tuple(template_variables),
        )

    @classmethod
    def from_folder(cls, folder: str | Path) -> Tokenizer:
        """The tokenizer of a local model folder.

        Read are tokenizer.json; tokenizer_config.json; chat_template.jinja, else the template of tokenizer_config.json
        (of several named ones "default"); the end tokens of generation_config.json, else those of config.json.
        """
        folder = Path(folder)
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise InputError(f"{folder} has no tokenizer.json", remedy="name a folder saved by transformers")
        definition = _read_text(path)
        config = _read_json(folder / "tokenizer_config.json")
        template = _default_template(config.get("chat_template"))
        template_file = folder / "chat_template.jinja"
        if template_file.is_file():
            template = _read_text(template_file)
        named = {key: _token_text(config.get(key)) for key in ("bos_token", "eos_token", "unk_token", "pad_token")}
        try:
            tokenizer = cls.from_json(
                definition,
                bos_token=named["bos_token"] if _adds_bos(definition, config, named["bos_token"]) else None,
                eos_tokens=[named["eos_token"]] if named["eos_token"] else [],
                chat_template=template if isinstance(template, str) else None,
                template_variables=[(key, text) for key, text in named.items() if text],
            )
        except InputError as error:
            raise InputError(f"{path}: {error.cause}", remedy=error.remedy) from error
        return replace(tokenizer.with_eos_ids(_generation_eos_ids(folder)), folder=str(folder))

    def with_eos_ids(self, ids: Sequence[int]) -> Tokenizer:
        """The same tokenizer that ends generations at ``ids`` too."""
        merged = tuple(sorted({*self.eos_ids, *ids}))
        return replace(self, eos_ids=merged)

    @property
    def is_of_model(self) -> bool:
        """True if a model counts these tokens."""
        return True

    @property
    def start_ids(self) -> tuple[int, ...]:
        """The prefix of an otherwise empty prompt: BOS, else an end token."""
        start = self.bos_id if self.bos_id is not None else next(iter(self.eos_ids), None)
        if start is None:
            raise InputError(
                "an empty prompt needs a tokenizer with a BOS or EOS token", remedy="begin the prompt with some text"
            )
        return (start,)

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids, added ones included."""
        return self._parsing.get_vocab_size(with_added_tokens=True)

    @cached_property
    def special_tokens(self) -> tuple[SpecialToken, ...]:
        """Every added token, longest text first."""
        added = self._parsing.get_added_tokens_decoder()
        found = (SpecialToken(token_id, token.content) for token_id, token in added.items())
        return tuple(sorted(found, key=lambda token: (-len(token.text), token.text)))

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of ``special_tokens``."""
        return frozenset(token.id for token in self.special_tokens)

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of plain text. Special strings in it are encoded as the characters they are."""
        return tuple(self._encoding(text).ids) if text else ()

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``; special tokens show as their text, incomplete UTF-8 as U+FFFD."""
        return self._parsing.decode(list(ids), skip_special_tokens=False)

    def text_of(self, token_id: int) -> str:
        """Text of one token alone: ``decode``, but each is decoded once."""
        text = self._texts.get(token_id)
        if text is None:
            text = self._texts[token_id] = self.decode((token_id,))
        return text

    def split_template(self, text: str) -> Iterator[str | SpecialToken]:
        """Cut template text at its special tokens: plain pieces and the tokens between them, in order."""
        if not self.special_tokens:
            if text:
                yield text
            return
        by_text = {token.text: token for token in self.special_tokens}
        start = 0
        for match in self._special_pattern.finditer(text):
            if match.start() > start:
                yield text[start : match.start()]
            yield by_text[match.group()]
            start = match.end()
        if start < len(text):
            yield text[start:]

    def stable_prefix(self, text: str) -> tuple[int, ...]:
        """The leading token ids of ``text`` that stay the same whatever text is appended to it (maybe none)."""
        if not text or not self._has_stable_boundaries:
            return ()
        if self._plain.normalizer is not None:
            self._encoding(text)  # refuses what is no Unicode text
            text = self._plain.normalizer.normalize_str(before_last_ascii(text))
        encoding = self._encoding(text)
        pieces = self._plain.pre_tokenizer.pre_tokenize_str(text)
        if len(pieces) <= UNSTABLE_WORDS:
            return ()
        boundary = pieces[-UNSTABLE_WORDS][1][0]
        # Not the tokens of text[:boundary]: white space at its end could be cut differently there.
        tokens = zip(encoding.ids, encoding.offsets, strict=True)
        return tuple(token_id for token_id, (start, _) in tokens if start < boundary)

    def exceeds(self, text: str, count: int) -> bool:
        """Return True if ``text`` surely has more than ``count`` tokens, whatever follows it.

        False for a text whose tokens are not certain from its beginning and its length, and for one of up to
        ``ENCODED_AT_ONCE`` characters for each of the tokens: these have to be encoded. Time is linear in ``count``,
        whatever the length of the text.
        """
        if len(text) <= ENCODED_AT_ONCE * count:
            return False
        if any(len(self.stable_prefix(text[: part * count])) > count for part in _PARTS):
            return True
        return self._longest_token is not None and len(text) > count * self._longest_token

    def _encoding(self, text: str) -> tokenizers.Encoding:
        try:
            return self._plain.encode(text, add_special_tokens=False)
        except TypeError as error:  # what tokenizers raises for a string that is no Unicode text
            raise InputError(
                "a text holds half of a surrogate pair, which no model can read",
                remedy="decode the text as UTF-8 or UTF-16 before it is given to the program",
            ) from error

    @cached_property
    def _texts(self) -> dict[int, str]:
        return {}

    @cached_property
    def _parsing(self) -> tokenizers.Tokenizer:
        try:
            return tokenizers.Tokenizer.from_str(self.definition)
        except Exception as error:  # tokenizers raises bare Exception
            raise InputError(f"tokenizer.json can't be read: {error}", remedy="save the tokenizer again") from error

    @cached_property
    def _plain(self) -> tokenizers.Tokenizer:
        special_tokens = self.special_tokens  # refuses a definition that can't be read
        definition: dict[str, Any] = json.loads(self.definition)
        definition["added_tokens"] = []
        definition["post_processor"] = None
        definition["truncation"] = None
        definition["padding"] = None
        plain = tokenizers.Tokenizer.from_str(json.dumps(definition))
        for token in special_tokens:
            ids = plain.encode(token.text, add_special_tokens=False).ids
            if self.special_ids.intersection(ids):
                raise InputError(
                    f"this tokenizer can't keep the text {token.text!r} as text",
                    remedy="use a BPE tokenizer; its special tokens must not be pieces of its model",
                )
        return plain

    @cached_property
    def _special_pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(token.text) for token in self.special_tokens))

    @cached_property
    def _longest_token(self) -> int | None:
        return longest_token(json.loads(self.definition))

    @cached_property
    def _has_stable_boundaries(self) -> bool:
        definition: dict[str, Any] = json.loads(self.definition)
        return normalizes_stably(definition) and has_stable_words(definition)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}", remedy="save the model folder again") from error


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}", remedy="save the model folder again") from error
    if not isinstance(loaded, dict):
        raise InputError(f"{path} does not hold a JSON object", remedy="save the model folder again")
    return loaded


def _token_text(entry: Any) -> str | None:
    if isinstance(entry, dict):
        entry = entry.get("content")
    return entry if isinstance(entry, str) else None


def _default_template(entry: Any) -> Any:
    """Older folders hold a list of named templates: one for chats, others for tools or retrieval."""
    if not isinstance(entry, list):
        return entry
    named = {each.get("name"): each.get("template") for each in entry if isinstance(each, dict)}
    return named.get("default")


def _adds_bos(definition: str, config: dict[str, Any], bos_token: str | None) -> bool:
    """Return True if this tokenizer starts a raw completion with BOS: by its flag, else by its post-processor."""
    if bos_token is None:
        return False
    flag = config.get("add_bos_token")
    if isinstance(flag, bool):
        return flag
    try:
        post_processor = json.loads(definition).get("post_processor")
    except (ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"not a tokenizer: {error}", remedy="save the tokenizer again") from error
    return json.dumps(bos_token) in json.dumps(post_processor)


def _generation_eos_ids(folder: Path) -> tuple[int, ...]:
    eos = _read_json(folder / "generation_config.json").get("eos_token_id")
    if eos is None:
        eos = _read_json(folder / "config.json").get("eos_token_id")
    if isinstance(eos, int):
        return (eos,)
    return tuple(entry for entry in eos if isinstance(entry, int)) if isinstance(eos, list) else ()
