"""Output of the commands: artifacts on standard output or in a file, messages on standard error."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import AbstractContextManager, redirect_stdout, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lmc import driver

if TYPE_CHECKING:
    from rich.console import Console

MODELS = (
    "builtin, toy, the path of a model folder, hf:ORG/NAME, openai:MODEL, anthropic:MODEL, server:URL[#MODEL] "
    "or a name of [tool.lmc.targets]"
)


def prints_to_stderr() -> AbstractContextManager[object]:
    """Redirect Python's standard output to standard error in the block: a program's prints are not lmc's data.

    Affects the whole process, so also the threads in which a program's functions run.
    """
    return redirect_stdout(sys.stderr)


def print_error(error: BaseException) -> None:
    """Print an error to standard error: place, cause, remedy."""
    console = stderr_console()
    if isinstance(error, driver.ProgramImportError) and error.traceback:
        console.print(error.traceback, style="dim", markup=False)
    where = f"{error.location}: " if isinstance(error, driver.LmcError) and error.location is not None else ""
    said = driver.describe_error(error).removeprefix(where)
    console.print(where, end="", style="bold", markup=False)
    console.print("error: ", end="", style="bold red", markup=False)
    console.print(said, markup=False)


def stderr_console() -> Console:
    """Return a console on standard error. Imports rich here, so that commands without notes start faster."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True, highlight=False)


def print_note(text: str) -> None:
    """Print a line to standard error."""
    stderr_console().print(text, markup=False)


def to_json(data: Any, *, indent: int | None = None) -> str:
    """Return JSON text; characters that UTF-8 can hold stay readable."""
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    return text if text.isascii() or _is_utf8(text) else json.dumps(data, indent=indent, allow_nan=False)


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def write_out(text: str, file: IO[str] | None = None) -> None:
    """Write ``text`` at once to an open file, or to standard output. Raises ``LmcError`` where that is full.

    A regular file that has room for a part of ``text`` gets nothing of it, so that its last line is whole.
    """
    out = sys.stdout if file is None else file
    size = _size(out)
    data = text.encode(getattr(out, "encoding", None) or "utf-8", getattr(out, "errors", None) or "strict")
    try:
        _write(out, text, data)
    except BrokenPipeError:  # whoever reads has seen enough
        raise
    except OSError as error:
        _cut(out, size, len(data))
        forget(out)
        raise driver.LmcError(
            f"{'standard output' if out.name == '<stdout>' else out.name} can't be written any further: "
            f"{error.strerror}",
            remedy="make room; what was written is not all of it",
        ) from error


def write_whole(file: int, data: bytes) -> None:
    """Write all of ``data`` to a descriptor. Raises ``OSError`` where there is room for a part of it only."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _write(out: IO[str], text: str, data: bytes) -> None:
    """Write ``data``, which is ``text`` encoded. An unbuffered stream (python -u) drops what a full disk can't take."""
    out.flush()
    try:
        file = out.fileno()
    except (OSError, ValueError):  # no file of the system
        out.write(text)
        out.flush()
        return
    write_whole(file, data)


def _size(out: IO[str]) -> int | None:
    """Return the size of a regular file in bytes; None for any other."""
    try:
        status = os.fstat(out.fileno())
    except (OSError, ValueError):  # closed, or no file of the system
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _cut(out: IO[str], size: int | None, written: int) -> None:
    """Remove what was written of ``written`` bytes to a file of ``size`` bytes, and nothing of another writer's."""
    now = _size(out)
    if size is not None and now is not None and size < now <= size + written:
        with suppress(OSError):
            os.ftruncate(out.fileno(), size)


def forget(out: IO[str]) -> None:
    """Discard the buffer of ``out``: a flush as the process ends would fail again."""
    with suppress(OSError):  # not a file of the system
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, out.fileno())
        os.close(null)


def write_artifact(text: str, path: str | None) -> None:
    """Write ``text`` to the file ``path``, or to standard output where that is None or ``-``."""
    if path is None or path == "-":
        write_out(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def check_output(path: str | None, option: str = "-o", /, **read: str | None) -> None:
    """Raise ``UsageError`` where the file of an option is one that the command reads: ``program``, ``input`` ….

    A file read is named, or ``-`` for standard input, which may be a file too.
    """
    if path is None or not Path(path).is_file():
        return
    for what, name in read.items():
        if name is not None and _is_file(name, Path(path)):
            raise driver.UsageError(
                f"{path} is the {what}, which would be gone", remedy=f"name another file for {option}"
            )


def cannot_write(path: str, error: OSError) -> driver.UsageError:
    """The error of a file that can't be written."""
    return driver.UsageError(
        f"{path} can't be written: {error.strerror}", remedy="name a file in a folder you may write to"
    )


def target_spec(model: str | None) -> str | None:
    """Return the target of ``--model``: a name of ``[tool.lmc.targets]``; any other path is ``local:PATH``.

    Raises ``UsageError`` for a path that is not there and nearly is such a name.
    """
    if model is None or driver.is_defined(model):
        return model
    spec = driver.Target.spec_of(model)
    near = driver.near_defined(model) if spec == f"local:{model}" and not Path(model).exists() else None
    if near is not None:
        raise driver.UsageError(
            f"there is no target {model!r}, and no model folder of that name", remedy=f"did you mean {near!r}?"
        )
    return spec


def _is_file(name: str, file: Path) -> bool:
    if name != driver.STANDARD_INPUT:
        return Path(name).is_file() and file.samefile(name)
    try:
        return os.path.samestat(os.fstat(0), file.stat())
    except OSError:  # standard input is closed
        return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
