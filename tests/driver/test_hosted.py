import datetime
import json
import tomllib
from dataclasses import fields
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from lmc import builtin_model
from lmc.driver.options import Options
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.hosted import SETTINGS, hosted_target, known_target, model_file, remote, spec_of
from lmc.driver.targets.registry import load_tokenizer
from lmc.ir.engine.capabilities import PARAMETERS, Capabilities
from lmc.ir.engine.target import HOSTED, RemoteSettings, Target
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import InputError

_DATA = {
    kind: tomllib.loads(resources.files("lmc.driver.targets").joinpath("models", f"{kind}.toml").read_text("utf-8"))
    for kind in HOSTED
}
_CAPABILITIES = {each.name for each in fields(Capabilities)}


def _project(folder: Path, table: str) -> Path:
    (folder / "pyproject.toml").write_text(table, encoding="utf-8")
    return folder


def _defined(folder: Path, settings: str) -> Target:
    table = f'[tool.lmc.targets.fast]\nkind = "openai"\nmodel = "gpt-4.1"\n{settings}\n'
    return resolve_target(Options("fast"), environment={}, folder=_project(folder, table))


@pytest.mark.parametrize("kind", HOSTED)
def test_a_data_file_has_a_date_a_basis_and_every_capability(kind: str):
    data = _DATA[kind]
    assert datetime.date.fromisoformat(data["date"]).isoformat() == data["date"]
    assert data["source"]
    assert set(data["capabilities"]) == _CAPABILITIES
    assert len(set(data["names"])) == len(data["names"])


@pytest.mark.parametrize("kind", HOSTED)
def test_every_entry_of_a_data_file_is_one_that_a_known_model_has(kind: str):
    data = _DATA[kind]
    for entry in data["models"]:
        assert set(entry) == {"match", "capabilities"}
        for pattern in entry["match"]:
            dated = [f"{name}-20260102" for name in data["names"]]
            assert any(fnmatchcase(name, pattern) for name in (*data["names"], *dated)), pattern
    for part in (data, *data["models"], *({"capabilities": each} for each in data.get("apis", {}).values())):
        given = part["capabilities"]
        assert set(given) <= {*_CAPABILITIES, "without", "more"}
        for name in ("parameters", "without", "more"):
            assert set(given.get(name, ())) <= set(PARAMETERS)


@pytest.mark.parametrize("kind", HOSTED)
def test_every_known_model_has_capabilities_with_dates(kind: str):
    for name in _DATA[kind]["names"]:
        for api in {"openai": ("chat", "responses"), "anthropic": ("messages",)}.get(kind, ("chat", "completions")):
            spec = f"{kind}:{name}" if kind != "server" else "server:http://127.0.0.1:1"
            known = known_target(spec, {"api": api})
            assert set(known.sources) == _CAPABILITIES
            assert {source.date for source in known.sources.values()} == {_DATA[kind]["date"]}


def test_later_entries_of_a_data_file_come_first():
    assert hosted_target("openai:gpt-5.6", {}).capabilities.max_output_tokens == 128000
    assert hosted_target("openai:gpt-9", {}).capabilities.max_output_tokens is None
    plain = hosted_target("openai:gpt-4.1", {}).capabilities
    assert (plain.stops, plain.seed) == (4, True)
    assert "temperature" in plain.parameters
    through = hosted_target("openai:gpt-4.1", {"api": "responses"}).capabilities
    assert (through.stops, through.seed) == (0, False)
    assert through.parameters == plain.parameters - {"frequency_penalty", "presence_penalty"}
    assert hosted_target("anthropic:claude-opus-4-5-20251101", {}).capabilities.continuation == "trimmed"
    assert hosted_target("anthropic:claude-opus-5", {}).capabilities.continuation == "none"


