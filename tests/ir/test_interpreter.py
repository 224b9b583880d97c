from __future__ import annotations

from hypothesis import given

from lmc.ir.interpreter import interpret
from lmc.ir.parser import parse
from lmc.ir.printer import print_module
from lmc.ir.toy import ToyEngine
from lmc.ir.verifier import verify
from tests.program_strategies import Program, programs


@given(programs())
def test_random_programs_run_and_their_text_means_the_same(program: Program):
    verify(program.module)
    outcome = interpret(program.module, program.inputs, ToyEngine(), hosts=program.hosts)
    again = interpret(parse(print_module(program.module)), program.inputs, ToyEngine(), hosts=program.hosts)
    assert (outcome.value, outcome.variables, outcome.text) == (again.value, again.variables, again.text)
    assert outcome.usage == again.usage
