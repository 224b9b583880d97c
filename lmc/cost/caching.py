"""The tokens of prompts that are found in a cache, by the rule of the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmc.cost.ranges import CostRange
from lmc.cost.texts import CountingTokenizer
from lmc.ir.engine.target import Target
from lmc.ir.tokens.tokens import common_length

Ways = frozenset[tuple[int, bool]]
"""The uncertain ways that lead to a request of a row: conditions by number, with the side that is taken, and rounds."""
_PART = 16
"""Token ids that prompts are compared by, when it is estimated what they share."""
_LIKELY = 0.5
"""The probability from which on a prompt counts as sent."""
_CERTAIN = 0.01
"""The probability that none has sent a part, below which it counts as sent in all later rows."""
_MOST_WAYS = 8
"""Ways that are remembered of a part; loops may have any number of them."""


@dataclass(frozen=True, slots=True)
class CacheRule:
    """The rule by which a target keeps prompts: those of ``least`` tokens, and each ``step`` more.

    ``least`` 0: it keeps none. ``writes``: it reports the tokens that it puts into its cache, and may charge for them.
    ``outputs``: it keeps what it has generated, after its prompt.
    """

    least: int
    step: int = 1
    writes: bool = False
    outputs: bool = False

    def found(self, shared: int) -> int:
        """Return the cached tokens of a prompt that shares so many with an earlier one."""
        if not self.least or shared < self.least:
            return 0
        return self.least + (shared - self.least) // self.step * self.step


_NOTHING = CacheRule(0)
_ALL = CacheRule(1, outputs=True)
_RULES = {
    # Only what a request marks with cache_control is kept, and lmc marks nothing yet.
    "anthropic": _NOTHING,
    "openai": CacheRule(1024, 128, writes=True),
    "toy": _NOTHING,
}
_SERVERS = {"vllm": CacheRule(16, 16, outputs=True)}
"""Servers by kind: vLLM keeps whole blocks of 16 tokens by default, the others all that they have computed."""


def rule_of(target: Target, server: str | None = None) -> CacheRule:
    """Return the rule of a target; engines of lmc keep all that they have computed.

    ``server`` is the kind of a server (``vllm``, ``sglang`` …), where it is known: else it may keep all.
    """
    return _SERVERS.get(server or "", _ALL) if target.kind == "server" else _RULES.get(target.kind, _ALL)


class SharedPrefixes:
    """The prompts so far, in the order in which they are sent.

    ``shared`` are the tokens that the last one probably shares with an earlier one; 0 where nothing is cached. A prompt
    that may not be sent counts for another one if that is at least as likely as not, given that the other is sent: the
    two sides of a condition never count for each other in a row. ``others`` are the rules of targets that may answer,
    too: what these keep is possible, and never expected.
    """

    def __init__(self, rule: CacheRule, tokenizer: CountingTokenizer, others: Sequence[CacheRule] = ()) -> None:
        self._rule = rule
        self._rules = (rule, *others)
        self._tokenizer = tokenizer
        self._parts: dict[tuple[int, tuple[int, ...]], int] = {}
        self._last: tuple[int, ...] = ()
        self._nodes: list[int] = [0]
        self._first: dict[int, tuple[int, ...]] = {}
        self._starts: dict[int, set[tuple[int, ...]]] = {}
        self._missed: dict[int, float] = {}  # probabilities that no earlier row has sent a part; others are certain
        self._doubtful: dict[int, list[tuple[Ways, float]]] = {}  # ways of this row that have sent it
        self.shared = 0

    def cached(
        self, prompt: tuple[int, ...], tokens: CostRange[int], ways: Ways = frozenset(), runs: float = 1.0
    ) -> CostRange[int]:
        """Return the cached tokens of the next prompt, which has so many ``tokens``.

        It is sent on ``ways``, with the probability ``runs``. Expected is what it shares with those before it. A cache
        may forget, and may have prompts of other runs: so it may be nothing, and all but the last token.
        """
        most = _most_found(self._rules, tokens)
        if not self._rule.least:
            return CostRange(0, 0, most)
        shared = self._keep(prompt, ways, runs)
        self.shared = self._tokenizer.count(prompt[:shared]).expected if shared else 0
        return CostRange(0, self._rule.found(min(self.shared, tokens.expected)), most)

    def generated(
        self, prompt: tuple[int, ...], answer: tuple[int, ...], ways: Ways = frozenset(), runs: float = 1.0
    ) -> None:
        """Note the tokens that were generated after a prompt."""
        if self._rule.outputs and answer:
            self._keep((*prompt, *answer), ways, runs)

    def computed(self, prompt: tuple[int, ...], ways: Ways = frozenset(), runs: float = 1.0) -> None:
        """Note a prefix that is computed ahead of the prompts that begin with it."""
        self._keep(prompt, ways, runs)

    def end_row(self) -> None:
        """Begin a row with ways of its own."""
        for node, sent in self._doubtful.items():
            self._missed[node] *= math.prod(1.0 - runs for _, runs in sent)
            if self._missed[node] < _CERTAIN:
                del self._missed[node]
        self._doubtful.clear()

    def _keep(self, prompt: tuple[int, ...], ways: Ways, runs: float) -> int:
        """Keep a prompt, part by part; give the number of the tokens that it shares with an earlier one."""
        parts = common_length(prompt, self._last) // _PART  # those of the last prompt are known
        del self._nodes[parts + 1 :]
        self._last, node = prompt, self._nodes[-1]
        shared = self._found(ways, runs) * _PART if self._missed else parts * _PART
        for start in range(parts * _PART, len(prompt), _PART):
            part = prompt[start : start + _PART]
            following = self._parts.get((node, part))
            if following is None:
                following = self._parts[node, part] = len(self._parts) + 1
                if shared == start:
                    shared += self._begun(node, part)
                self._first.setdefault(node, part)
                if runs < 1.0:
                    self._missed[following] = 1.0
                    self._doubtful[following] = [(ways, runs)]
            elif (following not in self._missed or self._sent(following, ways, runs)) and shared == start:
                shared += len(part)
            node = following
            self._nodes.append(node)
        return shared

    def _found(self, ways: Ways, runs: float) -> int:
        """Return how many of the first parts of the prompt were probably sent before."""
        found = 0
        for place, node in enumerate(self._nodes[1:]):
            if (node not in self._missed or self._sent(node, ways, runs)) and found == place:
                found += 1
        return found

    def _sent(self, node: int, ways: Ways, runs: float) -> bool:
        """Return True if a part was probably sent before, given that it is sent now; note that it is."""
        sent = self._doubtful.setdefault(node, [])
        missed = self._missed[node]
        if runs >= 1.0:
            del self._missed[node], self._doubtful[node]
        for others, chance in sent:
            if others <= ways:  # where this one is sent, that one has been
                return True
            if not any((number, not side) in ways for number, side in others):
                missed *= 1.0 - chance
        if len(sent) < _MOST_WAYS:
            sent.append((ways, runs))
        return missed <= _LIKELY

    def _begun(self, node: int, part: tuple[int, ...]) -> int:
        """Return the tokens that a new part shares with another one at its place. Most places have one part alone."""
        first = self._first.get(node)
        if first is None:
            return 0
        starts = self._starts.get(node)
        if starts is None:
            starts = self._starts[node] = {first[:length] for length in range(1, len(first) + 1)}
        shared = next((length for length in range(len(part), 0, -1) if part[:length] in starts), 0)
        starts.update(part[:length] for length in range(shared + 1, len(part) + 1))
        return shared

    def written(self, tokens: CostRange[int], cached: CostRange[int]) -> CostRange[int]:
        """Return the tokens of a prompt that are put into the cache at a price: probably those not found there."""
        most = _most_found([rule for rule in self._rules if rule.writes], tokens)
        if not self._rule.writes:
            return CostRange(0, 0, most)
        return CostRange(0, max(0, self._rule.found(tokens.expected) - cached.expected), most)


def _most_found(rules: Sequence[CacheRule], tokens: CostRange[int]) -> int | None:
    """Return the most tokens of a prompt that a cache with one of some rules may have."""
    if tokens.most is None:
        return None if any(rule.least for rule in rules) else 0
    return max((rule.found(tokens.most) for rule in rules), default=0)
