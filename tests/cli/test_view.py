import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.viewing import START, Viewing, viewing

pytestmark = pytest.mark.slow("servers in processes of their own")

PROGRAM = """
import lmc
from words import QUESTION

@lmc.jit(target="toy")
def ask(s, topic: str):
    s += QUESTION + topic
    return s.gen("answer", max_tokens=3)
"""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def write(folder: Path, **files: str) -> None:
    """Write Python files as a careful editor does: each is replaced as a whole."""
    for name, text in files.items():
        new = folder / f".{name}.new"
        new.write_text(text)
        new.replace(folder / f"{name}.py")


def labels(view: dict[str, Any]) -> str:
    return " ".join(node["label"] for node in view["stages"][0]["added"])


def asks(word: str) -> Callable[[Any], bool]:
    return lambda view: word in labels(view)


def says(text: str) -> Callable[[Any], bool]:
    return lambda problem: text in problem["message"]


def listing(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewing]:
    folder = tmp_path_factory.mktemp("served")
    write(folder, ask=PROGRAM, words="QUESTION = 'Why '\n")
    with viewing(folder, "ask.py") as found:
        yield found


def check_headers(answer: Any) -> None:
    assert HEADERS.items() <= answer.headers.items()
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith("; frame-ancestors 'none'")
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
    assert answer.headers["Server"] == "lmc"


def test_the_page(server: Viewing) -> None:
    """The page has its scripts by hash, and may connect to its server alone."""
    answer = server.ask()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    check_headers(answer)
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', answer.text)
    assert found is not None
    assert answer.headers["Content-Security-Policy"] == f"{found[1]}; frame-ancestors 'none'"
    assert " connect-src 'self';" in found[1]
    assert "unsafe" not in found[1]
    assert '<script type="application/json" id="data">{"events": "/events/0", "index": null, ' in answer.text
    head = server.ask(method="HEAD")
    assert {**head.headers, "Date": ""} == {**answer.headers, "Date": ""}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
def test_hosts_of_this_machine(host: str, server: Viewing) -> None:
    assert server.ask(Host=f"{host}:{server.port}").status == 200
    assert server.ask("/events/0", "HEAD", Host=f"{host}:{server.port}").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.test:{}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "localhost.evil.test:{}",
        "0.0.0.0:{}",
        "",
        "x@localhost:{}",
    ],
)
@pytest.mark.parametrize("address", ["/", "/events/0"])
def test_other_hosts_get_nothing(host: str, address: str, server: Viewing) -> None:
    """A name that was made to point to this machine is not one of it."""
    answer = server.ask(address, Host=host.format(server.port))
    assert answer.status == 403
    check_headers(answer)
    assert answer.text == f"403: this is lmc view; open {server.url}\n"


def test_a_request_needs_one_host(server: Viewing) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.0 403")
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        host = f"127.0.0.1:{server.port}".encode()
        connection.sendall(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nHost: evil.test\r\n\r\n")
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.0 403")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://127.0.0.1:{}"}, 200),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "none"}, 200),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://localhost:{}"}, 403),
        ({"Origin": "https://127.0.0.1:{}"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
    ],
)
def test_origins(headers: dict[str, str], status: int, server: Viewing) -> None:
    given = {name: value.format(server.port) for name, value in headers.items()}
    for address in ("/", "/events/0"):
        answer = server.ask(address, "HEAD", **given)
        assert answer.status == status
        check_headers(answer)


