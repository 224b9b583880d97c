import re
from pathlib import Path

import pytest

from lmc.driver.options import Options
from lmc.driver.targets.defaults import resolve_grammar_cache, resolve_target
from lmc.ir.engine.target import TARGETS, Target
from lmc.ir.errors import InputError


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_options_come_before_the_environment_before_the_project_before_builtin(tmp_path: Path):
    folder = project(tmp_path / "p", '[tool.lmc]\ntarget = "local:m"\ndtype = "bfloat16"\nkv_tokens = 64\n')
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    environment = {"LMC_TARGET": "local:e"}
    assert resolve_target(Options("toy"), environment=environment, folder=inner) == Target("toy")
    assert resolve_target(Options(), environment=environment, folder=inner) == Target("local", "e")
    assert resolve_target(Options(), environment={}, folder=inner) == Target("local", "m", "bfloat16", 64)
    assert resolve_target(Options(), environment={}, folder=tmp_path) == Target("builtin")


def test_an_empty_variable_counts_as_none(tmp_path: Path):
    assert resolve_target(Options(), environment={"LMC_TARGET": ""}, folder=tmp_path) == Target("builtin")


def test_options_go_over_the_projects_settings(tmp_path: Path):
    folder = project(tmp_path, '[tool.lmc]\ntarget = "local:m"\nkv_tokens = 64\n')
    options = Options(dtype="bfloat16", kv_tokens=9)
    assert resolve_target(options, environment={}, folder=folder) == Target("local", "m", "bfloat16", 9)
    folder = project(tmp_path, '[tool.lmc]\ntarget = "local:m"\ndeterministic = true\n')
    assert resolve_target(Options(), environment={}, folder=folder).deterministic
    assert not resolve_target(Options(deterministic=False), environment={}, folder=folder).deterministic


def test_auto_is_the_size_of_a_pool_that_is_not_given(tmp_path: Path):
    folder = project(tmp_path, '[tool.lmc]\ntarget = "local:m"\nkv_tokens = "auto"\n')
    assert resolve_target(Options(), environment={}, folder=folder) == Target("local", "m")
    assert resolve_target(Options(kv_tokens=9), environment={}, folder=folder) == Target("local", "m", kv_tokens=9)
    folder = project(tmp_path, '[tool.lmc]\ntarget = "local:m"\nkv_tokens = 9\n')
    assert resolve_target(Options(kv_tokens="auto"), environment={}, folder=folder) == Target("local", "m")


def test_every_setting_may_be_the_projects_or_of_options(tmp_path: Path):
    text = """
[tool.lmc]
target = "local:m"
dtype = "bfloat16"
kv_tokens = 64
deterministic = true
device = "cuda:1"
prefill_tokens = 2048
"""
    folder = project(tmp_path, text)
    assert resolve_target(Options(), environment={}, folder=folder) == Target(
        "local", "m", "bfloat16", 64, True, "cuda:1", 2048
    )
    options = Options(None, "float32", 9, False, "cpu", 8)
    assert resolve_target(options, environment={}, folder=folder) == Target("local", "m", "float32", 9, False, "cpu", 8)


def test_only_the_nearest_project_counts(tmp_path: Path):
    project(tmp_path, '[tool.lmc]\ntarget = "toy"\n')
    inner = project(tmp_path / "inner", "[project]\nname = 'x'\n")
    assert resolve_target(Options(), environment={}, folder=inner) == Target("builtin")


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("[tool.lmc\n", "can't be read", "correct it, or set LMC_TARGET"),
        ("tool = 3\n", r"\[tool\] is no table", "correct it"),
        ("[tool]\nlmc = 3\n", "tool.lmc is no table", r"\[tool.lmc\]"),
        ('[tool.lmc]\nmodel = "x"\n', "has no setting 'model'", "target, dtype, kv_tokens, deterministic"),
        ("[tool.lmc]\nkv_tokens = true\n", "kv_tokens is True", 'a number of tokens from 1 on, or "auto"'),
        ("[tool.lmc]\nkv_tokens = 0\n", "kv_tokens is 0", 'a number of tokens from 1 on, or "auto"'),
        ('[tool.lmc]\nkv_tokens = "64"\n', "kv_tokens is '64'", 'a number of tokens from 1 on, or "auto"'),
        ("[tool.lmc]\nkv_tokens = [64]\n", r"kv_tokens is \[64\]", 'a number of tokens from 1 on, or "auto"'),
        ("[tool.lmc]\ndeterministic = 1\n", "deterministic is 1", "True or False"),
        ('[tool.lmc]\ndevice = "gpu"\n', "unknown device 'gpu'", "cuda"),
        ("[tool.lmc]\nprefill_tokens = 0\n", "prefill_tokens is 0", "from 1 on"),
        ("[tool.lmc]\ntarget = 3\n", "target is 3", "builtin"),
        ("[tool.lmc]\ndtype = 32\n", "unknown dtype 32", "float32"),
        ('[tool.lmc]\ntarget = "gpu"\n', "unknown target 'gpu'", "builtin"),
        ('[tool.lmc]\ndtype = "int4"\n', "unknown dtype 'int4'", "float32"),
    ],
)
def test_settings_that_are_no_good(tmp_path: Path, text: str, cause: str, remedy: str):
    with pytest.raises(InputError, match=cause) as caught:
        resolve_target(Options(), environment={}, folder=project(tmp_path, text))
    assert caught.value.cause.startswith(f"{tmp_path / 'pyproject.toml'}")
    assert caught.value.remedy is not None
    assert re.search(remedy, caught.value.remedy)


