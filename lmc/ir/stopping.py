"""When a generation ends and what of it is kept: stop strings across token borders, partial UTF-8, streaming.

One ``Stopper`` follows one generation token by token. Engines share it, so they can't differ in what a stop keeps.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from lmc.ir.engine import FinishReason, Generation, SamplingParams, TokenDelta, TokenLogprob
from lmc.ir.tokenizer import Tokenizer

# A code point has at most four bytes; what is still incomplete after that many tokens is no valid text.
_MAX_INCOMPLETE_TOKENS = 4


class _Boundary(NamedTuple):
    """The text length after a token, whether that token ended on a whole code point, and where decoding stood then."""

    length: int
    whole: bool
    window: int
    decoded: int


class Stopper:
    """Follows one generation: ``append`` each token until ``finish_reason`` is set, then take ``generation``.

    ``end_ids`` (the tokenizer's EOS) end it as "eos", ``sampling``'s stops as "stop", ``max_tokens`` as "length".
    The engine must not sample an end or stop token before ``min_tokens`` (see ``forbidden``).
    """

    def __init__(self, tokenizer: Tokenizer, sampling: SamplingParams) -> None:
        self.token_ids: list[int] = []
        self.finish_reason: FinishReason | None = None
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._text = ""
        self._emitted = 0
        self._boundaries: list[_Boundary] = []
        self._window = 0  # first token of the decoding window
        self._decoded = 0  # first token whose text is not in _text yet
        self._stop_at: int | None = None  # character offset of the matched stop string
        self._matched: str | int | None = None
        self._ends_with_token = False
        self._longest_stop = max((len(stop) for stop in sampling.stop), default=0)

    @property
    def text_is_exact(self) -> bool:
        """Whether the text of the kept tokens says which bytes they are."""
        kept = self._kept_tokens()
        return "\ufffd" not in self._text and (kept == 0 or self._boundaries[kept - 1].whole)

    @property
    def forbidden(self) -> frozenset[int]:
        """Token ids that must not be sampled next: EOS and stop tokens, before ``min_tokens``."""
        return self.forbidden_at(len(self.token_ids))

    def forbidden_at(self, position: int) -> frozenset[int]:
        """Token ids that must not be sampled as the generation's token ``position`` (from 0)."""
        return self.ends if position < self._sampling.min_tokens else frozenset()

    @cached_property
    def ends(self) -> frozenset[int]:
        """Token ids that end the generation: EOS and stop tokens."""
        return frozenset((*self._tokenizer.eos_ids, *self._sampling.stop_token_ids))

    def append(self, token_id: int) -> TokenDelta | None:
        """Take one sampled token; gives text that is final now, if any."""
        self.token_ids.append(token_id)
        if token_id in self.ends:
            self._end_with_token(token_id)
            return self._delta(len(self._text))
        previous = len(self._text)
        self._decode()
        if len(self.token_ids) >= self._sampling.min_tokens:
            self._match(previous)
        if self.finish_reason is None and len(self.token_ids) >= self._sampling.max_tokens:
            self.finish_reason = "length"
        if self._stop_at is not None:
            return self._delta(self._stop_at)
        if self.finish_reason is not None:
            return self._delta(len(self._text))
        return self._delta(len(self._text) - self._held_back())

    def complete(self) -> TokenDelta | None:
        """End as at EOS, but without a token: nothing may follow. A stop that was met stays what ended it."""
        if self.finish_reason != "stop":
            self.finish_reason = "eos"
        return self._delta(len(self._text) if self._stop_at is None else self._stop_at)

    def rewind(self, count: int) -> None:
        """Take back all tokens but the first ``count``, while nothing ended.

        Their text has to be appended again, in other tokens: what was given of it as final stays given.
        """
        if self.finish_reason is not None:
            raise RuntimeError("the generation has ended")
        del self.token_ids[count:], self._boundaries[count:]
        last = self._boundaries[-1] if self._boundaries else _Boundary(0, True, 0, 0)
        self._text = self._text[: last.length]
        self._window, self._decoded = last.window, last.decoded

    def generation(
        self,
        *,
        prompt_tokens: int = 0,
        cached_tokens: int = 0,
        logprobs: tuple[TokenLogprob, ...] | None = None,
    ) -> Generation:
        """The result, once ``finish_reason`` is set. ``logprobs`` has an entry for each sampled token."""
        if self.finish_reason is None:
            raise RuntimeError("the generation is still running")
        end = len(self._text) if self._stop_at is None else self._stop_at
        kept = self._kept_tokens()
        settled = self._boundaries[kept - 1].length if kept else 0
        return Generation(
            token_ids=tuple(self.token_ids[:kept]),
            text=self._text[:end],
            remainder=self._text[settled:end] if self._stop_at is not None else "",
            finish_reason=self.finish_reason,
            matched_stop=self._matched,
            logprobs=None if logprobs is None else logprobs[:kept],
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            generated_tokens=len(self.token_ids),
        )

    def _end_with_token(self, token_id: int) -> None:
        self._ends_with_token = True
        self._matched = token_id
        self.finish_reason = "stop" if token_id in self._sampling.stop_token_ids else "eos"

    def _decode(self) -> None:
        known = self._tokenizer.decode(self.token_ids[self._window : self._decoded])
        now = self._tokenizer.decode(self.token_ids[self._window :])
        waiting = len(self.token_ids) - self._decoded
        whole = not now.endswith("\ufffd") or waiting > _MAX_INCOMPLETE_TOKENS
        if whole:
            self._text += now[len(known) :]
            self._window, self._decoded = self._decoded, len(self.token_ids)
        self._boundaries.append(_Boundary(len(self._text), whole, self._window, self._decoded))

    def _match(self, previous: int) -> None:
        # A match must end in the text that came with this token: earlier ones were looked for, or not to be honoured.
        found = [
            (at, stop)
            for stop in self._sampling.stop
            if (at := self._text.find(stop, max(0, previous - len(stop) + 1))) >= 0
        ]
        if found:
            self._stop_at, self._matched = min(found)
            self.finish_reason = "stop"

    def _kept_tokens(self) -> int:
        if self._stop_at is None:
            return len(self.token_ids) - self._ends_with_token
        kept = 0
        for index, boundary in enumerate(self._boundaries):
            if boundary.length > self._stop_at:
                break
            if boundary.whole:
                kept = index + 1
        return kept

    def _held_back(self) -> int:
        """Length of the longest end of the text that a stop string could begin with."""
        longest = min(self._longest_stop - 1, len(self._text))
        for length in range(longest, 0, -1):
            end = self._text[-length:]
            if any(stop.startswith(end) for stop in self._sampling.stop):
                return length
        return 0

    def _delta(self, end: int) -> TokenDelta | None:
        if end <= self._emitted:
            return None
        delta = TokenDelta(self._text[self._emitted : end])
        self._emitted = end
        return delta
