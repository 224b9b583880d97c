"""Probes of servers, and their cache: runs ask a server, compilation never does."""

import asyncio
import datetime
import inspect
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc import builtin_model
from lmc.cli.app import main
from lmc.driver import Options, Runner, close_engine
from lmc.driver.targets import probes
from lmc.driver.targets.defaults import resolve_target, target_of_run
from lmc.driver.targets.hosted import hosted_target, known_target
from lmc.driver.targets.probes import MOST_SERVERS, DatedProbe, known_probe, probe_again, probe_once
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import EngineError, InputError, LoweringError
from lmc.runtime.remote.probe import Probe, ServedModel, probe, served_model
from tests.runtime.remote.hosted_runs import answer, hosted
from tests.runtime.remote.hosted_runs import target as hosted_place
from tests.runtime.remote.simulator import Simulator
from tests.runtime.server.servers import Served, served


@pytest.fixture(scope="module")
def toy() -> Generator[Served]:
    with served("--model", "toy") as server:
        yield server


@pytest.fixture(scope="module")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, tokenizer = tmp_path_factory.mktemp("toy"), toy_tokenizer()
    (folder / "tokenizer.json").write_text(tokenizer.definition)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": tokenizer.chat_template}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": list(tokenizer.eos_ids)}))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The file of the cache, of this test alone."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("LMC_PROBE_CACHE", str(folder / "servers.json"))
    probes.forget_probes()
    yield folder / "servers.json"
    probes.forget_probes()


