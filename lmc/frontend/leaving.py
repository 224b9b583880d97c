"""Ends of a program on one way through a condition: ``return``, and ``raise``, which the graph then does.

    if "bad" in text:                         cf.cond %bad {
        raise ValueError(f"refused: {text}")    %message = text.concat ["refused: ", %text]
    s += text                                   %error = py.call exception ["ValueError", %message]
                                                py.call raise [%error]
                                                cf.unreachable
                                              } { cf.yield }
                                              lm.extend %0, [%text]

What stands behind the condition belongs to the other way.
"""

from __future__ import annotations

import sys
from typing import Any

from lmc.frontend.attempts import Attempt, Attempts
from lmc.frontend.breaks import Exit
from lmc.frontend.proxy import Proxy, holds_proxy
from lmc.frontend.recorder import Recorder
from lmc.ir.ops import PyCallOp, UnreachableOp
from lmc.ir.statements import EXCEPTIONS
from lmc.ir.types import ANY, NONE
from lmc.ir.wording import with_article


class Leaving(Attempts):
    """The part of ``Operators`` that ends the program on some ways."""

    def returning(self, value: Any, outermost: bool, enclosing: tuple[Any, ...], levels: int) -> bool:
        """Whether ``return value`` is to be done, which stands at the end of ``levels`` of the arms around it.

        ``enclosing`` are the conditions and loops around it, outermost first; ``outermost`` says whether it ends the
        program.
        """
        recorder = self.recorder
        if recorder is None or not any(branch.traced for branch in enclosing):
            return True
        if not outermost or recorder.depth or recorder.end_program is None:
            raise recorder.stop(
                "a function returns on one way through a condition, and goes on on the other",
                "let each way bind a variable, and return it at the end",
            )
        recorder.end_program(value)
        recorder.returns += 1
        self._end_arm(recorder, enclosing, levels)
        return False

    def raising(
        self, error: Any, causes: tuple[Any, ...], held: tuple[Attempt, ...], enclosing: tuple[Any, ...], levels: int
    ) -> bool:
        """Whether ``raise error`` is to be done, which stands where ``returning`` says.

        ``causes`` holds what stands after ``from``, ``held`` the ``try`` whose handler the ``raise`` is in.
        """
        recorder = self.recorder
        if recorder is None:
            return True
        if recorder.branch is None and not recorder.returns and not _ends_python(error):
            self._check_known(recorder, (error, *causes))
            return True
        around = self._handled(recorder, held)
        found = [self._known(recorder, part) for part in (error, *causes)]
        kinds = [kind for part, kind in found if part is not None]  # `from None` raises nothing of its own
        ir = tuple(recorder.operand(part).ir for part in (*around, *(part for part, _ in found)))
        recorder.emit(
            PyCallOp,
            (NONE,),
            raises=None if None in kinds else tuple(kinds[:1]),
            function="raise_while" if around else "raise",
            arguments=ir,
        )
        recorder.emit(UnreachableOp)
        recorder.returns += 1
        self._end_arm(recorder, enclosing, levels)
        return False

    def _check_known(self, recorder: Recorder, raised: tuple[Any, ...]) -> None:
        """Break where Python could not raise it now."""
        if any(map(holds_proxy, raised)):
            raise recorder.stop("an exception that is made when the program runs", "nothing has to change")

    def _handled(self, recorder: Recorder, held: tuple[Attempt, ...]) -> tuple[Any, ...]:
        """The exception that is being handled where one is raised, of which Python makes its context."""
        known = [id(attempt) for attempt in recorder.handling] == [id(attempt) for attempt in held]
        if not known or sys.exc_info()[1] is not recorder.handled_before:
            raise recorder.stop(
                "an exception is raised while another one is handled, by a function or in a handler of its own",
                "raise it in the handler itself",
            )
        return tuple(attempt.error for attempt in held)

    def _known(self, recorder: Recorder, value: Any) -> tuple[Any, Any]:
        """An exception, a class of one or a cause, for the graph; and its class, None where that is not known."""
        if issubclass(type(value), type) and issubclass(value, BaseException):
            value = self.call(value)
        if type(value) is Proxy:
            return value, recorder.error_kinds.get(recorder.value_of(value))
        if id(value) not in recorder.own_errors:
            return value, None
        if not _only_holds_its_arguments(value):
            raise recorder.stop(
                f"{with_article(type(value).__name__)} holds more than its arguments",
                "raise it where it is made, without notes",
            )
        kind = type(value)
        name, arguments = kind.__name__, [recorder.operand(part).ir for part in value.args]
        (made,) = recorder.emit(
            PyCallOp, (ANY,), raises=(TypeError,), function="exception", arguments=(name, *arguments)
        )
        return recorder.proxy(made, with_article(name)), kind

    def gone(self, branch: Any, enclosing: tuple[Any, ...], levels: int) -> None:
        """Both arms of ``branch``, which stands at the end of ``levels`` of the arms around it, may have left."""
        if branch.traced and branch.gone:
            assert self.recorder is not None
            self._end_arm(self.recorder, enclosing, levels)

    def _end_arm(self, recorder: Recorder, enclosing: tuple[Any, ...], levels: int) -> None:
        """The traced arm that runs now has left. Where it has not come to its end yet, that takes it there."""
        for inner, branch in enumerate(reversed(enclosing), 1):
            if branch.traced:
                branch.exited = True
                if inner > levels:
                    raise Exit(branch)
                return
        recorder.leave_way()


def _ends_python(error: Any) -> bool:
    """Whether ``error``, an exception or a class of one, ends more than the program: no capture may raise it itself."""
    kind = error if issubclass(type(error), type) else type(error)
    return issubclass(kind, BaseException) and not issubclass(kind, Exception)


def _only_holds_its_arguments(error: BaseException) -> bool:
    """Whether an exception of Python's own is what its class makes of its arguments."""
    kind = type(error)
    if EXCEPTIONS.get(kind.__name__) is not kind or vars(error) or error.__cause__ is not None:
        return False
    again = kind(*error.args)
    names = [name for name in dir(kind) if not name.startswith("_") and not callable(getattr(kind, name))]
    return type(again) is kind and all(
        getattr(error, name, None) is getattr(again, name, None) for name in names if name != "args"
    )
