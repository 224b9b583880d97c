"""``lmc view`` in a process of its own, and what it answers."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 120
START = (
    # A process started in the background may ignore Ctrl-C, and its children inherit that.
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "import sys; sys.argv[0] = 'lmc'; from lmc.cli.start import main; main()"
)


@dataclass
class Answer:
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    text: str


class Events:
    """The stream of a page."""

    def __init__(self, connection: http.client.HTTPConnection, address: str) -> None:
        connection.request("GET", address)
        self.answer = connection.getresponse()
        assert self.answer.status == http.HTTPStatus.OK
        assert self.answer.headers["Content-Type"] == "text/event-stream"

    def next(self, *kinds: str) -> tuple[str, Any]:
        """Wait for the next message of one of these kinds, and return its kind and its data."""
        kind, end = "", time.monotonic() + SECONDS
        while True:
            assert time.monotonic() < end, f"no {' and no '.join(kinds)} within {SECONDS} seconds"
            line = self.answer.readline().decode("ascii")
            assert line, "the stream ended"
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data" and kind in kinds:
                return kind, json.loads(value)

    def until(self, kind: str, is_wanted: Callable[[Any], bool]) -> Any:
        """Wait for a message of a kind whose data are wanted, and return them."""
        data, end = None, time.monotonic() + SECONDS
        while True:
            assert time.monotonic() < end, f"not wanted: {data}"
            _, data = self.next(kind)
            if is_wanted(data):
                return data


@dataclass
class Viewing:
    """A running ``lmc view``."""

    process: "subprocess.Popen[str]"
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def ask(self, address: str = "/", method: str = "GET", **headers: str) -> Answer:
        connection = self.connection()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, address, skip_host="Host" in given)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        found = Answer(answer.status, dict(answer.getheaders()), "" if method == "HEAD" else answer.read().decode())
        connection.close()
        return found

    @contextmanager
    def events(self, address: str = "/events/0") -> Generator[Events]:
        connection = self.connection()
        yield Events(connection, address)
        connection.close()

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit code, and all that it says to the end."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


@contextmanager
def viewing(folder: Path, *arguments: str, port: int = 0) -> Generator[Viewing]:
    """Start ``lmc view`` in a folder, on a free port if none is named."""
    command = [sys.executable, "-c", START, "view", "--port", str(port), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert found, line + process.stderr.read()
            yield Viewing(process, found[0])
        finally:
            process.kill()
