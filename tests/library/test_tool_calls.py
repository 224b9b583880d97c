"""A model that calls tools, in every way of running a program."""

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

import lmc
from lmc.driver.options import Options
from lmc.driver.saved.artifacts import plan_text
from lmc.driver.saved.saved import SavedRunner
from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import HostCallOp, SelectOp

CALLS: list[str] = []
_LOCK = threading.Lock()
TOPICS = ["ants", "birds", "cats", "dogs", "eels", "foxes"]
Word = Annotated[str, Field(max_length=8)]


def note(text: str) -> None:
    with _LOCK:
        CALLS.append(text)


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    CALLS.clear()


@lmc.tool(effect="reads")
def search(query: Word, limit: Annotated[int, Field(ge=1, le=9)] = 3) -> str:
    """Search the library.

    What follows is not for models.
    """
    note(f"search {query} {limit}")
    return f"{len(query)} found"


@lmc.tool
async def save(text: Word) -> dict[str, int]:
    """Keep a text."""
    await asyncio.sleep(0)
    note(f"save {text}")
    if len(text) > 4:
        raise OSError("the disk is full")
    return {"saved": len(text)}


class Verdict(BaseModel):
    good: bool


@lmc.jit
def ask(s: lmc.State, topic: str) -> str:
    s += lmc.system(lmc.describe_tools([search, save]))
    s += lmc.user(f"What of {topic}?")
    answer = lmc.call_tools(s, [search, save], max_rounds=3, errors="tell", max_tokens=6)
    s += lmc.user("Sure?")
    s.select("sure", ["yes", "no"])
    return answer


@lmc.jit
def ask_raw(s: lmc.State, topic: str) -> Verdict:
    s += f"Question: {topic}?\n"
    return lmc.call_tools(s, [search], max_rounds=2, role=None, name="verdict", schema=Verdict)


@lmc.jit
def ask_twice(s: lmc.State, topic: str, rounds: int) -> list[str]:
    s += lmc.user(topic)
    answers: list[str] = []
    for branch in s.fork(2):
        branch.user("And?")
        answers.append(lmc.call_tools(branch, (search,), max_rounds=rounds, role="user", name=None, max_tokens=4))
    return answers


@lmc.jit
def ask_after_a_break(s: lmc.State, topic: str) -> str:
    s += lmc.user(topic + " ".join(sorted(locals())))
    return lmc.call_tools(s, [search, save], max_rounds=2, errors="tell", max_tokens=4)


@lmc.tool
def fail(number: int) -> None:
    raise OSError("the disk is full")


@lmc.jit
def ask_and_fail(s: lmc.State, topic: str) -> str:
    s += lmc.user(f"What of {topic}?")
    return lmc.call_tools(s, [fail, search], max_rounds=9, max_tokens=4)


def ways(program: lmc.Program, target: str, *args: Any) -> list[tuple[Any, ...]]:
    """What each way of running gives, and what it calls."""
    found: list[tuple[Any, ...]] = []
    for way in ("eager", "O0", "O2"):
        CALLS.clear()
        bound = program.on(target) if way == "eager" else program.on(target, level=way)
        try:
            result = bound.eager(*args) if way == "eager" else bound.run(*args)
        except OSError as error:
            found.append((str(error), sorted(CALLS)))
        else:
            found.append((result.value, result.text, result.variables, sorted(CALLS)))
    return found


@pytest.mark.parametrize(
    ("program", "more"),
    [(ask, ()), (ask_raw, ()), (ask_twice, (2,)), (ask_after_a_break, ()), (ask_and_fail, ())],
    ids=lambda entry: getattr(entry, "name", ""),
)
def test_every_way_of_running_gives_the_same(program: lmc.Program, more: tuple[Any, ...]):
    for topic in TOPICS[:3]:
        found = ways(program, "toy", topic, *more)
        assert all(entry == found[0] for entry in found)


def test_on_a_model():
    found = ways(ask, "builtin", "ants")
    assert all(entry == found[0] for entry in found)


def test_a_model_calls_tools_reads_results_and_answers():
    texts = [ask.on("toy").run(topic).text for topic in TOPICS]
    assert any(call.startswith("search") for call in CALLS)
    assert any(call.startswith("save") for call in CALLS)
    for text in texts:
        rounds = text.count("<|im_start|>tool\n")
        assert text.count("Action: answer\n") == 1
        assert text.count("Action: search\n{") + text.count("Action: save\n{") == rounds
        assert rounds <= 3
    assert len(CALLS) == sum(text.count("<|im_start|>tool\n") for text in texts)
    together = "".join(texts)
    assert " found<|im_end|>" in together
    assert '{"saved":' in together
    assert "Error: OSError: the disk is full<|im_end|>" in together


