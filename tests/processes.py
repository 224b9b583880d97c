"""Processes that begin with torch and lmc imported: forks of one server.

A new interpreter takes several seconds of a core to import them; a fork of this server takes none. It has run nothing,
so a command finds what it finds in a new process. Tests of what a process imports start an interpreter.
"""

import gc
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

IMPORTED = [
    *("lmc.cli.app", "lmc.driver.runner", "lmc.driver.compile.compiled", "lmc.frontend.capture", "lmc.passes"),
    *("lmc.runtime.local", "lmc.runtime.server.app", "lmc.driver.commands.serve"),
    *("uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl"),
    *("transformers.models.llama.modeling_llama", "tests.processes"),
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
    """``lmc`` with arguments, running. Has the methods and ``stderr`` of ``subprocess.Popen``."""

    def __init__(self, words: list[str], **environment: str) -> None:
        reader, writer = multiprocessing.Pipe(duplex=False)
        with writer:
            self._process = _started(words, Path.cwd(), (), environment, [os.devnull, os.devnull, writer])
        with reader:
            self.stderr = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float = SECONDS) -> int:
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("lmc", seconds)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
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
    os.environ.update(environment)
    sys.argv = words
    if words[0] == "lmc":
        from lmc.cli.app import main

        sys.path[:0] = path
        main()
    else:
        sys.path[:0] = [str(Path(words[0]).parent), *path]
        runpy.run_path(words[0], run_name="__main__")
