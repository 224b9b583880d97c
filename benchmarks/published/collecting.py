"""Real JSON schemas: those in the files of published packages, which are downloaded and read, never run."""

import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.published.drafts import unfit

PACKAGES = Path(__file__).with_name("packages.txt")
MOST_OF_A_PACKAGE = 300  # so that no package decides the figures
MAX_BYTES = 2_000_000  # of a file
_TESTS = {"test", "tests", "testdata", "fixtures", "node_modules", "__tests__"}


@dataclass(frozen=True)
class Package:
    """``registry`` is ``pypi`` or ``npm``."""

    registry: str
    name: str
    version: str

    @property
    def folder(self) -> str:
        """The folder of the package in the cache."""
        return f"{self.registry}-{self.name.replace('/', '-').replace('@', '')}-{self.version}"


@dataclass(frozen=True)
class Sample:
    """A schema and its source: the package, the file in it, and the place in the file."""

    package: str
    place: str
    schema: Any


def packages() -> list[Package]:
    """The packages with their versions, in the order of the file."""
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    return [Package(*line.split()) for line in lines if line and not line.startswith("#")]


def collect(cache: Path) -> tuple[list[Sample], Counter[str]]:
    """Return the distinct schemas of all packages, at most ``MOST_OF_A_PACKAGE`` of each, chosen by their digest.

    Those that ``unfit`` gives a reason for are left out; they are counted by it. Downloads packages that ``cache``
    lacks. Raises ``CalledProcessError`` where a registry does not have one.
    """
    seen: set[str] = set()
    found: list[Sample] = []
    left_out: Counter[str] = Counter()
    for package in packages():
        own: dict[str, Sample] = {}
        for place, schema in _schemas(_archive(package, cache)):
            digest = hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()
            if digest not in seen:
                own.setdefault(digest, Sample(f"{package.registry}:{package.name}", place, schema))
        seen.update(own)
        taken = 0
        for digest in sorted(own):
            if taken == MOST_OF_A_PACKAGE:
                break
            reason = unfit(own[digest].schema)
            if reason is None:
                found.append(own[digest])
                taken += 1
            else:
                left_out[reason] += 1
    return found, left_out


def _archive(package: Package, cache: Path) -> Path:
    folder = cache / package.folder
    if not folder.is_dir():
        partial = cache / f"{package.folder}.partial"
        partial.mkdir(parents=True, exist_ok=True)
        subprocess.run(_download(package, partial), check=True, stdout=subprocess.DEVNULL)
        partial.rename(folder)
    (archive,) = folder.iterdir()
    return archive


def _download(package: Package, folder: Path) -> list[str]:
    """The command that downloads one package. Only wheels of PyPI: preparing a source distribution would run it."""
    if package.registry == "npm":
        spec = f"{package.name}@{package.version}"
        return ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), spec]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    return [*pip, "--dest", str(folder), f"{package.name}=={package.version}"]


def _schemas(archive: Path) -> Iterator[tuple[str, Any]]:
    for name, data in sorted(_files(archive)):
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            continue
        for pointer, schema in _outermost(value):
            yield f"{name}#{pointer}", schema


def _files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The JSON files of an archive, without those of tests, which may be wrong on purpose."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                if _is_wanted(info.filename, info.file_size):
                    yield info.filename, wheel.read(info)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and _is_wanted(member.name, member.size):
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()


def _is_wanted(name: str, size: int) -> bool:
    path = PurePosixPath(name)
    return path.suffix in (".json", ".schema") and size <= MAX_BYTES and _TESTS.isdisjoint(path.parts[:-1])


def _outermost(value: Any) -> Iterator[tuple[str, Any]]:
    """The schemas in a file that are in no other schema."""
    stack = [("", value)]
    while stack:
        pointer, value = stack.pop()
        if is_schema(value):
            yield pointer, value
        elif isinstance(value, dict):
            stack += [(f"{pointer}/{name}", each) for name, each in value.items()]
        elif isinstance(value, list):
            stack += [(f"{pointer}/{index}", each) for index, each in enumerate(value)]


def is_schema(value: Any) -> bool:
    """Whether a JSON value names a draft of JSON Schema, or describes properties as schemas do."""
    if not isinstance(value, dict):
        return False
    named = value.get("$schema")
    if isinstance(named, str):
        return "json-schema.org/" in named and len(value) > 1
    properties = value.get("properties")
    if not isinstance(properties, dict) or not all(isinstance(each, dict | bool) for each in properties.values()):
        return False
    more = ("required", "additionalProperties", "definitions", "$defs")
    return bool(properties) and (value.get("type") == "object" or any(keyword in value for keyword in more))
