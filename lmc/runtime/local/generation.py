"""A running generation: what to draw next, and what was drawn."""

from dataclasses import replace

import numpy as np

from lmc.ir.engine import EngineStatistics, Generation, OnDelta, Request, TokenDelta, TokenLogprob
from lmc.ir.errors import ConstraintError
from lmc.ir.stopping import Stopper
from lmc.ir.tokenizer import Tokenizer
from lmc.runtime.local.constrained import Walk, check_output
from lmc.runtime.local.drafting import DraftLength
from lmc.runtime.local.sampler import NO_IDS, Draw, Drawn
from lmc.runtime.local.sequence import Sequence
from lmc.runtime.local.tasks import Task


class GenerationTask(Task[Generation]):
    """One `Request`: takes drawn tokens until it ends.

    `room` is how many tokens context and KV pool leave for it; where that is all used it ends as at `max_tokens`. Text
    that a constraint forces is drafted, `most_drafted` tokens at most, unless `jump_forward` is off: each token is
    drawn as without a draft, with what was drawn before it as history. The draft only says of which rows logits are
    computed in one step.
    """

    SPACE = 1  # the sequence has room for so many times `max_tokens`

    def __init__(
        self, request: Request, tokenizer: Tokenizer, *, room: int, most_drafted: int, on_delta: OnDelta | None
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
        self._deltas: list[TokenDelta] = []
        self._walk: Walk | None = None
        self._lengths = DraftLength(most_drafted)
        self._drafted = self._accepted = 0
        self._statistics = EngineStatistics()

    @property
    def is_constrained(self) -> bool:
        """Whether text may have to follow. If not, there are no drafts, and no token changes."""
        return self._walk is not None

    @property
    def ended(self) -> bool:
        """Whether no further token is wanted."""
        return self._stopper.finish_reason is not None

    def begin(self, statistics: EngineStatistics) -> None:
        """What comes before anything is computed; tokens are counted in `statistics` from now on.

        Raises:
            LmcError: the constraint does.
        """
        self._statistics = statistics
        if self._request.constraint is not None:
            self._walk = Walk(self._request.constraint)
            self._end_if_complete()
        self.propose()

    def draws(self, position: int, count: int) -> list[Draw]:
        """How the tokens after `count` tokens of the sequence from `position` on are to be drawn."""
        del position  # it is the last settled one; those after it are the draft
        return [self._draw(drafted) for drafted in range(count)]

    def take(self, drawn: Drawn) -> bool:
        """Append a drawn token, or end the generation with it; whether what was drawn after it in this step counts.

        Raises:
            LmcError: the constraint does.
        """
        sequence = self.sequence
        is_drafted = sequence.drafted > 0 and drawn.token == sequence.next_drafted
        self._append(drawn, is_drafted=is_drafted)
        if is_drafted:
            self._accepted += 1
            self._statistics.accepted_tokens += 1
            if not self.ended:
                sequence.accept()
                return True
        if sequence.drafted:
            sequence.drop_draft()
        if not self.ended:
            sequence.append(drawn.token)
        return False

    def propose(self) -> None:
        """Draft text that has to follow, where no draft is left.

        Raises:
            LmcError: the constraint does.
        """
        if self.sequence.drafted or self.ended or self._walk is None or self._request.jump_forward == "off":
            return
        if self._drafted:
            self._lengths.took(self._drafted, self._accepted)
        self._drafted = self._accepted = 0
        room = self._max_tokens - len(self._stopper.token_ids) - 1  # the last token is never computed
        if room <= 0 or not self._walk.is_forced():
            return
        draft = self._walk.draft(min(self._lengths.limit(), room), self._stopper.ends)
        self.sequence.propose(draft)
        self._drafted = len(draft)
        self._statistics.drafted_tokens += len(draft)

    def deliver(self) -> None:
        """Call the stream's callback with what the last tokens settled; its errors come out."""
        if self._on_delta is not None:
            deltas, self._deltas = self._deltas, []
            for delta in deltas:
                self._on_delta(delta)

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
        )

    def _draw(self, drafted: int) -> Draw:
        """How the token after so many tokens of the draft is to be drawn, if they are what was drawn."""
        sampling, generated = self._request.sampling, self._stopper.token_ids
        position = len(generated) + drafted
        forbidden = self._stopper.forbidden_at(position)
        if drafted and sampling.penalizes:
            settled = self.sequence.settled
            generated = [*generated, *self.sequence.tokens[settled : settled + drafted].tolist()]
        if self._walk is None:
            return Draw(sampling, self._request.seed, position, tuple(sorted(forbidden)), self._prompt_ids, generated)
        mask = self._walk.mask(drafted, forbidden)
        state = None if forbidden else self._walk.state(drafted)
        return Draw(sampling, self._request.seed, position, (), self._prompt_ids, generated, mask, state)

    def _append(self, drawn: Drawn, *, is_drafted: bool) -> None:
        self._statistics.generated_tokens += 1
        delta = self._stopper.append(drawn.token)
        if delta is not None:
            self._note(delta)
        if drawn.logprob is not None:
            self._logprobs.append(TokenLogprob(drawn.token, drawn.logprob, drawn.top))
        if self._walk is None or drawn.token in self._stopper.ends:
            return
        if is_drafted:
            self._walk.accept()
        else:
            self._walk.step(drawn.token)
        self._end_if_complete()

    def _end_if_complete(self) -> None:
        if self._walk is not None and self._walk.complete:
            self._note(self._stopper.complete())

    def _note(self, delta: TokenDelta | None) -> None:
        if delta is not None and self._on_delta is not None:
            self._deltas.append(delta)
