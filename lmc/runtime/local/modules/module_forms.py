"""Checks that a module of transformers is exactly what `fusion.py` replaces, with nothing that would be lost.

The classes are known by name only, and another version of transformers may give them more: a parameter, a bias, a
switch. Whatever is not listed here may change the result, so such a module is left as transformers made it.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lmc.runtime.kernels import layers

# Norms that transformers writes the usual way, and those whose weight is stored less one.
NORMS = {
    "LlamaRMSNorm": False,
    "MistralRMSNorm": False,
    "Qwen2RMSNorm": False,
    "Qwen3RMSNorm": False,
    "Qwen3MoeRMSNorm": False,
    "MixtralRMSNorm": False,
    "Phi3RMSNorm": False,
    "Gemma2RMSNorm": True,
    "Gemma3RMSNorm": True,
}
# Plain attributes that say nothing, or that fusion reads.
_ATTENTION_ATTRIBUTES = {
    *("attention_dropout", "attn_logit_softcapping", "config", "head_dim", "is_causal", "is_sliding", "layer_idx"),
    *("layer_type", "num_heads", "num_key_value_groups", "num_key_value_heads", "scaling", "sliding_window"),
    *("hidden_size", "rotary_fn", "sliding_window_pattern"),
}
_ATTENTION_CHILDREN = (
    {"q_proj", "k_proj", "v_proj", "o_proj"},
    {"q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"},
    {"qkv_proj", "o_proj"},
)
_NORM_ATTRIBUTES = {"eps", "hidden_size", "variance_epsilon"}
_FEED_FORWARD_ATTRIBUTES = {"config", "hidden_size", "intermediate_size"}
_FEED_FORWARD_CHILDREN = ({"gate_proj", "up_proj", "down_proj"}, {"gate_up_proj", "down_proj"})
_EXPERTS_ATTRIBUTES = {
    *("config", "hidden_dim", "intermediate_dim", "num_experts"),
    *("has_bias", "has_gate", "has_post_expert_norm", "is_concatenated", "is_transposed"),
}
_LAYER_ATTRIBUTES = {"config", "hidden_size", "layer_idx", "attention_type"}
_DROPOUTS = {"resid_attn_dropout", "resid_mlp_dropout"}  # they do nothing but in training
_LAYER = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
_LAYER_CHILDREN = (
    _LAYER,
    {*_LAYER, *_DROPOUTS},
    {*_LAYER, "pre_feedforward_layernorm", "post_feedforward_layernorm"},
)
# What transformers sets on experts of the usual form; older versions set nothing.
_EXPERTS_SWITCHES = {
    "has_bias": False,
    "has_gate": True,
    "has_post_expert_norm": False,
    "is_concatenated": True,
    "is_transposed": False,
}
# Attributes of a configuration that change what attention computes, where they are set.
_CONFIG_SWITCHES = ("clip_qkv", "use_bidirectional_attention", "attention_chunk_size", "use_qkv_norm")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def norm_problem(module: Any) -> str | None:
    """Why a norm is not the usual RMS norm over the last dimension; None where it is."""
    unknown = _unknown(module, attributes=_NORM_ATTRIBUTES, children=(set(),), parameters={"weight"})
    if unknown is not None:
        return unknown
    if len(_epsilons(module)) != 1:
        return "has no epsilon, or several"
    return None if module.weight.dim() == 1 else "has a weight of several dimensions"


def epsilon(norm: Any) -> float:
    """The epsilon of a norm that has no problem; it may be 0."""
    return _epsilons(norm)[0]


def feed_forward_problem(module: Any) -> str | None:
    """Why a feed-forward part is not down(activation(gate) × up); None where it is."""
    unknown = _unknown(
        module,
        attributes=_FEED_FORWARD_ATTRIBUTES,
        children=tuple({*names, each} for names in _FEED_FORWARD_CHILDREN for each in ("act_fn", "activation_fn")),
        parameters=set(),
    )
    if unknown is not None:
        return unknown
    together = [getattr(module, name) for name in ("gate_proj", "up_proj", "gate_up_proj") if hasattr(module, name)]
    width = sum(getattr(each, "out_features", 0) for each in together)
    return _first(
        _linear_problem([*together, module.down_proj]),
        _bias_problem(together),
        None if width == 2 * getattr(module.down_proj, "in_features", 0) else "has projections of unequal widths",
        None if activation(module) else "has an unknown activation",
    )


def layer_problem(module: Any) -> str | None:
    """Why a decoder layer is not attention and feed-forward part with norms before or around each; None where it is."""
    dropouts = [child for name, child in module.named_children() if name in _DROPOUTS]
    unknown = _unknown(module, attributes=_LAYER_ATTRIBUTES, children=_LAYER_CHILDREN, parameters=set())
    return unknown or (None if all(type(each) is nn.Dropout for each in dropouts) else "has something for dropouts")


def experts_problem(module: Any) -> str | None:
    """Why the experts are not stacked gated feed-forward parts; None where they are."""
    unknown = _unknown(
        module,
        attributes=_EXPERTS_ATTRIBUTES,
        children=({"act_fn"},),
        parameters={"gate_up_proj", "down_proj"},
    )
    if unknown is not None:
        return unknown
    experts, hidden, width = module.down_proj.shape
    switched = [name for name, usual in _EXPERTS_SWITCHES.items() if getattr(module, name, usual) is not usual]
    return _first(
        f"has {switched[0]} = {getattr(module, switched[0])}" if switched else None,
        None if module.gate_up_proj.shape == (experts, 2 * width, hidden) else "has weights of other shapes",
        None if activation(module) else "has an unknown activation",
    )


def attention_problem(module: Any) -> str | None:
    """Why an attention is not projections, norms by head, rotation and causal softmax; None where it is."""
    unknown = _unknown(module, attributes=_ATTENTION_ATTRIBUTES, children=_ATTENTION_CHILDREN, parameters=set())
    if unknown is not None:
        return unknown
    together = [getattr(module, name) for name in ("q_proj", "k_proj", "v_proj", "qkv_proj") if hasattr(module, name)]
    missing = [name for name in ("layer_idx", "scaling", "config", "head_dim") if not hasattr(module, name)]
    if missing:
        return f"has no {missing[0]}"
    return _first(
        None if getattr(module, "is_causal", True) is True else "is not causal",
        next((f"has {name}" for name in _CONFIG_SWITCHES if getattr(module.config, name, None)), None),
        _linear_problem([*together, module.o_proj]),
        _bias_problem(together),
        _width_problem(module, together),
        _head_norm_problem(module),
    )


def activation(module: Any) -> layers.Activation | None:
    """Return the activation of a module, by its results for a few numbers; None for an unknown one."""
    function: Any = getattr(module, "act_fn", None) or getattr(module, "activation_fn", None)
    probe = torch.linspace(-5, 5, 41)
    try:
        given = function(probe)
    except Exception:  # whatever a function that is not known raises
        return None
    known: dict[layers.Activation, torch.Tensor] = {
        "silu": functional.silu(probe),
        "gelu_tanh": functional.gelu(probe, approximate="tanh"),
    }
    return next((name for name, expected in known.items() if torch.allclose(given, expected, atol=1e-6)), None)


def is_plain_linear(module: Any) -> bool:
    """Return True if a module is a matrix product and nothing more."""
    return type(module) is nn.Linear and not _has_hooks(module)


def _unknown(module: Any, *, attributes: set[str], children: Iterable[set[str]], parameters: set[str]) -> str | None:
    """Return the unknown or missing parts of a module."""
    further = {name for name in vars(module) if not name.startswith("_") and name != "training"} - attributes
    own_parameters = {name for name, value in module._parameters.items() if value is not None}
    own_children = {name for name, value in module._modules.items() if value is not None}
    return _first(
        "is being trained" if module.training else None,
        "has hooks" if _has_hooks(module) else None,
        f"has {min(further)}" if further else None,
        f"has buffer {min(module._buffers)}" if module._buffers else None,
        None if own_parameters == parameters else f"has the parameters {sorted(own_parameters)}",
        None if own_children in list(children) else f"has the parts {sorted(own_children)}",
    )


def _linear_problem(parts: list[Any]) -> str | None:
    return None if all(map(is_plain_linear, parts)) else "has a projection that is no plain linear one"


def _bias_problem(parts: list[Any]) -> str | None:
    biased = {getattr(part, "bias", None) is not None for part in parts}
    return None if len(biased) == 1 else "has biases on some of its projections only"


def _width_problem(module: Any, together: list[Any]) -> str | None:
    """Return a problem unless the projections have H query heads and KH key and value heads, all of one size."""
    config, size = module.config, module.head_dim
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    expected = [heads * size, key_heads * size, key_heads * size]
    if len(together) == 1:
        expected = [sum(expected)]
    found = [getattr(part, "out_features", 0) for part in together]
    if found != expected or getattr(module.o_proj, "in_features", 0) != heads * size:
        return f"has projections of widths {found} where {expected} are usual"
    return None


def _head_norm_problem(module: Any) -> str | None:
    """Return a problem unless queries and keys are normalized alike, head by head."""
    norms = [getattr(module, name) for name in ("q_norm", "k_norm") if hasattr(module, name)]
    if not norms:
        return None
    if len({type(norm) for norm in norms}) > 1:
        return "has norms of several kinds"
    problem = _first(*map(norm_problem, norms))
    if problem is not None:
        return f"has a norm that {problem}"
    if any(norm.weight.shape != (module.head_dim,) for norm in norms):
        return "has norms over more than a head"
    return None if len(set(map(epsilon, norms))) == 1 else "has norms with several epsilons"


def _epsilons(norm: Any) -> list[float]:
    found = (getattr(norm, name, None) for name in ("eps", "variance_epsilon"))
    return [each for each in found if isinstance(each, float)]


def _has_hooks(module: Any) -> bool:
    return any(getattr(module, name) for name in _HOOKS)


def _first(*problems: str | None) -> str | None:
    return next((problem for problem in problems if problem is not None), None)
