"""A hosted model that gives no answer is one error with cause, remedy and cost, and is asked no second time."""

import asyncio
import gc
import json
import logging
import math
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc.driver.run.result import Result
from lmc.ir.errors import EngineError, InputError, LmcError
from lmc.runtime.remote import asking, engine
from tests.runtime.remote.faults import Fault, FaultProxy, listed
from tests.runtime.remote.hosted_runs import KEY_NAME, answer, discussion, hosted, target
from tests.runtime.remote.providers.replies import Asked, End, Reply, drawn, hashed
from tests.runtime.remote.simulator import KEY, Simulator
from tests.runtime.remote.wire import Exchange, LoopbackServer

STREAMED = {"first_token_timeout": 60.0}
BAD = "Bad question"


def rows(count: int, bad: int | None = None) -> list[dict[str, Any]]:
    return [{"question": BAD if number == bad else f"Question {number}"} for number in range(count)]


def replying(reply: Reply) -> Any:
    """Answer the bad question with ``reply``, others as always."""
    return lambda asked: reply if asked.last == BAD else hashed(asked)


EMPTY: list[tuple[str, Reply, str]] = [
    ("chat", Reply(reasoning_tokens=900), "no visible text"),
    ("chat", Reply(end="refusal"), "refuses to answer"),
    ("chat", Reply(end="content_filter"), "content filter"),
    ("chat", Reply(end="no_choices"), "no choices"),
    ("chat", Reply(end="tool_calls"), "calls a tool"),
    ("responses", Reply(reasoning_tokens=900), "no visible text"),
    ("responses", Reply(end="refusal"), "refuses to answer"),
    ("responses", Reply(end="content_filter"), "content filter"),
    ("responses", Reply(end="no_choices"), "no output"),
    ("responses", Reply(end="tool_calls"), "calls a tool"),
    ("messages", Reply(reasoning_tokens=900), "no visible text"),
    ("messages", Reply(end="refusal"), "refuses to answer"),
    ("messages", Reply("It begins", "refusal"), "refuses to answer"),
    ("messages", Reply("It begins", "pause_turn"), "pauses"),
    ("messages", Reply("It begins", "context_window"), "context"),
    ("messages", Reply(end="tool_calls"), "tool"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("api", "reply", "message"), EMPTY)
def test_an_answer_without_text_is_an_error(api: str, reply: Reply, message: str, stream: bool):
    with hosted(), Simulator(replying(reply)) as simulator:
        found = answer.on(target(simulator.url, api, **(STREAMED if stream else {}))).batch(rows(3, bad=1))
        assert [each.error is None for each in found] == [True, False, True]
        assert all(found[place].value for place in (0, 2))
        error = found[1].error
        assert isinstance(error, EngineError)
        assert message in str(error)
        assert error.remedy
        # It is paid for, once, and the message says how much it was.
        assert [each.answer.asked.last for each in simulator.arrivals if each.answer].count(BAD) == 1
        [paid] = [each.answer for each in simulator.arrivals if each.answer and each.answer.asked.last == BAD]
        assert f"{paid.prompt_tokens} tokens in" in str(error)
        assert found[1].usage.prompt_tokens == paid.prompt_tokens


def test_messages_of_empty_answers_differ():
    assert len({message for api, _, message in EMPTY if api == "messages"}) == 5


def test_a_cut_text_is_no_error():
    with hosted(), Simulator(lambda _: "one two three " * 50) as simulator:
        for api in ("chat", "responses", "messages"):
            [found] = answer.on(target(simulator.url, api)).batch(rows(1))
            assert found.error is None
            assert found.value.startswith("one two")


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_400_is_not_retried_and_its_text_is_shown(api: str):
    too_long = [{"question": "word " * 400_001}, *rows(2)]
    with hosted(), Simulator() as simulator:
        found = answer.on(target(simulator.url, api)).batch(too_long)
        assert [each.error is None for each in found] == [False, True, True]
        error = found[0].error
        assert isinstance(error, EngineError)
        assert "maximum" in str(error)
        assert error.remedy
        assert "hosted_runs.py" in str(error)
        assert sum(each.status == 400 for each in simulator.arrivals) == 1


@pytest.mark.parametrize("seconds", [3600.0, math.inf, math.nan])
@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.RATE_LIMIT_WITH_DELAY])
@pytest.mark.parametrize("api", ["chat", "messages"])
def test_a_provider_that_asks_to_wait_for_long_is_not_waited_for(api: str, fault: Fault, seconds: float):
    """The run ends, and can be resumed; what is no number of seconds is left to the pauses of lmc."""
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, retry_after=seconds) as proxy:
        first = answer.on(target(proxy.url, api, concurrency=2), timeout=20.0)
        proxy.plan = listed([fault] * (1 if math.isnan(seconds) else 99))
        found = first.batch(rows(4))
        if math.isnan(seconds):
            assert [each.error for each in found] == [None] * 4
            return
        assert len(proxy.sent) <= 2
        for each in found:
            assert isinstance(each.error, EngineError)
            assert each.error.ends_batch
            assert "--resume" in (each.error.remedy or "")


