"""What a handle is mistaken for: the same error at the same line, run as plain Python and captured."""

import contextlib

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.language.messages import assistant, gen, system, user
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import inputs_of
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import CaptureError
from lmc.ir.semantics.interpreter import Outcome, interpret


def eagerly(program, *args) -> Outcome:
    built = JittedFunction(program)
    return run_eager(built, bind(built, args, {}), EagerSession(ToyEngine()))


def by_graph(program, *args) -> Outcome:
    built = JittedFunction(program)
    bound = bind(built, args, {})
    captured = capture(built, bound)
    outcome = interpret(captured.module, inputs_of(captured, bound), ToyEngine(), hosts=captured.hosts)
    return outcome if outcome.live is None else go_on(captured, bound, outcome.live, EagerSession(ToyEngine()))


# Each: a program, whose last line is the mistake unless it says so, the cause and the remedy.
MISTAKES = []


def mistake(cause, remedy, *args, line=None):
    def add(program):
        MISTAKES.append(pytest.param(program, args, cause, remedy, line, id=program.__name__))
        return program

    return add


@mistake("s['x'] = …: only gen and select set variables", "keep the value in a variable of Python's")
def setting_a_variable(s):
    s += "a"
    s["x"] = 3


@mistake("s[3] = …: only gen and select", "keep the value", 3)
def setting_by_an_argument(s, n: int):
    s += "a"
    s[n] = 3


@mistake("s['x'] = …: only gen and select", "keep the value")
def adding_to_a_variable(s):
    s += "a"
    s.gen("x", max_tokens=1)
    s["x"] += "!"


@mistake("del s['x']: variables of a state stay", "replaces the value")
def deleting_a_variable(s):
    s += "a"
    del s["x"]


@mistake("s + …: a state is no text", "write s += …", "q")
def adding_to_a_state(s, q: str):
    s += "a"
    s = s + q


@mistake("s + …: a state is no text", "write s += …")
def adding_a_message_to_a_state(s):
    s = s + user("q")


@mistake("s + …: a state is no text", "branch = s.copy()")
def adding_two_states(s):
    return s + s.copy()


@mistake("… + s: a state is no text", "s.text()", "q")
def adding_a_state_to_an_argument(s, q: str):
    return q + s


@mistake("… + s: a state is no text", "s.text()")
def adding_a_state_to_a_text(s):
    return "q" + s


@mistake("the program appends a State, text is needed", "s.text() all there is so far")
def appending_a_state(s):
    s += s.copy()


@mistake("a user message holds a State, text is needed", "s.text() all there is so far")
def a_state_in_a_message(s):
    s += user(s)


@mistake("branches + …: nothing is appended to several", "for branch in branches: branch += …")
def appending_to_all_branches(s):
    branches = s.fork(2)
    branches += "x"


@mistake("branches + …: nothing is appended to several", "for branch in branches: branch += …", "q")
def appending_an_argument_to_all_branches(s, q: str):
    branches = s.fork(2)
    branches += q


@mistake("branches + …: nothing is appended to several", "for branch in branches: branch += …", "q")
def adding_branches_to_a_text(s, q: str):
    return q + s.fork(2)


@mistake("the program appends a Branches, text is needed", "branches['name'] are the values")
def appending_branches(s):
    s += s.fork(2)


@mistake("a branch can't be deleted", "branches[1:]")
def deleting_a_branch(s):
    branches = s.fork(2)
    del branches[0]


@mistake("a user message holds an int, text is needed", "str(value)", line=1)
def a_number_as_a_message(s):
    message = user(3)
    s += message


@mistake("a user message holds an int, text is needed", "str(value)", 3, line=1)
def an_argument_as_a_message(s, n: int):
    message = user(n)
    s += message


@mistake("an assistant message holds a float, text is needed", "str(value)")
def a_number_beside_a_generation(s):
    s += assistant("a" + gen("x") + 2.5)


