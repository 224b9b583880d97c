"""What happens outside a program behind its back: arguments that are changed, code that is replaced, aliases."""

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from tests.frontend.argument_strategies import ARGUMENTS_HEADER, NAMES, argument_programs, given_arguments
from tests.frontend.code_strategies import CODE_HEADER, changed_programs
from tests.frontend.harness import check, run_captured, run_plain
from tests.frontend.strategies import arguments, load

FULL = settings.default.max_examples > 100  # type: ignore[union-attr]
SHARED = st.frozensets(st.sampled_from(NAMES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@settings(max_examples=400 if FULL else 12)
@given(source=argument_programs(), shared=SHARED, other=SHARED, alias=st.booleans())
def test_changed_arguments_are_seen(folder, source, shared, other, alias):
    note(source)
    module = load(ARGUMENTS_HEADER + "@jit\n" + source, folder)
    captured = capture(module.program, bind(module.program, given_arguments(module, shared, alias), {}))
    note(str(captured.breaks))
    for names in (shared, other):
        if captured.matches(bind(module.program, given_arguments(module, names, alias), {})):
            check(module.program, lambda names=names: given_arguments(module, names, alias), captured=captured)


@settings(max_examples=400 if FULL else 12)
@given(made=changed_programs(), args=arguments())
def test_changes_of_code_are_seen(folder, made, args):
    source, changes = made
    note(source)
    module = load(CODE_HEADER + source, folder)
    program = module.program

    def fresh():
        return (*args[:3], list(args[3]))

    captured = capture(program, bind(program, fresh(), {}))
    for change in changes:
        note(str(captured.breaks))
        note(change)
        exec(change, vars(module))
        if captured.matches(bind(program, fresh(), {})):
            assert run_captured(captured, fresh(), {}).end == run_plain(program, fresh(), {}).end
        else:
            captured = capture(program, bind(program, fresh(), {}))


@pytest.mark.parametrize("make", [lambda: [1, "x"], lambda: {"k": 1}, lambda: (1, "x"), lambda: {"k": [1]}])
def test_which_arguments_are_one_object_is_no_matter_of_a_capture(make):
    value = make()

    def one_object(s, a, b):
        return a is b, a is not b

    program = JittedFunction(one_object)
    for args in ((value, value), (make(), make())):
        found = capture(program, bind(program, args, {}))
        assert "`is`" in found.breaks[0].cause
