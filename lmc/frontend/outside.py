"""What a capture knows of the user's objects around the program: what changes while it runs, and whose method it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(slots=True)
class Outside:
    """What is known of the user's objects when an attempt at a capture begins, and what it finds out.

    ``names`` are those of attributes that the program sets (of whatever object), ``containers`` ids of the lists, dicts
    and sets that it changes: all of a capture looks at these when it runs. ``whole`` are plain functions that are
    called as they are, by the ids of their code objects.

    ``loose`` are those of ``names`` that may hold more than texts and numbers.

    ``wanted`` is what an attempt finds missing in these: it ends there, and another begins. ``final`` says that none
    will. ``receiver`` is the object that a captured method belongs to, ``escaped`` whether it may have ended up
    anywhere. ``own`` are partial functions that the capture made.
    """

    receiver: tuple[Any, ...] = ()
    names: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    containers: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()
    final: bool = False
    wanted: dict[str, Any] = field(default_factory=dict[str, Any])
    escaped: bool = False
    own: dict[int, Any] = field(default_factory=dict[int, Any])

    def want(self, kind: str, found: Any) -> None:
        """Let another attempt begin that knows of ``found``; the first wish counts."""
        if not self.final and not self.wanted:
            self.wanted = {kind: frozenset({found})}

    def next(self, *, final: bool) -> Outside:
        """What the next attempt begins with."""
        known = {kind: getattr(self, kind) | more for kind, more in self.wanted.items()}
        return replace(self, **known, final=final, wanted={}, escaped=False, own={})

    def is_receiver(self, owner: Any) -> bool:
        """Whether ``owner`` is the object that the captured method belongs to."""
        return bool(self.receiver) and owner is self.receiver[0]
