"""What a capture knows of the user's objects around the program: what changes while it runs, and whose method it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """A plain function, ``called``, that is captured as a part of the program; ``code`` is the id of its code object.

    ``lenient`` says that it may do things to the world: it was given what the graph could hand to no function. What it
    comes to is bounded, by the numbers of operations counted and recorded until its end.
    """

    called: Any
    code: int
    lenient: bool
    most_ticks: int
    most_ops: int


@dataclass(slots=True)
class Outside:
    """What is known of the user's objects when an attempt at a capture begins, and what it finds out.

    ``names`` are those of attributes that the program sets (of whatever object), ``containers`` ids of the lists, dicts
    and sets that it changes, or reads after a call that may: all of a capture looks at these when it runs. ``whole``
    are plain functions that are called as they are, by the ids of their code objects. ``unanswered`` are ids of host
    calls before which a capture ends, because its continuation would repeat them. ``changeable`` are ids of the lists,
    dicts, sets and records in the arguments.

    ``plain`` says that all are, ``steady`` that a read after such a call ends the capture. ``loose`` are those of
    ``names`` that may hold more than texts and numbers.

    ``wanted`` is what an attempt finds missing in these: it ends there, and another begins. ``final`` says that none
    will. ``receiver`` is the object that a captured method belongs to, ``escaped`` whether it may have ended up
    anywhere. ``own`` are partial functions that the capture made. ``parts`` are the plain functions that are captured
    now, outermost first; ``entered`` are the operations that were calls of such.
    """

    receiver: tuple[Any, ...] = ()
    names: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    containers: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()
    unanswered: frozenset[str] = frozenset()
    changeable: frozenset[int] = frozenset()
    plain: bool = False
    steady: bool = False
    final: bool = False
    wanted: dict[str, Any] = field(default_factory=dict[str, Any])
    escaped: bool = False
    own: dict[int, Any] = field(default_factory=dict[int, Any])
    parts: list[Part] = field(default_factory=list[Part])
    entered: set[int] = field(default_factory=set[int])

    def want(self, kind: str, found: Any) -> None:
        """Let another attempt begin that knows of ``found``; the first wish counts."""
        if not self.final and not self.wanted:
            self.wanted = {kind: frozenset({found})}

    def next(self, *, final: bool) -> Outside:
        """What the next attempt begins with."""
        known = {kind: getattr(self, kind) | more for kind, more in self.wanted.items()}
        return replace(self, **known, final=final, wanted={}, escaped=False, own={}, parts=[], entered=set())

    def is_receiver(self, owner: Any) -> bool:
        """Whether ``owner`` is the object that the captured method belongs to."""
        return bool(self.receiver) and owner is self.receiver[0]
