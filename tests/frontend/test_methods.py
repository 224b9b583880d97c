"""Methods as programs: what they are bound to, what their variants hold for, what they keep alive."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportPrivateUsage=false, reportCallIssue=false

import gc
import weakref

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import Captured, VariantCache, inputs_of
from lmc.frontend.tools.tools import tool
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import CaptureError
from lmc.ir.semantics.interpreter import interpret
from tests.driver.levels import LEVELS, run_at
from tests.frontend.corpus import helpers, inherited_methods, methods, strange_methods
from tests.frontend.corpus.cases import CASES
from tests.frontend.harness import at_the_end, run_captured, run_plain

FILES = tuple(file.__name__ for file in (helpers, inherited_methods, methods, strange_methods))
NAMES = [name for name, case in CASES.items() if case.program.definition.__module__ in FILES]

ALWAYS_RAISE = ("helper_that_raises_at_once",)


def arguments(name):
    """Arguments of a case, made anew."""
    made = CASES[name].args
    return made() if callable(made) else made


class Agent:
    def __init__(self, name="a"):
        self.name = name
        self.log = []

    @JittedFunction
    def reads(self, s, q: str):
        s += self.name + q
        return s.gen("x", max_tokens=2)

    @JittedFunction
    def calls(self, s, q: str):
        s += self.look(q)
        return s.gen("x", max_tokens=2)

    @JittedFunction
    def hands_on(self, s, q: str):
        s += q
        return self in [self]

    @JittedFunction
    def logs(self, s, q: str):
        self.log.append(q)
        return s.gen("x", max_tokens=2), len(self.log)

    @tool(effect="reads")
    def look(self, q: str) -> str:
        return self.name + q


def captured(program) -> Captured:
    return capture(program, bind(program, ("q",), {}))


def matches(found: Captured, program) -> bool:
    return found.matches(bind(program, ("q",), {}))


def test_equal_objects_share_what_only_reads_them():
    one, two, other = Agent(), Agent(), Agent("b")
    found = captured(one.reads)
    assert not found.breaks
    assert matches(found, two.reads)
    assert not matches(found, other.reads)
    two.name = "c"
    assert not matches(found, two.reads)
    assert matches(found, one.reads)


@pytest.mark.parametrize("name", ["calls", "hands_on", "logs"])
def test_what_refers_to_its_object_holds_for_that_alone(name):
    one, two = Agent(), Agent()
    found = captured(getattr(one, name))
    assert matches(found, getattr(one, name))
    assert not matches(found, getattr(two, name))


def test_an_object_that_is_also_read_from_elsewhere_does_not_share(monkeypatch):
    class Knows(Agent):
        @JittedFunction
        def run(self, s, q: str):
            s += self.name + KNOWN.name
            return s.gen("x", max_tokens=2)

    one, two = Knows(), Knows()
    monkeypatch.setitem(globals(), "KNOWN", one)
    found = captured(one.run)
    assert not matches(found, two.run)
    one.name = "new"
    assert not matches(found, one.run)


KNOWN = Agent()


def test_a_method_that_is_replaced_is_seen(monkeypatch):
    class Other(Agent):
        def mark(self, s):
            s += "old"

        @JittedFunction
        def run(self, s, q: str):
            self.mark(s)
            return s.gen("x", max_tokens=2)

    one = Other()
    found = captured(one.run)
    assert not found.breaks
    one.mark = lambda s: None
    assert not matches(found, one.run)
    del one.mark
    assert matches(found, one.run)
    monkeypatch.setattr(Other, "mark", lambda self, s: None)
    assert not matches(found, one.run)


def test_a_list_that_is_changed_is_not_looked_into_by_guards():
    one = Agent()
    found = captured(one.logs)
    assert not found.breaks
    one.log.append("more")
    assert matches(found, one.logs)
    one.log = []
    assert not matches(found, one.logs)


@pytest.mark.parametrize("name", ["reads", "calls", "hands_on"])
def test_nothing_keeps_the_objects_of_variants_alive(name):
    cache = VariantCache(limit=64)
    refs: list[weakref.ref[Agent]] = []

    def use(index: int) -> None:
        one = Agent(f"{index % 3}")
        refs.append(weakref.ref(one))
        program = getattr(one, name)
        if cache.find(bind(program, ("q",), {})) is None:
            cache.add(captured(program))

    for index in range(1000 if name == "reads" else 100):
        use(index)
    gc.collect()
    assert sum(ref() is not None for ref in refs) == 0
    assert len(cache) == 3 if name == "reads" else len(cache) <= 64


def test_a_bound_program_is_the_same_each_time():
    one, two = Agent(), Agent()
    assert one.reads == one.reads
    assert hash(one.reads) == hash(one.reads)
    assert one.reads != two.reads
    assert one.look == one.look
    assert Agent.reads is Agent.reads


def test_a_method_that_is_given_an_argument_for_its_object_is_refused():
    with pytest.raises(CaptureError, match=r"reads\(\) is a method, and nothing says of which object") as caught:
        Agent.reads("q")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_a_method_without_an_object_is_refused():
    with pytest.raises(CaptureError, match=r"reads\(\) is a method, and nothing says of which object") as caught:
        Agent.reads()
    assert "program = Agent(…).reads" in str(caught.value.remedy)
    assert caught.value.location is not None


def test_a_method_without_an_object_in_a_program():
    @JittedFunction
    def program(s):
        return Agent.reads()

    assert "is a method" in capture(program, bind(program, (), {})).breaks[0].cause
    with pytest.raises(CaptureError, match="is a method"):
        run_eager(program, bind(program, (), {}), EagerSession(ToyEngine()))


def test_a_program_that_is_an_attribute_of_a_class_stays_what_it_is():
    @JittedFunction
    def step(s, q: str):
        s += q
        return s.gen("x", max_tokens=2)

    class Pipeline:
        first = step

    assert Pipeline().first is step
    assert Pipeline.first is step


def test_private_names_and_super_without_a_class_stay_what_they_are():
    assert Agent.reads.signature == Agent().reads.signature
    assert list(Agent.reads.signature.parameters) == ["q"]


def test_another_object_runs_a_shared_variant_to_its_end():
    class Breaking(Agent):
        @JittedFunction
        def run(self, s, q: str):
            s += self.name + q
            x = s.gen("x", max_tokens=2)
            x = eval("x")  # ends the capture
            self.log.append(x)
            return x

    one, two = Breaking(), Breaking()
    found = captured(one.run)
    bound = bind(two.run, ("q",), {})
    assert found.breaks
    assert found.matches(bound)
    live = interpret(found.module, inputs_of(found, bound), ToyEngine(), hosts=found.hosts).live
    assert live is not None
    outcome = go_on(found, bound, live, EagerSession(ToyEngine()))
    assert two.log == [outcome.value]
    assert one.log == []


@pytest.mark.parametrize("name", NAMES)
def test_programs_go_on_from_their_end(name):
    case = CASES[name]
    given = arguments(name)
    found = capture(case.program, bind(case.program, given, {}), stop_before=at_the_end)
    assert found.breaks or name in ALWAYS_RAISE
    graph = run_captured(found, given, {}, case.program)
    left = repr(case.watch()) if case.watch else None
    plain = run_plain(case.program, arguments(name), {})
    assert left == (repr(case.watch()) if case.watch else None)
    assert (graph.end, graph.effects) == (plain.end, plain.effects)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_programs_are_the_same_at_every_level(name, level):
    case = CASES[name]
    given = arguments(name)
    found = capture(case.program, bind(case.program, given, {}))
    graph = run_at(level, found, given, {}, program=case.program)
    left = repr(case.watch()) if case.watch else None
    plain = run_plain(case.program, arguments(name), {})
    assert left == (repr(case.watch()) if case.watch else None)
    assert graph.end == plain.end
    assert sorted(map(repr, graph.effects)) == sorted(map(repr, plain.effects))
