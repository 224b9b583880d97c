"""Running a program as plain Python: the user's own function, each operation at once on an engine.

``run_eager`` is the oracle that captures are tested against.
"""

from __future__ import annotations

from typing import Any

from lmc.frontend.failures import name_line, too_deep
from lmc.frontend.language.core import Core
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.language.running import activate
from lmc.frontend.language.state import State
from lmc.frontend.program.arguments import Bound, bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import LmcError
from lmc.ir.profile import Profile
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import Outcome


class EagerFrame:
    """A running eager program: where jitted functions called from it find the session and their path."""

    def __init__(self, session: EagerSession, path: str) -> None:
        self.session = session
        self.path = path

    def call(self, function: JittedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a jitted function that was called by this one: in a fresh context, or on the state that it is given."""
        on, args = function.continuing(args, kwargs)
        if on:
            return self.call_on(function, on[0], args, kwargs)
        function, kwargs = function.called_with(kwargs)
        path = self.session.allocate(self.path, function.name)
        state = function.new_state(Core(self.session), path)
        return function.result(state, self._run(function, state, path, args, kwargs))

    def call_on(self, function: JittedFunction, state: State, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a jitted function on a state of this one."""
        continued = state.continued(function.name)
        return self._run(function, continued, continued.path, args, kwargs)

    def _run(
        self, function: JittedFunction, state: State, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        bound = bind(function, args, kwargs)
        with activate(EagerFrame(self.session, path)):
            try:
                return function.function(state, *bound.args, **bound.kwargs)
            except LmcError as error:
                name_line(error, function.codes)
                raise


def run_eager(function: JittedFunction, bound: Bound, session: EagerSession) -> Outcome:
    """Run the user's own function, untransformed. Raises what it raises; a recursion that is too deep says where."""
    function.refuse_async()
    function.warn()
    session.path = function.name
    state = function.new_state(Core(session), function.name)
    try:
        with activate(EagerFrame(session, function.name)):
            value = function.function(state, *bound.args, **bound.kwargs)
    except RecursionError as error:
        raise too_deep(error) from None
    except LmcError as error:
        name_line(error, function.codes)
        raise
    return eager_outcome(function, state, value, session)


def eager_outcome(function: JittedFunction, state: State, value: Any, session: EagerSession) -> Outcome:
    """Return the result of a finished run. Raises ``CaptureError`` for a role block that was never opened."""
    session.blocks.check_all()
    profile = Profile(function.name, session.profile)
    context: Context = state.core.context
    named = dict(function.outputs(state))
    return Outcome(value, named, context.transcript(), profile, messages=context.message_list())
