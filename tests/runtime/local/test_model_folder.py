"""What else a model folder says: shards, end tokens, defaults of sampling, chat templates."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmc.ir.engine.protocol import Request, SamplingParams
from lmc.ir.errors import InputError
from lmc.ir.semantics.context import Context
from lmc.runtime.local import LocalEngine, load_local_engine
from tests.runtime.local.checkpoints import SENTENCES, make_model, save_checkpoint
from tests.runtime.local.oracle import Agreement

TEMPLATE = "{% for m in messages %}<|turn|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}<|turn|>"
FORGETFUL = (
    "{% for m in messages %}<|turn|>{% if loop.last %}{{ m.content }}{% else %}{{ m.content[:0] }}{% endif %}"
    "{% endfor %}<|turn|>"
)


def write(path: Path, **entries: Any) -> None:
    before = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**before, **entries}))


def generate(engine: LocalEngine, prompt: tuple[int, ...], max_tokens: int = 30) -> tuple[int, ...]:
    handle = engine.submit(Request(prompt, SamplingParams(max_tokens=max_tokens)))
    return handle.future.result(timeout=60).token_ids


@pytest.mark.parametrize("architecture", ["qwen3", "mixtral"])
def test_shards_give_what_one_file_gives(architecture: str, tmp_path: Path) -> None:
    model = make_model(architecture, tie_word_embeddings=architecture == "qwen3")
    save_checkpoint(tmp_path / "whole", model)
    save_checkpoint(tmp_path / "sharded", model)
    (tmp_path / "sharded" / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "sharded", max_shard_size="40KB")
    assert len(list((tmp_path / "sharded").glob("model-*-of-*.safetensors"))) > 2
    for dtype in ("float32", "bfloat16"):
        texts: list[list[tuple[int, ...]]] = []
        for name in ("whole", "sharded"):
            with load_local_engine(tmp_path / name, device="cpu", kv_tokens=500, dtype=dtype) as engine:
                prompts = [engine.tokenizer.encode(sentence) for sentence in SENTENCES]
                texts.append([generate(engine, prompt) for prompt in prompts])
        assert texts[0] == texts[1]
        if dtype == "float32":
            for prompt, tokens in zip(prompts, texts[0], strict=True):
                Agreement().check(model, prompt, tokens, 30)


def test_every_end_token_of_the_folder_ends_a_generation(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    with load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=500) as engine:
        prompt = engine.tokenizer.encode(SENTENCES[0])
        free = generate(engine, prompt)
        (own,) = engine.tokenizer.eos_ids
    assert len(set(free)) > 6
    ends = [free[5], free[3]]
    folder = save_checkpoint(tmp_path / "model", make_model("llama"))
    for name, other in (("generation_config.json", None), ("config.json", "generation_config.json")):
        write(folder / name, eos_token_id=ends)
        if other is not None:
            (folder / other).unlink()
        with load_local_engine(folder, device="cpu", kv_tokens=500) as engine:
            assert set(engine.tokenizer.eos_ids) == {own, *ends}
            handle = engine.submit(Request(prompt, SamplingParams(max_tokens=30)))
            generation = handle.future.result(timeout=60)
        first = min(free.index(token) for token in ends)
        assert generation.token_ids == free[:first]
        assert generation.finish_reason == "eos"


def test_sampling_defaults_of_the_folder_change_nothing(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path / "model", make_model("llama"))
    write(folder / "generation_config.json", do_sample=True, temperature=3.0, top_p=0.9, repetition_penalty=2.0)
    texts: list[tuple[int, ...]] = []
    for each in (checkpoints["llama"], folder):
        with load_local_engine(each, device="cpu", kv_tokens=500) as engine:
            texts.append(generate(engine, engine.tokenizer.encode(SENTENCES[1])))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_the_template_of_the_folder_makes_the_prompt(place: str, tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path / "model", make_model("llama"))
    if place == "chat_template.jinja":
        (folder / place).write_text(TEMPLATE)
    else:
        write(folder / place, chat_template=[{"name": "default", "template": TEMPLATE}])
    with load_local_engine(folder, device="cpu", kv_tokens=500) as engine:
        tokenizer = engine.tokenizer
        prompt = Context.empty(tokenizer).message("user", "Is it <|end|>?").prompt
        assert tokenizer.decode(prompt) == "<|turn|>user: Is it <|end|>?<|end|><|turn|>"
        assert [tokenizer.decode([token]) for token in prompt].count("<|end|>") == 1  # text is not a token
        Agreement().check(make_model("llama"), prompt, generate(engine, prompt), 30)


def test_a_template_that_rewrites_older_turns_gives_right_answers(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path / "model", make_model("llama"))
    (folder / "chat_template.jinja").write_text(FORGETFUL)
    with load_local_engine(folder, device="cpu", kv_tokens=500) as engine:
        context = Context.empty(engine.tokenizer)
        for text in ("Is the answer yes?", "Or is it no?"):
            context = context.message("user", text)
            prompt = context.prompt
            handle = engine.submit(Request(prompt, SamplingParams(max_tokens=12)))
            generation = handle.future.result(timeout=60)
            Agreement().check(make_model("llama"), prompt, generation.token_ids, 12)
            context = context.generated(generation).end()
        assert context.rendered_whole


def test_roles_need_a_template(checkpoints: dict[str, Path]) -> None:
    with (
        load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=500) as engine,
        pytest.raises(InputError, match="this model has no chat template") as failure,
    ):
        generate(engine, Context.empty(engine.tokenizer).message("user", "hi").prompt)
    assert "plain text" in (failure.value.remedy or "")
