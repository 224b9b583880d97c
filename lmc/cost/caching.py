"""The tokens of prompts that are found in a cache, by the rule of the target."""

from __future__ import annotations

from dataclasses import dataclass

from lmc.cost.ranges import CostRange
from lmc.cost.texts import CountingTokenizer
from lmc.ir.engine.target import Target
from lmc.ir.tokens.tokens import common_length

_PART = 16
"""Token ids that prompts are compared by, when it is estimated what they share."""


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

    ``shared`` are the tokens that the last one probably shares with an earlier one; 0 where nothing is cached.
    """

    def __init__(self, rule: CacheRule, tokenizer: CountingTokenizer) -> None:
        self._rule = rule
        self._tokenizer = tokenizer
        self._parts: dict[tuple[int, tuple[int, ...]], int] = {}
        self._last: tuple[int, ...] = ()
        self._nodes: list[int] = [0]
        self._first: dict[int, tuple[int, ...]] = {}
        self._starts: dict[int, set[tuple[int, ...]]] = {}
        self.shared = 0

    def cached(self, prompt: tuple[int, ...], tokens: CostRange[int]) -> CostRange[int]:
        """Return the cached tokens of the next prompt, which has so many ``tokens``.

        Expected is what it shares with those before it. A cache may forget, and may have prompts of other runs: so it
        may be nothing, and all but the last token.
        """
        if not self._rule.least:
            return CostRange.exactly(0)
        shared = self._keep(prompt)
        most = None if tokens.most is None else self._rule.found(tokens.most)
        self.shared = self._tokenizer.count(prompt[:shared]).expected if shared else 0
        return CostRange(0, self._rule.found(min(self.shared, tokens.expected)), most)

    def generated(self, prompt: tuple[int, ...], answer: tuple[int, ...]) -> None:
        """Note the tokens that were generated after a prompt."""
        if self._rule.outputs and answer:
            self._keep((*prompt, *answer))

    def _keep(self, prompt: tuple[int, ...]) -> int:
        """Keep a prompt, part by part; give the number of the tokens that it shares with an earlier one."""
        parts = common_length(prompt, self._last) // _PART  # those of the last prompt are known
        del self._nodes[parts + 1 :]
        self._last, shared, node = prompt, parts * _PART, self._nodes[-1]
        for start in range(shared, len(prompt), _PART):
            part = prompt[start : start + _PART]
            following = self._parts.get((node, part))
            if following is None:
                following = self._parts[node, part] = len(self._parts) + 1
                if shared == start:
                    shared += self._begun(node, part)
                self._first.setdefault(node, part)
            elif shared == start:
                shared += len(part)
            node = following
            self._nodes.append(node)
        return shared

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
        if not self._rule.writes:
            return CostRange.exactly(0)
        most = None if tokens.most is None else self._rule.found(tokens.most)
        return CostRange(0, max(0, self._rule.found(tokens.expected) - cached.expected), most)
