"""Which models the engine runs. A model is listed once its tokens were compared with transformers' own generation.

To add one: an entry here, a tiny checkpoint in `tests/runtime/local/checkpoints.py`, what its attention needs beyond
scaling, windows and soft caps (sinks, say) in `lmc/runtime/kernels/paged_attention.py`, and its modules in `fusion.py`
if they are of the usual form.
"""

from typing import Any

from lmc.ir.errors import EngineError

SUPPORTED = (
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
    "Phi3ForCausalLM",
    "MixtralForCausalLM",
    "Qwen3MoeForCausalLM",
)
# Frequencies of these depend on the length of the sequence, so pages of one request would not fit another.
LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope")


def check_supported(config: Any) -> None:
    """Refuse by name what this engine would compute wrongly. `config` is the model's transformers config.

    Raises:
        EngineError: naming the model class or the feature that is missing.
    """
    names = getattr(config, "architectures", None)
    name = names[0] if isinstance(names, list | tuple) and names else "(none named)"
    if name not in SUPPORTED:
        raise EngineError(f"the architecture {name} is not supported", remedy=f"use a model of {', '.join(SUPPORTED)}")
    if getattr(config, "quantization_config", None) is not None:
        raise EngineError(f"{name} with quantized weights is not supported", remedy="use the unquantized model")
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in LENGTH_DEPENDENT_ROPE:
        raise EngineError(
            f"{name} with {rope} RoPE is not supported: it depends on the length of each sequence",
            remedy="use a model with default, linear, llama3 or yarn RoPE",
        )
