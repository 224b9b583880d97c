"""Compiles the C sources of this folder with the system's compiler, once per machine, and loads the result.

The library lies in a folder of the user's own, under a name that is a hash of the sources, the compiler, its options
and the processor; its own hash is written beside it and compared before it is loaded.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

_FOLDER = Path(__file__).parent
_SOURCES = ("pool.c", "attention.c", "layers.c", "sampling.c")
_HEADERS = ("pool.h", "elements.h", "selection.h")
_OPTIONS = ("-O3", "-std=gnu11", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
_LIBRARIES = ("-lm", "-lpthread")
_TUNING = (("-march=native",), ("-mcpu=native",), ())
_COMPILE_SECONDS = 120


class NativeBuildError(Exception):
    """There is no library: no compiler, or one that fails. The message says which, for a user to read."""


def load_library(cache: Path | None = None) -> ctypes.CDLL:
    """Return the compiled library, building it if this machine has none yet (seconds).

    Args:
        cache: where libraries are kept; by default `lmc/native` in the user's cache folder.

    Raises:
        NativeBuildError: it cannot be built here, or the cache folder is not the user's own.
    """
    compiler = _compiler()
    folder = _own_folder(cache or default_cache())
    version = _run([compiler, "--version"]).stdout.splitlines()[0]
    for tuning in _TUNING:
        key = _key(version, tuning)
        library = folder / f"{key}.so"
        if not _is_intact(library) and not _build(compiler, tuning, library):
            continue
        try:
            return ctypes.CDLL(str(library))
        except OSError as error:
            raise NativeBuildError(f"{library} cannot be loaded: {error}") from error
    raise NativeBuildError(f"{compiler} does not compile the kernels")


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/lmc/native`, or `~/.cache/lmc/native`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lmc" / "native"


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise NativeBuildError("there is no C compiler (cc, gcc or clang)")


def _own_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
    except OSError as error:
        raise NativeBuildError(f"the cache folder {folder} cannot be made: {error.strerror}") from error
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NativeBuildError(f"{folder} belongs to somebody else or others may write to it")
    return folder


def _key(version: str, tuning: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in (*_HEADERS, *_SOURCES):
        digest.update((_FOLDER / name).read_bytes())
    for part in (version, *_OPTIONS, *_LIBRARIES, *tuning, platform.system(), platform.machine(), _processor()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


def _processor() -> str:
    """What the options for this processor depend on."""
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


def _build(compiler: str, tuning: tuple[str, ...], library: Path) -> bool:
    """Compile beside the final place and move there, so that processes that build at once do not disturb each other."""
    sources = [str(_FOLDER / name) for name in _SOURCES]
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        done = _run([compiler, *_OPTIONS, *tuning, "-o", str(made), *sources, *_LIBRARIES])
        if done.returncode or not made.exists():
            return False
        made.with_suffix(".sha256").write_text(hashlib.sha256(made.read_bytes()).hexdigest(), encoding="ascii")
        made.replace(library)
        made.with_suffix(".sha256").replace(library.with_suffix(".sha256"))
    return True


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        # The compiler is the user's own, the arguments are this file's.
        return subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NativeBuildError(f"{command[0]} cannot be run: {error}") from error
