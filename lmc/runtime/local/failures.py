"""Errors that the engine ends requests with. Each call makes a new one: its reporter writes a line into it."""

from lmc.ir.errors import EngineClosedError, EngineError, RequestTimeoutError


def closed() -> EngineClosedError:
    """The engine was closed, before the request or during it."""
    return EngineClosedError("the engine was closed", remedy="call the program again: that starts a new one")


def stopped(cause: BaseException) -> EngineError:
    """The engine's thread ended by an error."""
    return _caused(
        cause,
        f"the engine stopped: {type(cause).__name__}: {cause}",
        "call lmc.close(), then the program again; if memory ran out, set a smaller kv_tokens",
    )


def too_late(timeout: float) -> RequestTimeoutError:
    """The request ran out of its seconds."""
    return RequestTimeoutError(
        f"the request was not finished within {timeout:g} seconds",
        remedy="give it a longer timeout, or ask for less at a time",
    )


def not_numbers(position: int) -> EngineError:
    """The logits after a token that is followed by others are NaN."""
    return EngineError(
        f"the model gave NaN logits within the prompt, after its token {position}",
        remedy="check the model's weights; a model made for bfloat16 may overflow in another dtype",
    )


def callback_failed(error: BaseException) -> EngineError:
    """The function that takes a stream raised."""
    return _caused(
        error,
        f"the on_delta callback raised {type(error).__name__}: {error}",
        "mend the function that takes the stream",
    )


def constraint_failed(error: Exception) -> EngineError:
    """A constraint raised what is no error of its own."""
    return _caused(
        error,
        f"the constraint raised {type(error).__name__}: {error}",
        "report it, with the constraint: this is none of the errors a constraint is to raise",
    )


def _caused(cause: BaseException, message: str, remedy: str) -> EngineError:
    failure = EngineError(message, remedy=remedy)
    failure.__cause__ = cause
    return failure
