"""Servers that people run, started on loopback in their own environments: vLLM's and that of llama-cpp-python.

Both interpreters are named by the caller (README.md). The tokens that a server has computed are by its own count.
"""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2

from benchmarks.engine import FOLDER

BLOCK = 128
"""Tokens of a page of vLLM on a CPU."""


@dataclass(frozen=True)
class RunningServer:
    """A server: its address, the name of its model, its process group, tokens computed so far, how it forgets them."""

    url: str
    model: str
    group: int
    computed: Callable[[], float]
    forget: Callable[[], object]


@contextmanager
def vllm_server(interpreter: str, folder: Path, dtype: str, *more: str) -> Generator[RunningServer]:
    """Run vLLM's server on a free port, both cores, prefix cache on. ``more`` are options of its command line."""
    threads = os.cpu_count() or 1
    environment = {
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_OMP_THREADS_BIND": f"0-{threads - 1}",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_SERVER_DEV_MODE": "1",  # it can empty its cache then
    }
    options = ["--model", str(folder), "--dtype", dtype, "--host", "127.0.0.1", "--seed", "0"]
    options += ["--enable-prefix-caching", "--max-model-len", "4096", "--max-num-seqs", "512", *more]
    command = [interpreter, "-m", "vllm.entrypoints.openai.api_server", *options]
    with _started(command, environment, FOLDER / "vllm_server.log", "health") as (url, group):
        yield RunningServer(
            url, str(folder), group, lambda: metrics_tokens(url), lambda: _post(url, "reset_prefix_cache")
        )


@contextmanager
def llama_cpp_server(interpreter: str, folder: Path, dtype: str) -> Generator[RunningServer]:
    """Run the server of llama-cpp-python on a free port: one request at a time; it keeps the last one's tokens."""
    convert = "import sys; from benchmarks.peers.gguf_model import converted; from pathlib import Path; "
    convert += f"converted(Path(sys.argv[1]), {dtype!r})"
    subprocess.run([interpreter, "-c", convert, str(folder)], check=True)
    options = ["--model", str(folder / f"{dtype}.gguf"), "--n_ctx", "4096", "--n_threads", str(os.cpu_count() or 1)]
    log = FOLDER / "llama_cpp_server.log"
    command = [interpreter, "-m", "llama_cpp.server", *options, "--verbose", "true"]
    with _started(command, {}, log, "v1/models") as (url, group):
        model = httpx2.get(f"{url}/v1/models").raise_for_status().json()["data"][0]["id"]

        def computed() -> float:  # it has no metrics, but logs the tokens of each request
            text = log.read_text(encoding="utf-8", errors="replace")
            return sum(map(int, re.findall(r"eval time = .*?/ +(\d+) (?:tokens|runs)", text)))

        def forget() -> None:
            _post(url, "v1/completions", {"model": model, "prompt": " about", "max_tokens": 1})

        yield RunningServer(url, model, group, computed, forget)


def metrics_tokens(url: str) -> float:
    """Return the tokens that a server has computed so far, by its metrics: those of lmc or of vLLM."""
    text = httpx2.get(f"{url}/metrics").raise_for_status().text

    def total(name: str) -> float:
        return sum(map(float, re.findall(rf"^(?:lmc|vllm):{name}_total(?:\{{[^}}]*\}})? (\S+)$", text, re.M)))

    return total("prompt_tokens") + total("generation_tokens") - total("prefix_cache_hits")


def _post(url: str, path: str, body: object = None) -> None:
    httpx2.post(f"{url}/{path}", json=body, timeout=60).raise_for_status()


@contextmanager
def _started(command: Sequence[str], environment: dict[str, str], log: Path, ready: str) -> Generator[tuple[str, int]]:
    """Run a server until it answers at a path; gives its address and process group. An end is shown with its log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [*command, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **environment},
            start_new_session=True,
        ) as process,
    ):
        try:
            while process.poll() is None:
                try:
                    if httpx2.get(f"{url}/{ready}").status_code == 200:
                        break
                except httpx2.TransportError:
                    pass
                time.sleep(0.2)
            else:
                raise SystemExit(log.read_text(encoding="utf-8", errors="replace")[-3000:])
            yield url, process.pid
        finally:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
