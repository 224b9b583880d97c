"""The most tokens of a KV pool that one instance uses at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lmc.backend.schedule.request_model import Answer, Known, Piece, RequestModel, Unknown
from lmc.cache.batch_order.live import LiveTokens


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a prompt behind the pieces ``before`` it (the number of their last one; None: it is the first).

    An unknown text has a number of its own: another one at its place is another text.
    """

    before: int | None
    piece: Piece
    own: int | None


class LiveTokensModel:
    """The parts that are in the pool together, by the requests of an instance.

    Requests that wait for equally many others, one after the other, run together: a wave. While they run, the pool has
    their prompts and answers, and those parts of later prompts that earlier waves have computed. Requests share whole
    pages of ``page`` tokens: each has about one page more, that others do not have or that is not full.
    """

    def __init__(self, stages: Sequence[RequestModel], page: int) -> None:
        self._parts: dict[_Part, int] = {}
        prompts: list[int | None] = []
        answers: list[int] = []
        waves: list[int] = []
        for number, stage in enumerate(stages):
            at = None if stage.base is None else answers[stage.base] if stage.answered else prompts[stage.base]
            for piece in stage.pieces:
                at = self._part(at, piece)
            prompts.append(at)
            answers.append(self._part(at, Answer(number)))
            waves.append(max((waves[each] + 1 for each in stage.after), default=0))
        count = max(waves, default=0) + 1
        self._waves = self._used_in(answers, waves)
        self._pages, self._steps = [0] * count, [1] * count
        for stage, wave in zip(stages, waves, strict=True):
            self._pages[wave] += page - 1
            self._steps[wave] = max(self._steps[wave], stage.answer)

    @property
    def steps(self) -> int:
        """Steps of decoding of an instance."""
        return sum(self._steps)

    def of(self, size: Callable[[Piece], int], shared: Callable[[Known], int] | None) -> LiveTokens:
        """Return the tokens of an instance whose pieces have so many tokens.

        ``shared`` are the leading tokens of a value that the instance before has, too; None: there is none before.
        """
        whole: list[int] = []
        new: list[int] = []
        same: list[bool] = []
        for part in self._parts:
            tokens = size(part.piece)
            is_same = shared is not None and (part.before is None or same[part.before])
            common = 0
            if is_same and shared is not None and isinstance(part.piece, str | Known):
                common = tokens if isinstance(part.piece, str) else min(shared(part.piece), tokens)
            whole.append(tokens)
            new.append(tokens - common)
            same.append(is_same and common == tokens)
        live = self._live(new)
        mean = sum(tokens * steps for tokens, steps in zip(live, self._steps, strict=True)) // self.steps
        again = sum(tokens * (used.bit_count() - 1) for tokens, used in zip(new, self._waves, strict=True))
        return LiveTokens(max(self._live(whole)), max(live), mean, again)

    def _live(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens in each wave, by those of each part: from the first wave with it to the last."""
        changes = [0] * (len(self._pages) + 1)
        for count, used in zip(tokens, self._waves, strict=True):
            changes[(used & -used).bit_length() - 1] += count
            changes[used.bit_length()] -= count
        return [sum(each) for each in zip(accumulate(changes), self._pages, strict=False)]

    def _used_in(self, answers: Sequence[int], waves: Sequence[int]) -> list[int]:
        """Return the waves with requests that hold a part, for each part, as the bits of a number."""
        used = [0] * len(self._parts)
        for part, wave in zip(answers, waves, strict=True):
            used[part] |= 1 << wave
        for part, number in reversed(self._parts.items()):  # each is behind the one before it
            if part.before is not None:
                used[part.before] |= used[number]
        return used

    def _part(self, before: int | None, piece: Piece) -> int:
        part = _Part(before, piece, len(self._parts) if isinstance(piece, Unknown) else None)
        return self._parts.setdefault(part, len(self._parts))
