"""Tasks: the sequences computed for a request, and its result."""

from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import Generic, TypeVar

import torch

from lmc.cache.sequence import Sequence
from lmc.ir.engine.protocol import Pin, Score, ScoreRequest
from lmc.ir.errors import EngineError, LmcError
from lmc.ir.usage import Timing, Usage

T = TypeVar("T")


class Task(ABC, Generic[T]):
    """One request inside the engine. Only the worker thread calls its methods.

    `sequences` are what is to be computed, in the order in which they should start; the first begins with the prompt.
    `admitted` and `first_token` are those of its `timing`.
    """

    def __init__(self, sequences: list[Sequence]) -> None:
        self.sequences = sequences
        self.prompt_tokens = sequences[0].prompt_length
        self.admitted: float | None = None
        self.first_token: float | None = None
        self.future: Future[T] = Future()
        self.future.set_running_or_notify_cancel()  # cancelling goes through the handle, which frees the pages too

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that were in the cache when the request started."""
        return self.sequences[0].cached_tokens or 0

    @property
    def usage(self) -> Usage:
        """The tokens computed for the request by now, or found in the cache."""
        sequence = self.sequences[0]
        if sequence.cached_tokens is None:
            return Usage(calls=1)
        prompt = max(min(sequence.computed, self.prompt_tokens), self.cached_tokens)
        return Usage(prompt, self.cached_tokens, 0, 1)

    @property
    def timing(self) -> Timing:
        """The times of the request by now, and the tokens that were computed for it."""
        prefilled = sum(sequence.prefilled for sequence in self.sequences)
        return Timing(self.admitted, self.first_token, prefilled, self.cached_tokens, self.sequences[0].obstacle)

    @abstractmethod
    def result(self) -> T:
        """The result, once every sequence is computed."""

    def succeed(self) -> None:
        """Resolve the request with its result."""
        self.future.set_result(self.result())

    def fail(self, error: LmcError) -> None:
        """Resolve the request with an error."""
        self.future.set_exception(error)


class ScoreTask(Task[Score]):
    """Log-probabilities of continuations.

    The first sequence is the prompt; its last logits score every continuation's first token. The others are the prompt
    with all but the last token of a continuation, one for all continuations that differ in no more than that last one.
    They come after the prompt in the queue, so they find it in the tree.
    """

    def __init__(self, request: ScoreRequest) -> None:
        length = len(request.prompt)
        self._continuations = request.continuations
        self._logprobs = [[0.0] * len(continuation) for continuation in request.continuations]
        prompt = Sequence(request.prompt, capacity=length, first_wanted_row=length - 1)
        self._members = {prompt: [index for index, each in enumerate(request.continuations) if each]}
        bodies: dict[tuple[int, ...], list[int]] = {}
        for index, continuation in enumerate(request.continuations):
            bodies.setdefault(continuation[:-1], []).append(index)
        for body, members in bodies.items():
            if body:
                branch = Sequence(request.prompt + body, capacity=length + len(body), first_wanted_row=length)
                self._members[branch] = members
        super().__init__(list(self._members))

    def take_logits(self, sequence: Sequence, position: int, logits: torch.Tensor) -> EngineError | None:
        """Read scores off the logits [rows, vocabulary] at the sequence's tokens from `position` on.

        Returns:
            An error where a logit is NaN.
        """
        logprobs = torch.log_softmax(logits.float(), dim=-1)
        if bool(logprobs.isnan().any()):
            return EngineError("the model gave NaN logits for a scored token", remedy="check the model's weights")
        first = position - self.prompt_tokens + 1
        for index in self._members[sequence]:
            targets = self._continuations[index][first : first + len(logits)]
            columns = torch.tensor(targets, device=logits.device).unsqueeze(1)
            self._logprobs[index][first : first + len(targets)] = logprobs.gather(1, columns).squeeze(1).tolist()
        return None

    def result(self) -> Score:
        logprobs = tuple(map(tuple, self._logprobs))
        return Score(logprobs, self.prompt_tokens, self.cached_tokens, timing=self.timing)


class PrefillTask(Task[Pin]):
    """A prompt that is to be computed and held in the tree."""

    def __init__(self, prompt: tuple[int, ...]) -> None:
        super().__init__([Sequence(prompt, capacity=len(prompt), first_wanted_row=len(prompt))])
        self.pin_key = 0

    def result(self) -> Pin:
        return Pin(self.pin_key, self.prompt_tokens, self.cached_tokens, self.timing)