class Scripted:
    """A server with scripted answers; ``asked`` are the paths of its requests."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[str] = []
        self.keys: list[str | None] = []
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def _answer(self, body: Any) -> None:
                scripted.asked.append(self.path)
                scripted.keys.append(self.headers.get("authorization"))
                status, data = scripted.answers.get(self.path, (404, {"error": "no"}))
                data = data(body) if callable(data) else data
                text = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def scripted() -> Generator[Scripted]:
    server = Scripted()
    thread = threading.Thread(target=server.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    server.answers["/v1/models"] = (200, {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 99}]})
    yield server
    server.server.shutdown()
    server.server.server_close()
    thread.join()


def _completion(body: Any) -> Any:
    """What a server answers that takes token ids and echoes."""
    if body.get("echo"):
        ids = body["prompt"]
        logprobs = {"tokens": [f"<{each}>" for each in ids], "token_logprobs": [None, *[-1.0] * (len(ids) - 1)]}
        return {"choices": [{"text": "", "logprobs": logprobs}], "usage": {"prompt_tokens": len(ids)}}
    return {"choices": [{"text": "a", "token_ids": [5]}], "usage": {"prompt_tokens": len(body["prompt"])}}


def test_lmc_serve_takes_ids_and_echoes(toy: Served, toy_folder: Path):
    target = hosted_target(f"server:{toy.url}", {})
    found = probe(target)
    assert found == Probe(served_model(target), token_ids=True, echo=True)
    assert (found.model.owner, found.model.name) == ("lmc", "toy")
    assert found.model.context_length
    assert probe(hosted_target(f"server:{toy.url}", {"tokenizer": str(toy_folder)})).tokenizer == str(toy_folder)
    with pytest.raises(InputError, match="has no model 'other'") as raised:
        probe(hosted_target(f"server:{toy.url}#other", {}))
    assert "it has toy" in (raised.value.remedy or "")


@pytest.mark.usefixtures("cache")
def test_a_vllm_that_refuses_priorities_gets_none(scripted: Scripted):
    scripted.answers["/v1/completions"] = (200, lambda body: {"error": 1} if "priority" in body else _completion(body))
    target = target_of_run(Options(f"server:{scripted.url}"))
    assert not probe(target).priority
    assert target.capabilities.priority == "none"


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1beta/openai", "/v1beta/openai/", "/proxy"])
def test_an_address_with_a_path_is_taken_as_it_is(scripted: Scripted, path: str):
    base = path.rstrip("/") or "/v1"
    scripted.answers[f"{base}/models"] = (200, {"data": [{"id": "m", "owned_by": "other"}]})
    message = {"role": "assistant", "content": "yes"}
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    chosen = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = {"id": "a", "object": "chat.completion", "created": 0, "model": "m", "choices": [chosen], "usage": usage}
    scripted.answers[f"{base}/chat/completions"] = (200, answer)

    @lmc.jit
    def plain(s: Any):
        s += lmc.user("a")
        return s.gen("a", max_tokens=3)

    options = Options(f"server:{scripted.url}{path}#m")
    if base != "/v1":
        del scripted.answers["/v1/models"]
    assert Runner(plain, options).run(((), {})).value == "yes"
    assert {each.rpartition("/")[0].removesuffix("/chat") for each in scripted.asked} == {base}
    close_engine(options)


def test_a_tokenizer_of_another_model_is_refused(toy: Served):
    other = str(builtin_model.path())
    with pytest.raises(InputError, match="is not that of 'toy'"):
        probe(hosted_target(f"server:{toy.url}", {"tokenizer": other}))


def test_a_tokenizer_of_few_words_is_taken_as_its_user_says(scripted: Scripted, tmp_path: Path):
    """The sample has none of its words: nothing tells against it, and nothing for it."""
    model = {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1}, "unk_token": "<unk>"}
    text = json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model})
    (tmp_path / "tokenizer.json").write_text(text)
    scripted.answers["/v1/completions"] = (200, _completion)
    found = probe(hosted_target(f"server:{scripted.url}", {"tokenizer": str(tmp_path)}))
    assert (found.token_ids, found.echo, found.tokenizer) == (True, True, None)
    entry = {"id": "m", "owned_by": "vllm", "root": str(tmp_path)}
    scripted.answers["/v1/models"] = (200, {"data": [entry]})
    assert probe(hosted_target(f"server:{scripted.url}", {})).tokenizer is None


@lmc.jit
def program(s: Any, topic: str):
    s += lmc.user(f"What is {topic}?")
    first = s.gen("first", max_tokens=6)
    return first, s.select("sure", ["yes", "no"], method="token_length_normalized")


@pytest.mark.usefixtures("cache")
def test_the_first_run_probes_and_contexts_are_tokens(toy: Served, toy_folder: Path):
    """The program compares scores, which a chat API has not."""
    target = lmc.remote(f"server:{toy.url}", tokenizer=str(toy_folder))
    options = Options(target)
    assert known_probe(toy.url) is None
    found = Runner(program, options).run((("rain",), {}))
    assert found.value == Runner(program, Options("toy")).run((("rain",), {})).value
    known = known_probe(toy.url)
    assert known is not None
    assert known.date == datetime.datetime.now(datetime.UTC).date()
    bare = resolve_target(Options(f"server:{toy.url}"))  # the probe has found the tokenizer
    assert bare.remote is not None
    assert (bare.remote.api, bare.remote.tokenizer) == ("completions", str(toy_folder))
    assert bare.remote.context_length == known.probe.model.context_length
    assert bare.capabilities.contexts == "tokens"
    assert "min_tokens" in bare.capabilities.parameters  # by its kind
    sources = known_target(f"server:{toy.url}", {}).sources
    assert sources["scores"].text == f"probe of {toy.url}"
    assert sources["scores"].date == known.date.isoformat()
    assert sources["structured"].text == "models/server.toml, lmc"
    chosen = resolve_target(Options(lmc.remote(f"server:{toy.url}", api="chat")))
    assert chosen.capabilities.contexts == "messages"
    safe = resolve_target(Options(lmc.remote(f"server:{toy.url}", fallback="openai:gpt-5.6")))
    assert safe.capabilities.contexts == "messages"
    close_engine(options)


def asks_nothing(_: Any) -> Any:
    raise AssertionError("a server is asked for its model")


@pytest.mark.usefixtures("toy")  # a first server starts before the modules are put aside
@pytest.mark.parametrize("declared", ["", 'server = "lmc"\n'])
def test_a_run_on_a_server_is_replayed_without_it(
    cache: Path,
    toy_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    declared: str,
):
    """Contexts are tokens, as in the run, though the probe is gone. Nothing connects to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    code = inspect.getsource(program.definition)
    Path("scored.py").write_text(f"import lmc\nfrom typing import Any\n\n{code}")
    Path("rows.jsonl").write_text('{"topic": "rain"}\n')
    command = ["lmc", "run", "scored.py", "--input", "rows.jsonl"]
    with served("--model", "toy") as server:
        table = f'[tool.lmc.targets.mine]\nkind = "server"\nbase_url = "{server.url}"\ntokenizer = "{toy_folder}"\n'
        Path("pyproject.toml").write_text(table + declared)
        monkeypatch.setattr(sys, "argv", [*command, "-o", "out.jsonl", "--model", "mine"])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    Path("pyproject.toml").unlink()
    cache.unlink(missing_ok=True)
    probes.forget_probes()
    monkeypatch.setattr(probes, "served_model", asks_nothing)
    monkeypatch.setattr(sys, "argv", [*command, "-o", "again.jsonl", "--replay", "out.jsonl.lmcj"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, capsys.readouterr().err
    assert Path("again.jsonl").read_text() == Path("out.jsonl").read_text()


@pytest.mark.parametrize("declared", [{}, {"server": "vllm"}])
@pytest.mark.parametrize("is_down_first", [True, False])
def test_a_fallback_that_is_down_does_not_block_a_resumption(
    scripted: Scripted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    declared: dict[str, str],
    is_down_first: bool,
):
    monkeypatch.setenv("LMC_PROBE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in declared.items())
    Path("pyproject.toml").write_text(f'[tool.lmc.targets.second]\nkind="server"\nbase_url="{scripted.url}"\n{table}')
    models = {True: (500, {}), False: scripted.answers["/v1/models"]}
    with hosted(), Simulator() as simulator:
        program = answer.on(hosted_place(simulator.url, "chat", fallback="second"), journal=str(tmp_path / "j"))
        for is_down in (is_down_first, not is_down_first):
            probes.forget_probes()
            scripted.answers["/v1/models"] = models[is_down]
            found = program.on(resume=is_down != is_down_first).batch([{"question": "What?"}])
            assert [each.error for each in found] == [None]
        assert len(simulator.arrivals) == 1
    probes.forget_probes()
    scripted.answers["/v1/models"] = models[False]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.usefixtures("cache")
def test_a_run_in_an_event_loop_does_not_block_it(
    streams: bool, toy: Served, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    threads: list[threading.Thread] = []
    monkeypatch.setattr(probes, "probe", lambda target: threads.append(threading.current_thread()) or probe(target))
    options = Options(lmc.remote(f"server:{toy.url}", tokenizer=str(toy_folder)))
    runner = Runner(program, options)

    async def streamed() -> Any:
        stream = runner.astream((("rain",), {}))
        async for _ in stream:
            pass
        return stream.result

    found = asyncio.run(streamed() if streams else runner.arun((("rain",), {})))
    assert found.value == Runner(program, Options("toy")).run((("rain",), {})).value
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
    close_engine(options)


@pytest.mark.usefixtures("cache")
def test_compilation_opens_no_connection(scripted: Scripted):
    options = Options(f"server:{scripted.url}")

    @lmc.jit
    def plain(s: Any):
        s += lmc.user("a")
        s.gen("a")

    Runner(plain, options).compile(((), {}))
    with pytest.raises(LoweringError) as raised:
        Runner(program, options).compile((("rain",), {}))
    assert (raised.value.remedy or "").endswith(f"lmc targets server:{scripted.url}")
    lmc.remote(f"server:{scripted.url}", timeout=3)
    assert scripted.asked == []
    target_of_run(options)
    before = len(scripted.asked)
    assert before > 0
    Runner(plain, options).compile(((), {}))
    with pytest.raises(LoweringError) as raised:
        Runner(program, options).compile((("rain",), {}))
    assert "lmc targets" not in (raised.value.remedy or "")
    assert len(scripted.asked) == before


def test_a_probe_is_cached_per_address_for_the_user_alone(cache: Path, scripted: Scripted):
    scripted.answers["/v1/completions"] = (200, _completion)
    spec = f"server:{scripted.url}"
    target = target_of_run(Options(spec))
    assert target.remote is not None
    assert target.remote.context_length == 99
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]
    asked = len(scripted.asked)
    target_of_run(Options(spec))
    assert len(scripted.asked) == asked
    probes.forget_probes()  # as in another process
    assert known_probe(scripted.url) == DatedProbe(
        datetime.datetime.now(datetime.UTC).date(),
        Probe(ServedModel("vllm", "m", 99), token_ids=True, echo=True, priority=True),
    )
    assert hosted_target(spec, {}).capabilities.priority == "falling"
    target_of_run(Options(spec))
    assert scripted.asked[asked:] == ["/v1/models"]  # is it the same model?


_CACHE = 'vllm:cache_config_info{{block_size="{}",engine="{}",num_cpu_blocks="None",num_gpu_blocks="{}"}} 1.0'


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("owner", "path", "told", "pool"),
    [
        ("vllm", "/metrics", _CACHE.format(128, 0, 37).encode(), (4736, 128)),
        ("vllm", "/metrics", f"# x\n{_CACHE.format(16, 0, 10)}\n{_CACHE.format(16, 1, 20)}\n".encode(), (480, 16)),
        ("vllm", "/metrics", _CACHE.format("None", 0, 37).encode(), (None, 1)),
        ("vllm", "/metrics", b"vllm:num_requests_running 0.0\n\xff", (None, 1)),
        ("sglang", "/server_info", {"max_total_num_tokens": 5000, "page_size": 64}, (5000, 64)),
        (
            "vllm",
            "/metrics",
            _CACHE.format(16, 0, 10).replace("num_cpu", 'kv_cache_size_tokens="80",num_cpu').encode(),
            (80, 16),
        ),
        ("sglang", "/server_info", {"max_total_num_tokens": 5000}, (5000, 1)),
        ("sglang", "/get_server_info", {"max_total_num_tokens": 5000}, (5000, 1)),
        ("sglang", "/server_info", {"max_total_num_tokens": "5000"}, (None, 1)),
        ("lmc", "/server_info", {"max_total_num_tokens": None}, (None, 1)),
        ("lmc", "/server_info", [], (None, 1)),
        ("other", "/server_info", {"max_total_num_tokens": 5000}, (None, 1)),
    ],
)
def test_the_kv_pool_is_that_of_the_server_unless_it_is_set(
    owner: str, path: str, told: Any, pool: Any, scripted: Scripted
):
    scripted.answers["/v1/models"] = (200, {"data": [{"id": "m", "owned_by": owner}]})
    scripted.answers["/v1/completions"] = (200, _completion)
    scripted.answers[path] = (200, told)
    remote = target_of_run(Options(f"server:{scripted.url}")).remote
    assert remote is not None
    assert (remote.kv_tokens, remote.kv_page) == pool
    for given in ({"kv_tokens": 77, "kv_page": 11}, {"kv_tokens": 77}, {"kv_page": 11}):
        remote = hosted_target(f"server:{scripted.url}", given).remote
        assert remote is not None
        assert (remote.kv_tokens, remote.kv_page) == (given.get("kv_tokens", pool[0]), given.get("kv_page", pool[1]))
    remote = hosted_target(f"server:{scripted.url}", {"session_header": "x-session-id"}).remote
    assert remote is not None
    assert remote.kv_tokens is None  # that of one of several servers


@pytest.mark.usefixtures("cache")
def test_a_server_without_metrics_is_used_as_before_and_they_get_no_key(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET", "sk-1")
    scripted.answers["/v1/completions"] = (200, _completion)

    def gone(_: Any) -> Any:
        raise ConnectionAbortedError

    scripted.answers["/metrics"] = (200, gone)
    remote = target_of_run(Options(lmc.remote(f"server:{scripted.url}", api_key_env="SECRET"))).remote
    assert remote is not None
    assert (remote.kv_tokens, remote.context_length) == (None, 99)
    keys = dict(zip(scripted.asked, scripted.keys, strict=True))
    assert keys == {"/v1/models": "Bearer sk-1", "/metrics": None, "/v1/completions": "Bearer sk-1"}


@pytest.mark.parametrize("name", ["kv_tokens", "kv_page"])
def test_only_servers_have_a_pool(name: str):
    with pytest.raises(InputError, match=f"{name} is for targets of the kind server"):
        lmc.remote("openai:gpt-5.6", **{name: 16})
    with pytest.raises(InputError, match=f"{name} is 0"):
        lmc.remote("server:http://h:1", **{name: 0})


@pytest.mark.usefixtures("cache")
def test_another_model_at_the_address_is_probed_anew(scripted: Scripted):
    scripted.answers["/v1/completions"] = (200, _completion)
    target = hosted_target(f"server:{scripted.url}", {})
    probe_once(target)
    scripted.answers["/v1/models"] = (200, {"data": [{"id": "other", "owned_by": "llamacpp"}]})
    del scripted.answers["/v1/completions"]
    probe_once(target)  # in the process that has asked already
    probes.forget_probes()
    probe_once(target)
    known = known_probe(scripted.url)
    assert known is not None
    assert known.probe == Probe(ServedModel("llamacpp", "other"), token_ids=False, echo=False)


_ENTRY = {"id": "m", "owned_by": "vllm", "root": "/models/m"}


def _chat(body: Any) -> Any:
    """The answer of a server to messages."""
    message = {"role": "assistant", "content": f"text {len(body['messages'])}"}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }


@lmc.jit
def chatted(s: Any, topic: str):
    s += lmc.user(topic)
    return s.gen("a", max_tokens=6)


Change = Callable[[Scripted, Path], Any]


def _serving(**changed: Any) -> Change:
    return lambda server, _: server.answers.update({"/v1/models": (200, {"data": [{**_ENTRY, **changed}]})})


def _rewritten(_: Scripted, folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))


def _without_ids(server: Scripted, folder: Path) -> None:
    _serving(max_model_len=50)(server, folder)
    del server.answers["/v1/completions"]


CHANGES: list[tuple[dict[str, Any], Change, str]] = [
    ({}, _serving(id="other"), "the served model is other, and was m"),
    ({}, _serving(root="/models/o"), "the folder of the served model is /models/o, and was /models/m"),
    ({}, _serving(owned_by="llamacpp"), "the kind of the server is llamacpp, and was vllm"),
    ({"server": "vllm"}, _serving(id="other"), "the served model is other, and was m"),
    ({"api": "completions"}, _rewritten, "the tokenizer is "),
    ({"api": "completions"}, _without_ids, "capability scores is False"),
]


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("in_process", [False, True])
@pytest.mark.parametrize(("settings", "change", "cause"), CHANGES)
def test_a_run_on_another_model_behind_the_address_is_not_resumed(
    scripted: Scripted,
    toy_folder: Path,
    tmp_path: Path,
    settings: dict[str, Any],
    change: Change,
    cause: str,
    *,
    in_process: bool,
):
    shutil.copytree(toy_folder, tmp_path / "tokenizer")
    if "server" not in settings:
        settings = {**settings, "tokenizer": str(tmp_path / "tokenizer")}
    settings = {"api": "chat", **settings}
    _serving()(scripted, tmp_path)

    def honest(body: Any) -> Any:
        data: Any = {**_completion(body), "id": "1", "object": "text_completion", "created": 1, "model": "m"}
        if body.get("echo"):
            data["choices"][0]["logprobs"]["tokens"] = [toy_tokenizer().decode((each,)) for each in body["prompt"]]
        data["choices"][0] |= {"finish_reason": "stop", "index": 0}
        data["usage"] |= {"completion_tokens": 1, "total_tokens": 1 + data["usage"]["prompt_tokens"]}
        return data

    scripted.answers |= {"/v1/completions": (200, honest), "/v1/chat/completions": (200, _chat)}
    kept = chatted.on(lmc.remote(f"server:{scripted.url}", **settings), journal=tmp_path / "j")
    first = [each.value for each in kept.batch([{"topic": "rain"}, {"topic": "sun"}])]
    assert first[0]
    again = kept.on(resume=True)
    assert [each.value for each in again.batch([{"topic": "rain"}, {"topic": "sun"}])] == first
    change(scripted, tmp_path / "tokenizer")
    if not in_process:
        probes.forget_probes()
    with pytest.raises(InputError, match=f"can't be resumed: .*{cause}"):
        again.batch([{"topic": "rain"}, {"topic": "sun"}])
    lmc.close()


@pytest.mark.usefixtures("cache")
def test_a_declared_server_is_not_asked(scripted: Scripted):
    settings = {"server": "vllm", "capabilities": {"stops": 2}}
    target = target_of_run(Options(lmc.remote(f"server:{scripted.url}", **settings)))
    assert scripted.asked == []
    assert (target.capabilities.structured, target.capabilities.stops) == ("exact", 2)
    with pytest.raises(InputError, match="server is 'vlm'") as raised:
        hosted_target(f"server:{scripted.url}", {"server": "vlm"})
    assert raised.value.remedy == "did you mean 'vllm'?"
    with pytest.raises(InputError, match="server is for targets of the kind server"):
        hosted_target("openai:gpt-5.6", {"server": "vllm"})


@pytest.mark.usefixtures("cache")
def test_a_users_capabilities_come_last(scripted: Scripted):
    scripted.answers["/v1/completions"] = (200, _completion)
    settings = {"api": "completions", "capabilities": {"scores": False}}
    target_of_run(Options(lmc.remote(f"server:{scripted.url}", **settings)))
    assert not hosted_target(f"server:{scripted.url}", settings).capabilities.scores
    assert hosted_target(f"server:{scripted.url}", {"api": "completions"}).capabilities.scores


@pytest.mark.usefixtures("cache")
def test_a_server_that_is_not_there_is_one_error(scripted: Scripted):
    nobody = "http://127.0.0.1:1"
    with pytest.raises(EngineError, match=f"{nobody}/v1 can't be reached") as raised:
        target_of_run(Options(f"server:{nobody}"))
    assert f"lmc targets server:{nobody}" in (raised.value.remedy or "")
    target_of_run(Options(lmc.remote(f"server:{nobody}", fallback="openai:gpt-5.6")))
    probe_once(hosted_target(f"server:{scripted.url}", {}))
    probes.forget_probes()
    scripted.answers["/v1/models"] = (500, {})
    probe_once(hosted_target(f"server:{scripted.url}", {}))  # the run tells


_LONG = json.dumps({"data": [{"id": "m"}], "more": "x" * (5 << 20)}).encode()


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ((401, {"error": "who"}), "refuses the key"),
        ((500, {}), "GET /models answers 500"),
        ((200, b"<html>"), "has no list of models"),
        ((200, b"[" * 100_000), "has no list of models"),
        ((200, _LONG), "has no list of models"),
        ((200, []), "has no list of models"),
        ((200, {"data": []}), "has no list of models"),
        ((200, {"data": [{"id": ""}, {"id": 3}, None, {"id": "a\nb"}, {"id": "x" * 5000}]}), "has no list of models"),
    ],
)
def test_a_list_of_models_of_another_form_is_one_error(scripted: Scripted, answer: tuple[int, Any], cause: str):
    scripted.answers["/v1/models"] = answer
    with pytest.raises(EngineError, match=cause) as raised:
        probe(hosted_target(f"server:{scripted.url}", {}))
    assert raised.value.remedy


