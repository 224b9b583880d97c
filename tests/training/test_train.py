"""The training loop in seconds: it learns, it resumes to the same bits, its export is the same network."""

from dataclasses import replace
from random import Random

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

from training import export, packing, recipe, tokenizer, train
from training.document import Split
from training.grading import grade, spans
from training.model import Llama, Shape
from training.tasks import FAMILIES

SHAPE = Shape(vocab_size=384, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2)
PLAN = recipe.Recipe(
    shape=SHAPE,
    stages=(
        recipe.Stage(6, {48: 1.0}, 192, copying=0.5),
        recipe.Stage(34, {64: 0.7, 96: 0.3}, 384, {"arithmetic": 0.5, "judgement": 0.5}),
    ),
    tokenizer_documents=24,
    warmup_steps=4,
)


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    return tokenizer.build(384, 24)


def test_loss_falls(tmp_path):
    train.run(PLAN, tmp_path, probe_every=1000)
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [float(line.split('"answer_loss": ')[1].split(",")[0]) for line in lines]
    assert len(losses) == 4
    assert losses[-1] < losses[0] - 0.5


def test_resuming_gives_the_same_state(tmp_path):
    train.run(PLAN, tmp_path / "straight", stop_after=9, probe_every=1000)
    train.run(PLAN, tmp_path / "resumed", stop_after=5, probe_every=1000)
    train.run(PLAN, tmp_path / "resumed", stop_after=9, probe_every=1000)
    straight = load_file(tmp_path / "straight" / "state.safetensors")
    resumed = load_file(tmp_path / "resumed" / "state.safetensors")
    assert straight.keys() == resumed.keys()
    assert any(name.startswith("state.") for name in straight)
    for name, tensor in straight.items():
        assert torch.equal(tensor, resumed[name]), name


def test_a_finished_run_stays_as_it_is(tmp_path):
    train.run(PLAN, tmp_path, stop_after=3, probe_every=1000)
    before = (tmp_path / "state.safetensors").read_bytes()
    train.run(PLAN, tmp_path, stop_after=3, probe_every=1000)
    assert (tmp_path / "state.safetensors").read_bytes() == before


def test_export_is_the_same_network(tmp_path):
    train.run(PLAN, tmp_path / "run", stop_after=3, probe_every=1000)
    model, step = export.restored(PLAN, tmp_path / "run")
    assert step == 3
    export.write(model, tmp_path / "run", tmp_path / "out")
    loaded = LlamaForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    tokens = torch.randint(0, 384, (1, 40), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        logits = loaded(tokens).logits
        own = torch.nn.functional.linear(model.hidden(tokens), model.embedding.bfloat16()).float()
    assert (logits - own).norm() < 0.05 * logits.norm()


def test_going_on_starts_from_the_exported_weights(tmp_path):
    source = tmp_path / "source"
    first = train.run(PLAN, tmp_path / "run", stop_after=3, probe_every=1000)
    export.write(first, tmp_path / "run", source)
    read = Llama(SHAPE, seed=5)
    export.read(read, source)
    for own, parameter in zip(first.parameters(), read.parameters(), strict=True):
        assert torch.equal(own.detach().bfloat16().float(), parameter)
    plan = replace(PLAN, seed=2)
    straight = train.run(plan, tmp_path / "straight", source=source, stop_after=4, probe_every=1000)
    train.run(plan, tmp_path / "resumed", source=source, stop_after=2, probe_every=1000)
    resumed = train.run(plan, tmp_path / "resumed", source=source, stop_after=4, probe_every=1000)
    fresh = train.run(plan, tmp_path / "fresh", stop_after=4, probe_every=1000)
    assert torch.equal(straight.qkv, resumed.qkv)
    assert not torch.equal(straight.qkv, fresh.qkv)


def test_going_on_from_another_shape_is_refused(tmp_path):
    model = train.run(PLAN, tmp_path / "run", stop_after=1, probe_every=1000)
    export.write(model, tmp_path / "run", tmp_path / "source")
    with pytest.raises(ValueError, match=r"source holds a network of another shape, first in model\.layers"):
        export.read(Llama(replace(SHAPE, intermediate_size=64), seed=1), tmp_path / "source")


def test_smoke_and_from_are_refused_together(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["train", "--smoke", "--from", "somewhere"])
    with pytest.raises(SystemExit):
        train.main()
    assert "leave out --from" in capsys.readouterr().err


def test_batches_depend_on_seed_and_step_only(vocabulary):
    stage = recipe.Stage(1, {64: 1.0}, 192, {"joining": 0.5, "recall": 0.5}, copying=0.3)
    first = packing.training_batch(vocabulary, 1, 7, 3, 64, stage)
    again = packing.training_batch(vocabulary, 1, 7, 3, 64, stage)
    other = packing.training_batch(vocabulary, 1, 8, 3, 64, stage)
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.weights, again.weights)
    assert not torch.equal(first.tokens, other.tokens)
    assert first.tokens.shape == (3, 65)
    assert first.weights.shape == (3, 64)


