"""Folders of models that this engine would compute wrongly: each refused by its name, with what is missing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmc.ir.errors import EngineError
from lmc.runtime.local import load_local_engine

LLAMA_ROPE = {"rope_theta": 1e4}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss"}, "GptOssForCausalLM .* no attention sinks"),
    (
        {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3"},
        r"DeepseekV3ForCausalLM .* no multi-head latent attention \(MLA\)",
    ),
    (
        {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2"},
        r"DeepseekV2ForCausalLM .* no multi-head latent attention \(MLA\)",
    ),
    ({"architectures": ["BloomForCausalLM"], "model_type": "bloom"}, "BloomForCausalLM .* no ALiBi position biases"),
    ({"architectures": ["MptForCausalLM"], "model_type": "mpt"}, "MptForCausalLM .* no ALiBi position biases"),
    (
        {"architectures": ["FalconForCausalLM"], "model_type": "falcon", "alibi": True},
        "FalconForCausalLM with alibi is not supported",
    ),
    (
        {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"},
        "GPT2LMHeadModel .* no absolute position embeddings",
    ),
    ({"architectures": ["OPTForCausalLM"], "model_type": "opt"}, "OPTForCausalLM .* no absolute position embeddings"),
    ({"architectures": ["MambaForCausalLM"], "model_type": "mamba"}, "MambaForCausalLM .* no state-space layers"),
    (
        {"architectures": ["FalconMambaForCausalLM"], "model_type": "falcon_mamba"},
        "FalconMambaForCausalLM .* no state-space layers",
    ),
    (
        {"architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next"},
        "Qwen3NextForCausalLM .* no linear attention layers",
    ),
    (
        {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"},
        "T5ForConditionalGeneration is an encoder-decoder model: .* no cross attention",
    ),
    (
        {"architectures": ["BartForConditionalGeneration"], "model_type": "bart"},
        "BartForConditionalGeneration is an encoder-decoder model",
    ),
    (
        {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3"},
        "Gemma3ForConditionalGeneration is a multimodal model: this engine reads text only",
    ),
    (
        {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava"},
        "LlavaForConditionalGeneration is a multimodal model",
    ),
    (
        {
            "architectures": ["Gemma3ForCausalLM"],
            "model_type": "gemma3_text",
            "use_bidirectional_attention": True,
        },
        "Gemma3ForCausalLM with use_bidirectional_attention is not supported",
    ),
    (
        {
            "architectures": ["Gemma2ForCausalLM"],
            "model_type": "gemma2",
            "use_bidirectional_attention": True,
        },
        "Gemma2ForCausalLM with use_bidirectional_attention",
    ),
    *(
        (
            {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "quantization_config": quantization},
            "LlamaForCausalLM with quantized weights",
        )
        for quantization in (
            {"quant_method": "awq", "bits": 4},
            {"quant_method": "fp8"},
            {"quant_method": "gptq", "bits": 4},
            {"quant_method": "bitsandbytes", "load_in_4bit": True},
        )
    ),
    (
        {
            "architectures": ["Gemma3ForCausalLM"],
            "model_type": "gemma3_text",
            "rope_parameters": {
                "full_attention": {"rope_type": "dynamic", "rope_theta": 1e6, "factor": 2.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        "Gemma3ForCausalLM with dynamic RoPE in its full_attention layers is not supported",
    ),
    (
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "rope_parameters": {"rope_type": "proportional", "rope_theta": 1e4, "factor": 1.0},
        },
        "LlamaForCausalLM with proportional RoPE is not supported",
    ),
    (
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 0.5},
        },
        "LlamaForCausalLM with dynamic RoPE of factor 0.5 is not supported",
    ),
    ({"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2"}, "the architecture Olmo2ForCausalLM is not"),
    ({"architectures": [], "model_type": "llama"}, r"\(none named\)"),
]


@pytest.mark.parametrize(("config", "message"), REFUSED, ids=lambda value: value if isinstance(value, str) else None)
def test_refused_by_name_with_what_is_missing(
    config: dict[str, Any], message: str, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(checkpoints["llama"], tmp_path / "model"))
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineError, match=message) as failure:
        load_local_engine(folder, device="cpu", kv_tokens=10)
    assert failure.value.remedy