def test_sources_name_the_part_of_the_file_and_the_users_settings():
    settings = {"capabilities": {"stops": 2}, "continuation": "turns"}
    known = known_target("openai:gpt-5.6", settings, "mine")
    assert known.sources["contexts"].text == "models/openai.toml, all models"
    assert known.sources["max_output_tokens"].text == "models/openai.toml, gpt-5*, gpt-6*"
    assert (known.sources["stops"].date, known.sources["stops"].text) == (None, "mine")
    assert known.sources["continuation"].text == 'mine: continuation = "turns"'
    assert known.target.capabilities.continuation == "turns"
    assert known_target("openai:gpt-4.1", {"api": "responses"}).sources["parameters"].text.endswith("api responses")


def test_a_target_of_the_project_has_its_settings(tmp_path: Path):
    target = _defined(
        tmp_path,
        'api_key_env = "MINE"\nrequests_per_minute = 5\nfallback = "openai:gpt-4o"\ntimeout = 3.5\n'
        'capabilities = { seed = false, max_output_tokens = "none", parameters = ["temperature"] }',
    )
    assert target.spec == "openai:gpt-4.1"
    assert target.remote == RemoteSettings(
        api_key_env="MINE", requests_per_minute=5, fallback="openai:gpt-4o", timeout=3.5
    )
    assert not target.capabilities.seed
    assert target.capabilities.max_output_tokens is None
    assert target.capabilities.parameters == {"temperature"}


SECOND = '[tool.lmc.targets.second]\nkind = "anthropic"\nmodel = "claude-opus-5"\ntimeout = 7\n'


def test_a_fallback_is_a_target_of_the_project_with_its_settings(tmp_path: Path):
    target = _defined(tmp_path, f'fallback = "second"\n{SECOND}reasoning_tokens = 9\nfallback = "openai:gpt-4o"')
    assert [each.spec for each in target.chain] == ["openai:gpt-4.1", "anthropic:claude-opus-5", "openai:gpt-4o"]
    second = target.chain[1]
    assert second.remote is not None
    assert (second.remote.timeout, second.remote.reasoning_tokens) == (7, 9)
    given = remote("openai:gpt-5.6", fallback="second")  # the project is read by the call
    assert resolve_target(Options(given), environment={}, folder=tmp_path).fallback == second


TOKENIZED = f'kind = "server"\nserver = "vllm"\ntokenizer = "{builtin_model.path()}"\n'


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ('fallback = "third"', "fallback of openai:gpt-4.1 is 'third', which is no hosted model"),
        ('fallback = "toy"', "fallback of openai:gpt-4.1 is 'toy', which is no hosted model"),
        ('fallback = "openai:a b"', "no name of a model"),
        (f'fallback = "second"\n{SECOND}fallback = "fast"', "a fallback of itself"),
        (
            f'fallback = "second"\n[tool.lmc.targets.second]\nbase_url = "http://127.0.0.1:1"\n{TOKENIZED}'
            'api = "completions"',
            "second can't be the fallback of openai:gpt-4.1: its contexts are tokens, those of the target are messages",
        ),
        (
            f'[tool.lmc.targets.tokens]\nbase_url = "http://127.0.0.1:1"\n{TOKENIZED}fallback = "other"\n'
            '[tool.lmc.targets.other]\nkind = "server"\nserver = "vllm"\nbase_url = "http://127.0.0.1:2"\n'
            'tokenizer = "TOKENIZER"',
            "other can't be the fallback of server:http://127.0.0.1:1: it has another tokenizer",
        ),
    ],
)
def test_a_target_that_can_be_no_fallback_is_one_error(tmp_path: Path, settings: str, cause: str):
    (tmp_path / "tokenizer.json").write_text(toy_tokenizer().definition)
    with pytest.raises(InputError, match=cause) as raised:
        _defined(tmp_path, settings.replace("TOKENIZER", str(tmp_path)))
    assert raised.value.remedy


def test_a_server_of_the_project_has_an_address_and_perhaps_a_model():
    table = {"kind": "server", "base_url": "http://127.0.0.1:9", "model": "m", "timeout": 2}
    assert spec_of("mine", table) == ("server:http://127.0.0.1:9#m", {"timeout": 2})
    del table["model"]
    assert spec_of("mine", table) == ("server:http://127.0.0.1:9", {"timeout": 2})