def test_a_variable_that_names_no_target(tmp_path: Path):
    with pytest.raises(InputError, match="unknown target 'local'"):
        resolve_target(Options(), environment={"LMC_TARGET": "local"}, folder=tmp_path)


@pytest.mark.parametrize(("spec", "near"), [("tpy", "'toy'"), ("bultin", "'builtin'"), ("locl:x", "'local:x'")])
def test_a_target_that_nearly_is_one(spec: str, near: str):
    with pytest.raises(InputError, match=f"unknown target '{spec}'") as caught:
        resolve_target(Options(spec), environment={})
    assert caught.value.remedy == f"did you mean {near}? There are {TARGETS}"


def test_token_indexes_are_kept_where_the_environment_the_project_or_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = project(tmp_path / "p", '[tool.lmc]\ntarget = "toy"\ngrammar_cache = "kept"\n')
    inner = folder / "a"
    inner.mkdir()

    def kept(inner: Path, **environment: str) -> Path | None:
        found = resolve_grammar_cache(environment=environment, folder=inner)
        return None if found is None else found.path

    assert kept(inner, LMC_GRAMMAR_CACHE=str(tmp_path / "e")) == tmp_path / "e"
    assert kept(inner, LMC_GRAMMAR_CACHE="here") == inner / "here"
    assert kept(inner, LMC_GRAMMAR_CACHE="off") is None
    assert kept(inner) == folder / "kept"
    assert resolve_target(Options(), environment={}, folder=inner) == Target("toy")
    project(folder, '[tool.lmc]\ngrammar_cache = "off"\n')
    assert kept(folder) is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert kept(tmp_path) == tmp_path / "cache" / "lmc" / "grammar"
    assert kept(tmp_path, LMC_GRAMMAR_CACHE="") is not None


def test_how_much_is_kept_is_what_the_environment_or_the_project_says(tmp_path: Path):
    def kept(folder: Path, **environment: str) -> int:
        found = resolve_grammar_cache(environment={"LMC_GRAMMAR_CACHE": "kept", **environment}, folder=folder)
        assert found is not None
        return found.max_bytes

    assert kept(tmp_path) == 512 * 1024 * 1024
    folder = project(tmp_path / "p", '[tool.lmc]\ntarget = "toy"\ngrammar_cache_mb = 3\n')
    assert kept(folder) == 3 * 1024 * 1024
    assert kept(folder, LMC_GRAMMAR_CACHE_MB="7") == 7 * 1024 * 1024
    assert kept(folder, LMC_GRAMMAR_CACHE_MB="0", LMC_GRAMMAR_CACHE="new") == 0
    assert not (folder / "new").exists()
    assert resolve_target(Options(), environment={}, folder=folder) == Target("toy")


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "true", '"7"'])
def test_a_size_of_the_grammar_cache_that_is_none_is_refused(tmp_path: Path, number: str):
    folder = project(tmp_path, f"[tool.lmc]\ngrammar_cache_mb = {number}\n")
    with pytest.raises(InputError, match=r"pyproject.toml: grammar_cache_mb is ") as caught:
        resolve_grammar_cache(environment={}, folder=folder)
    assert caught.value.remedy == 'give a number of megabytes, or write grammar_cache = "off"'


@pytest.mark.parametrize("number", ["-1", "many"])
def test_a_size_in_the_environment_that_is_none_is_refused(tmp_path: Path, number: str):
    with pytest.raises(InputError, match=f"LMC_GRAMMAR_CACHE_MB is '{number}'") as caught:
        resolve_grammar_cache(environment={"LMC_GRAMMAR_CACHE_MB": number}, folder=tmp_path)
    assert caught.value.remedy == "give a number of megabytes, or LMC_GRAMMAR_CACHE=off"


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr("lmc.grammar.index.store.IndexStore.default_folder", homeless)
    assert resolve_grammar_cache(environment={}, folder=tmp_path) is None


def test_a_grammar_cache_that_is_no_text_is_refused(tmp_path: Path):
    folder = project(tmp_path, "[tool.lmc]\ngrammar_cache = 3\n")
    with pytest.raises(InputError, match="grammar_cache is no text") as caught:
        resolve_grammar_cache(environment={}, folder=folder)
    assert "grammar_cache" in (caught.value.remedy or "")


def test_a_grammar_cache_that_was_named_and_can_not_be_used_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file can't hold token indexes") as caught:
        resolve_grammar_cache(environment={"LMC_GRAMMAR_CACHE": "file"}, folder=tmp_path)
    assert caught.value.remedy == "name another folder"


def test_a_project_file_that_changed_is_read_again(tmp_path: Path):
    for tokens in (64, 128, 256):
        folder = project(tmp_path, f'[tool.lmc]\ntarget = "local:m"\nkv_tokens = {tokens}\n')
        for _ in range(2):
            assert resolve_target(Options(), environment={}, folder=folder).kv_tokens == tokens
