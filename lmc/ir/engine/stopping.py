"""The end of a generation and its kept part: stop strings across token borders, partial UTF-8, streaming.

One ``Stopper`` follows one generation token by token. Engines share it, so they can't differ in what a stop keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lmc.ir.cached import cached_property
from lmc.ir.engine.protocol import FinishReason, Generation, SamplingParams, TokenDelta, TokenLogprob
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Timing

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

    ``extend`` takes several tokens at once, which costs less. ``end_ids`` (the tokenizer's EOS) end the generation as
    "eos", ``sampling``'s stops as "stop", ``max_tokens`` as "length".
    The engine must not sample an end or stop token before ``min_tokens`` (see ``forbidden``).
    """

    def __init__(self, tokenizer: Tokenizer, sampling: SamplingParams) -> None:
        self.token_ids: list[int] = []
        self.finish_reason: FinishReason | None = None
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._text = ""
        self._emitted = 0
        self._settled = 0
        self._boundaries: list[_Boundary | None] = []  # None within what was decoded at once
        self._window = 0  # first token of the decoding window
        self._decoded = 0  # first token whose text is not in _text yet
        self._stop_at: int | None = None  # character offset of the matched stop string
        self._matched: str | int | None = None
        self._ends_with_token = False
        self._longest_stop = max((len(stop) for stop in sampling.stop), default=0)

    @property
    def text_is_exact(self) -> bool:
        """True if the text of the kept tokens determines their bytes."""
        kept = self._kept_tokens()
        return "\ufffd" not in self._text and self._boundary(kept).whole

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
        if self._longest_stop and len(self.token_ids) >= self._sampling.min_tokens:
            self._match(previous)
        if self.finish_reason is None and len(self.token_ids) >= self._sampling.max_tokens:
            self.finish_reason = "length"
        if self._stop_at is not None:
            return self._delta(self._stop_at)
        if self.finish_reason is not None or not self._longest_stop:
            return self._delta(len(self._text))
        return self._delta(len(self._text) - self._held_back())

    def extend(self, token_ids: Sequence[int]) -> TokenDelta | None:
        """Take sampled tokens up to the one that ends the generation; gives all text that is final now, if any."""
        length = len(self.token_ids) + len(token_ids)
        ends = length > self._sampling.max_tokens or not self.ends.isdisjoint(token_ids)
        if self._longest_stop or ends or not self._decode_ascii(token_ids):
            return self._append_each(token_ids)
        if length == self._sampling.max_tokens:
            self.finish_reason = "length"
        return self._delta(len(self._text))

    def complete(self) -> TokenDelta | None:
        """End as at EOS, but without a token: nothing may follow. A stop that was met stays what ended it."""
        if self.finish_reason != "stop":
            self.finish_reason = "eos"
        return self._delta(len(self._text) if self._stop_at is None else self._stop_at)

    def settle(self) -> slice:
        """Return which tokens are settled since the last call: all their text has been given."""
        first = self._settled
        for place in range(first, len(self._boundaries)):
            boundary = self._boundaries[place]
            if boundary is None:
                continue
            if boundary.length > self._emitted:
                break
            if boundary.whole:
                self._settled = place + 1
        return slice(first, self._settled)

    def rewind(self, count: int) -> None:
        """Take back all tokens but the first ``count``, while nothing ended.

        Their text has to be appended again, in other tokens: what was given of it as final stays given.
        """
        if self.finish_reason is not None:
            raise RuntimeError("the generation has ended")
        known = count
        while known and self._boundaries[known - 1] is None:
            known -= 1
        again = self.token_ids[known:count]
        del self.token_ids[known:], self._boundaries[known:]
        last = self._boundary(known)
        self._text = self._text[: last.length]
        self._window, self._decoded = last.window, last.decoded
        for token_id in again:
            self.token_ids.append(token_id)
            self._decode()

    def generation(
        self,
        *,
        prompt_tokens: int = 0,
        cached_tokens: int = 0,
        logprobs: tuple[TokenLogprob, ...] | None = None,
        timing: Timing | None = None,
    ) -> Generation:
        """The result, once ``finish_reason`` is set. ``logprobs`` has an entry for each sampled token."""
        if self.finish_reason is None:
            raise RuntimeError("the generation is still running")
        end = len(self._text) if self._stop_at is None else self._stop_at
        kept = self._kept_tokens()
        return Generation(
            token_ids=tuple(self.token_ids[:kept]),
            text=self._text[:end],
            remainder="" if self._stop_at is None else self._text[self._boundary(kept).length : end],
            finish_reason=self.finish_reason,
            matched_stop=self._matched,
            logprobs=None if logprobs is None else logprobs[:kept],
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            generated_tokens=len(self.token_ids),
            timing=timing,
        )

    def _end_with_token(self, token_id: int) -> None:
        self._ends_with_token = True
        self._matched = token_id
        self.finish_reason = "stop" if token_id in self._sampling.stop_token_ids else "eos"

    def _append_each(self, token_ids: Sequence[int]) -> TokenDelta | None:
        text = ""
        for token_id in token_ids:
            delta = self.append(token_id)
            text += "" if delta is None else delta.text
            if self.finish_reason is not None:
                break
        return TokenDelta(text) if text else None

    def _boundary(self, count: int) -> _Boundary:
        """After the first ``count`` tokens, where that is known."""
        found = self._boundaries[count - 1] if count else _Boundary(0, True, 0, 0)
        if found is None:
            raise AssertionError("a boundary within what was decoded at once is asked for")
        return found

    def _decode_ascii(self, token_ids: Sequence[int]) -> bool:
        """Add tokens and their text, and where decoding stands then, if it is the same as one by one.

        It is where each character is a byte: then each token ends on a whole code point.
        """
        if not token_ids or self._decoded != len(self.token_ids):
            return False
        window = self.token_ids[self._window :]
        known = self._tokenizer.decode(window)
        now = self._tokenizer.decode([*window, *token_ids])
        added = now[len(known) :]
        if not added.isascii():
            return False
        self.token_ids += token_ids
        self._text += added
        self._window, self._decoded = len(self.token_ids) - 1, len(self.token_ids)
        self._boundaries += [None] * (len(token_ids) - 1)
        self._boundaries.append(_Boundary(len(self._text), True, self._window, self._decoded))
        return True

    def _decode(self) -> None:
        if self._decoded - self._window == 1:
            known = self._tokenizer.text_of(self.token_ids[self._window])
        else:
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
        for count in range(1, len(self._boundaries) + 1):
            boundary = self._boundary(count)
            if boundary.length > self._stop_at:
                break
            if boundary.whole:
                kept = count
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
