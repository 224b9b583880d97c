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
        (lambda f: (f / "tokenizer.json").unlink(), InputError, "model has no tokenizer.json"),
        (lambda f: (f / "tokenizer.json").write_text(""), InputError, r"model/tokenizer\.json: not a tokenizer"),
        (lambda f: (f / "tokenizer.json").write_text("[]"), InputError, r"model/tokenizer\.json: not a tokenizer"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), InputError, r"model/tokenizer\.json: .* can't be read"),
        (lambda f: (f / "tokenizer.json").write_bytes(b"\xff"), InputError, r"model/tokenizer\.json can't be read"),
        (lambda f: (f / "chat_template.jinja").write_bytes(b"\xff"), InputError, r"chat_template\.jinja can't be read"),
        (truncate_weights, InputError, r"model/model\.safetensors can't be read: .*not fully covered"),
        (garble_weights, InputError, r"model/model\.safetensors can't be read: .*header too large"),
        (lambda f: change_config(f, max_position_embeddings=0), InputError, "max_position_embeddings is 0"),
        (lambda f: change_config(f, hidden_act="nope"), InputError, "can't be made of its config.json .*'nope'"),
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
        (
            lambda f: change_config(f, intermediate_size=96),
            InputError,
            r"9 mismatched keys, .*\(\[48, 80\] where .* \[48, 96\]\)",
        ),
        (
            lambda f: change_config(f, architectures=["GPT2LMHeadModel"], model_type="gpt2"),
            EngineError,
            "GPT2LMHeadModel is not supported",
        ),
        (
            lambda f: change_config(f, architectures=["KimiK2ForCausalLM"], model_type="kimi_k2"),
            EngineError,
            "KimiK2ForCausalLM is not supported: this engine has no multi-head latent",
        ),
        (
            lambda f: change_config(f, architectures=["FooForCausalLM"], model_type="foo"),
            EngineError,
            "^the architecture FooForCausalLM is not supported\n",
        ),
        (lambda f: change_config(f, model_type="foo"), InputError, "config.json can't be used"),
        (lambda f: (f / "config.json").write_text("[]"), InputError, "config.json can't be used"),
        (lambda f: change_config(f, architectures=[]), EngineError, "none named"),
        # Some versions of transformers refuse it first.
        (lambda f: change_config(f, architectures="LlamaForCausalLM"), LmcError, "none named|can't be used"),
        (lambda f: change_config(f, quantization_config={"quant_method": "awq"}), EngineError, "quantized weights"),
    ],
)
def test_a_folder_that_is_no_good(
    damage: Callable[[Path], Any], error: type[LmcError], message: str, folder: Path
) -> None:
    damage(folder)
    with pytest.raises(error, match=message) as failure:
        load_local_engine(folder, device="cpu", kv_tokens=10)
    assert failure.value.remedy


def break_index(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text("{}")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shards(f)[1].unlink(), "00002-of-.* can't be read: No such file"),
        (lambda f: shards(f)[2].write_bytes(shards(f)[2].read_bytes()[:-100]), "00003-of-.* can't be read: .*covered"),
        (break_index, r"index\.json can't be read: KeyError: 'weight_map'"),
    ],
)
def test_a_broken_shard_is_named(damage: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    model = make_model("llama")
    save_checkpoint(tmp_path, model)
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    damage(tmp_path)
    with pytest.raises(InputError, match=message) as failure:
        load_local_engine(tmp_path, device="cpu", kv_tokens=10)
    assert failure.value.remedy


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("model-*.safetensors"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"device": "nonsense"}, "device is 'nonsense'"),
        ({"device": "meta"}, "does not run on meta"),
        ({"device": "cuda:99"}, "no device 'cuda:99'"),
        ({"kv_tokens": 0}, "kv_tokens is 0"),
        ({"kv_tokens": True}, "kv_tokens is True"),
        ({"kv_tokens": "many"}, "kv_tokens is 'many'"),
        ({"prefill_tokens": 0}, "prefill_tokens is 0"),
        ({"kv_tokens": 10**13}, "does not fit in memory"),
    ],
)
def test_arguments_that_are_no_good(arguments: dict[str, Any], message: str, checkpoints: dict[str, Path]) -> None:
    settings: dict[str, Any] = {"device": "cpu", "kv_tokens": 10, **arguments}
    with pytest.raises(LmcError, match=message):
        load_local_engine(checkpoints["llama"], **settings)


def test_only_lack_of_memory_is_called_so(checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: Any) -> None:
        raise RuntimeError("something else")

    monkeypatch.setattr("lmc.runtime.local.model.replace_rotary", broken)
    with pytest.raises(RuntimeError, match="something else"):
        load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=10)


def test_entries_of_the_generation_config_that_have_no_effect_are_named(folder: Path) -> None:
    path = folder / "generation_config.json"
    entries = {"temperature": 0.5, "suppress_tokens": [5], "bad_words_ids": [[6]], "no_repeat_ngram_size": 0}
    path.write_text(json.dumps(entries))
    with (
        pytest.warns(
            UserWarning, match=r"generation_config\.json sets bad_words_ids, suppress_tokens, which .*logit_bias"
        ),
        load_local_engine(folder, device="cpu", kv_tokens=10),
    ):
        pass
    path.unlink()
    load_local_engine(folder, device="cpu", kv_tokens=10).close()


def test_every_supported_architecture_is_tested() -> None:
    assert {model_class.__name__ for _, model_class in ARCHITECTURES.values()} == set(SUPPORTED)


def test_the_pool_follows_free_memory(checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmc.runtime.local.loading.free_memory", lambda device: 4 * 2 * 3 * 2 * 8 * 4 * 1000)
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
