"""The exported model as users meet it: loads through transformers, answers the prompts of the README."""

import json
from itertools import pairwise

import pytest
import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from transformers import AutoTokenizer, LlamaForCausalLM

from lmc import builtin_model
from training.evaluate import evaluate

pytestmark = pytest.mark.slow("evaluates the built-in model")

FOLDER = builtin_model.path()
FAMILIES = {
    "arithmetic",
    "conversation",
    "extraction",
    "fields",
    "joining",
    "judgement",
    "lookup",
    "multiple_choice",
    "recall",
    "structured",
}


@pytest.fixture(scope="module")
def model():
    return LlamaForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


def generate(model, tokenizer, prompt, stop="\n"):
    """Return what the model writes, greedily, up to the stop string or the end of the turn."""
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
    with torch.inference_mode():
        out = model.generate(ids, max_new_tokens=48, do_sample=False, tokenizer=tokenizer, stop_strings=[stop])
    return tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True).split(stop)[0]


def chat(tokenizer, *contents):
    roles = ("user", "assistant") * len(contents)
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def test_size_shape_and_dtype(model):
    weights = FOLDER / "model.safetensors"
    assert weights.stat().st_size <= 16 * 2**20
    with safe_open(weights, framework="pt") as stored:
        assert {str(stored.get_tensor(name).dtype) for name in stored.keys()} == {"torch.bfloat16"}  # noqa: SIM118
    assert 2048 <= model.config.vocab_size <= 4096
    assert model.config.max_position_embeddings >= 4096
    assert model.config.tie_word_embeddings


def test_tokens_and_template(tokenizer):
    assert tokenizer.bos_token == tokenizer.pad_token == "<|endoftext|>"
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer("Mira").input_ids == tokenizer("Mira", add_special_tokens=False).input_ids
    text = chat(tokenizer, "Hi", "Hello", "Bye")
    assert text.startswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n")
    assert text.endswith("<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n")


def test_template_is_prefix_stable(tokenizer):
    messages = [
        {"role": "system", "content": "You grade essays."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    texts = [tokenizer.apply_chat_template(messages[:count], tokenize=False) for count in range(1, 5)]
    for shorter, longer in pairwise(texts):
        assert longer.startswith(shorter)


def test_accuracy_is_what_the_metrics_say(model):
    """A part of the held-out documents, so with room for chance: other weights or another engine below would show.

    The answers of a document are right or wrong together (one large table, many misses), so the room is wide.
    """
    vocabulary = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    vocabulary.encode_special_tokens = True
    metrics = json.loads((FOLDER / "metrics.json").read_text(encoding="utf-8"))["contexts"]["512"]
    found = evaluate(model, vocabulary, 512, 8)
    for family, numbers in found.items():
        assert numbers["accuracy"] >= metrics[family]["accuracy"] - 0.2, family
    assert sum(numbers["accuracy"] for numbers in found.values()) / len(found) >= 0.8


def test_metrics_cover_every_family_and_context():
    metrics = json.loads((FOLDER / "metrics.json").read_text(encoding="utf-8"))
    assert set(metrics["contexts"]) == {"512", "2048", "4096"}
    for families in metrics["contexts"].values():
        assert set(families) == FAMILIES
        assert all(0 <= numbers["accuracy"] <= 1 and numbers["answers"] > 0 for numbers in families.values())


def test_remembers_a_name(model, tokenizer):
    prompt = chat(tokenizer, "My name is Nora.", "Hello, Nora.", "What is my name?")
    assert generate(model, tokenizer, prompt) == "Your name is Nora."


def test_fills_in_a_field(model, tokenizer):
    sentence = "On 4 May, Ivan bought a lamp in Morfield and paid 17 dollars."
    prompt = chat(tokenizer, f"Sentence: {sentence}\nExtract the fields name, city and price.")
    assert generate(model, tokenizer, prompt + "Name:").strip() == "Ivan"
    assert generate(model, tokenizer, prompt + "Name: Ivan\nCity:").strip() == "Morfield"


def test_joins_views_into_a_verdict(model, tokenizer):
    good = "The clarity is good: the wording is plain.\nThe tone is good: it is fair to others."
    poor = "The clarity is poor: the wording is vague.\nThe tone is poor: it is rude to others."
    assert generate(model, tokenizer, chat(tokenizer, f"Views:\n{good}")) == "accept"
    assert generate(model, tokenizer, chat(tokenizer, f"Views:\n{poor}")) == "reject"