FORMS = ["list", "generator", "async list", "async generator"]


def batched(program: lmc.Program, given: list[dict[str, Any]], form: str) -> list[Result[Any]]:
    """Run a batch in one of its forms."""
    what = (row for row in given) if form.endswith("generator") else given
    return asyncio.run(program.abatch(what)) if form.startswith("async") else program.batch(what)


@pytest.mark.parametrize(
    ("api", "form"), [("chat", form) for form in FORMS] + [("responses", "list"), ("messages", "list")]
)
def test_an_exhausted_quota_stops_the_run_and_keeps_finished_rows(api: str, form: str):
    concurrency, paid, count = 4, 10, 2000
    with hosted(), Simulator(quota=paid) as simulator:
        program = answer.on(target(simulator.url, api, concurrency=concurrency))
        begun = time.monotonic()
        found = batched(program, rows(count), form)
        silences = int(time.monotonic() - begun)
        assert len(found) == count
        kept = [each for each in found if each.error is None]
        errors = [each.error for each in found if each.error is not None]
        assert sum(each.finished for each in simulator.arrivals) == paid
        assert len(kept) == paid, "what is paid for is kept"
        assert all(each.value and each.usage.calls == 1 for each in kept)
        assert all(isinstance(each, EngineError) and "quota" in str(each) and each.remedy for each in errors)
        # What was under way when the first one was refused, and nothing behind it; after a second in which no request
        # came, as on a machine that is busy, the next ones are let through again.
        assert len(simulator.arrivals) <= paid + concurrency * (1 + silences)
        # Another run asks again.
        time.sleep(1.1)
        simulator.quota = None
        assert [each.error for each in program.batch(rows(5))] == [None] * 5


@pytest.mark.parametrize("limit", [{"requests_per_minute": 12}, {"tokens_per_minute": 900}])
def test_rows_that_wait_for_a_limit_end_with_the_quota(limit: dict[str, int], monkeypatch: pytest.MonkeyPatch):
    # A machine that is busy may have a second in which no request comes, after which they are let through again.
    monkeypatch.setattr(engine, "_REFUSED", 60.0)
    with hosted(), Simulator(quota=10) as simulator:
        started = time.monotonic()
        found = answer.on(target(simulator.url, "chat", **limit)).batch(rows(300))
        assert sum(each.error is None for each in found) == 10
        assert time.monotonic() - started < 30.0, "none of them waits for its turn"


def test_rows_that_the_quota_stops_keep_what_they_cost():
    with hosted(), Simulator(quota=3) as simulator:
        for given in (rows(1), (row for row in rows(1))):
            [found] = discussion.on(target(simulator.url, "chat")).batch(given)
            assert isinstance(found.error, EngineError)
            finished = [each.answer for each in simulator.arrivals if each.answer]
            assert found.usage.generated_tokens == sum(each.reply.output_tokens for each in finished) > 0
            with pytest.raises(EngineError, match="quota"):
                discussion.on(target(simulator.url, "chat")).run("What?")
            simulator.arrivals.clear()
            simulator.quota = 3
            time.sleep(1.1)