def test_it_is_a_part_of_the_graph():
    compiled = ask.on("toy").compile("ants")
    assert compiled.breaks == ()
    effects = {host.name: host.effect.value for host in compiled.module.hosts}
    assert effects == {"search": "reads", "save": "writes"}
    ops = list(walk([compiled.module.main.body]))
    assert any(isinstance(op, HostCallOp) for op in ops)
    lines = {op.location.line for op in ops if isinstance(op, SelectOp | HostCallOp) and op.location is not None}
    first = ask.function.__code__.co_firstlineno
    assert lines == {first + 4, first + 6}  # of the program, not of the library
    assert CALLS == []


def test_a_saved_plan_calls_the_same_tools(tmp_path: Path):
    path = tmp_path / "ask.json"
    path.write_text(plan_text(ask.on("toy").compile("ants").plan))
    runner = SavedRunner.load(str(path), Options("toy"), ask)
    rows = [(number, ((), {"topic": topic})) for number, topic in enumerate(TOPICS)]
    found = dict(runner.run_rows([rows]))
    called = sorted(CALLS)
    CALLS.clear()
    for number, result in enumerate(ask.on("toy").batch([{"topic": topic} for topic in TOPICS])):
        assert (found[number].value, found[number].text) == (result.value, result.text)
    assert called == sorted(CALLS)


@lmc.jit(target="toy")
def rounds_of(s: lmc.State, rounds: int) -> str:
    s += lmc.user("x")
    return lmc.call_tools(s, [search], max_rounds=rounds, max_tokens=2)


def test_without_rounds_all_that_is_left_is_to_answer():
    result = rounds_of.run(0)
    assert "Action: answer\n" in result.text
    assert CALLS == []
    assert result.variables == {"answer": result.value}


def test_what_a_tool_raises_is_raised_with_the_line_of_the_program():
    results = ask_and_fail.on("toy").batch([{"topic": topic} for topic in TOPICS])
    errors = [result.error for result in results if result.error is not None]
    assert errors
    line = ask_and_fail.function.__code__.co_firstlineno + 3
    for error in errors:
        assert type(error) is OSError
        assert error.__notes__ == [f"in the program at {__file__}:{line}"]


def test_arguments_that_do_not_fit_are_an_error_at_the_line_of_the_program():
    @lmc.tool(effect="reads")
    def long(words: Annotated[str, Field(min_length=40)]) -> str:
        return words

    @lmc.jit(target="toy")
    def program(s: lmc.State) -> str:
        s += lmc.user("x")
        return lmc.call_tools(s, [long], argument_tokens=8, max_tokens=2)

    for way in (program.run, program.eager):
        with pytest.raises(lmc.ConstraintError) as caught:
            way()
        assert caught.value.location is not None
        assert caught.value.location.file == __file__


@lmc.tool
def answer() -> str:
    return ""


def plain(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("tools", "options", "cause", "remedy"),
    [
        ([], {}, "the tools are []", "a list of functions"),
        (search, {}, "the tools are <lmc tool search", "a list of functions"),
        ([plain], {}, "is no tool", "@lmc.tool"),
        ([search, search], {}, "two tools are called 'search'", "a name of its own"),
        ([answer], {}, "a tool is called 'answer'", "another name"),
        ([search], {"errors": "ignore"}, "errors is 'ignore'", "'raise', 'tell'"),
        ([search], {"role": "robot"}, "the role of a message is 'robot'", "'system', 'user', 'assistant', 'tool'"),
    ],
)
def test_what_makes_no_sense_is_refused_at_the_line_of_the_program(
    tools: Any, options: dict[str, Any], cause: str, remedy: str
):
    @lmc.jit(target="toy")
    def program(s: lmc.State) -> str:
        s += lmc.user("x")
        return lmc.call_tools(s, tools, max_tokens=2, **options)

    for way in (program.run, program.eager):
        with pytest.raises(lmc.CaptureError) as caught:
            way()
        assert cause in caught.value.cause
        assert remedy in (caught.value.remedy or "")
        assert caught.value.location is not None
        assert caught.value.location.file == __file__


def test_tools_are_described_by_name_docstring_and_schema():
    text = lmc.describe_tools([search, fail])
    assert "- search: Search the library.\n" in text
    assert "- fail\n" in text
    assert '"query":{"maxLength":8,"title":"Query","type":"string"}' in text
    assert "not for models" not in text
    assert "Action: answer" in text
    with pytest.raises(lmc.CaptureError, match="is no tool"):
        lmc.describe_tools([plain])  # type: ignore[list-item]
