"""Programs over HTTP: rows of arguments in, result rows out."""

import json
import re
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import jsonschema
import pytest

from lmc.driver import Options, Runner, result_row
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.runtime.server import hosted_programs
from tests.runtime.server.hostile_texts import HOSTILE_TEXTS, prompt_of_turns
from tests.runtime.server.servers import SECONDS, Served, served

OWN = "tests/runtime/server/hosted_programs.py"
NAMES = ("summarize", "branches", "failing", "quoting", "slow")
EXAMPLE_FILES = ("judge", "extract", "react", "debate", "chat")


@pytest.fixture(scope="module")
def hosting() -> Generator[Served]:
    options = [f"{OWN}:{name}" for name in NAMES]
    options += [f"examples/{name}.py:{EXAMPLES[name].program.name}" for name in EXAMPLE_FILES]
    with served("--model", "toy", *(word for each in options for word in ("--program", each))) as server:
        yield server


def events_of(server: Served, path: str, row: Any, **headers: str) -> list[tuple[str, Any]]:
    with httpx2.stream("POST", f"{server.url}{path}", json=row, headers=headers, timeout=SECONDS) as answer:
        assert answer.status_code == 200, answer.read()
        parts = "".join(answer.iter_text()).split("\n\n")[:-1]
    found = [re.fullmatch(r"event: (\w+)\ndata: (.*)", part) for part in parts]
    return [(each[1], json.loads(each[2])) for each in found if each]


def test_programs_are_listed_with_the_schemas_of_arguments_and_value(hosting: Served):
    listed = {each["name"]: each for each in hosting.get("/v1/programs").json()["data"]}
    assert set(listed) == {*NAMES, *(EXAMPLES[name].program.name for name in EXAMPLE_FILES)}
    summarize = hosting.get("/v1/programs/summarize").json()
    assert summarize == listed["summarize"]
    assert summarize["description"] == "Write about items."
    arguments = jsonschema.Draft202012Validator(summarize["arguments"])
    assert arguments.is_valid({"items": [{"name": "x"}], "extra": {"name": "y", "count": 2}})
    for wrong in ({}, {"items": [{}]}, {"items": [], "style": "other"}, {"items": [], "more": 1}):
        assert not arguments.is_valid(wrong), wrong
    assert summarize["arguments"]["properties"]["style"]["default"] == "short"
    assert jsonschema.Draft202012Validator(summarize["value"]).is_valid({"text": "", "total": 1})
    for name in EXAMPLE_FILES:
        described = listed[EXAMPLES[name].program.name]
        for row in EXAMPLES[name].rows:
            jsonschema.Draft202012Validator(described["arguments"]).validate(row)


@pytest.mark.parametrize("name", EXAMPLE_FILES)
def test_results_are_those_in_process(hosting: Served, name: str):
    example = EXAMPLES[name]
    for row in example.rows:
        for seed in (0, 7):
            expected = result_row(0, Runner(example.program, Options("toy", seed=seed)).run(((), row)))
            found = hosting.post(f"/v1/programs/{example.program.name}?seed={seed}", row)
            assert found.json() == json.loads(json.dumps(expected))


def test_a_program_has_its_own_seed_unless_the_request_has_one(hosting: Served):
    def value(query: str) -> Any:
        return hosting.post(f"/v1/programs/branches{query}", {"topic": "cats"}).json()["value"]

    assert value("") == value("?seed=5") == hosted_programs.branches.on("toy").run("cats").value
    assert value("?seed=6") != value("")


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_special_tokens_in_arguments_are_text(hosting: Served, text: str):
    prompt = prompt_of_turns("toy", text)
    body = {"model": "toy", "prompt": prompt, "max_tokens": 12, "temperature": 0}
    expected = hosting.post("/v1/completions", body).json()
    row = {"texts": {"system": text, "user": text, "assistant": text}}
    found = hosting.post("/v1/programs/quoting", row).json()
    assert found["value"] == expected["choices"][0]["text"]
    *_, (kind, streamed) = events_of(hosting, "/v1/programs/quoting?stream=true", row)
    assert (kind, streamed["value"]) == ("result", found["value"])


def test_arguments_become_the_classes_of_their_annotations(hosting: Served):
    row = {"items": [{"name": "a"}, {"name": "b", "count": 4}], "extra": {"name": "c", "count": 10}}
    found = hosting.post("/v1/programs/summarize?seed=3", row).json()
    assert found["value"] == {"text": found["variables"]["text"], "total": 15}


def test_streams_carry_tokens_with_their_branch_and_then_the_result(hosting: Served):
    whole = hosting.post("/v1/programs/branches", {"topic": "cats"}).json()
    for path, headers in (
        ("/v1/programs/branches?stream=true", {}),
        ("/v1/programs/branches", {"accept": "text/event-stream"}),
    ):
        *tokens, (kind, result) = events_of(hosting, path, {"topic": "cats"}, **headers)
        assert kind == "result"
        assert result["value"] == whole["value"]
        texts: dict[tuple[str, str], str] = {}
        for kind, token in tokens:
            assert kind == "token"
            assert token["op_id"].startswith(token["branch"])
            place = token["branch"], token["name"]
            texts[place] = texts.get(place, "") + token["text"]
        assert len(texts) == 3
        assert {branch for branch, _ in texts} == {"branches", "branches/fork/0", "branches/fork/1"}
        assert texts["branches", "end"] == whole["value"]["end"]


