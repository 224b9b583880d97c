"""The process of a server: who may connect, signals, draining, limits, the log."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lmc.ir.errors import InputError
from lmc.runtime.server.running import bound
from tests.runtime.server.servers import FULL, SECONDS, Served, interpreted, served

CHAT: dict[str, Any] = {"model": "builtin", "messages": [{"role": "user", "content": "Count to a thousand."}]}
LONG: dict[str, Any] = {**CHAT, "max_tokens": 3000, "min_tokens": 3000, "stream": True}


def opened(server: Served, path: str, body: Any, began: threading.Event) -> list[str]:
    """Read a stream to its end; ``began`` is set at its first line."""
    lines: list[str] = []
    with httpx2.stream("POST", f"{server.url}{path}", json=body, timeout=SECONDS) as answer:
        for line in answer.iter_lines():
            began.set()
            lines.append(line)
    return lines


CUTS = [
    ("/v1/chat/completions", '"type":"server_error"'),
    ("/v1/messages", '"type":"overloaded_error"'),
    ("/generate", '"code":503'),
]


@pytest.mark.parametrize(("path", "last"), CUTS if FULL else CUTS[:1])
def test_running_requests_are_cut_with_the_error_event_of_their_protocol(path: str, last: str):
    body = LONG
    if path == "/v1/messages":
        body = {name: value for name, value in LONG.items() if name != "min_tokens"}
    if path == "/generate":
        sampling = {"max_new_tokens": 3000, "min_new_tokens": 3000}
        body = {"text": "Count", "stream": True, "sampling_params": sampling}
    with served("--model", "builtin", "--drain-seconds", "0.2") as server:
        began, lines = threading.Event(), list[str]()
        client = threading.Thread(target=lambda: lines.extend(opened(server, path, body, began)))
        client.start()
        assert began.wait(SECONDS)
        assert server.stop() == 0
        client.join()
    if path != "/v1/messages" or len(lines) > 3:
        shown = [line for line in lines if line]
        assert last in shown[-1] or '"message_stop"' in shown[-1]
    (line,) = [json.loads(line) for line in server.lines if path in line and line.startswith("{")]
    assert line["tokens"] >= len([line for line in lines if "delta" in line]) - 2


@pytest.mark.parametrize("n", [1, 2])
def test_tokens_of_a_stream_whose_client_leaves_are_in_the_log(builtin: Served, n: int):
    content = {**LONG, "n": n}
    prompt = builtin.post("/v1/chat/completions", {**CHAT, "max_tokens": 1}).json()["usage"]["prompt_tokens"]
    with httpx2.stream("POST", f"{builtin.url}/v1/chat/completions", json=content, timeout=SECONDS) as answer:
        request = answer.headers["x-request-id"]
        chunks = 0
        for line in answer.iter_lines():
            chunks += '"content":"' in line and '"content":""' not in line
            if chunks == 40:
                break
    end = time.monotonic() + SECONDS
    while not (found := [line for line in builtin.lines if request in line]):
        assert time.monotonic() < end
        time.sleep(0.01)
    line = json.loads(found[0])
    assert prompt + 40 - n <= line["tokens"] < 6000
    assert line["cached"] >= prompt - 1


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_tokens_of_a_whole_answer_whose_client_leaves_are_in_the_log(builtin: Served, path: str):
    def generated() -> int:
        (line,) = [each for each in builtin.get("/metrics").text.splitlines() if each.startswith("lmc:generation_to")]
        return int(float(line.split()[1]))

    long = {**LONG, "n": 2, "stream": False}
    prompts = builtin.post("/v1/chat/completions", {**CHAT, "max_tokens": 0}).json()["usage"]["prompt_tokens"]
    if path == "/v1/completions":
        del long["messages"]
        long["prompt"], prompts = [[9] * 5, [9] * 7], 12
    known, before = len(builtin.lines), generated()
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(f"{builtin.url}{path}", json=long, timeout=2)
    end = time.monotonic() + SECONDS
    while not (found := [line for line in builtin.lines[known:] if '"status": 499' in line]):
        assert time.monotonic() < end
        time.sleep(0.01)
    count = generated() - before
    assert count > 2
    assert json.loads(found[0])["tokens"] == prompts + count


def test_draining_refuses_new_requests_and_finishes_the_others():
    with served("--model", "builtin", "--drain-seconds", "120") as server:
        began, lines = threading.Event(), list[str]()
        body = {**LONG, "max_tokens": 400, "min_tokens": 400}
        client = threading.Thread(target=lambda: lines.extend(opened(server, "/v1/chat/completions", body, began)))
        client.start()
        assert began.wait(SECONDS)
        server.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + SECONDS
        while (answer := server.post("/v1/chat/completions", {**CHAT, "max_tokens": 1})).status_code == 200:
            assert time.monotonic() < end
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.json()["error"]["type"] == "server_error"
        assert server.get("/health").status_code == 200
        client.join()
        assert [line for line in lines if line][-1] == "data: [DONE]"
        assert server.process.wait(SECONDS) == 0


def test_a_second_signal_ends_the_process():
    with served("--model", "builtin", "--drain-seconds", "600") as server:
        began = threading.Event()

        def read() -> None:
            with suppress(httpx2.HTTPError):
                opened(server, "/v1/chat/completions", LONG, began)

        client = threading.Thread(target=read)
        client.start()
        assert began.wait(SECONDS)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        started = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(SECONDS)
        assert time.monotonic() - started < 20
        client.join()


def test_an_address_in_use_is_refused_before_the_model_loads():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with pytest.raises(AssertionError, match="in use") as caught, served("--model", "builtin", "--port", port):
            pass
    assert "--port" in str(caught.value)


def test_other_machines_need_a_key():
    with pytest.raises(AssertionError, match="--api-key-env"), served("--model", "toy", "--host", "0.0.0.0"):
        pass
    with (
        pytest.raises(AssertionError, match="LMC_NO_SUCH_KEY"),
        served("--model", "toy", "--api-key-env", "LMC_NO_SUCH_KEY"),
    ):
        pass
    with served("--model", "toy", "--host", "0.0.0.0", "--insecure") as server:
        assert any("without a key" in line for line in server.lines)
        assert server.url.startswith("http://127.0.0.1:")
        assert any("other machines" in line for line in server.lines)
        assert not any("0.0.0.0" in line for line in server.lines)


def test_keys_are_checked_and_never_printed():
    key = "a-secret-key-of-this-test"
    with served("--model", "toy", "--api-key-env", "LMC_TEST_KEY", LMC_TEST_KEY=key) as server:
        body = {"model": "toy", "messages": [{"role": "user", "content": "private words"}], "max_tokens": 2}
        clients = [
            line.partition(": ")[2].strip() for line in server.lines if "base_url" in line or "RuntimeEnd" in line
        ]
        assert len(clients) == 3
        assert all('api_key=os.environ["LMC_TEST_KEY"]' in line for line in clients)
        for path in ("/v1/chat/completions", "/v1/messages"):
            assert server.post(path, body).status_code == 401
            assert server.post(path, body, Authorization=f"Bearer {key}x").status_code == 401
            assert server.post(path, body, Authorization=f"Bearer {key}").status_code == 200
            assert server.post(path, body, **{"x-api-key": key}).status_code == 200
        assert server.get("/ready").status_code == 200
        assert server.get("/metrics").status_code == 401
        assert server.stop() == 0
        text = "\n".join(server.lines)
        assert key not in text
        assert "private" not in text
        logged = [json.loads(line) for line in server.lines if line.startswith("{")]
        assert [line["status"] for line in logged if line["route"] == "POST /v1/messages"] == [401, 401, 200, 200]


def test_web_pages_of_other_origins_get_nothing(toy: Served):
    body = {"model": "toy", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    assert toy.post("/v1/chat/completions", body, Host="evil.example").status_code == 403
    answer = toy.post("/v1/chat/completions", body, Origin="https://evil.example")
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert toy.post("/v1/chat/completions", body, Origin=toy.url).status_code == 200
    assert toy.post("/v1/chat/completions", body, Origin="http://127.0.0.1:1").status_code == 403
    with served("--model", "toy", "--allow-origin", "https://good.example") as server:
        asked = {"Origin": "https://good.example", "Access-Control-Request-Method": "POST"}
        allowed = httpx2.request("OPTIONS", f"{server.url}/v1/chat/completions", headers=asked)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, "https://good.example")
        names = "authorization,content-type,x-stainless-lang,anthropic-dangerous-direct-browser-access"
        asked["Access-Control-Request-Headers"] = names
        allowed = httpx2.request("OPTIONS", f"{server.url}/v1/messages", headers=asked)
        assert allowed.headers["access-control-allow-headers"] == names
        answer = server.post("/v1/chat/completions", body, Origin="https://good.example")
        assert answer.headers["access-control-allow-origin"] == "https://good.example"
        assert {"retry-after", "x-request-id"} <= {*answer.headers["access-control-expose-headers"].split(", ")}
        assert server.post("/v1/chat/completions", body, Origin="https://evil.example").status_code == 403


def test_bodies_have_a_limit():
    with served("--model", "toy", "--max-body", "1000") as server:
        big = {"model": "toy", "messages": [{"role": "user", "content": "x" * 2000}]}
        answer = server.post("/v1/chat/completions", big)
        assert (answer.status_code, answer.json()["error"]["type"]) == (413, "invalid_request_error")

        def pieces() -> Any:
            for _ in range(100):
                yield b" " * 100

        answer = httpx2.post(
            f"{server.url}/v1/messages", content=pieces(), headers={"content-type": "application/json"}
        )
        assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_client_that_sends_all_before_it_reads_is_told_that_it_is_too_much(toy: Served, is_chunked: bool):
    body = json.dumps({"model": "toy", "prompt": "x" * (9 << 20)}).encode()
    asked = urllib.request.Request(
        f"{toy.url}/v1/completions",
        [body[start : start + 65536] for start in range(0, len(body), 65536)] if is_chunked else body,
        {"content-type": "application/json"},
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(asked, timeout=SECONDS)
    caught.value.close()
    assert caught.value.code == 413


@pytest.mark.parametrize("path", ["/health", "/ready", "/v1/models", "/v1/models/", "/metrics"])
def test_head_is_get_without_a_body(toy: Served, path: str):
    whole, head = toy.get(path), httpx2.head(f"{toy.url}{path}", timeout=SECONDS)
    assert (whole.status_code, head.status_code, head.content) == (200, 200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


def test_errors_are_described_in_the_form_of_their_protocol(toy: Served):
    paths = toy.get("/openapi.json").json()["paths"]
    bodies = {"/v1/chat/completions": {"model": 5}, "/v1/messages": {}, "/generate": {"text": 5}, "/v1/batches": {}}
    for path, methods in paths.items():
        for operation in methods.values():
            assert "422" not in operation["responses"]
            assert {"4XX", "5XX"} <= {*operation["responses"]}
        if path in bodies:
            schema = methods["post"]["responses"]["4XX"]["content"]["application/json"]["schema"]
            error = toy.post(path, bodies[path]).json()
            assert {*error} == {*schema["required"]}
            assert {*error["error"]} == {*schema["properties"]["error"]["required"]}


def test_too_many_requests_are_told_to_come_back():
    with served("--model", "builtin", "--max-waiting", "100") as server:
        body = {"model": "builtin", "prompt": ["word"] * 200, "max_tokens": 16, "min_tokens": 16, "temperature": 0}
        began = threading.Barrier(5)
        statuses: list[tuple[int, str | None]] = []

        def ask() -> None:
            began.wait()
            answer = server.post("/v1/completions", body)
            statuses.append((answer.status_code, answer.headers.get("retry-after")))

        threads = [threading.Thread(target=ask) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (429, "1") in statuses
        assert (200, None) in statuses


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "python_multipart", "prometheus_client"])
def test_the_extra_is_named_where_it_is_not_installed(package: str):
    code = f"import sys; sys.modules[{package!r}] = None; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--model", "toy", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 2
    assert f"lmc serve needs {package}" in done.stderr
    assert "lmc-compiler[server]" in done.stderr


def test_the_toy_starts_without_torch():
    with served(process=interpreted("--model", "toy")) as server:
        assert "libtorch" not in Path(f"/proc/{server.process.pid}/maps").read_text("utf-8")


def test_an_address_has_one_server_also_before_it_listens():
    with closing(bound("127.0.0.1", 0)) as first, pytest.raises(InputError, match="can't be used"):
        bound("127.0.0.1", first.getsockname()[1])


def test_a_body_that_never_comes_does_not_hold_up_the_end():
    with served("--model", "toy", "--drain-seconds", "0.5") as server:
        head = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
        with closing(socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))) as client:
            client.sendall(head)
            time.sleep(0.2)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(SECONDS) == 0


def test_any_address_of_the_loopback_is_a_name_of_its_server():
    with served("--model", "toy", "--host", "127.0.0.2") as server:
        answer = httpx2.get(f"{server.url}/v1/models")
        assert server.url.startswith("http://127.0.0.2:")
        assert answer.status_code == 200