def test_only_answers_have_full_weight(vocabulary):
    document = FAMILIES["conversation"](Random(0), Split.TRAIN, 500)
    ids, learned = packing.encode(vocabulary, document)
    written = vocabulary.decode([token for token, flag in zip(ids, learned, strict=True) if flag])
    expected = "".join(segment.text for segment in document.segments if segment.kind.value == "answer")
    assert written == expected


def test_a_letter_counts_as_much_as_a_name(vocabulary):
    document = FAMILIES["multiple_choice"](Random(1), Split.TRAIN, 1500)
    letters = [segment for segment in document.segments if segment.choices and segment.text.strip() in "ABCDEF"]
    weights = packing.encode(vocabulary, document)[1]
    assert letters
    assert weights.count(3.0) >= sum(len(vocabulary.encode(segment.text).ids) == 1 for segment in letters) > 0
    assert set(weights) <= {0.0, 1.0, 1.5, 3.0}


def test_rates_warm_up_hold_and_fall():
    plan = replace(PLAN, warmup_steps=10, decay_share=0.5)
    factors = [plan.rate_factor(step) for step in range(plan.total_steps)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[15] == 1.0
    assert factors[-1] < 0.1
    assert factors[20:] == sorted(factors[20:], reverse=True)


def test_stages_follow_each_other():
    assert PLAN.at(0)[2] == 48
    assert PLAN.at(5)[0] is PLAN.stages[0]
    assert PLAN.at(6)[0] is PLAN.stages[1]
    assert PLAN.at(39)[2] in (64, 96)


class _Oracle:
    """Predicts the given tokens at every position: grading must find all answers right."""

    def __init__(self, ids: list[int], size: int, shift: int = 0) -> None:
        self.ids, self.size, self.shift = ids, size, shift

    def __call__(self, tokens: torch.Tensor, *, use_cache: bool) -> object:
        assert not use_cache
        following = torch.tensor([*self.ids[1 : tokens.shape[1] + 1], 0])[: tokens.shape[1]]
        logits = torch.nn.functional.one_hot((following + self.shift) % self.size, self.size).float() * 20
        return type("Output", (), {"logits": logits[None]})()


@pytest.mark.parametrize("family", ["judgement", "multiple_choice", "extraction", "structured", "fields"])
def test_grading_tells_right_from_wrong(vocabulary, family):
    document = FAMILIES[family](Random(1), Split.HELD_OUT, 1500)
    ids, found = spans(vocabulary, document)
    context = len(ids)
    right = grade(_Oracle(ids, 384), vocabulary, document, context)
    wrong = grade(_Oracle(ids, 384, shift=1), vocabulary, document, context)
    assert len(right) == len(wrong) == sum(span.start >= context // 2 for span in found) > 0
    assert all(one.written for one in right)
    assert not any(one.written for one in wrong)
    assert all(one.selected is not False for one in right)


def test_a_new_network_copies_before_any_training():
    model = Llama(Shape(), seed=1)
    block = torch.randint(3, 2048, (2, 48), generator=torch.Generator().manual_seed(0))
    tokens = torch.cat((block, block), dim=1)
    with torch.inference_mode():
        logits = torch.nn.functional.linear(model.hidden(tokens), model.embedding.bfloat16())
    hits = logits[:, 49:-1].argmax(-1) == tokens[:, 50:]
    assert hits.float().mean() > 0.2  # chance is 1 in 2,048
