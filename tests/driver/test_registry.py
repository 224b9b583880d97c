import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmc.driver.targets import registry
from lmc.driver.targets.registry import load_tokenizer, make_engine
from lmc.ir.engine.target import KINDS, Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import EngineError, InputError


def test_every_kind_of_target_is_served():
    assert set(registry._ENTRIES) == set(KINDS)


def test_the_toy():
    assert load_tokenizer(Target("toy")) is toy_tokenizer()
    assert isinstance(make_engine(Target("toy")), ToyEngine)


@pytest.mark.parametrize(
    "target",
    [
        Target("toy", dtype="bfloat16"),
        Target("toy", kv_tokens=8),
        Target("toy", device="cpu"),
        Target("toy", prefill_tokens=8),
    ],
)
def test_the_toy_takes_no_options(target: Target):
    with pytest.raises(InputError, match="the toy has no weights and no KV pool") as caught:
        make_engine(target)
    assert caught.value.remedy == "leave out dtype, kv_tokens, device and prefill_tokens"


def test_the_engine_is_set_up_as_the_target_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked: list[dict[str, Any]] = []
    package = SimpleNamespace(load_local_engine=lambda folder, **options: asked.append(options))
    monkeypatch.setattr(registry.importlib, "import_module", lambda name: package)
    make_engine(Target("local", str(tmp_path)))
    make_engine(Target("local", str(tmp_path), "bfloat16", 9, True, "cpu", 7))
    least = {"dtype": "float32", "deterministic": False, "device": "auto"}
    most = {"dtype": "bfloat16", "deterministic": True, "device": "cpu", "kv_tokens": 9, "prefill_tokens": 7}
    assert asked == [least, most]


@pytest.mark.parametrize("serve", [load_tokenizer, make_engine])
def test_a_model_folder_that_is_not_there(serve, tmp_path: Path):
    with pytest.raises(InputError, match="there is no model folder") as caught:
        serve(Target("local", str(tmp_path / "none")))
    assert caught.value.remedy is not None
    assert "config.json" in caught.value.remedy


def test_a_folder_without_a_tokenizer(tmp_path: Path):
    with pytest.raises(InputError, match=r"has no tokenizer\.json"):
        load_tokenizer(Target("local", str(tmp_path)))


def test_without_torch_the_error_says_what_to_install(tmp_path: Path):
    code = f"""
import sys
sys.modules["torch"] = None
from lmc.driver.targets.registry import make_engine
from lmc.ir.errors import EngineError
from lmc.ir.engine.target import Target
try:
    make_engine(Target("local", {str(tmp_path)!r}))
except EngineError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "needs torch, which is not installed" in done.stdout, done.stderr
    assert "pip install 'lmc-compiler[local]'" in done.stdout


def test_a_fault_inside_the_engine_is_not_called_a_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def fails(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="something_else")

    monkeypatch.setattr(registry.importlib, "import_module", fails)
    with pytest.raises(ModuleNotFoundError):
        make_engine(Target("local", str(tmp_path)))
    monkeypatch.setattr(registry, "_LOCAL_PACKAGES", ("something_else",))
    with pytest.raises(EngineError, match="needs something_else"):
        make_engine(Target("local", str(tmp_path)))


@pytest.mark.parametrize(("name", "near"), [("tpy", "toy"), ("Builtin", "builtin"), ("my-modle", "my-model")])
def test_a_name_like_that_of_a_target_or_a_folder(
    name: str, near: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="there is no model folder") as caught:
        load_tokenizer(Target("local", str(tmp_path / name)))
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith("did you mean ")
    assert caught.value.remedy.partition("?")[0].endswith(near)
    assert "builtin, toy or hf:ORG/NAME" in caught.value.remedy
