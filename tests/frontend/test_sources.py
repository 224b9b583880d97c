"""What makes a program, and what of its source can't be captured."""

import ast
import asyncio
import linecache
import textwrap

import pytest

from lmc.driver import load_program
from lmc.frontend.capture import capture
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.source.functions import definition_of
from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import CaptureError, Location
from tests.examples.cases import EXAMPLES
from tests.frontend.harness import check
from tests.frontend.strategies import load
from tests.project.layers import REPOSITORY
from tests.report.programs import NAMES


def refused(function):
    (found,) = check(JittedFunction(function), ("x",)).breaks
    return found


def test_generators_and_async_functions_are_refused():
    def generator(s):
        yield 1

    async def later(s):
        return 1

    for function, what in ((generator, "is a generator"), (later, "is async")):
        program = JittedFunction(function)
        with pytest.raises(CaptureError, match=what) as caught:
            capture(program, None)
        assert "plain function" in str(caught.value)
        assert caught.value.location == program.location
        with pytest.raises(CaptureError, match=what):
            run_eager(program, bind(program, (), {}), EagerSession(ToyEngine()))
    assert asyncio.run(later(None)) == 1


def test_a_function_without_source_runs_eagerly():
    names = {}
    exec("def program(s, a):\n    s += a\n    return s.gen('g', max_tokens=2)", names)
    captured = check(JittedFunction(names["program"]), ("x",))
    assert "Python has no source for it" in captured.breaks[0].cause


def test_an_edited_file_is_noticed(tmp_path):
    module = load("def program(s, a):\n    return a + '!'\n", tmp_path)
    path = tmp_path / f"{module.__name__}.py"
    path.write_text("def program(s, a):\n    return a + '?'\n", encoding="utf-8")
    linecache.checkcache(str(path))
    assert "its file changed since it was loaded" in refused(module.program).cause
    path.write_text("def other(s, a):\n    return a\n\n\n", encoding="utf-8")
    linecache.checkcache(str(path))
    assert "its source is not where Python says" in refused(load_again(module.program)).cause
    path.write_text("def program(s, a:\n", encoding="utf-8")
    linecache.checkcache(str(path))
    assert "no longer parses" in refused(load_again(module.program)).cause


def test_sets_are_the_same_in_any_order(tmp_path):
    module = load("def program(s, a):\n    return a in {0, 8}\n", tmp_path)
    path = tmp_path / f"{module.__name__}.py"
    path.write_text("def program(s, a):\n    return a in {8, 0}\n", encoding="utf-8")
    linecache.checkcache(str(path))
    definition_of(load_again(module.program))


def load_again(function):
    """The same code as another function, for which nothing is remembered."""
    return type(function)(function.__code__, function.__globals__, function.__name__)


def test_programs_in_notebook_cells_have_source():
    source = textwrap.dedent(
        """
        def program(s, a):
            s += a
            return s.gen("g", max_tokens=2)
        """
    )
    linecache.cache["<cell-1>"] = (len(source), None, source.splitlines(keepends=True), "<cell-1>")
    names = {}
    exec(compile(source, "<cell-1>", "exec"), names)
    captured = check(JittedFunction(names["program"]), ("x",))
    assert captured.breaks == ()
    assert str(captured.module.main.body.ops[1].location) == "<cell-1>:3"


def columns(function) -> dict[str, tuple[int, int | None]]:
    """Line and column of each call of a model, by its id."""
    found = {}
    for op in walk([capture(JittedFunction(function), None).module.main.body]):
        if isinstance(op, SamplingOp | SelectOp):
            assert op.location is not None
            found[op.id] = (op.location.line, op.location.column)
    return found


