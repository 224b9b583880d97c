"""Compiles C sources with the system's compiler, once per machine, and loads the result.

The library lies in a folder of the user's own, under a name that is a hash of the sources, the compiler, its options
and the processor; its own hash is written beside it and compared before it is loaded. Where nothing can be kept, each
process builds it for itself in a temporary folder.
"""

import ctypes
import errno
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TUNING = (("-march=native",), ("-mcpu=native",), ())
_COMPILE_SECONDS = 120


class NativeBuildError(Exception):
    """There is no library: no compiler, or one that fails. The message says which, for a user to read."""


class ForeignFolderError(Exception):
    """A folder that would be trusted belongs to somebody else, or others may write to it."""


@dataclass(frozen=True)
class Sources:
    """The sources of a library.

    ``name`` is what error messages call it. ``files`` of ``folder`` are compiled together, with ``options`` and
    ``libraries``; ``headers`` are what they include. Options for the processor come on top (``TUNING``: the first that
    the compiler takes).
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    headers: tuple[str, ...]
    options: tuple[str, ...]
    libraries: tuple[str, ...] = ()


class Compiler(NamedTuple):
    """The command that starts a compiler, and the version that it prints."""

    command: tuple[str, ...]
    version: str


def load_library(sources: Sources, cache: Path | None = None) -> ctypes.CDLL:
    """Return the compiled library, building it if this machine has none yet (seconds).

    Args:
        sources: what to compile.
        cache: where libraries are kept; by default `lmc/native` in the user's cache folder.

    Raises:
        NativeBuildError: it cannot be built here, or the cache folder is not the user's own.
    """
    compiler = find_compiler()
    try:
        return _load(sources, compiler, own_folder(cache or user_cache() / "native"))
    except ForeignFolderError as error:
        raise NativeBuildError(str(error)) from error
    except (OSError, RuntimeError) as error:  # no home, a folder that cannot be written to, a full disk
        reason = error
    try:
        # The library stays loaded when its file is gone.
        with tempfile.TemporaryDirectory(prefix="lmc-native-", ignore_cleanup_errors=True) as folder:
            return _load(sources, compiler, Path(folder))
    except OSError as error:
        message = f"no library can be built: not in the cache ({reason}), nor in a temporary folder ({error})"
        raise NativeBuildError(message) from error


def user_cache() -> Path:
    """`$XDG_CACHE_HOME/lmc`, or `~/.cache/lmc` where that is not set to an absolute path.

    Raises:
        RuntimeError: the user has no home folder.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "lmc"


def own_folder(folder: Path) -> Path:
    """The folder, made if it is not there, once it is clear that only this user can have put files into it.

    Raises:
        ForeignFolderError: somebody else could have.
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ForeignFolderError(f"{folder} belongs to somebody else or others may write to it")
    return folder


def replace_own_file(file: Path, text: str) -> None:
    """Write a file of this user's alone (mode 0600). It is replaced as a whole, and its folder is made.

    Raises:
        ForeignFolderError: somebody else could have put files into its folder.
        OSError: it cannot be written.
    """
    own_folder(file.parent)
    if file.exists() and not file.is_file():  # a device would be replaced
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(file))
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.stem}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as temporary:
            temporary.write(text)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def find_compiler() -> Compiler:
    """Return `$CC` with its options, or the first of cc, gcc and clang that runs.

    Raises:
        NativeBuildError: there is none.
    """
    asked = os.environ.get("CC", "").strip()
    if asked:
        return _asked_compiler(asked)
    reason = "there is no C compiler (cc, gcc or clang)"
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found is None:
            continue
        try:  # a command may be there only to say that the compiler is not installed
            return _answering((found,))
        except NativeBuildError as error:
            reason = str(error)
    raise NativeBuildError(reason)


def library_key(sources: Sources, compiler: Compiler, tuning: tuple[str, ...]) -> str:
    """The name a library is kept under: a hash of all it depends on."""
    digest = hashlib.sha256()
    for name in (*sources.headers, *sources.files):
        digest.update((sources.folder / name).read_bytes())
    options = (*compiler.command, compiler.version, *sources.options, *sources.libraries, *tuning)
    for part in (*options, platform.system(), platform.machine(), _processor()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


def _asked_compiler(asked: str) -> Compiler:
    try:
        name, *options = shlex.split(asked)
    except ValueError as error:
        raise NativeBuildError(f"$CC is {asked!r}, which cannot be read: {error}") from error
    found = shutil.which(name)
    if found is None:
        raise NativeBuildError(f"$CC is {asked!r}, and there is no program {name}")
    return _answering((found, *options))


def _answering(command: tuple[str, ...]) -> Compiler:
    done = _run((*command, "--version"))
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise NativeBuildError(f"{shlex.join(command)} does not work: {_first_line(done.stderr)}")
    return Compiler(command, lines[0])


def _load(sources: Sources, compiler: Compiler, folder: Path) -> ctypes.CDLL:
    reason = ""
    for tuning in TUNING:
        library = folder / f"{library_key(sources, compiler, tuning)}.so"
        if not _is_intact(library):
            done = _build(sources, compiler, tuning, library)
            if done.returncode:
                reason = _first_line(done.stderr)
                continue
        return ctypes.CDLL(str(library))
    raise NativeBuildError(f"{shlex.join(compiler.command)} does not compile {sources.name}: {reason}")


def _first_line(output: str) -> str:
    """The first line of a compiler's output that names an error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "it says nothing")


def _processor() -> str:
    """Return the description of the processor that its tuning options depend on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))


def _is_intact(library: Path) -> bool:
    try:
        expected = library.with_suffix(".sha256").read_text(encoding="ascii").strip()
        found = library.lstat()
        return (
            stat.S_ISREG(found.st_mode)
            and found.st_uid == os.getuid()
            and hashlib.sha256(library.read_bytes()).hexdigest() == expected
        )
    except (OSError, UnicodeDecodeError):
        return False


def _build(
    sources: Sources, compiler: Compiler, tuning: tuple[str, ...], library: Path
) -> subprocess.CompletedProcess[str]:
    """Compile beside the final place and move there, so that processes that build at once do not disturb each other."""
    paths = [str(sources.folder / name) for name in sources.files]
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        done = _run((*compiler.command, *sources.options, *tuning, "-o", str(made), *paths, *sources.libraries))
        if done.returncode == 0:
            made.with_suffix(".sha256").write_text(hashlib.sha256(made.read_bytes()).hexdigest(), encoding="ascii")
            made.replace(library)
            made.with_suffix(".sha256").replace(library.with_suffix(".sha256"))
    return done


def _run(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    try:
        # The compiler is the user's own, the arguments are lmc's.
        return subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, errors="replace", timeout=_COMPILE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NativeBuildError(f"{command[0]} cannot be run: {error}") from error
