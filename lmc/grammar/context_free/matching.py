"""llguidance: the tokens it walks, the grammars it reads, and its errors as ours.

A matcher that failed stays in an error state, in which its mask allows the end of the text. So each step is followed by
a look at that state, and no mask leaves here that comes from it. Its messages speak of its own grammar text, which no
user has seen, or are those of a panic: they are only the cause of ours (``__cause__``).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.context_free.emission import as_characters
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

if TYPE_CHECKING:  # at run time it is imported where it is used, so that `import lmc` stays light
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

_STUCK = "NoExtensionBias"  # what it says where no token can follow
_MISMATCH = "doesn't satisfy the grammar"  # what it says of a token that is not allowed; anything else is a limit

_PATTERNS = ("its patterns and counted texts take too many steps", "shorten patterns, and ask for smaller lengths")
_AMBIGUOUS = (
    "it is too ambiguous",
    "give a less ambiguous grammar: left-recursive lists (or * and +), longer terminals",
)
# Parts of its messages about limits: what was exceeded, and the remedy.
_EXCEEDED = {
    "fuel": _PATTERNS,
    "too many expressions": _PATTERNS,
    "lexer configuration": _PATTERNS,
    "too many states": _PATTERNS,
    "grammar size": ("it has too many parts", "have fewer alternatives, and smaller counts"),
    "Current row has": _AMBIGUOUS,
    "Too many items": _AMBIGUOUS,
}


class _Tokens:
    """The tokens for ``TokenizerWrapper``. The last one is the end of the text; those without bytes are special."""

    bos_token_id = None

    def __init__(self, tokens: Iterable[bytes]) -> None:
        self.tokens = [*map(as_characters, tokens), b"<end>"]
        self.eos_token_id = len(self.tokens) - 1
        self.special_token_ids = [number for number, token in enumerate(self.tokens) if not token]
        self.special_token_ids.append(self.eos_token_id)

    def __call__(self, text: str | bytes) -> list[int]:
        """Only forced text is tokenized there, and nothing is forced there."""
        del text
        return []


@cache
def _limits() -> LLParserLimits:
    """Counts, so that what fails does not depend on the machine. Of a step: steps of the lexer, items of the parser."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        max_items_in_row=1_000,
        initial_lexer_fuel=20_000_000,
        step_lexer_fuel=20_000_000,
        step_max_items=20_000,
        max_lexer_states=100_000,
        max_grammar_size=200_000,
        verbose_errors=False,
    )


def _tokenizer(tokens: Iterable[bytes]) -> LLTokenizer:
    from llguidance import LLTokenizer, TokenizerWrapper

    made = _Tokens(tokens)
    return LLTokenizer(TokenizerWrapper(made), n_vocab=len(made.tokens), eos_token=made.eos_token_id, slices=[])


@cache
def byte_tokenizer() -> LLTokenizer:
    """The tokens that are one byte each, by their value."""
    return _tokenizer(bytes((value,)) for value in range(256))


_tokenizers: weakref.WeakKeyDictionary[Vocabulary, LLTokenizer] = weakref.WeakKeyDictionary()
_first_bytes: weakref.WeakKeyDictionary[Vocabulary, NDArray[np.int16]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def tokenizer_of(vocabulary: Vocabulary) -> LLTokenizer:
    """The tokens of a vocabulary, made once for as long as it lives; the end of the text is one more behind them."""
    with _lock:
        made = _tokenizers.get(vocabulary)
        if made is None:
            made = _tokenizers[vocabulary] = _tokenizer(vocabulary.tokens)
        return made


def first_bytes(vocabulary: Vocabulary) -> NDArray[np.int16]:
    """The byte that each token begins with, -1 for those without bytes; made once."""
    with _lock:
        made = _first_bytes.get(vocabulary)
        if made is None:
            found = (token[0] if token else -1 for token in vocabulary.tokens)
            made = _first_bytes[vocabulary] = np.fromiter(found, np.int16, vocabulary.size)
        return made


class Matcher:
    """The state of a text in a grammar. Changes with every token; ``copy`` is independent of it."""

    __slots__ = ("_matcher",)

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    @classmethod
    def of(cls, tokenizer: LLTokenizer, text: str) -> Matcher:
        """At the start of a grammar as ``emit`` writes it. Raises ``ConstraintError`` for one that is too large."""
        from llguidance import LLMatcher

        with _reported("the grammar can't be compiled"):
            made = cls(LLMatcher(tokenizer, LLMatcher.grammar_from_lark(text), log_level=0, limits=_limits()))
        made._check("the grammar can't be compiled")
        return made

    def copy(self) -> Matcher:
        with _reported("the text can't be followed any further"):
            return Matcher(self._matcher.deep_copy())

    @property
    def accepts(self) -> bool:
        """Return whether the text may end here."""
        return self._matcher.is_accepting()

    def take(self, tokens: Sequence[int]) -> bool:
        """Go on by some tokens; False where they are not allowed, after which it is of no use any more.

        Raises ``ConstraintError`` where the grammar is too ambiguous to say.
        """
        with _reported("the text can't be followed any further"):
            if not tokens or self._matcher.consume_tokens(list(tokens)):
                return True
        if _MISMATCH not in self._matcher.get_error() and not self._was_stopped():
            self._check("the text can't be followed any further")
        return False

    def mask(self, words: int) -> NDArray[np.uint32]:
        """The tokens that may follow, packed, without the end of the text; a new array.

        Raises ``ConstraintError`` where the grammar is too ambiguous to say.
        """
        with _reported("what may follow can't be found out"):
            found = self._matcher.compute_bitmask()
        if self._matcher.get_error().startswith(_STUCK):
            return np.zeros(words, np.uint32)
        self._check("what may follow can't be found out")
        return np.frombuffer(found, np.uint32)[:words].copy()

    def _was_stopped(self) -> bool:
        """Return whether nothing could follow before the tokens that were refused; there is no better sign of it."""
        return "parser stopped" in self._matcher.get_error()

    def _check(self, what: str) -> None:
        if self._matcher.is_error():
            raise _failure(what, self._matcher.get_error()) from RuntimeError(self._matcher.get_error())


def _failure(what: str, message: str) -> ConstraintError:
    """Our error for a message of llguidance."""
    for part, (cause, remedy) in _EXCEEDED.items():
        if part in message:
            return ConstraintError(f"{what}: {cause}", remedy=remedy)
    return ConstraintError(
        f"{what}: llguidance, which follows grammars, failed in itself",
        remedy="write it smaller, or as a regular expression; the cause of this error is the message of llguidance, "
        "for a report to lmc",
    )


@contextmanager
def _reported(what: str) -> Generator[None]:
    """Raise our error where llguidance raises; its panics are of no class but ``BaseException``."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise _failure(what, str(error)) from error
