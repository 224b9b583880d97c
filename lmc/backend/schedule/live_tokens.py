"""The most tokens of a KV pool that one instance uses at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
        paths = self._paths(stages)
        waves: list[int] = []
        for stage in stages:
            waves.append(max((waves[each] + 1 for each in stage.after), default=0))
        made: dict[int, int] = {}
        used: dict[int, int] = {}
        for path, wave in zip(paths, waves, strict=True):
            for part in path:
                made[part] = min(made.get(part, wave), wave)
                used[part] = max(used.get(part, wave), wave)
        last = max(waves, default=0)
        together = [[number for number in range(len(stages)) if waves[number] == wave] for wave in range(last + 1)]
        self._live = [[part for part in made if made[part] <= wave <= used[part]] for wave in range(last + 1)]
        self._again = [
            {part for number in numbers for part in paths[number] if made[part] < wave}
            for wave, numbers in enumerate(together)
        ]
        self._pages = [(page - 1) * len(numbers) for numbers in together]
        self._steps = [max((stages[number].answer for number in numbers), default=1) for numbers in together]

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
        live = self._live_tokens(new)
        mean = sum(tokens * steps for tokens, steps in zip(live, self._steps, strict=True)) // self.steps
        again = sum(new[part] for parts in self._again for part in parts)
        return LiveTokens(max(self._live_tokens(whole)), max(live), mean, again)

    def _live_tokens(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens in each wave, by those of each part."""
        waves = zip(self._live, self._pages, strict=True)
        return [sum(tokens[part] for part in parts) + pages for parts, pages in waves]

    def _paths(self, stages: Sequence[RequestModel]) -> list[list[int]]:
        """Return the parts of the prompt and the answer of each request."""
        prompts: list[list[int]] = []
        paths: list[list[int]] = []
        for number, stage in enumerate(stages):
            path: list[int] = []
            if stage.base is not None:
                path += paths[stage.base] if stage.answered else prompts[stage.base]
            for piece in stage.pieces:
                path.append(self._part(path, piece))
            prompts.append(path)
            paths.append([*path, self._part(path, Answer(number))])
        return paths

    def _part(self, path: Sequence[int], piece: Piece) -> int:
        part = _Part(path[-1] if path else None, piece, len(self._parts) if isinstance(piece, Unknown) else None)
        return self._parts.setdefault(part, len(self._parts))
