"""A running generation: what to draw next, and what was drawn."""

from collections.abc import Sequence as Rows
from dataclasses import replace

import numpy as np

from lmc.cache.sequence import Sequence
from lmc.ir.engine.protocol import EngineStatistics, Generation, OnDelta, Request, TokenDelta, TokenLogprob
from lmc.ir.engine.stopping import Stopper
from lmc.ir.errors import ConstraintError, EngineError, LmcError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Usage
from lmc.runtime.local.sampling.constrained import ConstraintWalk, check_output
from lmc.runtime.local.sampling.drafting import DraftLength, Paths
from lmc.runtime.local.sampling.sampler import NO_IDS, Draw, DrawnToken
from lmc.runtime.local.tasks import Task

_NOTHING: frozenset[int] = frozenset()
_NO_TOKENS = slice(0)


class GenerationTask(Task[Generation]):
    """One `Request`: takes drawn tokens until it ends.

    `room` is how many tokens context and KV pool leave for it; where that is all used it ends as at `max_tokens`. Text
    that a constraint forces is drafted (`paths`) unless `jump_forward` is off: each token is
    drawn as without a draft, with the tokens drawn before it as history. The draft only names the rows whose logits are
    computed in one step.
    """

    SPACE = 1  # the sequence has room for so many times `max_tokens`
    SETTLES = True  # a token stays in the output once all its text is given

    def __init__(
        self, request: Request, tokenizer: Tokenizer, *, room: int, paths: Paths, on_delta: OnDelta | None
    ) -> None:
        prompt = len(request.prompt)
        self._max_tokens = min(request.sampling.max_tokens, room)
        capacity = prompt + min(self.SPACE * self._max_tokens, room)
        self.sequence = Sequence(request.prompt, capacity=capacity, first_wanted_row=prompt - 1)
        super().__init__([self.sequence])
        self._request = request
        self._tokenizer = tokenizer
        # Distinct, so that a step costs no more for a long prompt than it must.
        self._prompt_ids = np.unique(request.prompt) if request.sampling.repetition_penalty != 1.0 else NO_IDS
        self._stopper = Stopper(tokenizer, replace(request.sampling, max_tokens=self._max_tokens))
        self._logprobs: list[TokenLogprob] = []
        self._on_delta = on_delta
        self._deltas: list[tuple[TokenDelta, slice]] = []
        self._walk: ConstraintWalk | None = None
        self._paths = paths
        self._lengths = DraftLength(paths.most)
        self._drafted = self._accepted = 0
        # Where nothing is asked of the logits of a token that is certain; with a bias it may be impossible, an error.
        self._skips = request.sampling.logprobs is None and not request.sampling.logit_bias
        self._statistics = EngineStatistics()

    @property
    def is_constrained(self) -> bool:
        """True if text may be forced. If not, there are no drafts, and no token changes."""
        return self._walk is not None

    @property
    def ended(self) -> bool:
        """True if no further token is wanted."""
        return self._stopper.finish_reason is not None

    @property
    def usage(self) -> Usage:
        generated = len(self._stopper.token_ids)
        if not generated:
            return super().usage
        return Usage(self.prompt_tokens, self.cached_tokens, generated, 1)

    def begin(self, statistics: EngineStatistics) -> None:
        """Start before anything is computed; tokens are counted in `statistics` from now on.

        Raises:
            LmcError: the constraint does.
        """
        self._statistics = statistics
        if self._request.constraint is not None:
            self._walk = ConstraintWalk(self._request.constraint, self._paths)
            self._end_if_complete()
        self.propose()

    def draws(self, rows: Rows[int]) -> list[Draw | LmcError]:
        """Return the draws of the tokens after some rows of the sequence, if all before them equal the draft.

        Where the constraint raises, its error is there: it counts only if generation comes to that row.
        """
        return [self._draw(row + 1 - self.prompt_tokens) for row in rows]

    def advance(self, rows: Rows[int], drawn: Rows[DrawnToken | LmcError]) -> EngineError | None:
        """Take the tokens drawn after some rows of the sequence, up to the first that differs from the draft.

        Returns:
            The error of the first row that can't be drawn from, if it was come to.

        Raises:
            LmcError: the constraint does.
        """
        error = self.take(rows, drawn)
        if error is None and self.is_constrained and not self.ended:
            self.propose()
        return error

    def take(self, rows: Rows[int], drawn: Rows[DrawnToken | LmcError]) -> EngineError | None:
        """The part of `advance` that comes before the next draft."""
        sequence, other = self.sequence, None
        if sequence.drafted:
            other = self._take_draft(rows, drawn)
        else:
            (other,) = drawn
        if other is None or self.ended:
            return None
        if isinstance(other, EngineError):
            return other
        if isinstance(other, LmcError):
            raise other
        if sequence.drafted:
            sequence.drop_draft()
        self._append(other)
        if not self.ended:
            sequence.append(other.token)
        return None

    def propose(self) -> None:
        """Draft text that has to follow, where no draft is left.

        Where only one token may come at each place up to the end, the output ends with them: nothing is computed.

        Raises:
            LmcError: the constraint does.
        """
        walk = self._walk
        if self.sequence.drafted or self.ended or walk is None or self._request.jump_forward == "off":
            return
        if self._drafted:
            self._lengths.took(self._drafted, self._accepted)
        self._drafted = self._accepted = 0
        if not walk.is_forced():
            return
        room = self._max_tokens - len(self._stopper.token_ids)
        draft, certain, completes = walk.draft(min(self._lengths.limit(), room), self._stopper.ends)
        if not self._skips:
            certain = []
        if completes and len(certain) == len(draft):
            self._count_draft(len(draft))
            self._accept(draft, ())
            self._end_if_complete()
            return
        if completes or len(draft) == room:  # the last token is never computed
            draft.pop()
            walk.shorten()
        first = self.sequence.settled - 1
        self.sequence.propose(draft, frozenset(first + place for place in certain))
        self._count_draft(len(draft))

    def deliver(self) -> None:
        """Call the stream's callback with what the last tokens settled; its errors come out."""
        if self._on_delta is not None:
            deltas, self._deltas = self._deltas, []
            for delta, settled in deltas:
                tokens, logprobs = self._stopper.token_ids[settled], self._logprobs[settled]
                self._on_delta(TokenDelta(delta.text, tuple(tokens), tuple(logprobs), self.cached_tokens))

    def violation(self) -> ConstraintError | None:
        """The error of an output that is not allowed as a whole.

        Raises:
            LmcError: the constraint does.
        """
        if self._walk is None:
            return None
        return check_output(self._request, self.result(), self._stopper, self._tokenizer)

    def result(self) -> Generation:
        return self._stopper.generation(
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            logprobs=None if self._request.sampling.logprobs is None else tuple(self._logprobs),
            timing=self.timing,
        )

    def _draw(self, position: int) -> Draw | LmcError:
        """Return the draw of the generation's token `position` (from 0), if those before it are the draft."""
        sampling, generated = self._request.sampling, self._stopper.token_ids
        drafted = position - len(generated)
        forbidden = self._forbidden(position)
        if drafted and sampling.penalizes:
            generated = [*generated, *self.sequence.draft[:drafted]]
        if self._walk is None:
            return Draw(sampling, self._request.seed, position, tuple(forbidden), self._prompt_ids, generated)
        try:
            mask = self._walk.mask(drafted, forbidden)
        except LmcError as error:
            return error
        state = None if forbidden else self._walk.state(drafted)
        return Draw(sampling, self._request.seed, position, (), self._prompt_ids, generated, mask, state)

    def _forbidden(self, position: int) -> frozenset[int]:
        return self._stopper.ends if position < self._request.sampling.min_tokens else _NOTHING

    def _take_draft(self, rows: Rows[int], drawn: Rows[DrawnToken | LmcError]) -> DrawnToken | LmcError | None:
        """Append what of the draft is what was drawn; gives what comes after that, if it was drawn."""
        first, draft = self.sequence.settled - 1, self.sequence.draft
        kept, other = 0, None
        for row, each in zip(rows, drawn, strict=True):
            kept = row - first  # the tokens of unread rows are certain
            if not isinstance(each, DrawnToken) or kept == len(draft) or each.token != draft[kept]:
                other = each
                break
            kept += 1
        if kept:
            self._accept(draft[:kept], drawn)
        return other

    def _count_draft(self, tokens: int) -> None:
        self._drafted = tokens
        self._statistics.drafted_tokens += tokens

    def _accept(self, tokens: Rows[int], drawn: Rows[DrawnToken | LmcError]) -> None:
        """Append the first tokens of the draft, up to the one that ends the generation."""
        before = len(self._stopper.token_ids)
        if self._on_delta is None:
            self._stopper.extend(tokens)
        else:
            for token in tokens:
                self._note(self._stopper.append(token))
                if self.ended:
                    break
        count = len(self._stopper.token_ids) - before
        self._statistics.generated_tokens += count
        self._statistics.accepted_tokens += count
        self._accepted += count
        for each in drawn[:count]:
            self._note_logprob(each)
        if self._walk is not None:
            self._walk.accept(count)
        if self.sequence.drafted:
            self.sequence.accept(count - self.ended)  # of the last token nothing is computed

    def _append(self, drawn: DrawnToken) -> None:
        self._statistics.generated_tokens += 1
        self._note(self._stopper.append(drawn.token))
        self._note_logprob(drawn)
        if self._walk is not None and drawn.token not in self._stopper.ends:
            self._walk.step(drawn.token)
            self._end_if_complete()

    def _note_logprob(self, drawn: DrawnToken | LmcError) -> None:
        if isinstance(drawn, DrawnToken) and drawn.logprob is not None:
            self._logprobs.append(TokenLogprob(drawn.token, drawn.logprob, drawn.top))

    def _end_if_complete(self) -> None:
        if self._walk is not None and self._walk.complete:
            self._note(self._stopper.complete())

    def _note(self, delta: TokenDelta | None) -> None:
        if delta is not None and self._on_delta is not None:
            self._deltas.append((delta, self._stopper.settle() if self.SETTLES else _NO_TOKENS))
