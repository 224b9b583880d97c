from __future__ import annotations

from typing import Any

import pytest

from lmc.ir.core import Op, Value, op_class, op_names
from lmc.ir.dialects.core_ops import (
    SELECT_METHODS,
    AssumeOp,
    BeginOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    GenOp,
    HostCallOp,
    MessagesOp,
    PrefillOp,
    PyCallOp,
    ReturnOp,
    SampleOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.engine.protocol import EngineInfo, Generation, Score, TokenLogprob, derive_seed
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import CaptureError, InputError, LmcError, Location
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics import selection
from lmc.ir.semantics.context import Context
from lmc.ir.types import ANY, CTX, INT, TEXT, list_of
from tests.ir.region_ops import make

TOKENIZER = toy_tokenizer()
INFO = EngineInfo("toy", 4096)
C, D, T, N = Value("c", CTX), Value("d", CTX), Value("t", TEXT), Value("n", INT)
EMPTY = Context.empty(TOKENIZER)


def run(op: Op, **values: Any) -> Any:
    """The only result of ``op`` where the values called so are given."""
    names = {"c": C, "d": D, "t": T, "n": N}
    (result,) = semantics.evaluate(op, {names[name]: value for name, value in values.items()}, TOKENIZER)
    return result


def test_contexts_are_made_and_extended():
    assert run(make(ContextOp, C)) == EMPTY
    assert run(make(ExtendOp, D, context=C, text=("a", T)), c=EMPTY, t="b").transcript() == "ab"
    message = run(make(ExtendOp, D, context=C, role="user", text=(T,)), c=EMPTY, t="b")
    assert message.message_list() == [{"role": "user", "content": "b"}]
    opened = run(make(BeginOp, D, context=C, role="user"), c=EMPTY)
    assert opened.role == "user"
    assert run(make(EndOp, D, context=C), c=opened).role is None
    assert run(make(PrefillOp, D, context=C), c=message) is message
    assert run(make(TranscriptOp, T, context=C), c=message) == "<|im_start|>user\nb<|im_end|>\n"
    assert run(make(MessagesOp, Value("a", ANY), context=C), c=message) == [{"role": "user", "content": "b"}]


def test_texts_are_joined_and_builtins_called():
    assert run(make(ConcatOp, T, text=("a", T, "c")), t="b") == "abc"
    assert run(make(PyCallOp, T, function="format", arguments=(N, "03")), n=7) == "007"
    by_name = make(PyCallOp, T, function="sorted", arguments=((1, 2), True), keywords=("reverse",))
    assert run(by_name) == [2, 1]


def test_an_unknown_builtin_is_an_error():
    with pytest.raises(LmcError, match="no pure builtin is called 'eval'"):
        run(make(PyCallOp, T, function="eval", location=Location("a.py", 1)))


def test_what_a_builtin_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        run(make(PyCallOp, N, function="truediv", arguments=(1, 0)))


@pytest.mark.parametrize(("found", "expected"), [(2, 1), (True, 1), (1.0, 1), ("1", 1)])
def test_an_assumption_that_fails_stops_the_program(found: object, expected: object):
    op = make(AssumeOp, value=N, expected=expected, location=Location("a.py", 4))
    assert semantics.evaluate(op, {N: expected}, TOKENIZER) == ()
    with pytest.raises(InputError, match="the program was compiled for 1 here, but the input gives") as caught:
        semantics.evaluate(op, {N: found}, TOKENIZER)
    assert caught.value.location == Location("a.py", 4)


def test_ops_that_need_an_engine_a_host_or_regions_are_not_local():
    not_local = {name for name in op_names() if (kind := op_class(name)) and kind not in semantics._EVALUATORS}
    assert {name for name in not_local if not name.startswith(("test.", "cf."))} == {
        "lm.gen",
        "lm.sample",
        "lm.select",
        "host.call",
        "lm.return",
        "lm.break",
    }
    assert semantics.is_local(make(ContextOp, C))
    assert not semantics.is_local(make(HostCallOp, T, host="h", id="i"))
    with pytest.raises(TypeError, match=r"lm\.return needs an engine or a host function"):
        semantics.evaluate(make(ReturnOp, context=C), {}, TOKENIZER)


class TestGenerations:
    context = EMPTY.message("user", "hi")
    generation = Generation(
        TOKENIZER.encode("yes"),
        "yes!",
        "stop",
        remainder="!",
        logprobs=(TokenLogprob(1, -0.5, ((1, -0.5), (2, -1.0))), TokenLogprob(2, -0.1), TokenLogprob(3, -0.2)),
    )

    def test_requests_take_prompt_parameters_and_a_seed_of_their_own(self):
        op = make(GenOp, D, T, context=C, id="main/a", max_tokens=3, stop=("x",), temperature=0.5)
        (request,) = semantics.generation_requests(op, self.context, op_id=op.id, run_seed=5, instance=2, info=INFO)
        assert request.prompt == self.context.prompt
        assert request.sampling == op.sampling
        assert request.seed == derive_seed(5, 2, "main/a")
        assert (request.op_id, request.instance) == ("main/a", 2)

    def test_a_seed_of_the_program_takes_the_place_of_the_run_seed(self):
        op = make(GenOp, D, T, context=C, id="main/a", seed=9)
        seeds = {
            semantics.generation_requests(op, self.context, op_id=op.id, run_seed=run, instance=0, info=INFO)[0].seed
            for run in range(3)
        }
        assert seeds == {derive_seed(9, 0, "main/a")}

    def test_every_sample_has_its_own_seed(self):
        op = make(SampleOp, T, context=C, id="main/a", n=3)
        requests = semantics.generation_requests(op, self.context, op_id=op.id, run_seed=0, instance=0, info=INFO)
        assert len({request.seed for request in requests}) == 3
        assert len({request.prompt for request in requests}) == 1

    def test_a_generation_appends(self):
        op = make(GenOp, D, T, context=C, id="main/a")
        context, text = semantics.generation_results(op, self.context, [self.generation])
        assert text == "yes!"
        assert context.message_list()[-1] == {"role": "assistant", "content": "yes!"}

    def test_meta_data_comes_where_logprobs_are_wanted(self):
        op = make(GenOp, D, T, Value("a", ANY), context=C, id="main/a", logprobs=2)
        _, _, meta = semantics.generation_results(op, self.context, [self.generation])
        assert meta == {
            "token_ids": list(self.generation.token_ids),
            "tokens": [TOKENIZER.decode([token_id]) for token_id in self.generation.token_ids],
            "logprobs": [-0.5, -0.1, -0.2],
            "top_logprobs": [[[1, -0.5], [2, -1.0]], [], []],
            "top_tokens": [[TOKENIZER.decode([1]), TOKENIZER.decode([2])], [], []],
            "finish_reason": "stop",
        }

    def test_samples_are_listed(self):
        op = make(SampleOp, T, context=C, id="main/a", n=2)
        assert semantics.generation_results(op, self.context, [self.generation] * 2) == (["yes!", "yes!"],)
        with_meta = make(SampleOp, T, Value("a", ANY), context=C, id="main/a", n=2, logprobs=0)
        texts, metas = semantics.generation_results(with_meta, self.context, [self.generation] * 2)
        assert (len(texts), len(metas)) == (2, 2)


class TestSelect:
    context = EMPTY.message("user", "hi")

    @staticmethod
    def op(*choices: object, method: str = "token_length_normalized") -> Any:
        results = (D, T, Value("a", ANY))
        return make(SelectOp, *results, context=C, choices=choices, id="main/s", method=method)

    def test_choices_are_literals_texts_and_lists(self):
        listed = Value("l", list_of(TEXT))
        op = self.op("a", T, listed)
        assert selection.choices_of(op, {T: "b", listed: ["c", "d"]}) == ["a", "b", "c", "d"]
        assert selection.choices_of(op, {T: "b", listed: ("c",)}) == ["a", "b", "c"]

    @pytest.mark.parametrize(
        ("value", "cause"), [([], "select has no choices"), (["a", ""], "an empty choice can't be scored")]
    )
    def test_no_choices_and_empty_ones_are_errors(self, value: list[str], cause: str):
        listed = Value("l", list_of(TEXT))
        with pytest.raises(CaptureError, match=cause):
            selection.choices_of(self.op(listed), {listed: value})

    def test_what_is_no_text_is_no_choice(self):
        with pytest.raises(CaptureError, match=r"a choice is no text: 1 \(an int\)"):
            selection.choices_of(self.op(T), {T: 1})

    def test_requests_score_the_choices_after_the_context_and_for_one_method_after_nothing(self):
        (request,) = selection.requests_of(
            self.op("yes", "no"), self.context, ["yes", "no"], op_id="main/s", instance=3, info=INFO
        )
        assert (request.prompt, request.continuations) == self.context.choices(["yes", "no"])
        assert (request.op_id, request.instance) == ("main/s", 3)
        op = self.op("yes", "no", method="unconditional_likelihood_normalized")
        conditional, unconditional = selection.requests_of(
            op, self.context, ["yes", "no"], op_id=op.id, instance=0, info=INFO
        )
        assert conditional.continuations == unconditional.continuations
        assert unconditional.prompt == TOKENIZER.start_ids

    def winner(self, method: str, *scores: Score) -> tuple[str, list[float]]:
        choices = ["a", "b", "c"][: len(scores[0].logprobs)]
        op = self.op(*choices, method=method)
        requests = selection.requests_of(op, self.context, choices, op_id=op.id, instance=0, info=INFO)
        context, choice, meta = selection.results_of(op, self.context, requests, choices, list(scores))
        assert context.message_list()[-1] == {"role": "assistant", "content": choice}
        assert meta["choices"] == choices
        assert meta["logprobs"] == [list(row) for row in scores[0].logprobs]
        assert meta["token_ids"] == [list(TOKENIZER.encode(each)) for each in choices]
        assert meta["tokens"] == [[each] for each in choices]
        return choice, meta["scores"]

    def test_token_length_normalized_takes_the_mean(self):
        score = Score(((-1.0, -1.0, -1.0), (-2.0,), (-0.5, -2.5)))
        assert self.winner("token_length_normalized", score) == ("a", [-1.0, -2.0, -1.5])

    def test_greedy_token_goes_token_by_token(self):
        score = Score(((-0.5, -9.0), (-1.0, -0.1), (-0.5, -2.0)))
        assert self.winner("greedy_token", score) == ("c", [-1.0, -2.0, 0.0])

    def test_a_shorter_choice_counts_as_its_mean_where_it_ended(self):
        assert self.winner("greedy_token", Score(((-0.5,), (-0.5, -0.4))))[0] == "b"
        assert self.winner("greedy_token", Score(((-0.5,), (-0.5, -0.6))))[0] == "a"

    def test_unconditional_likelihood_is_taken_off(self):
        scores = (Score(((-1.0,), (-3.0,))), Score(((-1.0,), (-5.0,))))
        assert self.winner("unconditional_likelihood_normalized", *scores) == ("b", [0.0, 2.0])

    @pytest.mark.parametrize("method", SELECT_METHODS)
    def test_the_first_of_equals_wins(self, method: str):
        score = Score(((-1.0,), (-1.0,), (-1.0,)))
        assert self.winner(method, score, score)[0] == "a"

    def test_every_method_is_computed(self):
        assert set(selection._METHODS) == set(SELECT_METHODS)


def test_arguments_are_split_at_the_keywords():
    assert semantics.call_arguments((1, N, "x"), ("a", "b"), {N: 2}) == ([1], {"a": 2, "b": "x"})
    assert semantics.call_arguments((), (), {}) == ([], {})
