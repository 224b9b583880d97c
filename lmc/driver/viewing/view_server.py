"""The server of ``lmc view``: the pages of some files, on the loopback interface alone.

Only the addresses of a table are answered, so no part of an address ever names a file. A page of another origin, or one
whose host name was made to point here (DNS rebinding), gets nothing.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socketserver
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lmc.driver.errors import UsageError
from lmc.driver.viewing.recompile import ViewJob, start_server
from lmc.driver.viewing.view import kind_of
from lmc.driver.viewing.watch import State, Watched
from lmc.report.page import ServedPage, index_page, live_page

__all__ = ["Server", "ViewJob"]

LOOPBACK = "127.0.0.1"
BEAT_SECONDS = 15
"""A stream says something at least so often, so that it ends with the page that listens."""
HTTP_PORT = 80
RETRY_MILLISECONDS = 500
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class _Stream:
    """The address at which a page listens for the views of a file.

    A page that an earlier server sent, for another file, knows by ``file`` that they are not its own.
    """

    watched: Watched
    file: str


class Server(ThreadingHTTPServer):
    """Serves the pages of ``jobs``. Raises ``UsageError`` for a port that can't be opened.

    Of one file the page is at ``/``. Of several, a list is there, and a file is compiled once its page is opened.
    """

    daemon_threads = True

    def __init__(self, jobs: Sequence[ViewJob], port: int) -> None:
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            is_used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            cause = "it is in use" if is_used else getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"port {port} can't be opened: {cause}",
                remedy="name another one with --port, or --port 0 for any that is free",
            ) from error
        self.watched = [Watched(job) for job in jobs]
        self.answers: dict[str, ServedPage | _Stream] = {}
        is_alone = len(jobs) == 1
        for number, watched in enumerate(self.watched):
            address, events = "/" if is_alone else f"/{number}", f"/events/{number}"
            file = hashlib.sha256(os.fsencode(Path(watched.job.name).absolute())).hexdigest()
            self.answers[address] = live_page(watched.job.name, events, None if is_alone else "/", file)
            self.answers[events] = _Stream(watched, file)
        if not is_alone:
            names = [(f"/{number}", job.name, kind_of(job.name)) for number, job in enumerate(jobs)]
            self.answers["/"] = index_page(names)
        hosts = (LOOPBACK, "localhost", "[::1]")
        self.hosts = {f"{host}:{self.port}" for host in hosts} | set(hosts if self.port == HTTP_PORT else ())

    @property
    def port(self) -> int:
        """The port that is open."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{LOOPBACK}:{self.port}/"

    def run(self) -> None:
        """Serve until an exception, such as that of Ctrl-C."""
        try:
            start_server()
            if len(self.watched) == 1:
                self.watched[0].start()
            self.serve_forever()
        finally:
            self.server_close()
            for each in self.watched:
                each.close()

    def server_bind(self) -> None:
        """Bind the port, and look up no name of this machine."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing for a page that was closed."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self) -> None:
        self._answer(self._send)

    def do_HEAD(self) -> None:
        self._answer(lambda _: None)

    @property
    def _server(self) -> Server:
        assert isinstance(self.server, Server)
        return self.server

    def _answer(self, send: Callable[[ServedPage | _Stream], None]) -> None:
        """Answer a request of this origin, or of the user's, for an address of the table."""
        if len(self.headers.get_all("Host", [])) != 1 or self.headers["Host"].lower() not in self._server.hosts:
            self.send_error(HTTPStatus.FORBIDDEN, f"this is lmc view; open {self._server.url}")
            return
        site, origin = self.headers.get("Sec-Fetch-Site"), self.headers.get("Origin")
        is_link = self.headers.get("Sec-Fetch-Mode") == "navigate" and self.headers.get("Sec-Fetch-Dest") == "document"
        is_ours = is_link or site in (None, "none", "same-origin")  # who links to a page can't read it
        if not is_ours or origin not in (None, f"http://{self.headers['Host']}"):
            self.send_error(HTTPStatus.FORBIDDEN, f"pages of other sites can't read lmc view; open {self._server.url}")
            return
        found = self._server.answers.get(self.path)
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND, f"there is no such page; open {self._server.url}")
            return
        self.send_response(HTTPStatus.OK)
        if isinstance(found, ServedPage):
            self._send_headers("text/html; charset=utf-8", found.policy, len(found.data))
        else:
            self._send_headers("text/event-stream")
        send(found)

    def _send_headers(self, kind: str, policy: str = "default-src 'none'", length: int | None = None) -> None:
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Content-Security-Policy", f"{policy}; frame-ancestors 'none'")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, found: ServedPage | _Stream) -> None:
        if isinstance(found, ServedPage):
            self.wfile.write(found.data)
            return
        watched = found.watched
        watched.start()
        self._write(f"retry: {RETRY_MILLISECONDS}\n\nevent: file\ndata: {found.file}\n\n")
        before: State | None = None
        while not watched.is_closed:
            state = watched.state(None if before is None else before.number, BEAT_SECONDS)
            if state is None:
                self._write(":\n\n")
                continue
            self._write("".join(_messages(state, before or State())))
            before = state

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode("ascii"))
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Send a message in plain text. A method without a function here is one that no address answers."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, "lmc view answers GET and HEAD"
        text = f"{int(code)}: {message or HTTPStatus(code).phrase}\n".encode("ascii", "replace")
        self.send_response(code, HTTPStatus(code).phrase)
        if code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self._send_headers("text/plain; charset=utf-8", length=len(text))
        if self.command != "HEAD":
            self.wfile.write(text)

    def version_string(self) -> str:
        """Return the name alone."""
        return "lmc"

    def log_message(self, format: str, *args: object) -> None:
        """Print no requests."""


def _messages(state: State, before: State) -> Iterator[str]:
    """Yield the messages for a page that knows the state before."""
    is_done = not state.is_working
    if state.view is not None and (state.view_id != before.view_id or (is_done and state.problem is None)):
        yield f"event: view\nid: {state.view_id}\ndata: {state.view}\n\n"
    if state.problem is not None and (state.problem != before.problem or is_done):
        yield f"event: problem\ndata: {state.problem}\n\n"
    if state.is_working:
        yield "event: working\ndata: {}\n\n"
