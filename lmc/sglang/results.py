"""The result of ``run``: the state of a program that has run, or runs while its text is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from lmc.driver import InputError, Result, Stream
from lmc.frontend.language.core import META
from lmc.frontend.language.refusals import near
from lmc.sglang.meta import TEXTS, finish_reason, meta_info
from lmc.sglang.streaming import EventLog, text_of_variable, whole_text

_END = object()


class UnknownVariableError(InputError, KeyError):
    """A variable that the program has not set. Also a ``KeyError``."""


class ProgramState:
    """The end of a run: ``state["x"]``, ``state.text()``, ``state.messages()``.

    Where the program failed, ``error()`` is why, and everything else raises it. With ``run(stream=True)`` the run may
    still be under way: ``text_iter`` gives its text as it comes, everything else waits for its end.
    """

    def __init__(self, program: str, run: Result | Stream) -> None:
        self._program = program
        self._run = run
        self._log = None if isinstance(run, Result) else EventLog(run)
        self._set: dict[str, Any] = {}

    @property
    def ret_value(self) -> Any:
        """The return value of the function."""
        return self._result.value

    def text(self) -> str:
        """The text of the whole state, the chat template's own marks included."""
        return self._result.text

    def messages(self) -> list[dict[str, str]]:
        """Roles and contents: ``[{"role": "user", "content": "…"}, …]``; empty without roles."""
        return [dict(message) for message in self._result.messages]

    def get_var(self, name: str) -> Any:
        """``state[name]``. Raises ``UnknownVariableError`` (a ``KeyError``) where the program did not set it."""
        if name in self._set:
            return self._set[name]
        variables = self._result.variables
        if name not in variables or name.startswith(META):
            raise UnknownVariableError(f"the state has no variable {name!r}", remedy=near(str(name), self._names()))
        return variables[name]

    def set_var(self, name: str, value: Any) -> None:
        """``state[name] = value``."""
        self._set[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.get_var(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.set_var(name, value)

    def __contains__(self, name: object) -> bool:
        return name in self._set or name in self._names()

    __iter__ = None  # a state is no sequence, though it can be subscripted

    def get_meta_info(self, name: str) -> Any:
        """Return log-probabilities (see ``meta.py``) and usage of a generation or a choice.

        "prompt_tokens", "cached_tokens", "completion_tokens" and "finish_reason" are those of the last generation of
        that name on the state itself. Raises ``UnknownVariableError`` for a variable that is neither.
        """
        found = self._result
        kept = found.variables
        meta = meta_info(kept.get(META + name), kept.get(META + TEXTS + name))
        used = self._used(name)
        if meta is None and used is None:
            raise UnknownVariableError(f"nothing was generated or chosen as {name!r}", remedy=near(name, self._names()))
        if meta is None or used is None or isinstance(meta, list):
            return used if meta is None else meta
        return {**used, **meta}

    def sync(self) -> None:
        """Wait for the run to end. Raises nothing: see ``error``."""
        self._end()

    def error(self) -> BaseException | None:
        """Why the program failed; None where it did not. Waits for its end."""
        return self._end().error

    def text_iter(self, var_name: str | None = None) -> Iterator[str]:
        """The text of the state, or of the variable ``var_name``, as it comes; in one piece where it is there.

        Raises what the program raises, at the end of what there is.
        """
        if self._log is None:
            yield self.text() if var_name is None else self.get_var(var_name)
        elif var_name is None:
            yield from whole_text(self._log, self._program, self.text)
        else:
            yield from text_of_variable(self._log, self._program, var_name, self.get_var)

    async def text_async_iter(self, var_name: str | None = None, return_meta_data: bool = False) -> AsyncIterator[str]:
        """``text_iter`` for ``async for``."""
        if return_meta_data:
            raise InputError(
                "text_async_iter(return_meta_data=True): meta data is known when a generation has ended",
                remedy="leave it out, and ask get_meta_info at the end",
            )
        pieces = self.text_iter(var_name)
        while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
            yield str(piece)

    def __repr__(self) -> str:
        return f"ProgramState({self.text()})"

    def _names(self) -> list[str]:
        return [name for name in self._result.variables if not name.startswith(META)]

    def _end(self) -> Result:
        return self._run if isinstance(self._run, Result) else self._run.result

    @property
    def _result(self) -> Result:
        """The result. Raises the program's error."""
        found = self._end()
        if found.error is not None:
            raise found.error
        return found

    def _used(self, name: str) -> dict[str, Any] | None:
        """Tokens and end of the last generation called ``name`` on the state itself."""
        base = f"{self._program}/{name}"
        ids = [op_id for op_id in self._result.profile.ops if op_id.partition("#")[0] == base]
        if not ids:
            return None
        entry = self._result.profile.ops[max(ids, key=lambda op_id: (len(op_id), op_id))]
        usage = entry.usage
        used: dict[str, Any] = {
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.generated_tokens,
        }
        if len(entry.finish_reasons) == 1:
            used["finish_reason"] = finish_reason(entry.finish_reasons[0][0], usage.generated_tokens)
        return used