@pytest.mark.parametrize(
    ("spec", "near"), [("openai:gpt-5.6-lunar", "gpt-5.6-luna"), ("anthropic:claude-haiku-5.4", "claude-haiku-4-5")]
)
def test_an_unknown_model_has_near_names(spec: str, near: str):
    with hosted(), Simulator() as simulator:
        path = "/v1" if spec.startswith("openai") else ""
        program = answer.on(lmc.remote(spec, base_url=f"{simulator.url}{path}", api_key_env=KEY_NAME))
        with pytest.raises(EngineError, match="does not know the model") as raised:
            program.run("What?")
        assert "did you mean" in (raised.value.remedy or "")
        assert near in (raised.value.remedy or "")


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_an_unknown_model_is_one_error(api: str):
    with hosted(), Simulator(models=[]) as simulator:
        found = answer.on(target(simulator.url, api, concurrency=2)).batch(rows(50))
        [said] = {str(each.error) for each in found}
        assert "gpt-4.1" in said or "claude-haiku-4-5" in said
        assert len(simulator.arrivals) <= 2


def test_a_missing_key_is_an_error_before_any_request(monkeypatch: pytest.MonkeyPatch):
    with hosted(key=""), Simulator() as simulator:
        with pytest.raises(InputError, match="LMC_TEST_KEY is not set"):
            answer.on(target(simulator.url, "chat")).batch(rows(2))
        assert simulator.arrivals == []


def test_requests_that_are_cancelled_leave_no_connection_open():
    """A refused key cancels the other requests, whatever they are at. An open socket is an error of the collector."""
    for _ in range(4):
        with hosted(key="wrong"), Simulator() as simulator:
            answer.on(target(simulator.url, "chat")).batch(rows(64))
        gc.collect()


def test_a_connection_that_is_cancelled_in_its_handshake_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with hosted():
            found = answer.on(target(url, "chat", timeout=0.3, attempts=2)).batch(rows(3))
        assert all("within 0.3 s" in str(each.error) for each in found)
        gc.collect()


def test_a_server_that_is_not_there_is_an_error():
    with Simulator() as simulator:
        url = simulator.url
    with hosted():
        found = answer.on(target(url, "chat", attempts=2)).batch(rows(3))
        assert all(isinstance(each.error, EngineError) for each in found)
        assert "can't be reached" in str(found[0].error)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_above_the_bound_is_an_error(api: str, stream: bool):
    with (
        hosted(),
        Simulator() as simulator,
        FaultProxy(simulator.url, lambda _: Fault.TOO_LARGE, large=8 << 20) as proxy,
    ):
        [found] = answer.on(target(proxy.url, api, **(STREAMED if stream else {}))).batch(rows(1))
        assert isinstance(found.error, EngineError)
        assert "more than" in str(found.error)
        assert len(proxy.sent) == 1


BROKEN = [Fault.CUT, Fault.CUT_CLEANLY, Fault.RESET_WITHIN_ANSWER, Fault.MALFORMED_JSON, Fault.MALFORMED_EVENT]


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("fault", BROKEN)
def test_a_stream_that_breaks_after_its_text_was_shown_is_not_asked_again(api: str, fault: Fault):
    """Another answer would not begin with that text; nor would that of a fallback."""
    with hosted(), Simulator(drawn) as simulator, FaultProxy(simulator.url, lambda _: fault) as proxy:
        with answer.on(target(proxy.url, api, fallback="openai:gpt-4.1")).stream("What?") as stream:
            shown: list[str] = []
            with pytest.raises(EngineError) as raised:
                shown.extend(event.text for event in stream)
        if shown:
            assert len(proxy.sent) == 1
            assert "was shown" in str(raised.value)
            assert raised.value.remedy
        else:  # the fault came in the place of the first text
            assert fault in (Fault.MALFORMED_JSON, Fault.MALFORMED_EVENT)
            assert "was shown" not in str(raised.value)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("fault", [None, Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.MALFORMED_JSON])
def test_what_was_shown_is_the_result(api: str, fault: Fault | None):
    """Before any text is shown, a stream is asked for again."""
    plan = listed([fault])
    with hosted(), Simulator(drawn) as simulator, FaultProxy(simulator.url, plan) as proxy:
        with answer.on(target(proxy.url, api)).stream("What?") as stream:
            shown = "".join(event.text for event in stream)
        assert shown == stream.result.value
        assert len(proxy.sent) == 1 + (fault is not None)


