"""Tiny random checkpoints with a tokenizer of their own, as transformers saves them."""

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers

SPECIAL_TOKENS = ("<|begin|>", "<|end|>", "<|turn|>")
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "Seven ships sail from the harbour in the morning; three of them come back before night.",
    "Is the answer yes or no? Observation: the answer is not yet known.",
    "Žluťoučký kůň úpěl ďábelské ódy. Größe, naïve, 東京, 🙂.",
]
SHAPE: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    # Much wider than usual, so that the logits of random weights differ enough to be compared by their argmax.
    "initializer_range": 0.35,
}
ARCHITECTURES: dict[str, tuple[Any, Any]] = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    "gemma2": (transformers.Gemma2Config, transformers.Gemma2ForCausalLM),
    "gemma3": (transformers.Gemma3TextConfig, transformers.Gemma3ForCausalLM),
    "phi3": (transformers.Phi3Config, transformers.Phi3ForCausalLM),
    "mixtral": (transformers.MixtralConfig, transformers.MixtralForCausalLM),
    "qwen3_moe": (transformers.Qwen3MoeConfig, transformers.Qwen3MoeForCausalLM),
}
# What makes each of them different: windows shorter than the prompts, soft caps, experts, rotation of a part of a head.
SPECIAL: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 24},
    "gemma2": {
        "sliding_window": 20,
        "query_pre_attn_scalar": 12,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 20.0,
    },
    "gemma3": {"sliding_window": 20, "query_pre_attn_scalar": 12},
    "phi3": {"partial_rotary_factor": 0.5, "sliding_window": 30},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 40, "norm_topk_prob": True},
}


def byte_level_tokenizer(vocabulary_size: int = 400) -> tokenizers.Tokenizer:
    """A byte-level BPE with a few merges, so that words, spaces and code points straddle token borders."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in SPECIAL_TOKENS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    return tokenizer


def make_model(architecture: str, *, seed: int = 0, **overrides: Any) -> Any:
    """A model with random weights, in fp32.

    With attention as transformers writes it out: its others have left out soft caps in some versions.
    """
    config_class, model_class = ARCHITECTURES[architecture]
    vocabulary = byte_level_tokenizer()
    end = vocabulary.token_to_id("<|end|>")
    size = vocabulary.get_vocab_size()
    settings = {**SHAPE, "vocab_size": size, "bos_token_id": 0, "eos_token_id": end, "pad_token_id": None}
    settings |= {**SPECIAL.get(architecture, {}), **overrides}
    if architecture in ("qwen2", "phi3"):
        settings.pop("head_dim", None)  # always hidden_size / heads there
    torch.manual_seed(seed)
    return model_class._from_config(config_class(**settings), attn_implementation="eager").eval()


def save_checkpoint(folder: Path, model: Any) -> Path:
    """Write a model and the tokenizer into a folder."""
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=byte_level_tokenizer(), bos_token="<|begin|>", eos_token="<|end|>"
    ).save_pretrained(folder)
    return folder