@mistake("s.user() with neither a text nor `with` does nothing", "with s.user(): and append inside", line=2)
def a_role_that_is_not_opened(s):
    s += system("a")
    s.user()
    s += user("hello")
    s.gen("x", max_tokens=1)


@mistake("s.assistant() with neither a text nor `with` does nothing", "s.assistant(text)", line=1)
def a_role_that_is_not_opened_before_a_generation(s):
    s.assistant()
    s.gen("x", max_tokens=1)


@mistake("s.user() with neither a text nor `with` does nothing", "with s.user()", line=1)
def a_role_that_is_not_opened_before_the_next(s):
    s.user()
    with s.assistant():
        s += "x"


@mistake("s.user() with neither a text nor `with` does nothing", "with s.user()", line=1)
def a_role_that_is_not_opened_before_the_text_is_read(s):
    s.user()
    return s.text()


@mistake("s.user() with neither a text nor `with` does nothing", "with s.user()", line=2)
def a_role_that_is_not_opened_at_the_end(s):
    branch = s.copy()
    branch.user()


@mistake("s.user() with neither a text nor `with` does nothing", "with s.user()")
def a_role_that_is_kept_and_never_opened(s):
    return s.user()


@mistake("the program appends a RoleBlock, text is needed", "with s.user(): s += …")
def appending_a_role(s):
    s += s.user()


@pytest.mark.parametrize("run", [eagerly, by_graph])
@pytest.mark.parametrize(("program", "args", "cause", "remedy", "line"), MISTAKES)
def test_mistakes_name_line_cause_and_remedy(run, program, args, cause, remedy, line):
    with pytest.raises(CaptureError) as caught:
        run(program, *args)
    assert caught.value.cause.startswith(cause)
    assert remedy in (caught.value.remedy or "")
    assert caught.value.location is not None
    lines = [number for _, _, number in program.__code__.co_lines() if number is not None]
    head = min(lines) + 1  # the decorator's line comes first
    assert (caught.value.location.file, caught.value.location.line) == (
        __file__,
        max(lines) if line is None else head + line,
    )


def test_a_capture_ends_at_the_mistake():
    for program, line in ((setting_a_variable, 3), (a_role_that_is_not_opened_at_the_end, 3)):
        built = JittedFunction(program)
        (found,) = capture(built, bind(built, (), {})).breaks
        assert found.cause.startswith("this raises CaptureError: s")
        assert found.location is not None
        assert found.location.line == program.__code__.co_firstlineno + line


@pytest.mark.parametrize("content", [3, None, b"a", ["a"], assistant, gen("x") + 3])
def test_messages_are_checked_where_they_are_made(content):
    with pytest.raises(CaptureError, match=r"a user message holds an? .*, text is needed") as caught:
        user(content)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_texts_of_other_classes_are_texts():
    class Name(str):
        pass

    assert eagerly(lambda s: s.append(user(Name("a")))).text == eagerly(lambda s: s.append(user("a"))).text


def opened_later(s):
    turns = [s.user(), s.assistant()]
    for turn in turns:
        with turn:
            s += "a"
    return s.text()


def opened_twice(s):
    turn = s.user()
    with turn:
        s += "a"
    with turn:
        s += "b"
    return s.text()


def opened_by_a_stack(s):
    branches = s.fork(2)
    with contextlib.ExitStack() as stack:
        for branch in branches:
            stack.enter_context(branch.user())
            branch.append("a")
    return [branch.text() for branch in branches]


def refused_when_opened(s):
    s += "bare"
    try:
        with s.user():
            s += "a"
    except CaptureError:
        s += "b"
    return s.text()


@pytest.mark.parametrize("program", [opened_later, opened_twice, opened_by_a_stack, refused_when_opened])
def test_role_blocks_may_be_opened_in_any_way(program):
    found = eagerly(program)
    assert (found.value, found.text) == (by_graph(program).value, by_graph(program).text)
    assert "a" in str(found.value)
