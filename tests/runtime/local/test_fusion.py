"""Modules of another form than the known one stay as transformers made them, and compute the same."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from lmc.runtime.kernels import products
from lmc.runtime.local.modules import fusion, module_forms
from lmc.runtime.local.modules.fused_layer import FusedLayers
from lmc.runtime.local.modules.fused_modules import FusedAttention, FusedExperts, FusedFeedForward, FusedNorm
from lmc.runtime.local.modules.module_forms import activation
from tests.runtime.local.checkpoints import ARCHITECTURES, make_model
from tests.runtime.local.test_logits import TOKENS, paged_logits, plain_logits

SHORT = TOKENS[:20]
WITH_EXPERTS = ("mixtral", "qwen3_moe")


@pytest.fixture(autouse=True)
def _say_it_again() -> None:
    fusion._say_left.cache_clear()


@pytest.fixture(params=[True, False], ids=["own products", "products of torch"])
def own_products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways, whatever is the faster one on this processor."""
    use_own_products(monkeypatch, use=request.param)
    return request.param


def use_own_products(monkeypatch: pytest.MonkeyPatch, *, use: bool) -> None:
    monkeypatch.setattr(products, "pays", lambda weight: use and weight.shape[1] % 2 == 0)


def fused_kinds(model: Any) -> set[type]:
    kinds = {FusedAttention, FusedExperts, FusedFeedForward, FusedLayers, FusedNorm}
    return {type(module) for module in model.modules()} & kinds


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_everything_known_is_fused(architecture: str, models: dict[str, Any], own_products: bool) -> None:
    model = copy.deepcopy(models[architecture])
    fusion.fuse(model)
    left = {type(module).__name__ for module in model.modules()}
    assert not left & {*module_forms.NORMS, *fusion._ATTENTION, *fusion._FEED_FORWARD, *fusion._EXPERTS}
    whole = own_products and architecture not in WITH_EXPERTS
    assert fused_kinds(model) >= {FusedLayers if whole else FusedAttention, FusedNorm}
    assert not whole or not left & fusion._LAYERS


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name not in WITH_EXPERTS])
def test_a_layer_in_one_call_computes_what_its_parts_do(
    architecture: str, models: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    logits = []
    for use in (True, False):
        use_own_products(monkeypatch, use=use)
        model = copy.deepcopy(models[architecture])
        logits.append(paged_logits(model, SHORT))
        assert (FusedLayers in fused_kinds(model)) is use
    assert torch.allclose(*logits, atol=1e-4)


LAYERS: list[tuple[Callable[[Any], None], str]] = [
    (lambda layer: setattr(layer, "scale", 2.0), "has scale"),
    (lambda layer: layer.register_forward_hook(lambda *_: None), "has hooks"),
    (lambda layer: setattr(layer, "gate", nn.Linear(48, 48)), "has the parts .*'gate'"),
    (lambda layer: layer.register_parameter("gate", nn.Parameter(torch.ones(1))), r"has the parameters \['gate'\]"),
]


@pytest.mark.parametrize(("change", "problem"), LAYERS)
def test_a_layer_of_another_form(change: Callable[[Any], None], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_products(monkeypatch, use=True)
    model = make_model("llama")
    change(model.model.layers[1])
    with pytest.warns(RuntimeWarning, match=f"LlamaDecoderLayer as transformers made it, slower: it {problem}"):
        fusion.fuse(model)
    assert type(model.model.layers[1]).__name__ == "LlamaDecoderLayer"
    assert type(model.model.layers[0]) is FusedLayers
    assert FusedAttention in fused_kinds(model)  # parts of the layer that stayed


def test_a_layer_that_drops_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_products(monkeypatch, use=True)
    model = make_model("phi3")
    model.model.layers[0].resid_mlp_dropout = nn.AlphaDropout()
    model.eval()
    with pytest.warns(RuntimeWarning, match="Phi3DecoderLayer .* has something for dropouts"):
        fusion.fuse(model)


class HalvingAttention(nn.Module):
    """Stands for a projection that does more than a linear one."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.linear(states) / 2


def bias_on_queries_only(attention: Any) -> None:
    attention.q_proj.bias = nn.Parameter(torch.ones(attention.q_proj.out_features))


def halve_queries(attention: Any) -> None:
    attention.q_proj = HalvingAttention(attention.q_proj)


def halve_by_hook(attention: Any) -> None:
    attention.o_proj.register_forward_hook(lambda module, inputs, output: output / 2)


def add_sinks(attention: Any) -> None:
    attention.sinks = nn.Parameter(torch.zeros(6))


def clip(attention: Any) -> None:
    attention.config.clip_qkv = 1.0


def widen_norms(attention: Any) -> None:
    attention.q_norm.weight = nn.Parameter(torch.ones(48))


def of_another_epsilon(attention: Any) -> None:
    attention.q_norm.variance_epsilon = 0.1


def without_scaling(attention: Any) -> None:
    del attention.scaling


ATTENTION: list[tuple[str, Callable[[Any], None], str]] = [
    ("llama", bias_on_queries_only, "has biases on some of its projections only"),
    ("llama", halve_queries, "has a projection that is no plain linear one"),
    ("llama", halve_by_hook, "has a projection that is no plain linear one"),
    ("llama", add_sinks, r"has the parameters \['sinks'\]"),
    ("llama", clip, "has clip_qkv"),
    ("llama", lambda attention: setattr(attention, "logit_scale", 2.0), "has logit_scale"),
    ("llama", lambda attention: setattr(attention, "is_causal", False), "is not causal"),
    ("llama", lambda attention: attention.register_buffer("slopes", torch.ones(6)), "has buffer slopes"),
    ("llama", lambda attention: attention.train(), "is being trained"),
    ("llama", lambda attention: attention.register_forward_hook(lambda *_: None), "has hooks"),
    ("llama", without_scaling, "has no scaling"),
    ("llama", lambda attention: setattr(attention, "gate", nn.Linear(48, 48)), "has the parts .*'gate'"),
    ("llama", lambda attention: setattr(attention, "head_dim", 4), "has projections of widths"),
    ("qwen3", widen_norms, "has norms over more than a head"),
    ("qwen3", of_another_epsilon, "has norms with several epsilons"),
    ("qwen3", lambda attention: setattr(attention, "k_norm", nn.LayerNorm(8)), "has norms of several kinds"),
    ("qwen3", lambda attention: setattr(attention.q_norm, "shift", 1), "has a norm that has shift"),
]


@pytest.mark.parametrize(("architecture", "change", "problem"), ATTENTION)
def test_attention_of_another_form(architecture: str, change: Callable[[Any], None], problem: str) -> None:
    model = make_model(architecture)
    change(model.model.layers[1].self_attn)
    with pytest.warns(RuntimeWarning, match=f"Attention as transformers made it, slower: it {problem}"):
        fusion.fuse(model)
    left = type(model.model.layers[1].self_attn)
    assert left.__name__ in fusion._ATTENTION


@pytest.mark.parametrize("change", [bias_on_queries_only, halve_queries, halve_by_hook])
def test_attention_of_another_form_computes_what_transformers_does(change: Callable[[Any], None]) -> None:
    model = make_model("llama")
    for layer in model.model.layers[1:]:
        change(layer.self_attn)
    expected = plain_logits(model, SHORT)
    with pytest.warns(RuntimeWarning, match="as transformers made it"):
        logits = paged_logits(model, SHORT)
    assert fused_kinds(model) & {FusedAttention, FusedLayers}  # of the first layer
    assert torch.allclose(logits, expected, atol=1e-4)


def test_two_layers_that_lack_the_same_are_said_once(recwarn: pytest.WarningsRecorder) -> None:
    model = make_model("llama")
    for layer in model.model.layers:
        bias_on_queries_only(layer.self_attn)
    fusion.fuse(model)
    assert len(recwarn) == 1


def test_feed_forward_of_another_form() -> None:
    model = make_model("llama")
    first, second, third = (layer.mlp for layer in model.model.layers)
    first.up_proj.bias = nn.Parameter(torch.ones(80))
    second.act_fn = nn.ReLU()
    third.dropped = 0.5
    expected = plain_logits(model, SHORT)
    with pytest.warns(RuntimeWarning) as said:
        logits = paged_logits(model, SHORT)
    texts = " ".join(str(each.message) for each in said)
    assert all(each in texts for each in ("biases on some", "unknown activation", "has dropped"))
    assert FusedFeedForward not in fused_kinds(model)
    assert torch.allclose(logits, expected, atol=1e-4)


def test_norm_of_another_form(own_products: bool) -> None:
    model = make_model("llama")
    model.model.norm.bias = nn.Parameter(torch.ones(48))
    model.model.layers[0].input_layernorm.variance_epsilon = None
    with pytest.warns(RuntimeWarning) as said:
        fusion.fuse(model)
    assert "has the parameters ['bias', 'weight']" in str(said[0].message) + str(said[1].message)
    assert type(model.model.norm).__name__ == "LlamaRMSNorm"
    assert type(model.model.layers[0].input_layernorm).__name__ == "LlamaRMSNorm"
    second = model.model.layers[1]
    assert type(second) is FusedLayers if own_products else type(second.input_layernorm) is FusedNorm


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma2"])
def test_norms_whose_epsilon_is_0(architecture: str) -> None:
    expected = plain_logits(make_model(architecture, rms_norm_eps=0.0), SHORT)
    model = make_model(architecture, rms_norm_eps=0.0)
    assert torch.allclose(paged_logits(model, SHORT), expected, atol=1e-4)
    assert FusedNorm in fused_kinds(model)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("is_transposed", True, "has is_transposed = True"),
        ("has_gate", False, "has has_gate = False"),
        ("down_proj_bias", nn.Parameter(torch.ones(4, 48)), "has the parameters .*down_proj_bias"),
        ("act_fn", nn.Tanh(), "has an unknown activation"),
        ("limit", 7.0, "has limit"),
        ("gate_up_proj", nn.Parameter(torch.ones(4, 80, 48)), "has weights of other shapes"),
    ],
)
def test_experts_of_another_form(name: str, value: Any, problem: str) -> None:
    model = make_model("mixtral")
    for layer in model.model.layers:
        if name == "gate_up_proj":
            value = nn.Parameter(layer.mlp.experts.gate_up_proj[:, :80])
        setattr(layer.mlp.experts, name, value)
    with pytest.warns(RuntimeWarning, match=f"MixtralExperts as transformers made it, slower: it {problem}"):
        fusion.fuse(model)
    assert FusedExperts not in fused_kinds(model)


def test_activations_are_told_by_what_they_give() -> None:
    class Holder:
        act_fn: Any = None

    def broken(states: torch.Tensor) -> torch.Tensor:
        raise ValueError(states.shape)

    holder = Holder()
    found = []
    for holder.act_fn in (nn.SiLU(), nn.GELU(approximate="tanh"), nn.GELU(), broken):
        found.append(activation(holder))
    assert found == ["silu", "gelu_tanh", None, None]
