import datetime
import json
from collections.abc import Callable, Generator
from dataclasses import fields
from pathlib import Path

import pytest

from lmc.driver.targets import probes
from lmc.ir.engine.capabilities import Capabilities
from tests.runtime.server.servers import served

PROJECT = """
[tool.lmc.targets.fast]
kind = "openai"
model = "gpt-4.1"
api_key_env = "MY_KEY"
requests_per_minute = 500
capabilities = { stops = 3 }

[tool.lmc.targets.near]
kind = "server"
base_url = "http://127.0.0.1:1"

[tool.lmc.targets.declared]
kind = "server"
base_url = "http://127.0.0.1:1"
server = "vllm"
"""
SECRET = "sk-planted-0123456789"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def cached_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The file of the cache, of this test alone."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("LMC_PROBE_CACHE", str(folder / "servers.json"))
    probes.forget_probes()
    yield folder / "servers.json"
    probes.forget_probes()


def test_kinds_and_names_are_listed_with_their_definition(lmc: Callable, tmp_path: Path):
    said = lmc("targets")
    assert (said.code, said.err) == (0, "")
    rows = [line.split("  ") for line in said.out.splitlines()]
    assert "openai:MODEL" in [row[0] for row in rows]
    found = {each["target"]: each for each in json.loads(lmc("targets", "--json").out)}
    assert {"anthropic:MODEL", "builtin", "hf:ORG/NAME[@REVISION]", "local:PATH", "toy"} < set(found)
    file = str(tmp_path / "pyproject.toml")
    assert found["fast"] == {"target": "fast", "stands_for": "openai:gpt-4.1", "defined_in": file}
    assert found["near"] == {"target": "near", "stands_for": "server:http://127.0.0.1:1", "defined_in": file}


def test_a_target_has_capabilities_with_dates_and_sources(lmc: Callable):
    said = lmc("targets", "fast", "--json")
    assert (said.code, said.err) == (0, "")
    data = json.loads(said.out)
    assert data["target"] == "openai:gpt-4.1"
    assert list(data["capabilities"]) == [each.name for each in fields(Capabilities)]
    assert data["capabilities"]["contexts"]["value"] == "messages"
    assert data["capabilities"]["contexts"]["date"] == "2026-11-20"
    stops = data["capabilities"]["stops"]
    assert (stops["value"], stops["date"]) == (3, None)
    assert stops["source"].startswith("[tool.lmc.targets.fast] in ")
    assert data["settings"]["requests_per_minute"] == 500
    assert data["remarks"] == []


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("target", [(), ("fast",)])
def test_a_key_is_named_and_never_printed(lmc: Callable, target: tuple[str, ...], options: tuple[str, ...]):
    said = lmc("targets", *target, *options)
    assert SECRET not in said.out + said.err
    if target and not options:
        assert "MY_KEY, which is set" in said.out
    if target and options:
        assert json.loads(said.out)["key"] == {"variable": "MY_KEY", "is_set": True}


def test_a_target_is_printed_as_a_table(lmc: Callable):
    said = lmc("targets", "openai:gpt-5.6")
    assert (said.code, said.err) == (0, "")
    assert "OPENAI_API_KEY, which is not set" in said.out
    assert "capability         value     date        source\n" in said.out
    assert "max_output_tokens  128000    2026-11-20  models/openai.toml, gpt-5*, gpt-6*\n" in said.out
    assert said.out.endswith("The data file was checked against: types and docstrings of the openai SDK 3.57\n")


def test_an_unknown_model_is_a_remark_with_near_names(lmc: Callable):
    said = lmc("targets", "openai:gpt-5.66")
    assert said.code == 0
    assert "does not name the model 'gpt-5.66'; did you mean gpt-5.6 or " in said.err
    assert json.loads(lmc("targets", "openai:gpt-5.66", "--json").out)["remarks"]


@pytest.mark.parametrize(
    ("name", "wish"), [("fats", "'fast'"), ("gpt-5.6", "openai:gpt-5.6"), ("folder", "name a folder")]
)
def test_a_model_that_is_not_there_has_no_capabilities(lmc: Callable, name: str, wish: str):
    said = lmc("targets", name)
    assert said.code != 0
    assert said.out == ""
    assert wish in said.err


@pytest.mark.parametrize("name", ["toy", "builtin"])
def test_an_engine_of_lmc_has_capabilities_too(lmc: Callable, name: str):
    data = json.loads(lmc("targets", name, "--json").out)
    assert (data["target"], data["key"]) == (name, None)
    assert data["capabilities"]["contexts"]["value"] == "tokens"
    assert data["capabilities"]["contexts"]["source"].startswith("the engine of lmc ")


@pytest.mark.parametrize(
    ("target", "cause", "remedy"),
    [
        ("server:127.0.0.1:1", "is no address of a server", "write server:http://HOST:PORT"),
        ("server:http://u:p@127.0.0.1:1", "holds a password", "api_key_env"),
        ("openai:", "unknown target", "openai:MODEL"),
    ],
)
def test_a_wrong_target_is_one_error(lmc: Callable, target: str, cause: str, remedy: str):
    said = lmc("targets", target)
    assert (said.code, said.out) == (1, "")
    assert cause in said.err
    assert remedy in said.err
    assert len(said.err.splitlines()) == 2


def test_a_server_is_probed_when_it_is_named(lmc: Callable, cached_probes: Path):
    with served("--model", "toy") as server:
        said = lmc("targets", f"server:{server.url}", "--json")
        assert (said.code, said.err) == (0, "")
        data = json.loads(said.out)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        assert data["probe"]["date"] == today
        assert data["probe"]["model"]["owner"] == "lmc"
        assert data["capabilities"]["structured"]["source"] == "models/server.toml, lmc"
        assert cached_probes.is_file()
        lmc("targets", f"server:{server.url}", "--probe")
    said = lmc("targets", f"server:{server.url}")  # it has ended
    assert said.code == 0
    assert f"probe             {today}: toy of lmc\n" in said.out
    said = lmc("targets", f"server:{server.url}", "--probe")
    assert (said.code, said.out) == (1, "")
    assert f"error: {server.url}/v1 can't be reached: " in said.err
    assert f"then try lmc targets server:{server.url}" in said.err


@pytest.mark.parametrize("target", [(), ("toy",), ("fast",), ("declared",)])
def test_only_servers_are_probed(lmc: Callable, target: tuple[str, ...]):
    said = lmc("targets", *target, "--probe")
    assert (said.code, said.out) == (2, "")
    assert "--probe" in said.err


def test_a_declared_server_is_not_asked(lmc: Callable):
    data = json.loads(lmc("targets", "declared", "--json").out)
    assert data["probe"] is None
    assert data["capabilities"]["structured"]["source"] == "models/server.toml, vllm"