def test_calls_of_one_line_have_their_columns(tmp_path):
    source = """def program(s, a):
    s += "ä日😀" + s.gen("x") + s.gen("y"); s += s.gen("z")
    t = [s.gen("r") for _ in range(2)]
    s += (
        a + s.gen(
            "m")
        + s.select("n", ["u", "v"]))
    return t
"""
    assert columns(load(source, tmp_path).program) == {
        "program/x": (2, 18),
        "program/y": (2, 31),
        "program/z": (2, 48),
        "program/r": (3, 10),
        "program/r#1": (3, 10),
        "program/m": (5, 13),
        "program/n": (7, 11),
    }


def test_columns_are_those_of_statements_and_calls():
    """In the examples, each op begins where a part of its line does, and each call of a model has a column."""
    for program, file in programs_of_examples():
        text = file.read_text("utf-8")
        lines = text.splitlines()
        begins = {
            (node.lineno, len(lines[node.lineno - 1].encode()[: node.col_offset].decode()) + 1)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.stmt | ast.expr)
        }
        for op in walk([capture(program, None).module.main.body]):
            place = op.location
            if place is not None and place.column is not None:
                assert (place.line, place.column) in begins
            else:
                assert not isinstance(op, SamplingOp | SelectOp)


def programs_of_examples():
    for name in sorted(EXAMPLES):
        file = REPOSITORY / "examples" / f"{name}.py"
        yield load_program(f"{file}:{NAMES[name]}" if name in NAMES else str(file)), file


def test_a_column_is_no_part_of_what_locations_are():
    place = Location("a.py", 3, 7)
    assert place == Location("a.py", 3)
    assert hash(place) == hash(Location("a.py", 3))
    assert str(place) == "a.py:3"


def test_what_is_no_program():
    with pytest.raises(CaptureError, match="3 is no function"):
        JittedFunction(3)  # type: ignore[arg-type]
    with pytest.raises(CaptureError, match=r"program\(\) has no parameter for the state") as caught:

        @JittedFunction
        def program(*, a):
            return a

    assert "def program(s, …)" in (caught.value.remedy or "")


def test_a_program_runs_only_as_a_part_of_a_run():
    @JittedFunction
    def program(s, a):
        return a

    with pytest.raises(CaptureError, match=r"program\(\) was called outside of a run") as caught:
        program("x")
    assert "@lmc.jit" in str(caught.value)
    with pytest.raises(CaptureError, match=r"program.on_state\(\) continues the state") as caught:
        program.on_state("x")  # type: ignore[arg-type]
    assert "program.on_state(s, …)" in (caught.value.remedy or "")


def test_errors_have_the_line_of_the_program():
    def program(s, a: str):
        x = [1, 2]
        return x[len(a) + 5]

    built = JittedFunction(program)
    (found,) = capture(built, bind(built, ("a",), {})).breaks or (None,)
    assert found is None, "a symbolic index fails when it runs"
    check(built, ("a",))


def test_a_method_without_a_parameter_for_the_state_is_refused_where_it_is_decorated():
    def act(self):
        pass

    with pytest.raises(CaptureError, match=r"act\(\) has no parameter for the state") as caught:
        JittedFunction(act)
    assert "def act(self, s, …)" in str(caught.value.remedy)
    assert caught.value.location is not None


def test_a_program_shows_its_name_and_arguments():
    @JittedFunction
    def judge(s, essay: str, k: int = 2):
        pass

    assert repr(judge) == "<JittedFunction judge(essay: str, k: int = 2)>"


def test_functions_of_another_cell_of_a_notebook_may_bind_a_global_anew(tmp_path):
    first = """
from lmc.frontend.program.function import JittedFunction as jit
from lmc.frontend.tools.tools import tool


def reset():
    global COUNT
    COUNT = 0


class Counter:
    def add(self):
        global COUNT
        COUNT += 1


@tool
def note(text: str) -> str:
    Counter().add()
    return text + "!"
"""
    second = """
@jit
def program(s, a: str):
    s += note(a) + str(COUNT)
    note(s.gen("x", max_tokens=2))
    if COUNT > 1:
        s += "more"
    return COUNT
"""
    cells = load(second, tmp_path, first)
    assert not check(cells.program, lambda: (cells.reset(), "q")[1:]).breaks
