"""The whole way on a real model: the built-in one, in fp32 on the CPU."""

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

import lmc
from lmc import builtin_model
from lmc.driver.targets.service import service
from lmc.ir.engine.target import Target

KV_TOKENS = 6_000


@lmc.jit
def judge(s: lmc.State, essay: str) -> dict[str, str]:
    s += lmc.system("You grade essays.")
    s += lmc.user(f"Essay:\n{essay}\nIs it on topic?")
    on_topic = s.select("on_topic", ["yes", "no"])
    views = s.fork(2)
    for number, dimension in enumerate(("clarity", "tone")):
        views[number] += lmc.user(f"Judge its {dimension}.")
        views[number].gen("view", max_tokens=16, stop="\n")
    s += lmc.user("Views:\n" + "\n".join(view["view"] for view in views))
    return {"on_topic": on_topic, "verdict": s.select("verdict", ["accept", "reject"]), "view": views[0]["view"]}


JUDGE = judge.on("builtin", kv_tokens=KV_TOKENS)
ESSAYS = [
    "Birds fly south in winter because they look for food.",
    "Trains are quieter than planes. They also carry more people.",
    "I like soup.",
]
# Holds every special token of the model as plain text.
ESSAYS.append(" ".join(token.text for token in service().engines.tokenizer(Target("builtin")).special_tokens))


def test_eager_plain_and_optimized_runs_agree():
    expected = [JUDGE.eager(essay) for essay in ESSAYS]
    levels: tuple[Literal["O0", "O2"], ...] = ("O0", "O2")
    for level in levels:
        results = JUDGE.on(level=level).batch([{"essay": essay} for essay in ESSAYS])
        for found, oracle in zip(results, expected, strict=True):
            assert (found.value, found.text) == (oracle.value, oracle.text)


class City(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=24)
    country: str = pydantic.Field(max_length=24)
    latitude: float
    population: int
    landmarks: list[str] = pydantic.Field(alias="top 3 landmarks", min_length=3, max_length=3)


@lmc.jit
def city(s: lmc.State, page: str, jump_forward: Literal["exact", "off"]) -> tuple[City, str, str]:
    s += lmc.system("You write JSON only.")
    s += lmc.user(f"Page:\n{page}\nGive the city of the page as JSON.")
    found = s.gen("city", schema=City, whitespace="flexible", max_tokens=200, jump_forward=jump_forward)
    s += lmc.user(f"Is {found.population} a lot?")
    many = s.gen("many", choices=["yes, it is", "no, it is not"], jump_forward=jump_forward)
    s += lmc.user("How sure are you, of 10?")
    return found, many, s.gen("sure", regex="10|[1-9]", jump_forward=jump_forward)


PAGES = [
    json.loads(line)["page"]
    for line in (Path(__file__).parents[2] / "examples" / "data" / "pages.jsonl").read_text().splitlines()[:2]
]


def test_constrained_runs_agree_at_every_level_and_with_drafts():
    program = city.on("builtin", kv_tokens=KV_TOKENS, seed=3)
    expected = [program.eager(page, "off") for page in PAGES]
    levels: tuple[Literal["O0", "O2"], ...] = ("O0", "O2")
    for level in levels:
        for mode in ("off", "exact"):
            rows = [{"page": page, "jump_forward": mode} for page in PAGES]
            for found, oracle in zip(program.on(level=level).batch(rows), expected, strict=True):
                assert found.error is None
                assert (found.value, found.text) == (oracle.value, oracle.text)
    assert type(expected[0].value[0]) is City
    assert (expected[0].value[0].latitude, expected[0].value[0].population) == (81.62, 1686)


def test_a_batch_computes_shared_prefixes_once():
    engine = service().engines.engine(Target("builtin", kv_tokens=KV_TOKENS))
    JUDGE.batch([{"essay": f"{essay} Again."} for essay in ESSAYS])
    before = engine.statistics.prefilled_tokens
    results = JUDGE.batch([{"essay": f"{essay} Again."} for essay in ESSAYS])
    prompts = sum(result.usage.prompt_tokens for result in results)
    computed = sum(result.usage.prompt_tokens - result.usage.cached_tokens for result in results)
    assert engine.statistics.prefilled_tokens - before < prompts / 3
    assert computed < prompts / 3


@lmc.jit
def write(s: lmc.State, topic: str) -> Any:
    s += lmc.user(f"Write about {topic}, and then write about {topic} again, as one writes in a newspaper.")
    drafts = s.gen("drafts", n=4, max_tokens=12, temperature=1.0, frequency_penalty=0.5, logit_bias={5: -100})
    s.gen("text", max_tokens=12, repetition_penalty=1.3, presence_penalty=0.2, logprobs=3)
    return {"drafts": drafts, "text": s["text"], "meta": s.meta("text")}


def said(value: dict[str, Any]) -> list[str]:
    return [*value["drafts"], value["text"]]


def test_samples_share_one_prefill_and_levels_agree():
    program = write.on("builtin", kv_tokens=KV_TOKENS)
    engine = service().engines.engine(Target("builtin", kv_tokens=KV_TOKENS))
    before = engine.statistics.prefilled_tokens
    result = program.run("trains")
    prompt = result.usage.prompt_tokens // 5
    # The prompt once; again its last token, where another generation needs the logits after it.
    assert engine.statistics.prefilled_tokens - before <= prompt + 4
    assert len({*result.value["drafts"]}) > 1
    levels: tuple[Literal["O0", "O2"], ...] = ("O0", "O2")
    for level in levels:
        assert said(program.on(level=level).run("trains").value) == said(result.value)
    assert said(program.eager("trains").value) == said(result.value)
    top = result.value["meta"]["top_logprobs"]
    assert all(len(entries) == 3 and entries == sorted(entries, key=lambda entry: -entry[1]) for entries in top)


def test_a_deterministic_program_gives_the_same_alone_and_in_a_batch():
    program = write.on("builtin", kv_tokens=KV_TOKENS, deterministic=True)
    topics = ["trains", "soup", "birds in winter"]
    alone = [program.run(topic) for topic in topics]
    batch = program.batch([{"topic": topic} for topic in topics])
    assert batch[0].value == alone[0].value
    for one, other in zip(alone, batch, strict=True):
        assert one.value["meta"] == other.value["meta"]


def test_a_prompt_that_is_too_long_fails_alone_with_its_line():
    results = JUDGE.batch([{"essay": ESSAYS[0]}, {"essay": "word " * 9_000}, {"essay": ESSAYS[1]}])
    assert [result.error is None for result in results] == [True, False, True]
    error = results[1].error
    assert isinstance(error, lmc.ContextLengthError)
    assert error.location is not None
    assert error.location.file == __file__
    assert error.remedy


def test_tokens_stream_before_the_run_is_over():
    with JUDGE.stream(ESSAYS[0]) as stream:
        events = list(stream)
    texts = {
        branch: "".join(event.text for event in events if event.branch == branch)
        for branch in ("judge/fork/0", "judge/fork/1")
    }
    assert texts["judge/fork/0"] == stream.result.value["view"]
    assert texts["judge/fork/1"]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_model_folder_is_a_clear_error(tmp_path: Path, name: str):
    folder = tmp_path / "model"
    shutil.copytree(builtin_model.path(), folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(lmc.InputError) as caught:
        judge.on(f"local:{folder}", kv_tokens=KV_TOKENS).run(ESSAYS[0])
    assert str(folder) in caught.value.cause or "tokenizer.json" in caught.value.cause
    assert caught.value.remedy
