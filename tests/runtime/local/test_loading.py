import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from lmc.ir.errors import EngineError, InputError, LmcError
from lmc.runtime.local import load_local_engine
from lmc.runtime.local.architectures import SUPPORTED
from tests.runtime.local.checkpoints import ARCHITECTURES, make_model, save_checkpoint


@pytest.fixture
def folder(checkpoints: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of a checkpoint to be damaged."""
    return Path(shutil.copytree(checkpoints["llama"], tmp_path / "model"))


def change_config(folder: Path, **entries: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def truncate_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def garble_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 4000)


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    change(tensors)
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def add_code(folder: Path) -> None:
    change_config(folder, model_type="custom", auto_map={"AutoConfig": "evil.Config"})
    (folder / "evil.py").write_text("raise SystemExit('this ran')")


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (shutil.rmtree, InputError, "there is no model folder"),
        (lambda f: (f / "config.json").unlink(), InputError, "has no config.json"),
        (lambda f: (f / "config.json").write_text("{"), InputError, "config.json can't be used"),
        (add_code, InputError, "config.json can't be used"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), InputError, "no .*safetensors file"),
        (lambda f: (f / "tokenizer.json").unlink(), InputError, "has no tokenizer.json"),
        (truncate_weights, InputError, "weights in .* can't be read"),
        (garble_weights, InputError, "weights in .* can't be read"),
        (
            lambda f: change_weights(f, lambda t: t.pop("model.norm.weight")),
            InputError,
            "1 missing keys, first model.norm",
        ),
        (
            lambda f: change_weights(f, lambda t: t.update({"model.extra": torch.ones(2)})),
            InputError,
            "1 unexpected keys, first model.extra",
        ),
        (lambda f: change_config(f, intermediate_size=96), InputError, "mismatched keys|can't be read"),
        (
            lambda f: change_config(f, architectures=["GPT2LMHeadModel"], model_type="gpt2"),
            EngineError,
            "GPT2LMHeadModel is not supported",
        ),
        (lambda f: change_config(f, architectures=[]), EngineError, "none named"),
        (lambda f: change_config(f, quantization_config={"quant_method": "awq"}), EngineError, "quantized weights"),
        (
            lambda f: change_config(f, rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}),
            EngineError,
            "dynamic RoPE",
        ),
    ],
)
def test_a_folder_that_is_no_good(
    damage: Callable[[Path], Any], error: type[LmcError], message: str, folder: Path
) -> None:
    damage(folder)
    with pytest.raises(error, match=message) as failure:
        load_local_engine(folder, device="cpu", kv_tokens=10)
    assert failure.value.remedy


def test_sliding_windows_are_refused(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoints["qwen2"], tmp_path / "model"))
    change_config(folder, use_sliding_window=True, sliding_window=16)
    with pytest.raises(EngineError, match="sliding-window attention"):
        load_local_engine(folder, device="cpu", kv_tokens=10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"device": "nonsense"}, "device is 'nonsense'"),
        ({"device": "meta"}, "does not run on meta"),
        ({"device": "cuda:99"}, "no device 'cuda:99'"),
        ({"kv_tokens": 0}, "kv_tokens is 0"),
        ({"kv_tokens": "many"}, "kv_tokens is 'many'"),
        ({"prefill_tokens": 0}, "prefill_tokens is 0"),
        ({"kv_tokens": 10**13}, "does not fit in memory"),
    ],
)
def test_arguments_that_are_no_good(arguments: dict[str, Any], message: str, checkpoints: dict[str, Path]) -> None:
    settings: dict[str, Any] = {"device": "cpu", "kv_tokens": 10, **arguments}
    with pytest.raises(LmcError, match=message):
        load_local_engine(checkpoints["llama"], **settings)


def test_every_supported_architecture_is_tested() -> None:
    assert {model_class.__name__ for _, model_class in ARCHITECTURES.values()} == set(SUPPORTED)


def test_the_pool_follows_free_memory(checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmc.runtime.local.loading._free_memory", lambda device: 4 * 2 * 3 * 2 * 8 * 4 * 1000)
    with load_local_engine(checkpoints["llama"], device="cpu") as engine:
        assert engine.info.kv_tokens == 1000
    monkeypatch.undo()
    with load_local_engine(checkpoints["llama"], device="cpu") as engine:
        assert engine.info.kv_tokens is not None
        assert 1000 < engine.info.kv_tokens <= 2**20


def test_shards_and_tied_weights_load(tmp_path: Path) -> None:
    model = make_model("qwen3", tie_word_embeddings=True)
    save_checkpoint(tmp_path, model)
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    (tmp_path / "model.safetensors").unlink(missing_ok=True)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    with load_local_engine(tmp_path, device="cpu", kv_tokens=10) as engine:
        assert engine.info.context_length == 512
