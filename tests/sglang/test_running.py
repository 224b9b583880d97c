"""Batches, streams, event loops, other forms of a program, backends."""

import asyncio
import inspect
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import lmc.sglang as sgl
from lmc.driver.targets.service import service
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import ContextLengthError, EngineError, InputError
from tests.runtime.engines import LateEngine
from tests.sglang.programs import EVERY, answers, calls_programs, expand, few_shot_qa, multi_turn, tool_use

QUESTIONS: list[dict[str, Any]] = [{"question": f"What is {number} + {number}?"} for number in range(6)]


@pytest.fixture(autouse=True)
def on_the_toy() -> Iterator[None]:
    sgl.set_default_backend("toy")
    yield
    sgl.set_default_backend(None)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> LateEngine:
    engine = LateEngine()
    monkeypatch.setitem(service().engines._engines, Target("toy"), engine)
    return engine


class Narrow(ToyEngine):
    """A toy that refuses prompts about 3."""

    def submit(self, request: Any, on_delta: Any = None) -> Any:
        if "3 + 3" in self.tokenizer.decode(request.prompt):
            raise ContextLengthError("the prompt is too long", remedy="shorten it")
        return super().submit(request, on_delta)


class Gated(LateEngine):
    """Answers the second question of ``multi_turn`` when the gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def _answer(self, handle: Any, op_id: str, answer: Any) -> None:
        if op_id == "multi_turn/answer_2":
            assert self.gate.wait(10)
        super()._answer(handle, op_id, answer)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(service().engines._engines, Target("toy"), Narrow())


# Batches


def test_a_batch_gives_states_in_order():
    states = few_shot_qa.run_batch(QUESTIONS, temperature=0)
    assert [state.text() for state in states] == [few_shot_qa.run(**row, temperature=0).text() for row in QUESTIONS]
    assert [state.error() for state in states] == [None] * 6


def test_rows_may_be_lists_in_the_order_of_the_parameters():
    rows = [("a", "b"), ["c", "d"]]
    states = multi_turn.run_batch(rows, temperature=0)
    named = multi_turn.run_batch(
        [{"question_1": "a", "question_2": "b"}, {"question_1": "c", "question_2": "d"}], temperature=0
    )
    assert [state.messages() for state in states] == [state.messages() for state in named]


def test_an_empty_batch_gives_nothing():
    assert few_shot_qa.run_batch([]) == []


@pytest.mark.parametrize("num_threads", [1, 2, "auto"])
def test_threads_bound_what_is_under_way(late: LateEngine, num_threads: Any):
    few_shot_qa.run_batch(QUESTIONS, num_threads=num_threads)
    assert late.most <= (num_threads if num_threads != "auto" else 256)
    assert (late.most == 1) == (num_threads == 1)


def test_a_progress_bar_counts_rows_on_stderr(capsys: pytest.CaptureFixture[str]):
    few_shot_qa.run_batch(QUESTIONS, progress_bar=True)
    captured = capsys.readouterr()
    assert "6/6" in captured.err
    assert captured.out == ""
    few_shot_qa.run_batch(QUESTIONS)
    assert capsys.readouterr().err == ""


def test_a_row_that_fails_keeps_its_error_to_itself(narrow: None):
    states = few_shot_qa.run_batch(QUESTIONS)
    assert [type(state.error()) for state in states] == [type(None)] * 3 + [ContextLengthError] + [type(None)] * 2
    with pytest.raises(ContextLengthError, match="the prompt is too long"):
        states[3]["answer"]
    assert states[4]["answer"]


# Errors


def test_what_the_engine_refuses_is_in_the_state(narrow: None):
    state = few_shot_qa.run(**QUESTIONS[3])
    error = state.error()
    assert isinstance(error, ContextLengthError)
    assert error.location is not None
    assert error.location.file.endswith("programs.py")
    for read in (state.text, state.messages, lambda: state["answer"], lambda: list(state.text_iter())):
        with pytest.raises(EngineError, match="the prompt is too long"):
            read()
    assert state.sync() is None


def test_what_the_program_raises_is_raised():
    @sgl.function
    def wrong(s, number):
        s += "x" + sgl.gen("a", max_tokens=2)
        raise ValueError(number)

    with pytest.raises(ValueError, match="7"):
        wrong.run(7)
    (state,) = wrong.run_batch([{"number": 8}])
    assert isinstance(state.error(), ValueError)
    with pytest.raises(ValueError, match="8"):
        state.text()


def test_unknown_variables_are_key_errors():
    state = few_shot_qa.run(**QUESTIONS[0])
    with pytest.raises(KeyError, match="did you mean 'answer'"):
        state["answers"]
    with pytest.raises(KeyError, match="nothing was generated or chosen as 'x'"):
        state.get_meta_info("x")
    assert "answers" not in state


# Streams


@pytest.mark.parametrize("name", ["few_shot_qa", "multi_turn", "tool_use", "react", "answers", "scopes"])
def test_pieces_of_a_stream_make_the_text(name: str):
    function, arguments = EVERY[name]
    state = function.run(**arguments, stream=True)
    pieces = list(state.text_iter())
    assert "".join(pieces) == state.text() == function.run(**arguments).text()
    assert len(pieces) > 3
    assert list(state.text_iter()) == pieces, "a stream can be read again"


def test_a_variable_comes_piece_by_piece():
    state = multi_turn.run("Who are you?", "Who made you?", stream=True)
    for name in ("answer_2", "answer_1"):
        pieces = list(state.text_iter(var_name=name))
        assert "".join(pieces) == state[name]
        assert len(pieces) == len(state[name])


def test_variables_that_are_not_generated_come_whole():
    function, arguments = EVERY["scopes"]
    state = function.run(**arguments, stream=True)
    assert list(state.text_iter("line")) == [state["line"]]
    with pytest.raises(KeyError, match="no variable 'lines'"):
        list(state.text_iter("lines"))


def test_without_a_stream_there_is_one_piece():
    state = few_shot_qa.run(**QUESTIONS[0])
    assert list(state.text_iter()) == [state.text()]
    assert list(state.text_iter("answer")) == [state["answer"]]


def test_a_stream_begins_before_the_end(monkeypatch: pytest.MonkeyPatch):
    engine = Gated()
    monkeypatch.setitem(service().engines._engines, Target("toy"), engine)
    state = multi_turn.run("Who are you?", "Who made you?", stream=True)
    pieces = state.text_iter()
    first = [next(pieces) for _ in range(3)]
    assert "Who are you?" in first[0]
    engine.gate.set()
    assert "".join([*first, *pieces]) == state.text()


def test_a_stream_raises_at_its_end(narrow: None):
    state = few_shot_qa.run(**QUESTIONS[3], stream=True)
    with pytest.raises(ContextLengthError, match="too long"):
        list(state.text_iter())
    assert isinstance(state.error(), ContextLengthError)


def test_streams_in_an_event_loop():
    async def main() -> tuple[list[str], list[str], list[str], sgl.ProgramState]:
        state = multi_turn.run("Who are you?", "Who made you?", stream=True)
        whole = [piece async for piece in state.text_async_iter()]
        second = [piece async for piece in state.text_async_iter(var_name="answer_2")]
        done = [piece async for piece in few_shot_qa.run(**QUESTIONS[0]).text_async_iter()]
        return whole, second, done, state

    whole, second, done, state = asyncio.run(main())
    assert "".join(whole) == state.text()
    assert "".join(second) == state["answer_2"]
    assert done == [few_shot_qa.run(**QUESTIONS[0]).text()]


def test_meta_data_of_an_async_stream_is_refused():
    async def main() -> None:
        async for _ in few_shot_qa.run(**QUESTIONS[0], stream=True).text_async_iter(return_meta_data=True):
            pass

    with pytest.raises(InputError, match="return_meta_data=True"):
        asyncio.run(main())


# Meta data


def test_what_was_used():
    found = few_shot_qa.run(**QUESTIONS[0], temperature=0).get_meta_info("answer")
    assert found["completion_tokens"] <= 12
    assert found["prompt_tokens"] == len("The following are questions with answers.\n\n") + 80 + 24
    assert found["finish_reason"]["type"] in ("stop", "length")


def test_logprobs_of_generations():
    @sgl.function
    def program(s, texts):
        s += "x" + sgl.gen("a", max_tokens=3, return_logprob=True, top_logprobs_num=2, return_text_in_logprobs=texts)
        s += sgl.gen("several", n=2, max_tokens=2, return_logprob=True)

    for texts in (True, False):
        state = program.run(texts, temperature=0)
        found = state.get_meta_info("a")
        entries = found["output_token_logprobs"]
        assert found["completion_tokens"] == len(entries) == len(found["output_top_logprobs"])
        assert all(logprob <= 0 for logprob, _, _ in entries)
        assert [text for _, _, text in entries] == (list(state["a"]) if texts else [None] * len(entries))
        assert {len(tops) for tops in found["output_top_logprobs"]} == {2}
    assert [len(entry["output_token_logprobs"]) for entry in state.get_meta_info("several")] == [2, 2]
    assert state.get_meta_info("several")[0]["output_top_logprobs"] == [[], []]


def test_logprobs_of_choices():
    state = tool_use.run("What is 5 + 5?")
    found = state.get_meta_info("tool")
    assert [[text for _, _, text in row] for row in found["input_token_logprobs"]] == [
        list("calculator"),
        list("search engine"),
    ]
    best = max(range(2), key=found["normalized_prompt_logprobs"].__getitem__)
    assert state["tool"] == ["calculator", "search engine"][best]


def test_meta_data_inside_a_program():
    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a", max_tokens=2, return_logprob=True) + sgl.select("b", ["p", "q"])
        return [s.get_meta_info("a")["completion_tokens"], s.get_meta_info("b")["normalized_prompt_logprobs"]]

    compiled, plain = program.run(temperature=0), program.eager(temperature=0)
    assert compiled.ret_value == plain.ret_value
    assert compiled.ret_value[0] == 2
    assert program.compile().compiled.breaks == ()


# Other forms


def test_calling_it_runs_it():
    assert few_shot_qa("Why?", temperature=0).text() == few_shot_qa.run(question="Why?", temperature=0).text()


def test_bound_arguments():
    asks = multi_turn.bind(question_2="Who made you?")
    assert asks.bind_arguments == {"question_2": "Who made you?"}
    expected = multi_turn.run("Who are you?", "Who made you?", temperature=0)
    assert asks.run("Who are you?", temperature=0).messages() == expected.messages()
    both = asks.bind(question_1="Who are you?")
    assert both.run(temperature=0).messages() == expected.messages()
    assert [state.messages() for state in asks.run_batch([{"question_1": "Who are you?"}], temperature=0)] == [
        expected.messages()
    ]


def test_what_is_bound_counts_inside_other_programs():
    short = expand.bind(tip="Rest")

    @sgl.function
    def program(s):
        s += "x" + short(temperature=0)["detailed_tip"]

    assert program.run().text() == program.eager().text() == "x" + expand.run("Rest", temperature=0)["detailed_tip"]


def test_tracing_shows_the_graph_and_runs_nothing():
    traced = few_shot_qa.trace()
    assert traced.level == "O0"
    assert [parameter.name for parameter in traced.module.main.body.parameters] == ["question"]
    assert traced.breaks == ()
    some = multi_turn.trace(question_1="Who?")
    assert [parameter.name for parameter in some.module.main.body.parameters] == ["question_1", "question_2"]


def test_compiling_it(capsys: pytest.CaptureFixture[str]):
    compiled = calls_programs.compile()
    assert compiled.compiled.breaks == ()
    compiled.print_graph()
    assert "lm.gen" in capsys.readouterr().out
    assert compiled.run(topic="health", temperature=0).text() == calls_programs.run("health", temperature=0).text()
    (state,) = compiled.run_batch([{"topic": "health"}], temperature=0)
    assert state["summary"] == compiled.run(topic="health", temperature=0)["summary"]


def test_running_inside_a_program_is_calling():
    @sgl.function
    def program(s, tip):
        s += "x" + expand.run(tip, temperature=0)["detailed_tip"]

    assert program.run("Rest").text() == program.eager("Rest").text()


def test_speculative_programs_say_the_same():
    @sgl.function(num_api_spec_tokens=64)
    def program(s):
        s += sgl.user("Name, age.")
        s += sgl.assistant("Name:" + sgl.gen("name", stop="\n", max_tokens=6) + "\nAge:" + sgl.gen("age", max_tokens=3))

    assert program.num_api_spec_tokens == 64
    assert program.run(temperature=0).text() == program.eager(temperature=0).text()


def test_defaults_of_run_are_those_of_sglang():
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(sgl.SglFunction.run).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    assert defaults == {
        "max_new_tokens": 128,
        "stop": (),
        "stop_token_ids": (),
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "frequency_penalty": 0.0,
        "presence_penalty": 0.0,
        "ignore_eos": False,
        "return_logprob": None,
        "logprob_start_len": None,
        "top_logprobs_num": None,
        "return_text_in_logprobs": None,
        "stream": False,
        "backend": None,
    }


# Backends


def test_a_backend_is_a_target_with_options():
    seeded = [answers.run("Name one.", backend=sgl.Backend("toy", seed=seed))["more"] for seed in (0, 0, 1)]
    assert seeded[0] == seeded[1] != seeded[2]


def test_a_backend_may_be_an_engine():
    engine = ToyEngine()
    sgl.set_default_backend(engine)
    expected = few_shot_qa.run(question="Why?", temperature=0, backend="toy").text()
    assert few_shot_qa.run(question="Why?", temperature=0).text() == expected
    assert few_shot_qa.run(question="Why?", temperature=0, backend=engine).text() == expected
    assert engine.statistics.requests == sgl.get_server_info(engine)["statistics"]["requests"] == 2


def test_the_default_backend_is_asked_at_each_call(monkeypatch: pytest.MonkeyPatch):
    sgl.set_default_backend(sgl.Backend("toy", seed=5))
    first = answers.run("Name one.")["more"]
    assert first == answers.run("Name one.", backend=sgl.Backend("toy", seed=5))["more"]
    sgl.set_default_backend(None)
    monkeypatch.setenv("LMC_TARGET", "toy")
    assert answers.run("Name one.")["more"] != first


def test_a_folder_is_a_runtime():
    runtime = sgl.Runtime(model_path="models/llama", dtype="bfloat16", max_total_tokens=4096, random_seed=3)
    assert runtime == sgl.Backend("local:models/llama", dtype="bfloat16", kv_tokens=4096, seed=3)
    assert sgl.Engine("x") == sgl.Backend("local:x")
    with pytest.raises(InputError, match="there is no model folder"):
        few_shot_qa.run(question="Why?", backend=runtime)
    runtime.shutdown()


def test_the_server_is_the_engine():
    info = sgl.get_server_info()
    assert (info["target"]["kind"], info["name"]) == ("toy", EngineInfo("toy", 1).name)
    few_shot_qa.run(question="Why?")
    assert sgl.get_server_info("toy")["statistics"]["requests"] > info["statistics"]["requests"]
    assert json.dumps(info)
    assert sgl.flush_cache() is False, "the toy keeps nothing"


def test_shutting_down_closes_the_engine():
    backend = sgl.Backend("toy", deterministic=True)
    few_shot_qa.run(question="Why?", backend=backend)
    target = Target("toy", deterministic=True)
    assert service().engines.running(target) is not None
    backend.shutdown()
    assert service().engines.running(target) is None
    assert few_shot_qa.run(question="Why?", backend=backend)["answer"]
