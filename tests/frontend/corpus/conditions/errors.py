"""Exceptions that the programs of the corpus raise, and functions that raise them."""

import lmc
from tests.frontend.harness import effect


class RefusedError(Exception):
    """A class without anything of its own."""


class RejectedError(RefusedError, ValueError):
    """One with two bases."""


class CountedError(Exception):
    """One whose constructor is seen."""

    def __init__(self, text: str, *, code: int = 1) -> None:
        effect("made", text, code)
        super().__init__(text, code)
        self.code = code


class Stop(BaseException):
    """One that no `except Exception` takes."""


@lmc.tool
def stored(text: str) -> str:
    effect("stored", text)
    return text + "!"


def checked(s, text: str) -> str:
    if "e" in text:
        raise ValueError(f"not {text}")
    s += "fine"
    return text.upper()


def refuse(s, text: str) -> None:
    effect("refuse")
    raise RefusedError(text)


def refuse_silently(_s, text: str) -> None:
    raise RefusedError(text)