def _without(change: Callable[[Any], None], *, echo: bool) -> Callable[[Any], Any]:
    def answer(body: Any) -> Any:
        data = _completion(body)
        if bool(body.get("echo")) == echo:
            change(data)
        return data

    return answer


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["choices"][0].pop("token_ids"),
        lambda data: data["choices"][0].update(token_ids="ab"),
        lambda data: data["choices"][0].update(token_ids=[True]),
        lambda data: data["choices"][0].update(token_ids=[1, 2]),
        lambda data: data["usage"].update(prompt_tokens=9),
        lambda data: data.pop("usage"),
        lambda data: data.update(choices=[]),
        lambda data: data.update(choices=[7]),
    ],
)
def test_ids_that_do_not_come_back_are_not_used(scripted: Scripted, change: Callable[[Any], None]):
    scripted.answers["/v1/completions"] = (200, _without(change, echo=False))
    found = probe(hosted_target(f"server:{scripted.url}", {}))
    assert (found.token_ids, found.echo) == (False, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["choices"][0].update(logprobs=None),
        lambda data: data["choices"][0]["logprobs"].update(tokens=["a"]),
        lambda data: data["choices"][0]["logprobs"].update(token_logprobs=[None, "a", "b"]),
        lambda data: data["choices"][0]["logprobs"].update(token_logprobs=[None, None, None]),
    ],
)
def test_an_echo_without_log_probabilities_scores_nothing(scripted: Scripted, change: Callable[[Any], None]):
    scripted.answers["/v1/completions"] = (200, _without(change, echo=True))
    found = probe(hosted_target(f"server:{scripted.url}", {}))
    assert (found.token_ids, found.echo) == (True, False)


