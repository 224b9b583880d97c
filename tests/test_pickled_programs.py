"""Programs as arguments of other processes, and copies of them."""

import copy
import multiprocessing
import pickle  # noqa: TID251 - what multiprocessing does with programs

import pytest

import lmc
from tests import pickled_programs
from tests.pickled_programs import OF_PLAIN, TOY, Agent, greet, local_program, seeded

AGENT = Agent("cook")
PROGRAMS = {
    "with options of a call": TOY,
    "with options of the decorator": seeded,
    "with options of both": seeded.on(seed=8, level="O0"),
    "of a plain function": OF_PLAIN,
    "bound to an object": AGENT.act,
    "bound to an object, with options": AGENT.act.on(seed=2),
    "bound to a class": Agent.of_class,
    "static": Agent.static,
    "of a bound method": lmc.jit(AGENT.talk).on("toy"),
}


def call(program: lmc.Program[..., str], name: str) -> str:
    return program(name)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_pickled_and_copied_programs_do_the_same_under_the_same_options(program: lmc.Program[..., str]):
    for made in (pickle.loads(pickle.dumps(program)), copy.deepcopy(program), copy.copy(program)):
        assert type(made) is type(program)
        assert (made.name, made.options) == (program.name, program.options)
        assert made("Ann") == program("Ann")


def test_a_program_that_its_own_name_leads_to_is_itself_again():
    assert pickle.loads(pickle.dumps(greet)) is greet
    assert pickle.loads(pickle.dumps(Agent.act)) is Agent.act
    assert copy.deepcopy({"program": greet})["program"] is greet


def test_a_deep_copy_of_a_bound_program_is_bound_to_a_copy_of_its_object():
    agent, act = copy.deepcopy((AGENT, AGENT.act))
    assert agent is not AGENT
    assert act == agent.act
    agent.role = "waiter"
    assert act("Ann") == Agent("waiter").act("Ann") != AGENT.act("Ann")


def test_a_program_without_a_name_can_not_be_pickled_and_its_error_tells_the_remedy():
    with pytest.raises(lmc.InputError, match=r"inner\(\) can't be pickled(.|\n)*pass its name") as caught:
        pickle.dumps(local_program())
    assert caught.value.location is not None
    assert caught.value.location.file == pickled_programs.__file__
    assert copy.deepcopy(local_program())("Ann")


def test_another_process_runs_programs_that_it_is_given():
    programs = [TOY, seeded, AGENT.act]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap(call, [(program, "Ann") for program in programs])
    assert found == [program("Ann") for program in programs]
