"""What the parts of ``Operators`` share: the run they belong to, and the breaks they have in common."""

from __future__ import annotations

from collections.abc import Callable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from lmc.frontend import disorder
from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.eager import EagerSession
from lmc.frontend.growing import as_value, holds_grown, is_grown
from lmc.frontend.guards import mutable_parts
from lmc.frontend.harmless import is_deeply_harmless, is_harmless
from lmc.frontend.locations import is_user_file
from lmc.frontend.proxy import Proxy, ProxyMethod, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.regions import is_iterator
from lmc.frontend.specs import Record
from lmc.ir import builtins
from lmc.ir.types import BOOL, FLOAT, INT, NONE, TEXT
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.function import UserFunction


class Base:
    """One run of one transformed function."""

    def __init__(self, session: Recorder | EagerSession, program: UserFunction, path: str) -> None:
        self.session = session
        self.recorder = session if isinstance(session, Recorder) else None
        self.program = program
        self.path = path

    def tick(self) -> int:
        """Count one operation; gives its number, the same in a capture and in its replay."""
        self.session.ticks += 1
        recorder = self.recorder
        parts = () if recorder is None else recorder.outside.parts
        if parts and recorder is not None and recorder.ticks > parts[-1].most_ticks:
            raise recorder.stop("a function that the program calls takes many steps", "nothing has to change")
        return self.session.ticks

    def done(self, tick: int, result: Any) -> Any:
        """Note which host call answered the operation ``tick``, so that a replay does not run it again."""
        recorder = self.recorder
        assert recorder is not None
        last = recorder.last_host
        if last is None or type(result) is not Proxy:
            return result
        if last[0] == tick == recorder.ticks and symbol(result).value == last[2]:
            recorder.served[tick] = last[1]
        return result

    def served(self, tick: int, python: Callable[..., Any], *operands: Any) -> Any:
        """In a replay: the answer of the host call that this operation was in the capture, else Python's own."""
        session = self.session
        if tick in session.served:
            assert isinstance(session, EagerSession)
            return session.answer(session.served[tick])
        return python(*operands)

    def earlier(self, kind: str, owner: Any, name: str, value: Any) -> Any:
        """In a replay: what the capture saw at this place, where a call may have bound the name anew since."""
        assert isinstance(self.session, EagerSession)
        return self.session.earlier(kind, owner, name, value)

    def settled(self, value: Any) -> Any:
        """``value``; a list whose length only a run decides as the one value that it is then."""
        recorder = self.recorder
        if recorder is None:
            return value
        if recorder.outside.containers and id(value) in recorder.outside.containers:
            return recorder.constant(value)
        return as_value(recorder, value) if recorder.grows and is_grown(value) else value

    def check_settled(self, recorder: Recorder, *values: Any) -> None:
        """Break where Python itself would look at a list whose length only a run decides."""
        if recorder.grows and any(map(holds_grown, values)):
            raise recorder.stop(
                "a list that grows in a loop or under a condition is looked at or changed in a way that has no "
                "counterpart in the graph",
                "use len, in, for, an index, join or sorted on it, or hand it to a tool",
            )

    def text_of(self, recorder: Recorder, value: Any, how: str = "str") -> Any:
        """``str(value)`` (or ``format(value)``) as text; itself where it is text already."""
        if type(value) is str:
            return value
        kind = symbol(value).type if type(value) is Proxy else None
        if kind == TEXT:
            return value
        if kind in (INT, FLOAT, BOOL, NONE):
            how = "str"  # the same for these, and it can't raise
        return recorder.pure(how, (value,) if how == "str" else (value, ""))

    def foreign(self, recorder: Recorder, name: str, operands: tuple[Any, ...]) -> Any:
        """An operator on an object with special methods of the user's: a host call."""
        if builtins.lookup(name) is None or any(holds_proxy(operand) for operand in operands):
            raise self.foreign_operator(recorder, name, next(part for part in operands if not is_harmless(part)))
        constants = [operand if is_harmless(operand) else recorder.constant(operand) for operand in operands]
        return recorder.pure(name, constants)

    def foreign_operator(self, recorder: Recorder, name: str, value: Any) -> CaptureBreak:
        """The break for an operator that would run the user's own special method."""
        return recorder.stop(
            f"`{name}` on {with_article(self.describe(value))} runs its own code, and the program needs the result now",
            "do it in a tool, or before the program is called",
        )

    def hashed(self, value: Any) -> Any:
        """Return ``value``, a key that Python hashes and compares. Breaks where that runs code of the user's."""
        recorder = self.recorder
        if (
            recorder is not None
            and type(value) is not Proxy
            and not is_deeply_harmless(value)
            and not holds_proxy(value)
        ):
            raise self.foreign_operator(recorder, "hash", value)
        return value

    def mutation(self, recorder: Recorder, value: Any) -> CaptureBreak:
        """The break for a change of something that the capture did not make."""
        return recorder.stop(
            f"the program changes {with_article(self.describe(value))} that it did not make itself",
            "change a copy (list(x), dict(x)), or do it in a tool",
        )

    def check_unchanged(self, recorder: Recorder, value: Any) -> None:
        """Break where ``value`` is a container of the user's that a host call may have changed meanwhile."""
        if recorder.user_writes and id(value) in recorder.foreign and id(value) not in recorder.argument_parts:
            raise self.changed(recorder, with_article(type(value).__name__))
        if self.holds_live(recorder, value):
            raise self.changed(recorder, with_article(type(value).__name__))

    def holds_live(self, recorder: Recorder, value: Any) -> bool:
        """Whether a container that the program changes, and did not make, is in ``value``."""
        if not recorder.outside.containers:
            return False
        found: dict[int, Any] = {}
        mutable_parts(value, found)
        return not recorder.outside.containers.isdisjoint(found)

    def changed(self, recorder: Recorder, what: str) -> CaptureBreak:
        """The break for a read of the user's data after a call that may have changed it."""
        return recorder.stop(
            f"{what} of the program's surroundings is read after a call that may have changed it",
            'declare what the function called does (@lmc.tool(effect="reads") or "pure"), or do a call of a library in '
            "such a function of your own, or read this before the call",
        )

    def check_iterable(self, recorder: Recorder, items: Any) -> None:
        """Break where going over ``items`` would run the user's code or use up the user's iterator."""
        kind = type(items)
        if (
            kind is GeneratorType
            and id(items.gi_code) not in recorder.codes
            and is_user_file(items.gi_code.co_filename)
        ):
            raise recorder.stop("a generator of the user's is used up", "make it a list first")
        if is_iterator(items) and recorder.regions.is_older(items):
            raise recorder.stop(
                f"{with_article(kind.__name__)} that is older than a condition is advanced on one way through it",
                "make a list of it before the condition",
            )
        if id(items) in recorder.foreign and hasattr(kind, "__next__"):
            raise recorder.stop(f"{with_article(kind.__name__)} of the user's is used up", "make it a list first")
        if kind is not GeneratorType and not is_harmless(items):
            raise self.foreign_operator(recorder, "for", items)
        if disorder.is_disordered(items):
            raise recorder.stop(disorder.CAUSE, disorder.REMEDY)
        self.check_unchanged(recorder, items)

    def check_text(self, recorder: Recorder, value: Any) -> None:
        """Break where the text of ``value`` would be another in another process."""
        if disorder.holds_disorder(value):
            raise recorder.stop(disorder.CAUSE, disorder.REMEDY)
        if disorder.holds_address(value):
            raise recorder.stop(disorder.ADDRESS_CAUSE, disorder.ADDRESS_REMEDY)

    def describe(self, value: Any) -> str:
        """What a break calls ``value``."""
        kind = type(value)
        if kind is Proxy:
            return f"value ({symbol(value).origin})"
        if kind is ProxyMethod:
            return f"method of a value ({symbol(value.proxy).origin})"
        return value.kind.__name__ if kind is Record else kind.__name__
