"""`parse=False`: the text of a generation in place of its value."""

import json

import pytest

from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.ir.engine.toy import ToyEngine
from tests.compiled_constraints import compile_for_toy
from tests.frontend.harness import check

SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["age"],
}


@pytest.mark.parametrize("n", [None, 2])
def test_the_value_is_the_text(n: int | None):
    @JittedFunction
    def program(s):
        s += "age:"
        data = s.gen("data", schema=SCHEMA, parse=False, max_tokens=40, n=n)
        number = s.gen("number", dtype=int, parse=False, max_tokens=4)
        return [data, number]

    outcome = check(program)
    assert not outcome.breaks
    assert [str(constraint.kind) for constraint in outcome.module.constraints] == ["schema", "dtype"]


def test_it_can_be_appended_to_text_and_read_as_json():
    @JittedFunction
    def program(s):
        s += "age:"
        s.gen("data", schema=SCHEMA, parse=False, max_tokens=40)
        return "got " + s["data"]

    check(program)
    outcome = run_eager(program, bind(program, (), {}), EagerSession(ToyEngine(), compile=compile_for_toy()))
    assert list(json.loads(outcome.variables["data"])) == ["age"]
    assert outcome.value == f"got {outcome.variables['data']}"
