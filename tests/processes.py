"""Processes that begin with torch and lmc imported: forks of one server.

A new interpreter takes several seconds of a core to import them; a fork of this server takes none. It has run nothing,
so a command finds what it finds in a new process. Tests of what a process imports start an interpreter.
"""

import atexit
import gc
import importlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from lmc.cli.start import main

# Tests that put sys.modules back would import it twice.
importlib.import_module("multiprocessing.popen_forkserver")

IMPORTED = [
    *("lmc.cli.app", "lmc.driver.runner", "lmc.driver.compile.compiled", "lmc.frontend.capture", "lmc.passes"),
    *("lmc.runtime.local", "lmc.runtime.server.app", "lmc.driver.commands.serve"),
    *("uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl"),
    *("transformers.models.llama.modeling_llama", "lmc.driver.saved.artifacts", "tests.processes", "tests.preloaded"),
]
SECONDS = 300


@dataclass(frozen=True)
class Done:
    """The output of a process, and its exit code."""

    code: int | None
    out: str
    err: str


def run(
    words: list[str],
    folder: Path,
    path: tuple[Path, ...] = (),
    *,
    stdin: str = os.devnull,
    merged: bool = False,
    **environment: str,
) -> Done:
    """Run ``lmc`` with arguments, or a Python file, in ``folder``.

    ``path`` is where modules are found as well; ``merged``: what goes to standard error is in ``out``, too.
    """
    with tempfile.TemporaryDirectory() as written:
        out, err = (Path(written, name) for name in ("out", "err"))
        err.touch()
        streams = [stdin, str(out), str(out if merged else err)]
        process = _started(words, folder, path, environment, streams)
        process.join(SECONDS)
        process.kill()
        process.join()
        return Done(process.exitcode, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


class Running:
    """``lmc`` with arguments, running in ``folder``. Has those methods of ``subprocess.Popen`` that tests use.

    Standard error is a pipe; ``stdout`` adds one for the output, which is dropped otherwise.
    """

    def __init__(
        self, words: list[str], folder: Path | None = None, *, stdout: bool = False, **environment: str
    ) -> None:
        pipes = {number: multiprocessing.Pipe(duplex=False) for number in ((1, 2) if stdout else (2,))}
        streams: list[str | Connection] = [pipes[number][1] if number in pipes else os.devnull for number in range(3)]
        self._process = _started(words, folder or Path.cwd(), (), environment, streams)
        files = {number: os.fdopen(os.dup(reader.fileno()), encoding="utf-8") for number, (reader, _) in pipes.items()}
        for reader, writer in pipes.values():
            reader.close()
            writer.close()
        self.stdout, self.stderr = files.get(1), files[2]
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float = SECONDS) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("lmc", timeout)
        return self._process.exitcode

    def communicate(self, timeout: float = SECONDS) -> tuple[str, str]:
        """Wait for the end, and return the output and standard error."""
        files = [file for file in (self.stdout, self.stderr) if file is not None]
        with ThreadPoolExecutor(len(files)) as pool:
            texts = [pool.submit(file.read) for file in files]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        for file in files:
            file.close()
        *out, err = [text.result() for text in texts]
        return "".join(out), err

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def _started(
    words: list[str],
    folder: Path,
    path: tuple[Path, ...],
    environment: dict[str, str],
    streams: Sequence[str | Connection],
) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    settings = {**os.environ, **environment}
    process = context.Process(target=_begin, args=(words, folder, list(map(str, path)), settings, streams))
    process.start()
    return process


def _begin(
    words: list[str], folder: Path, path: list[str], environment: dict[str, str], streams: Sequence[str | Connection]
) -> None:
    gc.freeze()  # a collection of what was imported would copy all of its memory
    for number, stream in enumerate(streams):
        if isinstance(stream, Connection):
            os.dup2(stream.fileno(), number)
            stream.close()
            continue
        file = os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process lives
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # The server may have been started to ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = words
    try:
        if words[0] == "lmc":
            sys.path[:0] = path
            main()
        else:
            sys.path[:0] = [str(Path(words[0]).parent), *path]
            runpy.run_path(words[0], run_name="__main__")
    finally:  # multiprocessing ends the process without them
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
