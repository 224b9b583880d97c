"""The run that wrote a file of output rows: program, model, options and inputs by digest, as ``OUT.meta.json``."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pydantic

from lmc.driver.batch.lines import is_plain_file
from lmc.driver.programs import UsageError, is_library, program_file
from lmc.driver.targets.hosted import is_unprobed
from lmc.driver.targets.probes import served_by
from lmc.driver.targets.registry import model_folder
from lmc.driver.version import __version__
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError

FORMAT = "lmc-run"
VERSION = 1
MAX_RECORD_BYTES = 2**24
_MODEL_FILES = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors")
_TOKENIZER_FILES = ("*.json", "*.jinja", "*.model", "*.txt")
_OF_RESULTS = ("api", "base_url", "continuation", "reasoning_tokens")
_CAPABILITIES = ("contexts", "continuation", "greedy", "seed", "structured", "scores", "parameters")
"""The capabilities of a hosted model that its requests and results depend on."""
_OF_FALLBACK = " of the fallback"
_WHOLE_BYTES = 2**26
"""Model files up to this size are digested whole; larger ones by size and samples."""
_SAMPLES = 64
_SAMPLE_BYTES = 2**14


@dataclass(frozen=True)
class RunRecord:
    """The inputs that determine the results of a run, as SHA-256 digests with the names they are shown by.

    ``sources`` are the files of the program by module name (a saved plan is ``plan``), ``model`` is the files of the
    model, ``options`` are the options that change results, and those of a hosted model that identify it (its name, its
    tokenizer, its capabilities), ``arguments`` the KEY=VALUE words by key. ``rows`` is the input file; None for rows of
    a pipe, which can't be read twice. Timeouts, devices, schedules and profiles change no result and are left out.
    """

    program: str
    sources: Mapping[str, str]
    model_name: str
    model: str
    options: Mapping[str, Any]
    arguments: Mapping[str, str]
    rows_name: str | None
    rows: str | None

    def to_json(self) -> str:
        """Versioned JSON."""
        return json.dumps({"format": FORMAT, "version": VERSION, "lmc": __version__, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: bytes, shown: str) -> RunRecord:
        """Read what ``to_json`` wrote. Raises ``UsageError`` for any other text, and for more than 16 MiB."""
        if len(text) > MAX_RECORD_BYTES:
            raise _not_a_record(shown)
        try:
            data = json.loads(text)
            head = data.pop("format"), data.pop("version")
            data.pop("lmc")
        except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
            raise _not_a_record(shown) from None
        if head[0] != FORMAT or data.keys() != cls.__dataclass_fields__.keys():
            raise _not_a_record(shown)
        if head[1] != VERSION:
            raise UsageError(
                f"{shown} has version {head[1]!r:.40}, and this lmc reads version {VERSION}",
                remedy="resume with the lmc that started the run, or leave out --resume",
            )
        try:
            return pydantic.TypeAdapter(cls).validate_python(data)
        except pydantic.ValidationError:
            raise _not_a_record(shown) from None

    def difference(self, before: RunRecord) -> str | None:
        """Describe the first difference from the record of an earlier run; None where there is none."""
        if self.program != before.program:
            return f"the program is {self.program!r}, and was {before.program!r}"
        for name in sorted({*self.sources, *before.sources}):
            if self.sources.get(name) != before.sources.get(name):
                return f"the source of {name} has changed"
        if self.model != before.model:
            same = self.model_name == before.model_name
            is_other = "its files have changed" if same else f"it was {before.model_name}"
            return f"the model is {self.model_name}, and {is_other}"
        for name in {**self.options, **before.options}:  # the served model is before what follows from it
            if name.endswith(_OF_FALLBACK) and not (name in self.options and name in before.options):
                continue  # one of both runs could not know it: the fallback was down
            if self.options.get(name) != before.options.get(name):
                return f"{name} is {self.options.get(name)}, and was {before.options.get(name)}"
        for name in sorted({*self.arguments, *before.arguments}):
            if self.arguments.get(name) != before.arguments.get(name):
                return f"the argument {name} has changed"
        if self.rows != before.rows:
            return f"the input rows of {self.rows_name} are not those of the earlier run"
        return None


def record_run(
    program: str,
    specs: Iterable[str],
    target: Target,
    *,
    options: Mapping[str, Any],
    arguments: Sequence[str],
    rows: str | None,
    asks: bool = True,
) -> RunRecord:
    """The record of a run that starts now.

    ``specs`` are the program and the saved plan as the command line names them; their files are loaded already.
    ``rows`` is the input file or None. Reads all of it, and the model's files, once. ``asks``: a server may be asked
    for its model. Raises ``UsageError`` where the input can't be read, ``InputError`` where the model can't.
    """
    settings = {**target_settings(target, asks=asks), **options}
    words = {name: _digest(value.encode("utf-8", "surrogateescape")) for name, _, value in _parted(arguments)}
    return RunRecord(
        program, source_digests(specs), target.spec, model_digest(target), settings, words, rows, rows_digest(rows)
    )


def source_digests(specs: Iterable[str]) -> dict[str, str]:
    """SHA-256 by module name of the files of programs and of saved plans, as command lines name them."""
    sources: dict[str, str] = {}
    for spec in specs:
        sources |= _sources(Path(program_file(spec)))
    return sources


def rows_digest(rows: str | None) -> str | None:
    """SHA-256 of an input file, or of no rows; None for a pipe."""
    if rows is None:
        return _digest(b"")
    return _file_digest(Path(rows)) if is_plain_file(rows) else None


def model_digest(target: Target) -> str:
    """SHA-256 of the files of a model, wherever its folder is.

    A file larger than 64 MiB counts by its size and by 64 samples of 16 KiB, so that weights of any size take well
    under a second.
    """
    folder = model_folder(target)
    return _digest(target.spec.encode("utf-8", "surrogateescape")) if folder is None else _files_digest(folder)


def target_settings(target: Target, *, asks: bool = True) -> dict[str, Any]:
    """The settings of a target that its results depend on, by the names they are shown by.

    Those of a server include the model that it has now, for which it is asked if it ``asks``: see ``served_by``. A
    fallback is asked for nothing: it may be down until it is needed. What its probe would tell is left out until there
    is one.
    """
    settings: dict[str, Any] = {"dtype": target.dtype, "deterministic": target.deterministic}
    remote = target.remote
    if remote is None:
        return settings
    served = served_by(target, asks=asks)
    if served is not None:
        settings["the served model"] = served.name
        settings["the folder of the served model"] = served.root
        settings["the kind of the server"] = served.owner
    if remote.tokenizer is not None and target.capabilities.contexts == "tokens":
        path = Path(remote.tokenizer).expanduser()
        settings["the tokenizer"] = _files_digest(path if path.is_dir() else path.parent, _TOKENIZER_FILES)[:16]
    settings.update((name, getattr(remote, name)) for name in _OF_RESULTS)
    for name in () if is_unprobed(target) else _CAPABILITIES:
        value = getattr(target.capabilities, name)
        settings[f"capability {name}"] = sorted(value) if isinstance(value, frozenset) else value
    if target.fallback is not None:
        settings["the fallback"] = target.fallback.spec
        theirs = target_settings(target.fallback, asks=False)
        settings.update((f"{name}{_OF_FALLBACK}", value) for name, value in theirs.items())
    return settings


def _files_digest(folder: Path, patterns: Sequence[str] = _MODEL_FILES) -> str:
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        try:
            with path.open("rb") as file:
                size = path.stat().st_size
                digest.update(f"{path.name}\0{size}\0".encode("utf-8", "surrogateescape"))
                for part in _sampled(file, size):
                    digest.update(part)
        except OSError as error:
            raise InputError(f"{path} can't be read: {error.strerror}", remedy="make the file readable") from error
    return digest.hexdigest()


def _sampled(file: BinaryIO, size: int) -> Iterator[bytes]:
    if size <= _WHOLE_BYTES:
        while part := file.read(2**20):
            yield part
        return
    for number in range(_SAMPLES):
        file.seek((size - _SAMPLE_BYTES) * number // (_SAMPLES - 1))
        yield file.read(_SAMPLE_BYTES)


def _sources(path: Path) -> dict[str, str]:
    """Digests by module name of a file and of the modules of the user's that it imports, directly or not.

    A saved plan (any file that is no Python) counts alone. Imports are found in the text, as names that come from a
    module do not show where they are from. Installed packages are left out.
    """
    if path.suffix != ".py":
        return {"plan": _file_digest(path)}
    found = {path.stem: _file_digest(path)}
    waiting = [(path.resolve(), path.stem)]
    while waiting:
        file, name = waiting.pop()
        for module in _imported(file, name):
            place = _user_file(module, path.resolve().parent)
            if place is not None and module not in found:
                found[module] = _file_digest(place)
                waiting.append((place, module))
    return found


def _imported(file: Path, name: str) -> Iterator[str]:
    """Full names of the modules that a file may import: of ``from a import b``, both ``a`` and ``a.b``."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # no Python source: it was imported some other way
        return
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _prefixes(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            parts = [*base, *(node.module.split(".") if node.module else ())]
            for alias in node.names:
                yield from _prefixes([*parts, alias.name])


def _prefixes(parts: Sequence[str]) -> Iterator[str]:
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _user_file(module: str, folder: Path) -> Path | None:
    """The source file of a module that is loaded, or that lies beside the program; None for a library's."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    beside = folder.joinpath(*module.split("."))
    candidates = [Path(loaded)] if loaded else [beside.with_suffix(".py"), beside / "__init__.py"]
    for path in candidates:
        if path.suffix == ".py" and path.is_file() and not is_library(str(path)):
            return path
    return None


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", remedy="name a file that is readable") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _parted(arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    return (word.partition("=") for word in arguments)


def _not_a_record(shown: str) -> UsageError:
    return UsageError(
        f"{shown} is no record of a run", remedy="name another file for -o: its record is kept in OUT.meta.json"
    )
