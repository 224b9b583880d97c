"""An assistant message that repeats the answer before it is that turn: written once, however the program runs."""

import warnings

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import lmc
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from tests.frontend.harness import at_the_end, check, run_plain
from tests.frontend.strategies import arguments, load
from tests.frontend.turn_strategies import TURNS_HEADER, turn_programs, twin_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("turns")


@settings(max_examples=max(10, settings.default.max_examples // 3))  # type: ignore[union-attr]
@given(source=turn_programs(), args=arguments(), other=arguments(), ends=st.booleans())
def test_a_turn_that_is_generated_first_is_the_turn_that_is_generated_in_its_message(folder, source, args, other, ends):
    note(source)
    program = load(TURNS_HEADER + "@jit\n" + source, folder).program
    twin = load(TURNS_HEADER + "@jit\n" + twin_of(source), folder).program
    captured = check(program, lambda: (*args[:3], list(args[3])), stop_before=at_the_end if ends else None)
    note(str(captured.breaks))
    for given_too in (args, other):
        made = lambda given_too=given_too: (*given_too[:3], list(given_too[3]))  # noqa: E731
        if captured.matches(bind(program, made(), {})):
            check(program, made, captured=captured)
        assert run_plain(program, made(), {}).end == run_plain(twin, made(), {}).end


TURNS = [
    lambda s: s.append(lmc.assistant(s.gen("x", max_tokens=4))),
    lambda s: s.append(lmc.message("assistant", s.gen("x", max_tokens=4))),
    lambda s: s.assistant(s.gen("x", max_tokens=4)),
    lambda s: s.append(lmc.assistant(f"{s.gen('x', max_tokens=4)}")),
    lambda s: s.append(lmc.assistant(s.gen("x", max_tokens=4).strip())),
    lambda s: [s.gen("x", max_tokens=4), s.append(lmc.assistant(s["x"]))],
]


@pytest.mark.parametrize("turn", TURNS)
def test_an_answer_that_is_appended_as_a_message_is_one_turn(turn):
    def program(s, text: str):
        s += lmc.user(text)
        turn(s)
        s += lmc.user("And?")
        s += "So "
        return s.gen("y", max_tokens=2)

    def plain(s, text: str):
        s += lmc.user(text)
        s += lmc.assistant(lmc.gen("x", max_tokens=4))
        s += lmc.user("And?")
        s += "So "
        return s.gen("y", max_tokens=2)

    program.__name__ = plain.__name__
    expected = lmc.jit(plain).on("toy").eager("Hi")
    results = [lmc.jit(program).on("toy").eager("Hi")]
    results += [lmc.jit(program).on("toy", level=level).run("Hi") for level in ("O0", "O2")]
    for result in results:
        assert (result.text, result.messages, result.value) == (expected.text, expected.messages, expected.value)
    assert [message["role"] for message in expected.messages] == ["user", "assistant", "user", "assistant"]


@JittedFunction
def other_text(s, text: str):
    s += lmc.user("Hi")
    s.gen("x", max_tokens=4)
    s += lmc.assistant(text)
    s += lmc.user("And?")
    return s.gen("y", max_tokens=2)


def test_another_message_behind_an_answer_is_a_turn_of_its_own():
    said = run_plain(other_text, ("",), {}).end[-1][1]["content"]
    for text, turns in (("else", 5), (said, 4), (f" {said}\n", 4)):
        assert not check(other_text, (text,)).breaks
        assert len(run_plain(other_text, (text,), {}).end[-1]) == turns


@JittedFunction
def behind_json(s, text: str):
    s += lmc.user("Hi")
    s.gen("x", schema={"enum": [[1], [2]]})
    s += lmc.assistant("the rest")
    s += lmc.user(text)
    s.gen("x", schema={"enum": [[1]]})
    s += lmc.assistant("[1]")


def test_text_that_is_not_json_is_another_turn_behind_an_answer_of_a_schema():
    (reason,) = check(behind_json, ("a",)).breaks
    assert reason.location is not None
    assert behind_json.location is not None
    assert reason.location.line == behind_json.location.line + 7
    assert "with s.assistant(): s += text" in reason.remedy
    assert len(run_plain(behind_json, ("a",), {}).end[-1]) == 5


JOINED = [
    ('s += lmc.assistant("It is " + s.gen("x", max_tokens=2))', True),
    ("s += lmc.assistant(f\"It is {s.gen('x', max_tokens=2)}\")", True),
    ('s += lmc.assistant("It is %s" % s.select("x", ["a", "b"]))', True),
    ('s.append(lmc.assistant("It is {}".format(s.gen("x", max_tokens=2))))', True),
    ('s += lmc.message("assistant", s.gen("x", max_tokens=2).strip() + "!")', True),
    ('s.assistant("It is " + s.gen("x", max_tokens=2))', True),
    ('s += lmc.assistant(s.gen("x", max_tokens=2))', False),
    ("s += lmc.assistant(f\"{s.gen('x', max_tokens=2)}\")", False),
    ('s += lmc.assistant(str(s.gen("x", dtype=int, max_tokens=9)).strip())', False),
    ('s += lmc.assistant("It is " + lmc.gen("x", max_tokens=2))', False),
    ('s += lmc.assistant("It is " + s.copy().gen("x", max_tokens=2))', False),
    ('t = s.copy(); s += lmc.assistant("It is " + t.gen("x", max_tokens=2))', False),
    ('s += lmc.assistant("It is " + s.gen("x", n=2, max_tokens=2)[0])', False),
    ('s += lmc.user("You said " + s.gen("x", max_tokens=2))', False),
]


PLACES = {
    "global": "import lmc\n@lmc.jit\ndef program(s, q: str):\n    s += lmc.user(q)\n    {line}\n",
    "closure": "def made():\n    import lmc\n    @lmc.jit\n    def program(s, q: str):\n        s += lmc.user(q)\n"
    "        {line}\n    return program\nprogram = made()\n",
    "body": "from lmc import jit\n@jit\ndef program(s, q: str):\n    import lmc\n    s += lmc.user(q)\n    {line}\n",
}


@pytest.mark.parametrize(("line", "warns"), JOINED)
@pytest.mark.parametrize("first", ["eager", "compile"])
@pytest.mark.parametrize("place", PLACES)
def test_text_joined_to_an_answer_in_a_message_is_warned_of_once(folder, line, warns, first, place):
    source = PLACES[place].format(line=line)
    program = load(source, folder).program
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(program.on("toy"), first)("Hi")
        program.on("toy").run("Hi")
        program.on("toy").eager("Hi")
    found = [each for each in caught if issubclass(each.category, UserWarning)]
    assert len(found) == warns
    for each in found:
        assert (each.filename, each.lineno) == (program.location.file, source[: source.index(line)].count("\n") + 1)
        assert "remedy: join lmc." in str(each.message)


def test_functions_of_sglang_in_a_closure_are_not_warned_of():
    import lmc.sglang as sgl

    @sgl.function
    def program(s, q):
        s += sgl.user(q)
        s += sgl.assistant("It is " + sgl.gen("x", max_tokens=2))

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        program.run("Hi", backend=sgl.Backend("toy"))


@JittedFunction
def closed_before(s, text: str):
    s += lmc.user(text)
    s += lmc.assistant(lmc.gen("x", max_tokens=4))
    s += lmc.assistant(s["x"])


def test_a_message_behind_a_closed_turn_is_always_written():
    assert not check(closed_before, ("Hi",)).breaks
    assert len(run_plain(closed_before, ("Hi",), {}).end[-1]) == 3


@JittedFunction
def of_another_role(s, text: str):
    s += lmc.user(text)
    with s.user():
        question = s.gen("x", max_tokens=4)
        s += lmc.assistant(question)


def test_an_answer_in_a_turn_of_another_role_is_written():
    assert not check(of_another_role, ("Hi",)).breaks
    assert [entry["role"] for entry in run_plain(of_another_role, ("Hi",), {}).end[-1]] == ["user", "user", "assistant"]


@JittedFunction
def from_two_arms(s, text: str):
    s += lmc.user(text)
    answer = s.gen("x", max_tokens=3) if s.select("c", ["a", "b"]) == "b" else s.gen("x", max_tokens=4)
    s += lmc.assistant(answer)
    s += lmc.user("And?")


def test_an_answer_of_two_arms_is_the_turn_of_either_arm():
    assert not check(from_two_arms, ("Hi",)).breaks
    assert len(run_plain(from_two_arms, ("Hi",), {}).end[-1]) == 3


@JittedFunction
def roles_in_one_arm(s, text: str):
    if s.copy().select("c", ["a", "b"]) == text:
        s += lmc.user("no")
    branch = s.copy()
    branch.gen("x", max_tokens=2)
    return branch.text()


def test_a_generation_behind_a_message_of_one_arm_is_captured():
    assert not check(roles_in_one_arm, ("a",)).breaks
