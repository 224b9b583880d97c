"""What can't be done is refused at the user's line, with what to do instead; nothing is ignored."""

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lmc.sglang as sgl
from lmc.ir.errors import CaptureError, ConstraintError, InputError, LmcError


@pytest.fixture(autouse=True)
def on_the_toy() -> Iterator[None]:
    sgl.set_default_backend("toy")
    yield
    sgl.set_default_backend(None)


WRONG: Any = {"flag": "yes", "stop": 3, "temperature": "hot", "stops": [1], "backend": 3, "batch": {"text": "x"}}
Act = Callable[[Any], Any]
IN_PROGRAMS: list[tuple[Act, str, str]] = [
    (lambda s: s.append(sgl.gen("x", stop_regex="a+")), "stop_regex is 'a+'", "name the texts, stop=[…]"),
    (lambda s: s.append(sgl.gen("x", ignore_eos=True, stop="a")), "ignore_eos and stop", "leave one of them out"),
    (lambda s: s.append(sgl.gen("x", ignore_eos=True, regex="a")), "ignore_eos and regex", "leave one of them out"),
    (lambda s: s.append(sgl.gen("x", ignore_eos=WRONG["flag"])), "ignore_eos is 'yes'", "True or False"),
    (lambda s: s.append(sgl.gen("x", top_logprobs_num=2)), "return_logprob is not set", "return_logprob=True"),
    (lambda s: s.append(sgl.gen("x", logprob_start_len=3)), "return_logprob is not set", "return_logprob=True"),
    (
        lambda s: s.append(sgl.gen("x", return_text_in_logprobs=True)),
        "return_logprob is not set",
        "return_logprob=True",
    ),
    (
        lambda s: s.append(sgl.gen("x", return_logprob=True, logprob_start_len=0)),
        "logprob_start_len is 0: there are log-probabilities of what is generated",
        "sgl.select gives those of a text",
    ),
    (lambda s: s.append(sgl.gen("x", return_logprob=True, top_logprobs_num=-1)), "logprobs is -1", "between 0 and 100"),
    (lambda s: s.append(sgl.gen("x", top_k=0)), "top_k is 0", "-1 for the whole vocabulary"),
    (lambda s: s.append(sgl.gen("x", top_p=2.0)), "top_p is 2.0", "at most 1"),
    (lambda s: s.append(sgl.gen("x", max_tokens=0)), "max_tokens is 0", "at least 1"),
    (lambda s: s.append(sgl.gen("x", n=0)), "n is 0", "at least 1"),
    (lambda s: s.append(sgl.gen("x", stop=WRONG["stop"])), "stop is 3", "a text or a list of texts"),
    (lambda s: s.append(sgl.gen("x", dtype=list)), "dtype is <class 'list'>", "int, float, bool, str"),
    (lambda s: s.append(sgl.gen("x", dtype=int, regex="a")), "gen has dtype and regex", "give one of"),
    (lambda s: s.append(sgl.gen("x", regex="a", json_schema="{}")), "gen has regex and json_schema", "give one of"),
    (lambda s: s.append(sgl.gen("x", json_schema="{")), "json_schema is '{'", "JSON text: json.dumps(…)"),
    (lambda s: s.append(sgl.gen("x", json_schema="[1]")), "which is no object", "give a JSON schema"),
    (
        lambda s: s.append(sgl.gen("x", choices=["a"], max_tokens=3)),
        "gen has choices and max_tokens",
        "choices are scored",
    ),
    (lambda s: s.append(sgl.gen("x", choices_method="greedy_token")), "choices_method, but no choices", "leave it out"),
    (lambda s: s.append(sgl.gen("x", choices=["a"], temperature=1.0)), "temperature of select is 1.0", "leave it out"),
    (lambda s: s.append(sgl.select("x", ["a"], temperature=0.5)), "temperature of select is 0.5", "leave it out"),
    (lambda s: s.append(sgl.select("x")), "select has no choices", 'sgl.select("name", ["yes", "no"])'),
    (lambda s: s.append(sgl.select("x", [])), "select has no choices", "none of them empty"),
    (lambda s: s.append(sgl.select("x", ["a"], choices_method="best")), "unknown select method 'best'", "greedy_token"),
    (lambda s: s.append(sgl.image("cat.jpeg")), "the image 'cat.jpeg'", "describe the image in text"),
    (
        lambda s: s.append(sgl.user(sgl.image("cat.jpeg") + "What?")),
        "the image 'cat.jpeg'",
        "describe the image in text",
    ),
    (lambda s: s.append(sgl.image(None)), "image has no image", "give a path"),
    (lambda s: s.append(sgl.video("cat.mp4", 8)), "the video 'cat.mp4'", "describe the video in text"),
    (lambda s: s.append(sgl.video("cat.mp4", 0)), "num_frames is 0", "at least 1"),
    (lambda s: s.append(sgl.video(None, 1)), "video has no file", "give its path"),
    (
        lambda s: s.append(sgl.separate_reasoning(sgl.gen("x"), "qwen3")),
        "separate_reasoning(model_type='qwen3'",
        'stop="</think>"',
    ),
    (lambda s: s.append(sgl.user(sgl.system("x"))), "a user message holds another message", "one after the other"),
    (lambda s: s.append(sgl.user("a" + sgl.user_end())), "a user message holds another message", "one after the other"),
    (lambda s: s.append(None), "the program appends a NoneType", "append by themselves"),
    (lambda s: (s.append("x"), s.append(sgl.user("y"))), "a user message can't follow bare text", "no roles at all"),
    (lambda s: s.fork(2, position_ids_offset=[1, 2]), "position_ids_offset is [1, 2]", "leave it out"),
    (lambda s: s.copy(position_ids_offset=[1]), "position_ids_offset is [1]", "leave it out"),
    (lambda s: s.fork(-1), "fork(-1)", "at least 0"),
    (lambda s: s.fork(2).join("concat"), "the mode of join is 'concat'", "'gather_variable', 'concate_and_append'"),
    (lambda s: s.fork(2).__iadd__(["a"]), "1 item is appended to 2 branches", "one item for each branch"),
    (lambda s: s.fork(2).__iadd__(3), "an int is appended to branches", "a function of the branch's number"),
    (lambda s: s["y"], "no variable 'y'", "none is there yet"),
    (lambda s: s.get_meta_info("y"), "no variable 'y'", "none is there yet"),
    (
        lambda s: (s.append(sgl.gen("x", max_tokens=1)), s.get_meta_info("x")),
        "'x' has no meta info",
        "return_logprob=True",
    ),
    (lambda s: s.set_var("", 1), "the name ''", "not empty"),
    (lambda s: s.set_var(None, 1), "a variable has no name", "s.set_var"),
    (lambda s: s.set_var("@meta:x", 1), "the variable '@meta:x'", "take another name"),
    (lambda s: called(backend="toy"), "called() is called by another program, with a backend", "leave them out"),
    (
        lambda s: called.run(stream=True),
        "called.run() in another program, with a backend or a stream",
        "leave them out",
    ),
    (lambda s: called(top_k=0), "top_k is 0", "-1 for the whole vocabulary"),
    (lambda s: bound(text="x"), "the argument 'text' is bound already", "leave it out"),
]