@pytest.mark.parametrize(
    "address",
    [
        "/ask.py",
        "/../ask.py",
        "/..%2fask.py",
        "/events/1",
        "/events/0/",
        "/?x",
        "/0",
        "/etc/passwd",
        "ask.py",
        "/%00",
    ],
)
def test_no_address_names_a_file(address: str, server: Viewing) -> None:
    answer = server.ask(address)
    assert answer.status == 404
    check_headers(answer)
    assert answer.text == f"404: there is no such page; open {server.url}\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_methods(method: str, server: Viewing) -> None:
    answer = server.ask(method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    check_headers(answer)


def test_only_loopback_is_bound(server: Viewing) -> None:
    with socket.socket() as connection:
        connection.settimeout(10)
        assert connection.connect_ex(("127.0.0.2", server.port)) != 0


def test_a_page_follows_its_file(tmp_path: Path) -> None:
    """A change, an error, an import, a text that is read, a file that is gone: each is seen, and nothing is written."""
    write(tmp_path, ask=PROGRAM, words="QUESTION = 'Why '\n")
    (tmp_path / "rows.jsonl").write_text('{"topic": "tea"}\n')
    with viewing(tmp_path, "ask.py", "--input", "rows.jsonl") as server, server.events() as events:
        before = listing(tmp_path)
        assert events.until("view", asks("Why "))["plan"]["row_count"] == 1
        write(tmp_path, words="QUESTION = 'How '\n")  # as long as before
        events.until("view", asks("How "))
        write(tmp_path, words="QUESTION = \n")
        problem = events.next("problem")[1]
        assert "words.py:1" in problem["place"]
        command = [sys.executable, "-c", START, "compile", "ask.py"]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120).stderr
        assert said == f"{problem['trace']}\n{problem['place']}: error: {problem['message']}\n"
        write(tmp_path, words="from pathlib import Path\nQUESTION = Path('question.txt').read_text()\n")
        events.until("problem", says("question.txt"))
        (tmp_path / "question.txt").write_text("Where ")
        events.until("view", asks("Where "))
        (tmp_path / "question.txt").write_text("When ")
        events.until("view", asks("When "))
        (tmp_path / "rows.jsonl").write_text('{"topic": "tea"}\n{"topic": "milk"}\n')
        events.until("view", lambda view: view["plan"]["row_count"] == 2)
        (tmp_path / "ask.py").rename(tmp_path / "away.py")
        problem = events.next("problem")[1]
        assert problem["message"] == "ask.py is gone: put it back, or end lmc view with Ctrl-C"
        with server.events() as other:  # a page that is opened now has the last good graph behind the message
            assert "When " in labels(other.next("view")[1])
            assert other.next("problem")[1] == problem
        (tmp_path / "away.py").rename(tmp_path / "ask.py")
        assert "When " in labels(events.next("view")[1])
        write(tmp_path, ask=PROGRAM.replace("from words import", "from more import"))
        events.until("problem", says("No module named 'more'"))
        write(tmp_path, more="QUESTION = 'Who '\n")
        events.until("view", asks("Who "))
        assert listing(tmp_path) == sorted([*before, "more.py", "question.txt"])


@pytest.mark.parametrize("is_there", [False, True])
def test_constraints_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool) -> None:
    monkeypatch.setenv("LMC_GRAMMAR_CACHE", str(tmp_path / "kept"))
    if is_there:
        (tmp_path / "kept").mkdir()
    write(tmp_path, ask=PROGRAM.replace("max_tokens=3", "choices=['a', 'b']"), words="QUESTION = 'Why '\n")
    before = listing(tmp_path)
    with viewing(tmp_path, "ask.py") as server, server.events() as events:
        assert events.until("view", asks("Why "))["constraints"]
    assert listing(tmp_path) == before


def test_it_survives_the_file(tmp_path: Path) -> None:
    write(tmp_path, ask="import os\nprint('hello')\nos._exit(7)\n")
    with viewing(tmp_path, "ask.py") as server, server.events() as events:
        events.until("problem", says("the compilation ended with exit code 7"))
        write(tmp_path, words="QUESTION = 'Why '\n", ask=PROGRAM)
        events.until("view", asks("Why "))
        write(tmp_path, ask="raise KeyboardInterrupt\n")
        events.until("problem", says("KeyboardInterrupt"))
        write(tmp_path, ask="")
        events.until("problem", says("ask.py is empty"))
        (tmp_path / "ask.py").unlink()
        os.mkfifo(tmp_path / "ask.py")
        events.until("problem", says("ask.py is a pipe, which can't be read again"))
        (tmp_path / "ask.py").unlink()
        write(tmp_path, ask=PROGRAM)
        events.until("view", asks("Why "))