def test_a_folder_that_the_server_names_counts_if_its_texts_are_the_servers(
    scripted: Scripted, toy_folder: Path, tmp_path: Path
):
    """It may be another model's folder: the server may be on another machine."""
    entry = {"id": "m", "owned_by": "vllm", "root": str(toy_folder)}
    scripted.answers["/v1/models"] = (200, {"data": [entry]})
    scripted.answers["/v1/completions"] = (200, _completion)
    assert probe(hosted_target(f"server:{scripted.url}", {})).tokenizer is None

    def honest(body: Any) -> Any:
        data = _completion(body)
        if body.get("echo"):
            data["choices"][0]["logprobs"]["tokens"] = [toy_tokenizer().decode((each,)) for each in body["prompt"]]
        return data

    scripted.answers["/v1/completions"] = (200, honest)
    assert probe(hosted_target(f"server:{scripted.url}", {})).tokenizer == str(toy_folder)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "tokenizer.json").write_text("{")
    for root in ("not/absolute", str(broken), str(tmp_path), 7):
        scripted.answers["/v1/models"] = (200, {"data": [{**entry, "root": root}]})
        assert probe(hosted_target(f"server:{scripted.url}", {})).tokenizer is None
    with pytest.raises(InputError):
        probe(hosted_target(f"server:{scripted.url}", {"tokenizer": str(broken)}))


