"""The other libraries that make masks, each as well configured as it can be, behind one interface.

They run in this process, with the tokens of `byte_bpe.py`. What belongs to a tokenizer is made once, before anything
is timed; what belongs to a constraint is made anew by every `compile`, without their caches.
"""

import json
from collections.abc import Sequence
from importlib import metadata
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from benchmarks.constraining.cases import Case

PINS = {"xgrammar": "0.2.8", "llguidance": "1.9.1", "outlines-core": "0.2.14"}
Words = npt.NDArray[np.uint32]


class RefusedError(Exception):
    """The library can't compile the case; its words."""


class Walk(Protocol):
    """One output in the making."""

    def fill(self) -> None:
        """Write the mask of what may follow into the words of the peer."""
        ...

    def accept(self, token: int) -> bool:
        """Take a token; whether it was allowed."""
        ...


class Compiled(Protocol):
    """One constraint for many outputs."""

    def start(self) -> Walk: ...


class Peer(Protocol):
    """A library with one tokenizer."""

    words: Words  # of the mask that was filled last

    def compile(self, case: Case) -> Compiled:
        """Raises ``RefusedError``."""
        ...


class XGrammar:
    """Its compiler with all its threads."""

    def __init__(self, _: Tokenizer, tokens: Sequence[bytes], end: int) -> None:
        import xgrammar

        self._library = xgrammar
        info = xgrammar.TokenizerInfo(
            list(tokens), xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[end]
        )
        self._compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)
        self.bits = xgrammar.allocate_token_bitmask(1, len(tokens))
        self.words: Words = self.bits.numpy()[0].view(np.uint32)

    def compile(self, case: Case) -> Compiled:
        try:
            made = self._compile(case)
        except RuntimeError as error:
            raise RefusedError(str(error)) from error
        return _Starts(lambda: _XGrammarWalk(self._library.GrammarMatcher(made), self.bits))

    def _compile(self, case: Case) -> Any:
        if case.choices is not None:
            quoted = " | ".join(json.dumps(choice) for choice in case.choices)
            return self._compiler.compile_grammar(f"root ::= {quoted}")
        if case.schema is not None:
            return self._compiler.compile_json_schema(
                json.dumps(case.schema), any_whitespace=False, separators=(",", ":"), strict_mode=True
            )
        return self._compiler.compile_regex(case.for_peers)


class _XGrammarWalk:
    def __init__(self, matcher: Any, bits: Any) -> None:
        self._matcher, self._bits = matcher, bits

    def fill(self) -> None:
        # False says that all is allowed and nothing was written.
        if not self._matcher.fill_next_token_bitmask(self._bits):
            self._bits.fill_(-1)

    def accept(self, token: int) -> bool:
        return self._matcher.accept_token(token)


class LLGuidance:
    """With its slices of the vocabulary: those for JSON where the case is a schema."""

    def __init__(self, tokenizer: Tokenizer, tokens: Sequence[bytes], end: int) -> None:
        import llguidance

        self._library = llguidance
        self._general = llguidance.LLTokenizer(tokenizer.to_str(), n_vocab=len(tokens), eos_token=end)
        self._json = self._general.with_slices(llguidance.LLTokenizer.json_slices())
        self.words: Words = np.zeros(-(-len(tokens) // 32), dtype=np.uint32)

    def compile(self, case: Case) -> Compiled:
        matcher = self._library.LLMatcher
        if case.choices is not None:
            grammar = self._library.grammar_from("choice", json.dumps(case.choices))
        elif case.schema is not None:
            grammar = matcher.grammar_from_json_schema(case.schema, overrides={"whitespace_flexible": False})
        else:
            grammar = matcher.grammar_from_regex(case.for_peers)
        made = matcher(self._general if case.schema is None else self._json, grammar)
        if made.is_error():
            raise RefusedError(made.get_error())
        walk = LLGuidanceWalk(made, self.words)
        return _Starts(walk.again)


class LLGuidanceWalk:
    """One matcher for one output after the other: what its lexer has worked out stays with it."""

    def __init__(self, matcher: Any, words: Words) -> None:
        self._matcher, self.words = matcher, words
        self._address, self._size = words.ctypes.data, words.nbytes
        self._started = False

    def again(self) -> "LLGuidanceWalk":
        if self._started:
            self._matcher.reset()
        self._started = True
        return self

    def copy(self) -> "LLGuidanceWalk":
        """Another output from the start on, at the same time."""
        return LLGuidanceWalk(self._matcher.deep_copy(), self.words)

    def fill(self) -> None:
        self._matcher.unsafe_compute_mask_ptr(self._address, self._size)

    def accept(self, token: int) -> bool:
        return self._matcher.consume_token(token)


class OutlinesCore:
    """Its complete index; schemas through the regex that it makes of them."""

    def __init__(self, _: Tokenizer, tokens: Sequence[bytes], end: int) -> None:
        import outlines_core

        self._library = outlines_core
        self._vocabulary = outlines_core.Vocabulary(end, {})
        for identifier, token in enumerate(tokens):
            if token:
                self._vocabulary.insert(token, identifier)
        self.words: Words = np.zeros(-(-len(tokens) // 32), dtype=np.uint32)

    def compile(self, case: Case) -> Compiled:
        index = self._library.Index(self.pattern(case), self._vocabulary)
        return _Starts(lambda: _OutlinesWalk(self._library.Guide(index), self.words))

    def pattern(self, case: Case) -> str:
        """What its index is made of. Raises ``RefusedError``."""
        if case.choices is not None:
            return "|".join(_escaped(choice) for choice in case.choices)
        if case.schema is None:
            return case.for_peers
        try:
            return self._library.json_schema.build_regex_from_schema(json.dumps(case.schema), whitespace_pattern="")
        except ValueError as error:
            raise RefusedError(str(error)) from error


class _OutlinesWalk:
    def __init__(self, guide: Any, words: Words) -> None:
        self._guide = guide
        self._place = (words.ctypes.data, words.size, words.itemsize)

    def fill(self) -> None:
        self._guide.write_mask_into(*self._place)

    def accept(self, token: int) -> bool:
        try:
            self._guide.advance(token, return_tokens=False)
        except ValueError:
            return False
        return True


class _Starts:
    """A compiled constraint by the function that starts a walk."""

    def __init__(self, start: Any) -> None:
        self._start = start

    def start(self) -> Walk:
        return self._start()


def _escaped(text: str) -> str:
    return "".join("\\" + character if character in r"\.+*?()|[]{}^$-&~#" else character for character in text)


def made_for(tokenizer: Tokenizer, tokens: Sequence[bytes], end: int) -> dict[str, Peer]:
    """All peers with one tokenizer, by name."""
    return {
        "llguidance": LLGuidance(tokenizer, tokens, end),
        "xgrammar": XGrammar(tokenizer, tokens, end),
        "outlines-core": OutlinesCore(tokenizer, tokens, end),
    }


def missing() -> list[str]:
    """Peers that this interpreter lacks in the version that is measured, as pip is asked for them."""
    return [f"{name}=={version}" for name, version in PINS.items() if _installed(name) != version]


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
