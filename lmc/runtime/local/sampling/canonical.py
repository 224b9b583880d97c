"""Generations whose forced text is taken as it is (`jump_forward="canonical"`)."""

from collections.abc import Sequence
from dataclasses import replace

from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.engine.protocol import Generation, OnDelta, Request, SamplingParams
from lmc.ir.errors import EngineError, LmcError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.tokens.tokens import common_prefix_length
from lmc.runtime.local.sampling.constrained import only
from lmc.runtime.local.sampling.drafting import Paths
from lmc.runtime.local.sampling.generation import GenerationTask
from lmc.runtime.local.sampling.sampler import Draw, DrawnToken


class CanonicalTask(GenerationTask):
    """A `Request` with a constraint: text that has to follow costs rows, no draws.

    Where there is such text, all of the output so far is encoded again together with it: at the seams tokens become
    others, and what was computed of these is computed again. So it is once more at the end. Then the tokens are those
    that encoding the text gives, even if these are a few more than `max_tokens`. They stay as they were generated only
    where the bytes are no text (a code point was cut off), the tokenizer does not write the text as it is, or context
    or pool have no room for the others (twice `max_tokens` is the most). Where log-probabilities are asked for, the
    logits of tokens that were not drawn are read like those of drawn ones.

    Raises:
        ConstraintError: the bytes of the tokenizer's tokens are unknown.
    """

    SPACE = 2
    SETTLES = False  # the whole output is encoded again at its end

    def __init__(
        self, request: Request, tokenizer: Tokenizer, *, room: int, paths: Paths, on_delta: OnDelta | None
    ) -> None:
        super().__init__(request, tokenizer, room=room, paths=paths, on_delta=on_delta)
        self._vocabulary = Vocabulary.of(tokenizer)
        self._final: Generation | None = None  # what it gives once nothing more is drawn

    @property
    def ended(self) -> bool:
        return self._final is not None and not self._is_reading

    def draws(self, rows: Sequence[int]) -> list[Draw | LmcError]:
        """Return draws of the tokens after some rows of the sequence; known tokens are only read."""
        known = self._known
        reading = SamplingParams(logprobs=self._request.sampling.logprobs)
        return [
            Draw(reading, 0, position, mask=only(known[position])) if position < len(known) else self._draw(position)
            for position in (row + 1 - self.prompt_tokens for row in rows)
        ]

    def take(self, rows: Sequence[int], drawn: Sequence[DrawnToken | LmcError]) -> EngineError | None:
        del rows  # they follow one another
        for each in drawn:
            if isinstance(each, EngineError):
                return each
            if isinstance(each, LmcError):
                raise each
            if not self._is_reading:
                self._append(each)
                if self._stopper.finish_reason is None:
                    self.sequence.append(each.token)
                else:
                    self._finish()
                break
            self._note_logprob(each)
            self.sequence.first_wanted_row = self._first_unread_row
        return None

    def propose(self) -> None:
        """Take the known part of the forced text, and finish where it ends the generation."""
        while self._final is None:
            if self._stopper.finish_reason is not None:
                self._finish()
            elif not self._take_forced():
                return

    def result(self) -> Generation:
        final = super().result() if self._final is None else self._final
        return replace(
            final,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            logprobs=None if self._request.sampling.logprobs is None else tuple(self._logprobs),
            timing=self.timing,
        )

    @property
    def _known(self) -> Sequence[int]:
        """Tokens of the output so far; at the end those that it gives."""
        return self._stopper.token_ids if self._final is None else self._final.token_ids

    @property
    def _is_reading(self) -> bool:
        """True if logits of known tokens are still to be read."""
        return self._request.sampling.logprobs is not None and len(self._logprobs) < len(self._known)

    @property
    def _first_unread_row(self) -> int:
        return self.prompt_tokens + len(self._logprobs) - 1

    def _take_forced(self) -> bool:
        """Append text that has to follow; False where there is none."""
        ids, walk = self._stopper.token_ids, self._walk
        forced = [] if walk is None else walk.take_forced(self._max_tokens - len(ids), self._stopper.ends)
        if walk is None or not forced:
            return False
        tokens = self._encoded_again([*ids, *forced])
        if len(tokens) > self._max_tokens:
            tokens = [*ids, *forced]
        common = common_prefix_length((ids, tokens))
        self._stopper.rewind(common)
        del self._logprobs[common:]
        for token in tokens[common:]:
            self._note(self._stopper.append(token))
            if self._stopper.finish_reason is not None:
                break
        self._end_if_complete()
        self._statistics.generated_tokens += len(forced)
        self._statistics.drafted_tokens += len(forced)
        self._statistics.accepted_tokens += len(forced)
        if self._stopper.finish_reason is None:
            self._compute(common, ids[common:])
        return True

    def _finish(self) -> None:
        """Nothing more is drawn: the output's own tokens, and what is left to read of them."""
        generation = self._stopper.generation()
        tokens = self._encoded_again(generation.token_ids)
        if len(tokens) > self.sequence.capacity - self.prompt_tokens:
            tokens = generation.token_ids
        del self._logprobs[common_prefix_length((tokens, generation.token_ids)) :]
        self._final = replace(generation, token_ids=tuple(tokens))
        if self._is_reading:
            computed = self.sequence.tokens[self.prompt_tokens :].tolist()
            common = common_prefix_length((computed, tokens[:-1]))
            self._compute(common, tokens[common:-1])

    def _compute(self, kept: int, tokens: Sequence[int]) -> None:
        """Let other tokens follow the first `kept` of the output, and read what is to be read."""
        self.sequence.rewrite(self.prompt_tokens + kept, tokens)
        if self._is_reading:
            self.sequence.want_from(self._first_unread_row)

    def _encoded_again(self, ids: Sequence[int]) -> Sequence[int]:
        """The tokens that the text of `ids` has by itself; `ids` where these would be other bytes."""
        data = self._vocabulary.text(ids)
        try:
            tokens = self._tokenizer.encode(data.decode())
        except UnicodeDecodeError:
            return ids
        return tokens if self._vocabulary.text(tokens) == data else ids
