"""Pinned prefixes of one run of a body: their holders and their release."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmc.ir.core import Value
from lmc.ir.engine.protocol import Engine, Pin, PrefixCaching
from lmc.runtime.prepared_body import PreparedBody

_PINNED_SHARE = 2
"""One half of the KV pool may be pinned at once, so that running requests keep room to work in."""


@dataclass
class PinBudget:
    """Tokens that a batch may hold pinned at the same time (None: no bound known)."""

    limit: int | None
    held: int = 0

    @classmethod
    def of(cls, engine: Engine) -> PinBudget:
        kv_tokens = engine.info.kv_tokens
        return cls(None if kv_tokens is None else kv_tokens // _PINNED_SHARE)

    def allows(self, length: int) -> bool:
        """Return True if a prefix of ``length`` tokens may be pinned now."""
        return self.limit is None or self.held + length <= self.limit

    def take(self, length: int) -> None:
        """Count ``length`` tokens as held."""
        self.held += length

    def give_back(self, length: int) -> None:
        """Count ``length`` tokens as free again."""
        self.held -= length


@dataclass
class HeldPrefixes:
    """The pins of one run of a body.

    A prefill is done with once all that build on it are: engine calls, prefills, and ops with regions that use it.
    ``PreparedBody.prefills_of`` says which prefills each of those builds on directly, so that a chain of prefills is
    let go from its end, and counting stays linear.
    """

    body: PreparedBody
    engine: PrefixCaching
    budget: PinBudget
    _pins: dict[int, Pin] = field(default_factory=dict)
    _users: dict[int, int] = field(default_factory=dict)

    def hold(self, instruction: int, pin: Pin) -> None:
        """Keep the pin that the prefill at ``instruction`` gave."""
        self._pins[instruction] = pin
        self.budget.take(pin.length)

    def holds(self, context: Value) -> bool:
        """Return True if ``context`` is the result of a prefill whose pin is held."""
        return self.body.prefills.get(context) in self._pins

    def let_go_of(self, context: Value) -> None:
        """Unpin the prefix that ``context`` is, if it is one that is held."""
        instruction = self.body.prefills.get(context)
        if instruction is not None:
            self._release(instruction)

    def finished(self, instruction: int) -> None:
        """Release the prefixes that were needed last by an instruction that has ended."""
        if self.body.prefill_users.get(instruction, 0) > 0:
            return
        ended = [instruction]
        while ended:
            done = ended.pop()
            self._release(done)
            for prefill in self.body.prefills_of.get(done, ()):
                left = self._users.get(prefill, self.body.prefill_users[prefill]) - 1
                self._users[prefill] = left
                if left == 0:
                    ended.append(prefill)

    def release(self) -> None:
        """Unpin what is still held."""
        for instruction in list(self._pins):
            self._release(instruction)

    def _release(self, instruction: int) -> None:
        pin = self._pins.pop(instruction, None)
        if pin is not None:
            self.budget.give_back(pin.length)
            self.engine.unpin(pin)