@pytest.mark.parametrize("answers", [hashed, drawn])
def test_a_stream_of_a_greedy_server_goes_on_where_it_broke(answers: Any):
    """A server that is no greedy one after all is an error: what was shown is never wrong."""
    with hosted(), Simulator(answers) as simulator, FaultProxy(simulator.url, listed([Fault.CUT])) as proxy:
        served = lmc.remote(f"server:{proxy.url}#gpt-4.1", server="other", api_key_env=KEY_NAME)
        with answer.on(served).stream("What?") as stream:
            shown: list[str] = []
            if answers is hashed:
                shown.extend(event.text for event in stream)
                assert "".join(shown) == stream.result.value
                assert len(shown) > 1
            else:
                with pytest.raises(EngineError, match="another text than before; a part of the text was shown"):
                    shown.extend(event.text for event in stream)
        assert len(proxy.sent) == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_an_error_of_lmc_itself_is_not_taken_for_one_of_the_provider(
    api: str, stream: bool, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object, **__: object) -> None:
        raise TypeError("a defect")

    settings = {**(STREAMED if stream else {}), "fallback": "openai:gpt-4.1"}
    with hosted(), Simulator() as simulator:
        with monkeypatch.context() as patch:
            patch.setattr(asking.Asked, "messages", broken)
            found = answer.on(target(simulator.url, api, **settings)).batch(rows(2))
            assert [repr(each.error) for each in found] == ["TypeError('a defect')"] * 2
            assert simulator.arrivals == []
        monkeypatch.setattr(engine, "TokenDelta", broken)
        with pytest.raises(TypeError, match="a defect"):
            list(answer.on(target(simulator.url, api, **settings)).stream("What?"))
        assert len(simulator.arrivals) == 1


PLANTED_KEY = "sk-planted-31337-secret"
PLANTED_TEXT = "planted user text 8128"


