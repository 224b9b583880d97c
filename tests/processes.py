"""Processes that begin with torch and lmc imported: forks of one server.

A new interpreter takes several seconds of a core to import them; a fork of this server takes none. It has run nothing,
so a command finds what it finds in a new process. Tests of what a process imports start an interpreter.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

IMPORTED = [
    *("lmc.cli.app", "lmc.driver.runner", "lmc.driver.compile.compiled", "lmc.frontend.capture", "lmc.passes"),
    *("lmc.runtime.local", "transformers.models.llama.modeling_llama", "tests.processes"),
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
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with tempfile.TemporaryDirectory() as written:
        out, err = (Path(written, name) for name in ("out", "err"))
        err.touch()
        streams = [stdin, str(out), str(out if merged else err)]
        settings = {**os.environ, **environment}
        process = context.Process(target=_begin, args=(words, folder, list(map(str, path)), settings, streams))
        process.start()
        process.join(SECONDS)
        process.kill()
        process.join()
        return Done(process.exitcode, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


def _begin(words: list[str], folder: Path, path: list[str], environment: dict[str, str], streams: list[str]) -> None:
    for number, name in enumerate(streams):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY)
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