@pytest.mark.usefixtures("cache")
def test_a_key_comes_from_the_environment(scripted: Scripted, cache: Path, monkeypatch: pytest.MonkeyPatch):
    target = hosted_target(f"server:{scripted.url}", {"api_key_env": "MY_KEY"})
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(InputError, match="MY_KEY is not set"):
        probe_again(target)
    monkeypatch.setenv("MY_KEY", "sk-planted")
    probe_again(target)
    assert set(scripted.keys) == {"Bearer sk-planted"}
    assert "sk-planted" not in cache.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "servers": {}}',
        '{"version": 1, "servers": []}',
        '{"version": 1, "servers": {"http://a": {}}}',
        '{"version": 1, "servers": {"http://a": {"date": "soon", "probe": {}}}}',
        "[" * 200_000,
        " " * (2 << 20),
        "\xff",
    ],
)
def test_a_cache_of_another_form_is_ignored_with_a_warning(cache: Path, scripted: Scripted, text: str):
    cache.write_text(text, encoding="latin-1")
    with pytest.warns(UserWarning, match="no cache of probes"):
        assert known_probe("http://a") is None
    probe_once(hosted_target(f"server:{scripted.url}", {}))
    assert list(json.loads(cache.read_text())["servers"]) == [scripted.url]


def test_the_cache_is_bounded(cache: Path, scripted: Scripted):
    old = DatedProbe(datetime.date(2026, 1, 1), Probe(ServedModel("vllm", "m"), token_ids=False, echo=False))
    entry = {"date": "2026-01-01", "probe": {"model": {"owner": "v", "name": "m"}, "token_ids": False, "echo": False}}
    servers = {f"http://h:{number + 1}": entry for number in range(MOST_SERVERS)}
    cache.write_text(json.dumps({"version": 1, "servers": servers}))
    assert known_probe("http://h:5") == replace(old, probe=replace(old.probe, model=ServedModel("v", "m")))
    probe_again(hosted_target(f"server:{scripted.url}", {}))
    kept = json.loads(cache.read_text())["servers"]
    assert len(kept) == MOST_SERVERS
    assert scripted.url in kept


def test_a_cache_that_can_not_be_written_costs_another_probe(cache: Path, scripted: Scripted):
    cache.parent.chmod(0o777)  # others could change it
    probe_again(hosted_target(f"server:{scripted.url}", {}))
    assert not cache.exists()
    assert known_probe(scripted.url) is not None


def test_the_http_library_loads_with_the_first_request():
    code = "import sys, lmc.driver.targets.defaults; print([n for n in ('httpx2', 'openai') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout.strip() == "[]", done.stderr
