"""llguidance: rules as text for it, the tokens it walks, and its errors as ours.

It reads a notation near Lark's. Nodes are over bytes, its patterns over characters. So every byte is one character
there, U+0000 to U+00FF, and the tokens it is given are written the same way (``as_characters``).

A matcher that failed stays in an error state, in which its mask allows the end of the text. So each step is followed by
a look at that state, and no mask leaves here that comes from it. Its messages speak of its own grammar text, which no
user has seen, or are those of a panic: they are only the cause of ours (``__cause__``).
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.nodes import Kind, Node, fold
from lmc.grammar.context_free.rules import Alternative, Repetition, RuleSet, Symbol, base
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

if TYPE_CHECKING:  # at run time it is imported where it is used, so that `import lmc` stays light
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

# llguidance's compiler follows references by recursion, on whatever stack the thread has.
MAX_DEPTH = 400

# It reads counts as signed numbers of 32 bits.
MAX_COUNT = 2**31 - 1

# Where bytes are forced, its masks would hold only the tokens that it prefers: here they are to hold all that may come.
_OPTIONS = '%llguidance {"no_forcing": true, "skip_repetition": "once"}'


def as_characters(data: bytes) -> bytes:
    """Bytes as the UTF-8 of the characters that stand for them."""
    return data.decode("latin-1").encode()


def emit(rules: RuleSet) -> str:
    """Return the text of trimmed rules. Raises ``ConstraintError`` for rules that nest too deeply or count too far."""
    return _Emission(rules).text()


class _Emission:
    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._names = {name: f"r{number}" for number, name in enumerate(rules.alternatives)}
        self._terms: dict[Node, str] = {}
        self._depths: dict[Node, int] = {}
        self._lines: list[str] = []

    def text(self) -> str:
        rules = self._rules
        _check_depth(rules)
        lines = [_OPTIONS, f"start: {self._names[rules.start]}"]
        for name, alternatives in rules.alternatives.items():
            lines.append(f"{self._names[name]}: {' | '.join(map(self._alternative, self._merged(alternatives)))}")
        if rules.skipped is not None:
            lines.append(f"%ignore {self._term(rules.skipped)}")
        return "\n".join([*lines, *self._lines, ""])

    def _merged(self, alternatives: list[Alternative]) -> list[Alternative]:
        """The same alternatives, those that are one terminal together as one: the lexer tells them apart."""
        nodes = [each[0] for each in alternatives if len(each) == 1 and isinstance(each[0], Node)]
        if len(nodes) < 2:
            return list(dict.fromkeys(alternatives))
        rest = [each for each in alternatives if len(each) != 1 or not isinstance(each[0], Node)]
        return [(self._rules.derivatives.arena.union(nodes),), *dict.fromkeys(rest)]

    def _alternative(self, alternative: Alternative) -> str:
        return " ".join(map(self._symbol, alternative)) or '""'

    def _symbol(self, symbol: Symbol) -> str:
        inner = base(symbol)
        text = self._names[inner] if isinstance(inner, str) else self._term(inner)
        return text + _repeats(symbol.low, symbol.high) if isinstance(symbol, Repetition) else text

    def _term(self, node: Node) -> str:
        """The name of a terminal, or its text where that is short."""
        return fold(node, self._terms, self._made, _flat)

    def _made(self, node: Node, parts: list[str]) -> str:
        depth = self._depths[node] = 1 + max((self._depths[part] for part in _flat(node)), default=0)
        if depth > MAX_DEPTH:
            raise _too_deep("parts of a terminal nest")
        match node.kind:
            case Kind.EPSILON:
                return '""'
            case Kind.LITERAL:
                return json.dumps(node.data.decode("latin-1"))
            case Kind.BYTE:
                return f"/[{_ranges(node.mask)}]/"
            case Kind.CONCAT:
                text = " ".join(parts)
            case Kind.UNION:
                text = " | ".join(parts)
            case Kind.REPEAT:
                text = parts[0] + _repeats(node.low, node.high)
            case _:
                raise AssertionError(f"no terminal of a grammar: {node!r}")
        name = f"T{len(self._lines)}"
        self._lines.append(f"{name}: {text}")
        return name


def _flat(node: Node) -> list[Node]:
    """The parts of a node; those of a concatenation all in one row."""
    if node.kind is not Kind.CONCAT:
        return list(node.parts)
    parts: list[Node] = []
    while node.kind is Kind.CONCAT:
        head, node = node.parts
        parts.append(head)
    return [*parts, node]


def _repeats(low: int, high: int | None) -> str:
    if low > MAX_COUNT:
        raise ConstraintError(f"a count of more than {MAX_COUNT}", remedy="ask for a smaller length or number of parts")
    if high is not None:
        high = min(high, MAX_COUNT)
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    return "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"


def _ranges(mask: int) -> str:
    """Return a byte set as the inside of a character class."""
    ranges: list[str] = []
    byte = 0
    while mask >> byte:
        if not mask >> byte & 1:
            byte += 1
            continue
        first = byte
        while mask >> byte & 1:
            byte += 1
        ranges.append(f"\\x{{{first:x}}}" if byte - first == 1 else f"\\x{{{first:x}}}-\\x{{{byte - 1:x}}}")
    return "".join(ranges)


def _check_depth(rules: RuleSet) -> None:
    """Raise ``ConstraintError`` where following references depth first, in order, goes too deep."""
    seen = {rules.start}
    stack = [iter(_references(rules, rules.start))]
    while stack:
        for reference in stack[-1]:
            if reference not in seen:
                seen.add(reference)
                stack.append(iter(_references(rules, reference)))
                break
        else:
            stack.pop()
        if len(stack) > MAX_DEPTH:
            raise _too_deep("rules refer to others")


def _too_deep(what: str) -> ConstraintError:
    return ConstraintError(
        f"{what} more than {MAX_DEPTH} deep",
        remedy="write it flatter: repeat with * or ~, and put fewer parts into others",
    )


def _references(rules: RuleSet, name: str) -> list[str]:
    found = (base(symbol) for each in rules.alternatives[name] for symbol in each)
    return [symbol for symbol in found if isinstance(symbol, str)]


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