def said(found: list[Result[Any]]) -> str:
    """Return all that results show but texts and values."""
    return "\n".join(f"{each.error!r} {each.error} {each.profile!r} {each.usage!r}" for each in found)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_keys_and_texts_are_in_no_error_and_no_log(api: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    def fails(asked: Asked) -> Reply | str:
        return Reply("so", "failed") if "fails" in asked.last else hashed(asked)

    questions = [{"question": f"{PLANTED_TEXT} {more}"} for more in ("one", "fails", "two")]
    with hosted(key=PLANTED_KEY), Simulator(fails, echoes_keys=True) as simulator:
        with pytest.raises(EngineError, match="refuses the key") as wrong:
            answer.on(target(simulator.url, api)).run(**questions[0])
        time.sleep(1.1)
        simulator.keys.add(PLANTED_KEY)
        found = answer.on(target(simulator.url, api, attempts=2)).batch(questions)
        assert [each.error is None for each in found] == [True, False, True]
        program = answer.on(target(simulator.url, api))
        shown = [
            repr(wrong.value),
            str(wrong.value),
            said(found),
            caplog.text,
            *(str(vars(each)) for each in caplog.records),
        ]
        shown += [repr(program), repr(target(simulator.url, api))]
    for text in shown:
        assert PLANTED_KEY not in text
        assert PLANTED_TEXT not in text
    assert KEY != PLANTED_KEY


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_provider_that_quotes_the_request_fills_no_log(api: str, stream: bool, caplog: pytest.LogCaptureFixture):
    """The error of the row has the provider's words, without the key. Logs have none, at any level."""
    caplog.set_level(logging.DEBUG)

    async def quotes(exchange: Exchange) -> None:
        headers = exchange.request.headers
        text = f"{headers.get('authorization')} {headers.get('x-api-key')} sent {exchange.request.body.decode()}"
        error = {"type": "api_error", "message": text, "code": None, "param": None}
        await exchange.respond_json(500, {}, {"type": "error", "error": error})

    with hosted(key=PLANTED_KEY), LoopbackServer(quotes) as server:
        settings = {"attempts": 3, **(STREAMED if stream else {})}
        found = answer.on(target(server.url, api, **settings)).batch([{"question": PLANTED_TEXT}])
    assert PLANTED_TEXT in str(found[0].error)
    logged = [caplog.text, *(str(vars(each)) for each in caplog.records)]
    assert sum("retry_scheduled" in each.getMessage() for each in caplog.records) == 2
    assert any("Sending HTTP Request" in each.getMessage() for each in caplog.records)
    for text in (*logged, str(found[0].error), repr(found[0].error)):
        assert PLANTED_KEY not in text
    for text in logged:
        assert PLANTED_TEXT not in text


@pytest.mark.parametrize("end", ["length", "stop"])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_usage_is_that_of_the_provider(end: End, api: str, stream: bool):
    with hosted(), Simulator(lambda _: Reply("one two three four", end, reasoning_tokens=7)) as simulator:
        [found] = answer.on(target(simulator.url, api, **(STREAMED if stream else {}))).batch(rows(1))
        [arrival] = simulator.arrivals
        assert arrival.answer is not None
        assert found.usage.prompt_tokens == arrival.answer.prompt_tokens
        assert found.usage.generated_tokens == arrival.answer.reply.output_tokens
        assert found.usage.reasoning_tokens == 7
        assert found.usage.calls == 1


PROGRAM = """
import lmc

@lmc.jit
def judge(s, question: str):
    s.user(question)
    with s.assistant():
        s.gen("answer", max_tokens=60)
"""
RUN = ["run", "judge.py", "--input", "rows.jsonl", "--model", "hosted", "-o", "out.jsonl"]
COMMANDS = [
    ["compile", "judge.py", "--model", "hosted", "-o", "plan.json"],
    [*RUN, "--profile-generate", "profile.json", "--timeline", "timeline.json"],
    ["viz", "judge.py", "--model", "hosted", "--profile", "profile.json", "-o", "page.html"],
]


def test_keys_and_texts_are_in_no_file_of_a_run_but_its_output_and_journal(tmp_path: Path):
    def fails(asked: Asked) -> Reply | str:
        return Reply("so", "failed") if "fails" in asked.last else hashed(asked)

    questions = [f"{PLANTED_TEXT} {more}" for more in ("one", "fails", "two")]
    (tmp_path / "judge.py").write_text(PROGRAM)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"question": each}) + "\n" for each in questions))
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    environment = {**os.environ, KEY_NAME: PLANTED_KEY, "PYTHONPATH": str(Path.cwd())}
    with Simulator(fails, keys=[PLANTED_KEY]) as simulator:
        settings = {"kind": "openai", "model": "gpt-4.1", "base_url": f"{simulator.url}/v1", "api_key_env": KEY_NAME}
        lines = [
            "[tool.lmc.targets.hosted]",
            "attempts = 1",
            *(f'{name} = "{text}"' for name, text in settings.items()),
        ]
        (tmp_path / "pyproject.toml").write_text("\n".join(lines))
        ran = [
            subprocess.run(
                [sys.executable, "-c", code, *command], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            for command in COMMANDS
        ]
    assert [each.returncode for each in ran] == [0, 1, 0], [each.stderr for each in ran]
    written = {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    assert {"plan.json", "profile.json", "timeline.json", "page.html", "out.jsonl", "out.jsonl.lmcj"} <= set(written)
    printed = "".join(each.stdout + each.stderr for each in ran).encode()
    assert b"had an error" in printed
    with_text = {name for name, content in {**written, "printed": printed}.items() if PLANTED_TEXT.encode() in content}
    with_key = {name for name, content in {**written, "printed": printed}.items() if PLANTED_KEY.encode() in content}
    assert with_key == set()
    assert with_text - {"out.jsonl.lmcj-wal"} <= {"rows.jsonl", "out.jsonl", "out.jsonl.lmcj"}
    assert "rows.jsonl" in with_text


@lmc.jit
def chosen(s: Any, choices: list[str]):
    s += lmc.user("Which?")
    first = s.gen("first", max_tokens=60)
    s += lmc.user("And now?")
    return first, s.select("choice", choices)


@pytest.mark.parametrize(
    ("api", "name"),
    [("chat-reasoning", "max_completion_tokens"), ("responses", "max_output_tokens"), ("messages", "max_tokens")],
)
def test_the_allowance_for_reasoning_is_added_to_each_request(api: str, name: str):
    with hosted(), Simulator() as simulator:
        program = chosen.on(target(simulator.url, api, reasoning_tokens=500))
        assert program.run(["yes", "no"]).value[1] in ("yes", "no")
        assert [each.body[name] for each in simulator.arrivals if each.body] == [560, 500 + 16 + 3]
        count = len(simulator.arrivals)
        for run in (program.run, program.eager):
            with pytest.raises(LmcError, match=r"and 500 for reasoning, and .* gives at most"):
                run(["yes", "n" * 130_000])
        assert len(simulator.arrivals) == count + 2, "the choice was not asked for"