@pytest.mark.parametrize("name", ["api_key", "key", "token", "OPENAI_API_KEY", "password", "client_secret"])
def test_a_key_in_a_file_is_refused_and_not_repeated(tmp_path: Path, name: str):
    with pytest.raises(InputError) as raised:
        _defined(tmp_path, f'{name} = "sk-very-private"')
    assert "is written in a file or in the program" in str(raised.value)
    assert "api_key_env" in (raised.value.remedy or "")
    assert "sk-very-private" not in f"{raised.value}{raised.value.remedy}"
    with pytest.raises(InputError, match="is written in a file or in the program"):
        remote("openai:gpt-5.6", **{name: "sk-very-private"})


@pytest.mark.parametrize(
    ("spec", "wish"),
    [
        ("gpt-5.6", "did you mean 'openai:gpt-5.6'?"),
        ("claude-opus-5", "did you mean 'anthropic:claude-opus-5'?"),
        ("opnai:gpt-5.6", "did you mean 'openai:gpt-5.6'?"),
        ("OpenAI:gpt-5.6", "did you mean 'openai:gpt-5.6'?"),
        ("openai", "name openai:MODEL"),
        ("openai:", "name openai:MODEL"),
        ("fast", "a target of [tool.lmc.targets] has its settings there"),
        ("builtin", "name openai:MODEL"),
        ("../x:y", "name openai:MODEL"),
        (None, "name openai:MODEL"),
    ],
)
def test_a_text_that_is_no_hosted_model_is_one_error(spec: Any, wish: str):
    with pytest.raises(InputError, match="is no hosted model") as raised:
        remote(spec, requests_per_minute=5)
    assert wish in (raised.value.remedy or "")


@pytest.mark.parametrize(
    ("model", "wish"),
    [
        ("gpt-5.6", "'openai:gpt-5.6'"),
        ("opnai:gpt-5.6", "'openai:gpt-5.6'"),
        ("fats", "'fast'"),
        ("builtn", "'builtin'"),
    ],
)
def test_a_target_with_a_slip_of_the_pen_names_the_one_that_is_meant(tmp_path: Path, model: str, wish: str):
    _defined(tmp_path, "")
    with pytest.raises(InputError, match=f"unknown target '{model}'") as raised:
        resolve_target(Options(model), environment={}, folder=tmp_path)
    assert f"did you mean {wish}?" in (raised.value.remedy or "")


def test_a_path_that_is_a_model_of_a_provider_names_it():
    with pytest.raises(InputError, match="there is no model folder") as raised:
        load_tokenizer(Target.parse(f"local:{Path.cwd() / 'gpt-5.6'}"))
    assert "did you mean openai:gpt-5.6?" in (raised.value.remedy or "")


@pytest.mark.parametrize("name", ["tokens_per_min", "max_tokens", "kv_token", "reasoning_token", "tokeniser"])
def test_a_setting_about_tokens_is_no_key(name: str):
    with pytest.raises(InputError, match=f"a target has no setting '{name}'"):
        remote("openai:gpt-5.6", **{name: 5})


def test_errors_of_a_table_name_it_and_its_paths_are_relative_to_its_file(tmp_path: Path):
    with pytest.raises(
        InputError, match=r"pyproject.toml: \[tool.lmc.targets.fast\]: openai:gpt-4.1: concurrency is 0"
    ):
        _defined(tmp_path, "concurrency = 0")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.lmc.targets.fast]\nkind = "server"\nserver = "vllm"\n'
        'base_url = "http://127.0.0.1:1"\ntokenizer = "m/t"\n'
    )
    inner = tmp_path / "scripts"
    inner.mkdir()
    found = resolve_target(Options("fast"), environment={}, folder=inner).remote
    assert found is not None
    assert found.tokenizer == str(tmp_path / "m" / "t")


