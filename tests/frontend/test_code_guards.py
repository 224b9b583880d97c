"""A capture holds for the code, the defaults and the variables of every function that it went through."""

import pytest
from hypothesis import given, note

from lmc.frontend.program.arguments import bind
from tests.frontend.code_strategies import CODE_HEADER, changed_programs
from tests.frontend.harness import check, run_captured, run_plain
from tests.frontend.strategies import arguments, load

PROGRAM = """
@jit
def program(s, a: str):
    s += render(a)
    return [ask(s, a), outer(a), closed(a), agent.say(a), loud.say(a), sub(a)]


def changed(s, a: str):
    s += a
    return s.gen("x", max_tokens=2)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize(
    "change",
    [
        "render.__code__ = render_2.__code__",
        "outer.__code__ = outer_2.__code__",
        "ask.__code__ = ask_2.__code__",
        "closed.__code__ = closed_2.__code__",
        "Agent.say.__code__ = Agent.say_2.__code__",
        "Loud.say.__code__ = Loud.say_2.__code__",
        "sub.function.__code__ = sub_2.__code__",
        "program.function.__code__ = changed.__code__",
        "render.__defaults__ = ('~',)",
        "ask.__kwdefaults__ = {'before': ' new '}",
        "ask.__kwdefaults__['before'] = ' new '",
        "closed.__closure__[1].cell_contents = 'z'",
    ],
)
def test_a_capture_is_not_used_after_a_change_of_a_function_that_it_went_through(folder, change):
    module = load(CODE_HEADER + PROGRAM, folder)
    captured = check(module.program, ("w",))
    before = run_plain(module.program, ("w",), {})
    exec(change, vars(module))
    assert not captured.matches(bind(module.program, ("w",), {}))
    check(module.program, ("w",))
    assert run_plain(module.program, ("w",), {}) != before


@given(made=changed_programs(), args=arguments())
def test_random_changes_of_code_are_seen(folder, made, args):
    source, changes = made
    note(source)
    module = load(CODE_HEADER + source, folder)
    program = module.program

    def fresh():
        return (*args[:3], list(args[3]))

    captured = check(program, fresh)
    for change in changes:
        note(change)
        exec(change, vars(module))
        if captured.matches(bind(program, fresh(), {})):
            assert run_captured(captured, fresh(), {}).end == run_plain(program, fresh(), {}).end
        else:
            captured = check(program, fresh)
