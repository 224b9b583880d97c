"""A Llama folder of `benchmarks/engine.py` as GGUF, which llama.cpp reads; needs `gguf` and `safetensors`."""

import json
from pathlib import Path
from typing import Any

TENSORS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def converted(folder: Path, dtype: str) -> Path:
    """The GGUF file of a folder in "float32" or "bfloat16", beside its weights; made on first use."""
    path = folder / f"{dtype}.gguf"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        _write(folder, dtype, unfinished)
        unfinished.rename(path)
    return path


def gguf_name(name: str) -> str:
    """What llama.cpp calls a tensor of transformers. The output matrix is tied and has no name of its own."""
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    layer, _, rest = name.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{TENSORS[rest.removesuffix('.weight')]}.weight"


def permuted(weight: Any, heads: int) -> Any:
    """Rows of Q or K as llama.cpp rotates them: pairs side by side, not in two halves of a head."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _write(folder: Path, dtype: str, path: Path) -> None:
    import gguf  # pyright: ignore[reportMissingImports]
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = {"float32": gguf.GGMLQuantizationType.F32, "bfloat16": gguf.GGMLQuantizationType.BF16}[dtype]
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    writer = gguf.GGUFWriter(str(path), "llama")
    _add_shape(writer, config)
    _add_vocabulary(writer, folder, config["vocab_size"])
    for name, weight in load_file(folder / "model.safetensors").items():
        projection = name.split(".")[-2]
        ordered = permuted(weight, heads[projection]) if projection in heads else weight
        stored = gguf.GGMLQuantizationType.F32 if weight.ndim == 1 else kind  # norms are never rounded
        writer.add_tensor(gguf_name(name), gguf.quants.quantize(ordered, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: Any, config: dict[str, Any]) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_rope_freq_base((config.get("rope_parameters") or config)["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def _add_vocabulary(writer: Any, folder: Path, size: int) -> None:
    """The tokenizer's entries: what is one of them with the space before it is one token, as `ignore_merges` has it.

    Names for the rest of the vocabulary only have to differ.
    """
    import gguf  # pyright: ignore[reportMissingImports]

    known = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    names = [f"<unused {index}>" for index in range(size)]
    for name, index in known.items():
        names[index] = name
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")  # which ignores merges for whole entries
    writer.add_token_list(names)
    writer.add_token_types([gguf.TokenType.NORMAL] * size)
    writer.add_token_merges([f"{names[2]} {names[3]}"])  # one must be there
    writer.add_add_bos_token(False)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
