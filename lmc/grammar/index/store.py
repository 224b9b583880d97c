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

from lmc.grammar.index.index import END, NEVER, TokenIndex
from lmc.grammar.native.library import library
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from lmc.toolchain import ForeignFolderError, own_folder, user_cache

Numbers = NDArray[np.integer]


def check_index(index: TokenIndex, eos_ids: tuple[int, ...]) -> None:
    """Raise ``ValueError`` unless every number in the arrays is one that may stand there.

    What has passed can be asked anything.
    """
    shapes = [array.ndim == 1 and array.dtype.kind in "iu" for array in index.arrays().values()]
    _require(all(shapes) and index.bits_of_block.dtype == np.uint32, "arrays of integers")
    _require(len(index.row_of_state) > 0, "no state")
    for starts, of in ((index.target_starts, index.deltas), (index.block_starts, index.blocks)):
        _require(len(starts) > 0 and starts[0] == 0 and starts[-1] == len(of), "bounds")
        _require(bool((starts[1:] >= starts[:-1]).all()), "bounds that fall")
    _require(_all_below(index.row_of_state, index.row_count), "a row that is not there")
    _require(_all_below(index.shape_of_row, len(index.mask_of_shape)), "a shape that is not there")
    _require(_all_below(index.blocks, len(index.bits_of_block)), "a block that is not there")
    _require(len(index.target_starts) == index.row_count + 1, "rows")
    _require(len(index.block_starts) == len(index.mask_of_shape) + 1, "shapes")
    _require(_all_below(index.mask_of_shape, len(index.mask_of_shape)), "a mask that is not there")
    _require(bool(np.bincount(index.mask_of_shape).all()), "a mask that no shape has")
    _check_classes(index, eos_ids)
    _check_shapes(index)
    _check_targets(index)


def _check_classes(index: TokenIndex, eos_ids: tuple[int, ...]) -> None:
    limit = len(index.class_of_token) + 2
    _require(len(index.column_of_block) == len(index.bits_of_block), "columns")
    _require(bool(index.bits_of_block.all()), "a block without classes")
    _require(_all_below(index.column_of_block, limit), "a class that is not there")
    _require(index.highest_class < limit, "a class that is not there")
    first = index.bits_of_block[index.column_of_block == 0]
    _require(not (first & 1 << NEVER).any(), "tokens that are never allowed")
    _require(_all_below(index.class_of_token, limit), "a class that is not there")
    _require(np.array_equal(np.flatnonzero(index.class_of_token == END), eos_ids), "other EOS tokens")


def _check_shapes(index: TokenIndex) -> None:
    _require(int(index.place_starts[-1]) == len(index.places), "places")
    _require(int(index.places.min(initial=0)) >= 0, "a place that is not there")
    # Of each shape how many targets all rows have that have it.
    limits = np.full(len(index.mask_of_shape), 1 + len(index.deltas), np.int64)
    np.minimum.at(limits, index.shape_of_row, np.diff(index.target_starts.astype(np.int64)))
    native = library()
    if native is None:
        highest = np.maximum.reduceat(index.places, index.place_starts[:-1]) if len(index.places) else index.places
        counts = np.diff(index.block_starts.astype(np.int64))
        ascend = _ascend(index.column_of_block[index.blocks], index.block_starts)
        within = bool((highest[index.blocks] < np.repeat(limits, counts)).all())
    else:
        arrays = (
            *(index.places.astype(np.uint32), index.place_starts, index.column_of_block.astype(np.uint32)),
            *(index.blocks.astype(np.uint32), index.block_starts.astype(np.int64), limits),
            np.empty(len(index.bits_of_block), np.uint32),
        )
        found: int = native.lmc_shapes_hold(
            *(array.ctypes.data for array in arrays), len(index.bits_of_block), len(limits)
        )
        ascend, within = bool(found & 1), bool(found & 2)
    _require(ascend, "blocks that are not ascending")
    _require(within, "a place that is not there")


def _check_targets(index: TokenIndex) -> None:
    count = len(index)
    states = np.arange(count, dtype=np.int64)
    _require(_ascend(index.deltas, index.target_starts), "targets that are not ascending")
    lowest, highest = (np.zeros(index.row_count, np.int64) for _ in range(2))
    (filled,) = np.nonzero(index.target_starts[1:] > index.target_starts[:-1])
    lowest[filled] = index.deltas[index.target_starts[filled].astype(np.intp)]
    highest[filled] = index.deltas[index.target_starts[filled + 1].astype(np.intp) - 1]
    _require(bool((states + lowest[index.row_of_state] >= 0).all()), "a state below 0")
    _require(bool((states + highest[index.row_of_state] < count).all()), "a state that is not there")
    _require(len(index.forced_byte) == len(index.forced_delta) == count, "forced bytes")
    _require(_all_below(index.forced_byte.astype(np.int64) + 1, 257), "a byte that is none")
    _require(_all_below(states + index.forced_delta, count), "a state that is not there")


def _all_below(array: Numbers, bound: int) -> bool:
    return not array.size or (int(array.min()) >= 0 and int(array.max()) < bound)


def _ascend(values: Numbers, starts: Numbers) -> bool:
    """Return True if numbers ascend from each start to the next."""
    falls = values[1:] <= values[:-1]
    falls[starts[(starts > 0) & (starts < len(values))].astype(np.intp) - 1] = False
    return not falls.any()


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"not a token index: {what}")


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
    """A folder that is meant for indexes, and how many bytes of them it may hold (0: it is only read)."""

    path: Path
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True)
class IndexStore:
    """The indexes of one folder, which has to be the user's own. Safe for several processes at once.

    Where all files together have more than ``max_bytes``, those go that were not used for longest. With 0 bytes
    nothing is written.

    Raises:
        ConstraintError: somebody else could have put files there.
    """

    folder: Path
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if not self.max_bytes and not self.folder.is_dir():
            raise ConstraintError(f"{self.folder} is not there", remedy="name another folder")
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
        if self.max_bytes:
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