@pytest.mark.parametrize(
    ("row", "param", "said"),
    [
        ({}, "how", "lacks how"),
        ({"how": 3}, "how", "argument how is 3, a number"),
        ({"how": "2", "hew": 1}, "hew", "did you mean 'how'"),
        ([], None, "no object"),
    ],
)
def test_a_wrong_argument_is_named(hosting: Served, row: Any, param: str | None, said: str):
    answer = hosting.post("/v1/programs/failing", row)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert said in error["message"]


@pytest.mark.parametrize("body", [b"{", b'{"how": NaN}', b'{"how": "1", "how": "2"}', b"\xff", b'{"how": 1e999}'])
def test_bodies_are_strict_json(hosting: Served, body: bytes):
    answer = httpx2.post(f"{hosting.url}/v1/programs/failing", content=body, timeout=SECONDS)
    assert answer.status_code == 400, answer.text


def test_a_program_that_does_not_exist_is_missing(hosting: Served):
    for answer in (hosting.get("/v1/programs/none"), hosting.post("/v1/programs/none", {})):
        assert answer.status_code == 404
        assert "none" in answer.json()["error"]["message"]
    assert hosting.post("/v1/programs/failing?seed=x", {"how": "1"}).json()["error"]["param"] == "seed"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raise", "ValueError: no such thing"),
        ("exit", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
        ("-1", "max_tokens"),
    ],
)
def test_errors_of_a_run_name_the_line_and_affect_no_other(hosting: Served, how: str, said: str):
    for path in ("/v1/programs/failing", "/v1/programs/failing?stream=true"):
        if path.endswith("true"):
            kind, content = events_of(hosting, path, {"how": how})[-1]
            assert kind == "error"
        else:
            answer = hosting.post(path, {"how": how})
            assert answer.status_code == 500
            content = answer.json()
        message = content["error"]["message"]
        assert said in message
        assert re.search(r"hosted_programs\.py:\d+", message)
    assert hosting.post("/v1/programs/failing", {"how": "2"}).status_code == 200


def running(server: Served) -> float:
    (line,) = re.findall(r"^lmc:num_requests_running (\S+)", server.get("/metrics").text, re.MULTILINE)
    return float(line)


def test_a_client_that_goes_away_cancels_its_run(hosting: Served):
    with httpx2.stream(
        "POST", f"{hosting.url}/v1/programs/slow?stream=true", json={"rounds": 10_000}, timeout=SECONDS
    ) as answer:
        texts = answer.iter_text()  # closes the connection when it is deleted
        next(texts)
        assert running(hosting) >= 1
    end = time.monotonic() + SECONDS
    while running(hosting) and time.monotonic() < end:
        time.sleep(0.02)
    assert not running(hosting)
    # One that waits for a whole answer is cancelled as well.
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(f"{hosting.url}/v1/programs/slow", json={"rounds": 10_000}, timeout=0.5)
    while running(hosting) and time.monotonic() < end:
        time.sleep(0.02)
    assert not running(hosting)


def test_draining_cuts_runs_with_an_error():
    with served("--model", "toy", "--program", f"{OWN}:slow", "--drain-seconds", "0.5") as server:
        found: list[Any] = []
        started = threading.Event()

        def read() -> None:
            with httpx2.stream(
                "POST", f"{server.url}/v1/programs/slow?stream=true", json={"rounds": 10_000}, timeout=SECONDS
            ) as answer:
                for part in answer.iter_text():
                    found.append(part)
                    started.set()

        with ThreadPoolExecutor(2) as pool:
            streamed = pool.submit(read)
            assert started.wait(SECONDS)
            whole = pool.submit(server.post, "/v1/programs/slow", {"rounds": 10_000})
            end = time.monotonic() + SECONDS
            while running(server) < 2:
                assert time.monotonic() < end
                time.sleep(0.01)
            assert server.stop() == 0
            streamed.result(SECONDS)
            assert "event: error" in "".join(found[-2:])
            assert whole.result(SECONDS).status_code == 503


def test_programs_of_another_target_are_refused(tmp_path: Any):
    file = tmp_path / "other.py"
    file.write_text('import lmc\n\n\n@lmc.jit(target="builtin", kv_tokens=100)\ndef other(s):\n    return s.gen("x")\n')
    said = r"runs on builtin kv_tokens=100 by its @lmc.jit, and the server has toy"
    with pytest.raises(AssertionError, match=said), served("--model", "toy", "--program", str(file)):
        pass


def test_two_programs_of_one_name_are_refused():
    spec = str(REPOSITORY / OWN) + ":slow"
    options = ("--program", spec, "--program", spec)
    with pytest.raises(AssertionError, match="two programs are named slow"), served("--model", "toy", *options):
        pass
