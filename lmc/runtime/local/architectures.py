"""The models that the engine runs. A model is listed once its tokens were compared with transformers' own generation.

To add one: an entry here, a tiny checkpoint in `tests/runtime/local/checkpoints.py`, special attention beyond scaling,
windows and soft caps (sinks, say) in `lmc/runtime/kernels/paged_attention.py`, and its modules in `fusion.py` (norms in
`module_forms.py`) if they are of the usual form: parts, whole layers, and the decoder that calls them.
"""

from collections.abc import Callable
from typing import Any

from lmc.ir.errors import EngineError
from lmc.runtime.local.modules.rotary import LENGTH_DEPENDENT

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
SUPPORTED_ROPE = ("default", "linear", "llama3", "yarn", *LENGTH_DEPENDENT)

# What the engine would need for models that people try, by the beginning of the class name.
_LACKING = {
    "GptOss": "attention sinks",
    "Deepseek": "multi-head latent attention (MLA), whose keys and values are not of one size",
    "Kimi": "multi-head latent attention (MLA), whose keys and values are not of one size",
    "MiniCPM3": "multi-head latent attention (MLA), whose keys and values are not of one size",
    "Bloom": "ALiBi position biases",
    "Mpt": "ALiBi position biases",
    "GPT2": "absolute position embeddings",
    "OPT": "absolute position embeddings",
    "GPTBigCode": "absolute position embeddings",
    "GPTNeoForCausalLM": "absolute position embeddings",
    "Mamba": "state-space layers, which keep a state instead of keys and values",
    "FalconMamba": "state-space layers, which keep a state instead of keys and values",
    "Jamba": "state-space layers, which keep a state instead of keys and values",
    "RecurrentGemma": "recurrent layers, which keep a state instead of keys and values",
    "Qwen3Next": "linear attention layers, which keep a state instead of keys and values",
    "Llama4": "chunked attention",
}


def check_supported(config: Any) -> None:
    """Refuse by name what this engine would compute wrongly. `config` is the model's transformers config.

    Raises:
        EngineError: naming the model class and the feature that is missing.
    """
    name = _first_name(getattr(config, "architectures", None))
    for is_asked_for, feature, remedy in _FEATURES:
        if is_asked_for(config):
            raise EngineError(f"{name} {feature}", remedy=remedy)
    check_name(getattr(config, "architectures", None))
    _check_rope(name, config)


def check_name(architectures: Any) -> None:
    """Refuse a model by its class alone. `architectures` is what config.json says of it.

    Raises:
        EngineError: naming the model class and what this engine would need for it.
    """
    name = _first_name(architectures)
    if name not in SUPPORTED:
        raise EngineError(
            f"the architecture {name} is not supported{_what_it_lacks(name)}",
            remedy=f"use a model of {', '.join(SUPPORTED)}",
        )


def _first_name(architectures: Any) -> str:
    is_list = isinstance(architectures, list | tuple) and architectures and isinstance(architectures[0], str)
    return architectures[0] if is_list else "(none named)"


def _check_rope(name: str, config: Any) -> None:
    parameters = getattr(config, "rope_parameters", None) or {}
    by_kind = {kind: entry for kind, entry in parameters.items() if isinstance(entry, dict)}
    for kind, entry in (by_kind or {"": parameters}).items():  # models with a single kind of layers name none
        rope, factor = entry.get("rope_type", "default"), entry.get("factor")
        where = f" in its {kind} layers" if kind else ""
        if rope not in SUPPORTED_ROPE or (kind and rope in LENGTH_DEPENDENT):
            raise EngineError(
                f"{name} with {rope} RoPE{where} is not supported",
                remedy=f"use a model with {', '.join(SUPPORTED_ROPE)} RoPE",
            )
        if rope == "dynamic" and not (isinstance(factor, int | float) and factor >= 1):
            raise EngineError(
                f"{name} with dynamic RoPE of factor {factor!r} is not supported",
                remedy="give rope_parameters in config.json a factor from 1 on",
            )


def _what_it_lacks(name: str) -> str:
    # The longest name first: FalconMamba is no Falcon.
    for beginning in sorted(_LACKING, key=len, reverse=True):
        if name.startswith(beginning):
            return f": this engine has no {_LACKING[beginning]}"
    return ""


def _has_other_inputs(config: Any) -> bool:
    return any(getattr(config, f"{kind}_config", None) is not None for kind in ("vision", "audio"))


# Whether a configuration asks for something, what to say of it, and what to do.
_FEATURES: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (
        lambda config: bool(getattr(config, "is_encoder_decoder", False)),
        "is an encoder-decoder model: this engine has no cross attention",
        "use a decoder-only model",
    ),
    (
        _has_other_inputs,
        "is a multimodal model: this engine reads text only",
        "save its language model alone (for Gemma 3 as Gemma3ForCausalLM), or use a text model",
    ),
    (
        lambda config: getattr(config, "quantization_config", None) is not None,
        "with quantized weights is not supported",
        "use the unquantized model",
    ),
    (
        lambda config: bool(getattr(config, "use_bidirectional_attention", None)),
        "with use_bidirectional_attention is not supported: a token would see later ones, and no page could be kept",
        "use a model that generates; this one makes embeddings",
    ),
    (
        lambda config: bool(getattr(config, "alibi", False)),
        "with alibi is not supported: this engine has no ALiBi position biases",
        "use a model with rotary position embeddings",
    ),
)