@pytest.mark.parametrize(
    ("settings", "cause", "remedy"),
    [
        ({"timeuot": 3}, "a target has no setting 'timeuot'", "did you mean 'timeout'?"),
        ({"timeout": 0}, "timeout is 0", "greater than 0"),
        ({"timeout": True}, "timeout is True", "greater than 0"),
        ({"attempts": 0}, "attempts is 0", "from 1 on"),
        ({"requests_per_minute": 1.5}, "requests_per_minute is 1.5", "from 1 on"),
        ({"api": "messages"}, "openai has no api 'messages'", "use chat or responses"),
        ({"api": "chats"}, "api is 'chats'", "responses, chat, completions, messages"),
        ({"continuation": "yes"}, "continuation is 'yes'", "error, turns"),
        ({"session_header": "x-session-id"}, "session_header is for targets of the kind server", "leave it out"),
        ({"capabilities": {"stop": 3}}, "there is no capability 'stop'", "did you mean 'stops'?"),
        ({"capabilities": {"zzz": 3}}, "there is no capability 'zzz'", "there are contexts"),
        ({"capabilities": {"structured": "all"}}, "structured is 'all'", "exact, schema, none"),
        ({"capabilities": {"stops": "none"}}, "stops is 'none'", "integer"),
        ({"capabilities": [1]}, r"capabilities of openai:gpt-5.6 are \[1\]", "give a table"),
    ],
)
def test_a_wrong_setting_is_one_error(settings: dict[str, Any], cause: str, remedy: str):
    with pytest.raises(InputError, match=cause) as raised:
        hosted_target("openai:gpt-5.6", settings)
    assert remedy in (raised.value.remedy or "")


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ("openai:a b", "no name of a model"),
        ("server:localhost:8000", "no address of a server"),
        ("server:ftp://host", "no address of a server"),
        ("server:http://u:p@host:1", "holds a password"),
        ("server:http://[", "no address of a server"),
    ],
)
def test_a_wrong_model_or_address_is_one_error(spec: str, cause: str):
    with pytest.raises(InputError, match=cause) as raised:
        hosted_target(spec, {})
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("table", "cause"),
    [
        ({}, "kind of target 'x' is None"),
        ({"kind": "toy"}, "kind of target 'x' is 'toy'"),
        ({"kind": "openai"}, "has no model"),
        ({"kind": "server"}, "has no base_url"),
    ],
)
def test_a_table_without_its_parts_is_one_error(table: dict[str, Any], cause: str):
    with pytest.raises(InputError, match=cause):
        spec_of("x", table)


def test_models_that_the_file_does_not_name_have_near_names():
    file = model_file("openai")
    assert file.knows("gpt-5.6")
    assert file.knows("gpt-4.1-2025-04-14")
    assert not file.knows("gpt-5.66")
    assert file.near("gpt-5.66")[0] == "gpt-5.6"
    assert model_file("anthropic").knows("claude-opus-4-5-20251101")


def test_the_documentation_of_remote_names_all_settings():
    for name in SETTINGS:
        assert f"``{name}``" in (remote.__doc__ or "")
    assert json.dumps(remote("openai:gpt-5.6", timeout=3).settings) == '{"timeout": 3}'


def test_a_key_in_place_of_the_name_of_its_variable_is_not_shown():
    with pytest.raises(InputError, match="api_key_env is no name") as caught:
        remote("openai:gpt-5.6", api_key_env="sk-proj-123")
    assert "sk-proj" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://user:pw@127.0.0.1:1", "http://127.0.0.1:1?api_key=pw"])
def test_an_address_holds_no_secret(address: str):
    for make in (lambda: remote(f"server:{address}"), lambda: remote("openai:gpt-5.6", base_url=address)):
        with pytest.raises(InputError, match="holds a password, or parameters"):
            make()


def test_text_has_no_scores_and_no_tokens():
    found = hosted_target(
        "server:http://127.0.0.1:1", {"server": "vllm", "api": "completions", "capabilities": {"contexts": "text"}}
    ).capabilities
    assert (found.scores, found.logprobs) == (False, -1)
    assert not {"logit_bias", "stop_token_ids"} & found.parameters
