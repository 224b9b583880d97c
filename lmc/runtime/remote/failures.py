"""Failures of attempts: whether another one is of use, whether the run ends, and the message for the user."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.errors import EngineError, QuotaError, RequestTimeoutError
from lmc.ir.usage import Attempt, Usage

OVERLOADED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes after which another attempt may succeed."""
_PASSED_ON = frozenset({408, 502, 504})
"""Status codes of proxies that gave up: the provider may have answered, and charge for it."""
_SHOWN = 2000
_EXHAUSTED = ("insufficient_quota", "billing_error", "credit balance is too low")
"""Codes and words of providers; others that speak of quotas and billing mean the limit of a minute."""
_LONGEST_WAIT = 120.0
"""Seconds: a provider that asks for more is not waited for."""


class AttemptError(Exception):
    """An attempt failed with ``error``.

    ``again``: another attempt may succeed, ``after`` seconds if the provider says so. ``usage`` is its cost; None: that
    is not known. Not ``is_whole``: it may have cost more. ``is_last``: nor is a fallback asked. ``attempts`` are all
    those of its request, once there is no further one.
    """

    def __init__(
        self, error: EngineError, *, again: bool, after: float | None = None, usage: Usage | None = None
    ) -> None:
        # stamina logs its repr, and a provider may quote what it was sent.
        super().__init__(f"an attempt failed with {type(error).__name__}")
        self.error = error
        self.again = again
        self.after = after
        self.usage = usage or Usage(calls=1)
        self.is_whole = usage is not None
        self.is_last = isinstance(error, RequestTimeoutError)
        self.attempts: tuple[Attempt, ...] = ()


class OwnError(Exception):
    """A listener of the text of a reply failed with ``error``: no fault of the provider."""

    def __init__(self, error: Exception) -> None:
        super().__init__(repr(error))
        self.error = error


def shown_in_part(failure: AttemptError) -> AttemptError:
    """Return a failure behind text that a listener got already: another answer would not begin with it."""
    error = EngineError(
        f"{failure.error.cause}; a part of the text was shown by then, and another answer would differ from it",
        remedy="run it again; without a listener of its text, an answer that breaks off is asked for again",
    )
    found = AttemptError(error, again=False, usage=failure.usage)
    found.is_whole, found.is_last = failure.is_whole, True
    return found


def of_status(
    status: int, text: str, service: str, *, after: float | None = None, near: Sequence[str] = ()
) -> AttemptError:
    """Return the failure of an answer with an error status; ``text`` is what the provider says.

    ``near`` are names of models that may be meant.
    """
    usage = None if status in _PASSED_ON else Usage(calls=1)
    said = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    is_far = after is not None and after > _LONGEST_WAIT
    names_quota = 400 <= status < 500 and any(mark in said.lower() for mark in _EXHAUSTED)
    if status == 402 or (status == 429 and is_far) or names_quota:
        return AttemptError(
            QuotaError(
                f"the quota of {service} is exhausted: {said}",
                remedy="raise it at the provider, then continue with --resume",
            ),
            again=False,
            usage=usage,
        )
    if status in OVERLOADED:
        remedy = "try again later, lower requests_per_minute, or set a fallback for the target"
        if is_far:
            remedy = "continue with --resume (resume=True) when it is back, or set a fallback for the target"
            down = QuotaError(
                f"{service} answers {status}, and asks to wait {after:,.0f} seconds: {said}", remedy=remedy
            )
            return AttemptError(down, again=False, usage=usage)
        error = EngineError(f"{service} answers {status}: {said}", remedy=remedy)
        return AttemptError(error, again=True, after=after, usage=usage)
    if status == 401:
        remedy = (
            "set the environment variable of the key (api_key_env) to a key that may use the model, then continue with "
            "--resume"
        )
        return AttemptError(QuotaError(f"{service} refuses the key: {said}", remedy=remedy), again=False, usage=usage)
    if status == 404:
        remedy = "check the name of the model and the address"
        if near:
            remedy = f"did you mean {' or '.join(near)}? Otherwise {remedy}"
        unknown = QuotaError(f"{service} does not know the model: {said}", remedy=remedy)
        return AttemptError(unknown, again=False, usage=usage)
    remedy = "change what the message names; another attempt would be answered in the same way"
    error = EngineError(f"{service} refuses the request ({status}): {said}", remedy=remedy)
    return AttemptError(error, again=False, usage=usage)


def unreachable(service: str, cause: str) -> AttemptError:
    """Return the failure of a connection."""
    remedy = "check the address and the network; or set a fallback for the target"
    return AttemptError(EngineError(f"{service} can't be reached: {cause}", remedy=remedy), again=True)


def too_slow(service: str, what: str, seconds: float) -> AttemptError:
    """Return the failure of an answer that did not come in time."""
    error = EngineError(
        f"{service} gave no {what} within {seconds:g} s", remedy="raise the timeout of the target, or set a fallback"
    )
    return AttemptError(error, again=True)


def malformed(service: str, what: str, usage: Usage | None = None) -> AttemptError:
    """Return the failure of an answer that breaks the protocol."""
    remedy = "check that the server speaks this api; a proxy between may have cut the answer"
    failure = AttemptError(EngineError(f"{service} sent {what}", remedy=remedy), again=True, usage=usage)
    failure.is_whole = False  # it may be cut, or be of another model
    return failure


def too_large(service: str, most: int) -> AttemptError:
    """Return the failure of an answer with more bytes than its tokens can have."""
    remedy = "check that the server honours max_tokens; a proxy between may send something else"
    return AttemptError(EngineError(f"{service} sent more than {most:,} bytes", remedy=remedy), again=False)


def refused_text(service: str, what: str, remedy: str, usage: Usage | None) -> AttemptError:
    """Return the failure of an answer that came, was paid for, and holds no text of use."""
    told = usage or Usage()
    spent = f"{told.prompt_tokens:,} tokens in, {told.generated_tokens:,} out"
    if told.reasoning_tokens:
        spent += f", {told.reasoning_tokens:,} of them reasoning"
    return AttemptError(EngineError(f"{service} {what} ({spent})", remedy=remedy), again=False, usage=usage)
