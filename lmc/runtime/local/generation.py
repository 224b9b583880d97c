"""A running generation: what to draw next, and what was drawn."""

from dataclasses import replace

import numpy as np

from lmc.ir.engine import Generation, OnDelta, Request, TokenDelta, TokenLogprob
from lmc.ir.stopping import Stopper
from lmc.ir.tokenizer import Tokenizer
from lmc.runtime.local.sampler import NO_IDS, Draw, Drawn
from lmc.runtime.local.sequence import Sequence
from lmc.runtime.local.tasks import Task


class GenerationTask(Task[Generation]):
    """One `Request`: takes drawn tokens until it ends.

    `room` is how many tokens context and KV pool leave for it; where that is all used it ends as at `max_tokens`.
    """

    def __init__(self, request: Request, tokenizer: Tokenizer, *, room: int, on_delta: OnDelta | None) -> None:
        prompt = len(request.prompt)
        max_tokens = min(request.sampling.max_tokens, room)
        capacity = prompt + max_tokens
        self.sequence = Sequence(request.prompt, capacity=capacity, first_wanted_row=prompt - 1)
        super().__init__([self.sequence])
        self._request = request
        # Distinct, so that a step costs no more for a long prompt than it must.
        self._prompt_ids = np.unique(request.prompt) if request.sampling.repetition_penalty != 1.0 else NO_IDS
        self._stopper = Stopper(tokenizer, replace(request.sampling, max_tokens=max_tokens))
        self._logprobs: list[TokenLogprob] = []
        self._on_delta = on_delta
        self._delta: TokenDelta | None = None

    @property
    def ended(self) -> bool:
        """Whether no further token is wanted."""
        return self._stopper.finish_reason is not None

    def next_draw(self) -> Draw:
        """How the next token is to be drawn."""
        forbidden = tuple(sorted(self._stopper.forbidden))
        sampling, generated = self._request.sampling, self._stopper.token_ids
        return Draw(sampling, self._request.seed, len(generated), forbidden, self._prompt_ids, generated)

    def take_token(self, drawn: Drawn) -> None:
        """Append a drawn token, or end the generation with it."""
        self._delta = self._stopper.append(drawn.token)
        if drawn.logprob is not None:
            self._logprobs.append(TokenLogprob(drawn.token, drawn.logprob, drawn.top))
        if not self.ended:
            self.sequence.append(drawn.token)

    def deliver(self) -> None:
        """Call the stream's callback with what the last token settled; its errors come out."""
        if self._on_delta is not None and self._delta is not None:
            self._on_delta(self._delta)

    def result(self) -> Generation:
        return self._stopper.generation(
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            logprobs=None if self._request.sampling.logprobs is None else tuple(self._logprobs),
        )