def test_several_files(tmp_path: Path) -> None:
    write(tmp_path, ask=PROGRAM, words="QUESTION = 'Why '\n")
    (tmp_path / "m.lmir").write_text(
        "module @f {\n  func @f() {\n    %0 = lm.context : !ctx\n    lm.return %0\n  }\n}\n"
    )
    (tmp_path / "notes.txt").write_text("Buy milk.\n")
    command = [sys.executable, "-c", START, "schedule", "ask.py", "--input", "rows.jsonl", "-o", "ask.schedule"]
    (tmp_path / "rows.jsonl").write_text('{"topic": "tea"}\n')
    (tmp_path / "other.json").write_text('[\n{"name": "a", "ph": "X"},\n')
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    run_it(tmp_path, "ask.py:ask")
    names = ["ask.py:ask", "m.lmir", "run.json", "notes.txt", "ask.schedule", "other.json"]
    with viewing(tmp_path, *names) as server:
        index = server.ask()
        assert index.status == 200
        check_headers(index)
        assert "<script" not in index.text
        entries = re.findall(r'<li><a href="([^"]*)">([^<]*)</a> <span[^>]*>([^<]*)<', index.text)
        kinds = ["program", "module", "timeline", "program", "schedule", "timeline"]
        assert entries == [(f"/{number}", name, kinds[number]) for number, name in enumerate(names)]
        assert '{"events": "/events/3", "index": "/", ' in server.ask("/3").text
        assert server.ask("/6").status == 404
        for number, (kind, message) in enumerate(
            [
                ("view", ""),
                ("view", ""),
                ("view", ""),
                ("problem", "notes.txt can't be imported"),
                ("view", ""),
                ("problem", "other.json is no timeline: line 2"),
            ]
        ):
            with server.events(f"/events/{number}") as events:
                found, data = events.next("view", "problem")
                assert found == kind
                assert message in json.dumps(data)


def run_it(folder: Path, program: str) -> None:
    """Record a run of a program."""
    run = ("run", program, "--input", "rows.jsonl", "--timeline", "run.json", "-o", "out.jsonl")
    subprocess.run([sys.executable, "-c", START, *run], cwd=folder, check=True, capture_output=True, timeout=120)


def test_a_timeline_in_a_list(tmp_path: Path) -> None:
    """It is shown beside its program, alone once that has changed, and again beside it."""
    write(tmp_path, ask=PROGRAM, words="QUESTION = 'Why '\n", other=PROGRAM.replace("def ask", "def other"))
    (tmp_path / "rows.jsonl").write_text('{"topic": "tea"}\n')
    alone = "a timeline holds the requests, tools and steps of a run alone"
    with viewing(tmp_path, "other.py", "run.json", "ask.py") as server, server.events("/events/1") as events:
        view = events.next("view", "problem")[1]
        assert view["notices"] == ["waiting for run.json: lmc run --timeline run.json writes it"]
        run_it(tmp_path, "ask.py")
        view = events.until("view", lambda view: view.get("timeline", {}).get("complete"))
        assert "notices" not in view
        assert view["plan"]["row_count"] == view["timeline"]["request_count"] == 1
        write(tmp_path, words="QUESTION = 'How '\n")
        view = events.until("view", lambda view: view.get("notices"))
        assert view["notices"][0].startswith(alone)
        changed = "it is not shown beside ask.py: the source of words has changed since run.json was recorded"
        assert changed in view["notices"]
        assert (view["timeline"]["request_count"], len(view["calls"])) == (1, 1)
        write(tmp_path, words="QUESTION = 'Why '\n")
        events.until("view", lambda view: view.get("plan"))


