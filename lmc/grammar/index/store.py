"""Token indexes on disk, by the content that they were made of.

A file is a line of JSON and the arrays of the index as they are in memory, little-endian, each at a multiple of 8 bytes
behind that line. It is data: what is not exactly what an index may be is not used, and nothing in it is run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.index.checks import check_index
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from lmc.toolchain import ForeignFolderError, own_folder, user_cache

# To be raised when an index of the same constraint and vocabulary would hold other numbers.
VERSION = 2
MAX_FILE_BYTES = 1 << 30
MAX_BYTES = 512 << 20  # of all files of a folder
_ABANDONED = 24 * 3600.0  # seconds after which a partial file counts as abandoned
_SUFFIX, _PARTIAL = ".index", ".partial"
_MAX_HEADER_BYTES = 1 << 14
_TYPES = frozenset({"|u1", "|i1", "<u2", "<i2", "<u4", "<i4"})
_NAMES = tuple(field.name for field in fields(TokenIndex))


class IndexFolder(NamedTuple):
    """A folder that is meant for indexes, and how many bytes of them it may hold."""

    path: Path
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True)
class IndexStore:
    """The indexes of one folder, which has to be the user's own. Safe for several processes at once.

    Where all files together have more than ``max_bytes``, those go that were not used for longest.

    Raises:
        ConstraintError: somebody else could have put files there.
    """

    folder: Path
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        try:
            own_folder(self.folder)
        except ForeignFolderError as error:
            raise ConstraintError(
                str(error), remedy="take away others' rights to it, or name another folder for token indexes"
            ) from error
        except OSError as error:
            raise ConstraintError(
                f"{self.folder} can't hold token indexes: {error}", remedy="name another folder"
            ) from error

    @staticmethod
    def default_folder() -> Path:
        """`lmc/grammar` in the user's cache. Raises ``RuntimeError`` where the user has no home folder."""
        return user_cache() / "grammar"

    def path(self, digest: str, vocabulary: Vocabulary) -> Path:
        """Return the path of the index of a constraint (by its digest) and a vocabulary."""
        name = hashlib.sha256(f"{VERSION} {digest} {vocabulary.digest}".encode()).hexdigest()
        return self.folder / f"{name[:40]}{_SUFFIX}"

    def load(self, digest: str, vocabulary: Vocabulary) -> TokenIndex | None:
        """The index that is kept, or None where there is none, or none that can be trusted."""
        path = self.path(digest, vocabulary)
        try:
            found = _parsed(_read(path), digest, vocabulary)
        except (OSError, ValueError, RecursionError):
            return None
        with contextlib.suppress(OSError):  # a folder that can be read only
            os.utime(path)  # when it was used
        return found

    def save(self, digest: str, vocabulary: Vocabulary, index: TokenIndex) -> bool:
        """Keep an index; whether that worked (a full disk, a folder that can't be written to, too large an index)."""
        path = self.path(digest, vocabulary)
        data = _serialized(index, digest, vocabulary)
        if len(data) > self.max_bytes:
            return False
        partial: Path | None = None
        try:
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=_PARTIAL)
            partial = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            partial.replace(path)
            self._prune()
        except OSError:
            if partial is not None:
                with contextlib.suppress(OSError):
                    partial.unlink()
            return False
        return True

    def _prune(self) -> None:
        """Remove files until the rest fits. Others may do the same meanwhile, so one may be gone before its turn."""
        kept: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not entry.name.endswith((_SUFFIX, _PARTIAL)) or not entry.is_file(follow_symlinks=False):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(_SUFFIX):
                        kept.append((found.st_mtime, found.st_size, entry.path))
                    elif found.st_mtime < time.time() - _ABANDONED:
                        Path(entry.path).unlink()
        total = sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if total <= self.max_bytes:
                break
            with contextlib.suppress(FileNotFoundError):
                Path(path).unlink()
            total -= size


def _serialized(index: TokenIndex, digest: str, vocabulary: Vocabulary) -> bytes:
    arrays = [(name, _little_endian(array)) for name, array in index.arrays().items()]
    payload = b"".join(_padded(array.tobytes()) for _, array in arrays)
    header: dict[str, Any] = {
        "format": "lmc token index",
        "version": VERSION,
        "constraint": digest,
        "vocabulary": vocabulary.digest,
        "arrays": [[name, array.dtype.str, len(array)] for name, array in arrays],
    }
    header["content"] = _content(header, payload)
    return _line(header) + payload


def _parsed(data: bytes, digest: str, vocabulary: Vocabulary) -> TokenIndex:
    """The index in a file. Raises ``ValueError`` for any other."""
    line, newline, _ = data[:_MAX_HEADER_BYTES].partition(b"\n")
    header = json.loads(line) if newline else None
    if not isinstance(header, dict) or _line(header) != line + newline:
        raise ValueError("no header")
    content = header.pop("content", None)
    wanted = {
        "format": "lmc token index",
        "version": VERSION,
        "constraint": digest,
        "vocabulary": vocabulary.digest,
        "arrays": header.get("arrays"),
    }
    payload = memoryview(data)[len(line) + 1 :]
    if header != wanted or content != _content(header, payload):
        raise ValueError("another content")
    index = TokenIndex(**_arrays(header["arrays"], payload))
    check_index(index, vocabulary.eos_ids)
    if len(index.class_of_token) != vocabulary.size or index.class_of_token[_silent(vocabulary)].any():
        raise ValueError("another vocabulary")
    return index


def _silent(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Tokens that are never text and do not end one either."""
    silent = vocabulary.lengths == 0
    silent[list(vocabulary.eos_ids)] = False
    return silent


def _arrays(described: Any, payload: memoryview) -> dict[str, NDArray[np.integer]]:
    if not isinstance(described, list) or len(described) != len(_NAMES):
        raise ValueError("other arrays")
    arrays: dict[str, NDArray[np.integer]] = {}
    at = 0
    for wanted, entry in zip(_NAMES, described, strict=True):
        if not isinstance(entry, list) or len(entry) != 3:
            raise ValueError("no array")
        name, type_name, length = entry
        if name != wanted or not isinstance(type_name, str) or type_name not in _TYPES:
            raise ValueError("no array")
        if not isinstance(length, int) or length < 0:
            raise ValueError("no length")
        dtype = np.dtype(type_name)
        if length * dtype.itemsize > len(payload) - at:
            raise ValueError("arrays that are cut off")
        arrays[name] = np.frombuffer(payload, dtype, length, at).astype(dtype.newbyteorder("="), copy=False)
        at += -(-length * dtype.itemsize // 8) * 8
    if at != len(payload):
        raise ValueError("more than the arrays")
    return arrays


def _read(path: Path) -> bytes:
    """Read a regular file of the user's own."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)  # a pipe is not waited for
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_size > MAX_FILE_BYTES:
            raise ValueError("not a file of this user")
        return file.read(found.st_size)


def _content(header: dict[str, Any], payload: bytes | memoryview) -> str:
    """Return a checksum of a file's header and payload."""
    return f"{zlib.crc32(payload, zlib.crc32(_line(header))):08x}"


def _line(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _little_endian(array: NDArray[np.integer]) -> NDArray[np.integer]:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