@sgl.function
def called(s):
    s += "x"


@sgl.function
def takes_text(s, text):
    s += text


bound = takes_text.bind(text="t")


@pytest.mark.parametrize(("act", "cause", "remedy"), IN_PROGRAMS)
def test_in_a_program(act: Act, cause: str, remedy: str):
    @sgl.function
    def program(s):
        act(s)

    for run in (program.run, program.eager):
        with pytest.raises(LmcError) as caught:
            run()
        assert isinstance(caught.value, CaptureError | InputError)
        assert cause in caught.value.cause
        assert remedy in (caught.value.remedy or "")
        check_line(caught.value, act)


def check_line(error: LmcError, act: Callable[..., Any]) -> None:
    assert error.location is not None
    lines, first = inspect.getsourcelines(act)
    assert error.location.file == __file__
    assert first <= error.location.line < first + len(lines)


OUTSIDE: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: called.run(top_k=0), "top_k is 0", "-1 for the whole vocabulary"),
    (lambda: called.run(temperature=WRONG["temperature"]), "temperature is 'hot'", "not below 0"),
    (lambda: called.run(max_new_tokens=0), "max_tokens is 0", "at least 1"),
    (lambda: called.run(stop=WRONG["stops"]), "stop is [1]", "a text or a list of texts"),
    (lambda: called.run(return_text_in_logprobs=True), "return_logprob is not set", "return_logprob=True"),
    (lambda: called.run(extra=1), "unexpected keyword argument 'extra'", "its arguments are ()"),
    (lambda: takes_text.run(), "missing a required argument: 'text'", "(text)"),
    (lambda: called.run(backend=WRONG["backend"]), "the backend is an int", "give a target of lmc"),
    (lambda: called.run(backend="toys"), "unknown target 'toys'", "did you mean 'toy'"),
    (lambda: sgl.set_default_backend(WRONG["backend"]), "the backend is an int", "give a target of lmc"),
    (lambda: takes_text.run_batch(WRONG["batch"]), "the batch is a dict", "a list of dicts"),
    (lambda: takes_text.run_batch([{"text": "x"}, 3]), "row 1 of the batch is 3", "a list of dicts"),
    (lambda: takes_text.run_batch([{"text": "x"}], num_threads=0), "num_threads is 0", '"auto"'),
    (lambda: takes_text.bind(texts="x"), "takes_text() has no argument 'texts' to bind", "did you mean 'text'?"),
    (lambda: bound.run(text="x"), "takes_text(): the argument 'text' is bound already", "leave it out"),
    (lambda: bound.run_batch([{"text": "x"}]), "takes_text(): the argument 'text' is bound already", "leave it out"),
    (lambda: bound.run("x"), "too many positional arguments", "text='t'"),
    (lambda: takes_text.cache(), "takes_text.cache(): prefixes that runs share are found", "leave it out"),
    (lambda: sgl.function(num_api_spec_tokens=0)(lambda s: None), "num_api_spec_tokens is 0", "at least 1"),
    (lambda: sgl.RuntimeEndpoint("http://localhost:30000", "k"), "the program contains a key", "OPENAI_API_KEY"),
    (lambda: sgl.OpenAI("gpt-4", "k"), "the program contains a key", "OPENAI_API_KEY"),
    (lambda: sgl.Anthropic("claude", api_key="k"), "the program contains a key", "ANTHROPIC_API_KEY"),
    (lambda: sgl.OpenAI("gpt-4", is_azure=True), "OpenAI has no argument 'is_azure'", 'lmc.remote("openai:gpt-4"'),
    (lambda: sgl.Anthropic("claude", max_retries=2), "no argument 'max_retries'", 'lmc.remote("anthropic:claude"'),
    (lambda: sgl.RuntimeEndpoint("http://h:3", verify="x"), "no argument 'verify'", 'lmc.remote("server:http://h:3"'),
    (lambda: sgl.VertexAI("gemini"), "the API of Vertex AI is no target", "sgl.set_default_backend"),
    (lambda: sgl.LiteLLM("x"), "the APIs that LiteLLM knows is no target", "sgl.set_default_backend"),
    (lambda: sgl.Runtime("x", tp_size=2), "tp_size is 2", "leave them out"),
    (lambda: sgl.Runtime("x", dtype="int4"), "dtype is 'int4'", "bfloat16"),
    (lambda: sgl.Runtime("x", log_level="error"), "Runtime has no argument 'log_level'", "sgl.Backend"),
    (lambda: sgl.flush_cache(empty_cache=False), "flush_cache(empty_cache=False)", "leave empty_cache out"),
]