def test_ctrl_c_ends_it_quietly(tmp_path: Path) -> None:
    """Also while it compiles: no process is left."""
    write(tmp_path, ask="import time, pathlib, os\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)\n")
    with viewing(tmp_path, "ask.py") as server, server.events() as events:
        events.next("working")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert server.ask("/events/0", "HEAD").status == 200
        code, said = server.interrupt()
        assert (code, said) == (130, "")
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("named", [("ask.py", "--timeline", "run.json"), ("run.json", "ask.py")])
def test_it_follows_a_run(named: tuple[str, ...], tmp_path: Path) -> None:
    """A timeline that is still written is shown, and followed."""
    write(tmp_path, ask=PROGRAM, words="QUESTION = 'Why '\n")
    (tmp_path / "rows.jsonl").write_text('{"topic": "tea"}\n')
    run_it(tmp_path, "ask.py")
    whole = (tmp_path / "run.json").read_text()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "run.json").write_text(
        "".join(lines[: next(n for n, line in enumerate(lines) if '"plan"' in line) + 1])
    )
    with viewing(tmp_path, *named) as server, server.events() as events:
        events.until("view", lambda view: view["plan"] and not view["timeline"].get("requests"))
        (tmp_path / "run.json").write_text(whole)
        events.until("view", lambda view: len(view["timeline"].get("requests", [])) == 1)
        write(tmp_path, words="QUESTION = 'How '\n")
        events.until("problem", says("has changed since run.json was recorded"))


@pytest.mark.parametrize(
    ("named", "beginning"),
    [
        (("ask.py", "--timeline", "run.json"), None),
        (("ask.py", "--timeline", "run.json"), '[\n{"ph":"M","na'),
        (("ask.py", "run.json"), None),
        (("ask.py", "run.json"), ""),
    ],
)
def test_it_waits_for_a_timeline(named: tuple[str, ...], beginning: str | None, tmp_path: Path) -> None:
    """A file that is not there, or has no header yet, is one that a run is about to write."""
    write(tmp_path, ask=PROGRAM, words="QUESTION = 'Why '\n")
    (tmp_path / "rows.jsonl").write_text('{"topic": "tea"}\n')
    if beginning is not None:
        (tmp_path / "run.json").write_text(beginning)
    waiting = "waiting for run.json: lmc run --timeline run.json writes it"
    with viewing(tmp_path, *named) as server, server.events() as events:
        view = events.next("view", "problem")[1]
        assert view["notices"] == [waiting]
        assert "timeline" not in view
        run_it(tmp_path, "ask.py")
        view = events.until("view", lambda view: view.get("timeline", {}).get("complete"))
        assert view["timeline"]["request_count"] == 1
        assert "notices" not in view
        (tmp_path / "run.json").unlink()
        assert events.until("view", lambda view: view.get("notices"))["notices"] == [waiting]


def test_options_reach_the_compilation(tmp_path: Path) -> None:
    write(tmp_path, ask=PROGRAM, words="QUESTION = 'Why '\n")
    with viewing(tmp_path, "ask.py", "topic=tea", "-O0", "--model", "toy") as server, server.events() as events:
        view = events.next("view")[1]
        assert [stage["name"] for stage in view["stages"]] == ["capture"]
        assert view["program"]["target"] == "toy"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a=b"], "there is no file to show"),
        (["gone.py"], "there is no file gone.py"),
        (["."], ". is a folder"),
        (["pipe.py"], "pipe.py is a pipe"),
        (["cli_program.py", "m.lmir", "--input", "m.lmir"], "--input is for one program, not for 2 files"),
        (["cli_program.py", "m.lmir", "a=b"], "KEY=VALUE is for one program, not for 2 files"),
        (["cli_program.py", "--input", "-"], "--input - can't be read again"),
        (["m.lmir", "--port", "70000"], "--port"),
    ],
)
def test_bad_input_is_one_message(lmc, program: str, arguments: list[str], message: str) -> None:
    Path("m.lmir").write_text("")
    os.mkfifo("pipe.py")
    said = lmc("view", *arguments)
    assert said.code == 2
    assert message in said.err
    assert program


def test_a_port_in_use(lmc, program: str) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        said = lmc("view", program, "--port", str(port))
    assert said.code == 2
    assert f"port {port} can't be opened: it is in use" in said.err
    assert "remedy: name another one with --port" in said.err