@pytest.mark.parametrize(("act", "cause", "remedy"), OUTSIDE)
def test_outside_of_programs(act: Callable[[], Any], cause: str, remedy: str):
    with pytest.raises(LmcError) as caught:
        act()
    assert cause in caught.value.cause
    assert remedy in (caught.value.remedy or "")
    if not cause.startswith("unknown target"):
        check_line(caught.value, act)


def test_messages_in_a_scope_have_no_text_of_their_own():
    @sgl.function
    def program(s):
        with s.var_scope("all"):
            s += sgl.user("x")

    for run in (program.run, program.eager):
        with pytest.raises(CaptureError, match="messages were opened or closed") as caught:
            run()
        assert "begin and end inside one message" in (caught.value.remedy or "")
        assert caught.value.location is not None
        assert caught.value.location.file == __file__


def test_messages_of_branches_are_not_their_text():
    @sgl.function
    def program(s):
        s += sgl.user("x")
        forks = s.fork(2)
        forks += sgl.assistant(sgl.gen("a", max_tokens=2))
        forks.join("concate_and_append")

    for run in (program.run, program.eager):
        with pytest.raises(CaptureError, match="messages were opened or closed"):
            run()


def test_a_block_that_nobody_opens():
    @sgl.function
    def program(s):
        s.user()
        s += "x"

    with pytest.raises(CaptureError, match=r"s\.user\(\)"):
        program.run()


@pytest.mark.parametrize(
    "options",
    [{"regex": "(?<x>"}, {"regex": "a", "max_tokens": 1, "min_tokens": 2}, {"json_schema": json.dumps({"type": "x"})}],
)
def test_constraints_that_make_no_sense(options: dict[str, Any]):
    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a", **options)

    for run in (program.run, program.eager):
        with pytest.raises((ConstraintError, CaptureError)) as caught:
            run()
        assert caught.value.location is not None
        assert caught.value.location.file == __file__


def test_a_text_that_is_cut_off_is_refused():
    @sgl.function
    def program(s):
        s += sgl.gen("a", regex="[a-z]{40}", max_tokens=8, stop="zzz")

    with pytest.raises(ConstraintError):
        program.run()
