"""What a capture costs and what it never does."""

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.machine import graph
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import inputs_of
from lmc.frontend.tools.tools import tool
from lmc.ir.core import HostFunction
from lmc.ir.dialects.core_ops import ConcatOp, ExtendOp, HostCallOp
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import CaptureError, VerifyError
from lmc.ir.semantics.interpreter import interpret
from tests.frontend.harness import check, effect
from tests.work import calls_of


@JittedFunction
def chain(s, a: str, n: int):
    for index in range(n):
        s += f"step {index} of {a}: "
        s.gen("x", max_tokens=4)
    return s["x"]


@JittedFunction
def fan(s, a: str, n: int):
    views = s.fork(n)
    for index in range(n):
        views[index] += f"{index} {a}"
        views[index].gen("x", max_tokens=4)
    s += "\n".join(views["x"])


@JittedFunction
def leaf(s, a: str):
    s += a
    return s.gen("x", max_tokens=4)


@JittedFunction
def calls(s, a: str, n: int):
    text = a
    for _ in range(n):
        text += leaf(a)
    s += text


def calls_of_capture(program, n):
    bound = bind(program, ("q", n), {})
    capture(program, bind(program, ("q", 2), {}))  # reads the source once for all captures
    captures = []
    calls = calls_of(lambda: captures.append(capture(program, bound)))
    assert captures[0].breaks == ()
    return calls


@pytest.mark.parametrize("program", [chain, fan, calls])
def test_captures_are_linear(program):
    assert calls_of_capture(program, 360) < 12 * calls_of_capture(program, 36)


def test_the_text_of_a_message_goes_into_its_op():
    @JittedFunction
    def program(s, a: str):
        s += f"one {a} " + "two " + a + f" {a!s}"
        return s.gen("g")

    ops = capture(program, bind(program, ("x",), {})).module.main.body.ops
    assert not [op for op in ops if type(op) is ConcatOp]
    (extend,) = [op for op in ops if type(op) is ExtendOp]
    assert [part if isinstance(part, str) else part.name for part in extend.text] == [
        "one ",
        "a",
        " two ",
        "a",
        " ",
        "a",
    ]


def test_locations_are_the_users_lines():
    @JittedFunction
    def program(s, a: str):
        s += a

        s += a.upper()

    assert program.location is not None
    first = program.location.line
    captured = capture(program, bind(program, ("x",), {}))
    lines = [op.location.line - first for op in captured.module.main.body.ops if op.location is not None]
    assert lines[:4] == [0, 2, 4, 4]


@tool
def plain_effect(text: str) -> None:
    effect(text)


def test_host_functions_are_named_by_module_and_source():
    @JittedFunction
    def program(s, a: str):
        plain_effect(a)
        plain_effect(a)
        print(a)

    captured = capture(program, bind(program, ("x",), {}))
    assert [(found.name, found.target) for found in captured.module.hosts] == [
        ("plain_effect", "tests.frontend.test_capture:plain_effect"),
        ("print", "builtins:print"),
    ]
    assert all(isinstance(found, HostFunction) and len(found.digest) == 64 for found in captured.module.hosts)
    ids = [op.id for op in captured.module.main.body.ops if type(op) is HostCallOp]
    assert ids == ["program/@plain_effect", "program/@plain_effect#1", "program/@print"]


def test_unbounded_recursion_is_a_break():
    @JittedFunction
    def endless(s, n: int):
        s += "x"
        return endless(n + 1)

    (found,) = capture(endless, bind(endless, (1,), {})).breaks
    assert "endless() is called more than 40 levels deep" in found.cause
    assert "bound the depth" in found.remedy


def test_recursion_of_an_inner_function_is_a_break():
    @JittedFunction
    def program(s, n: int):
        def down(k):
            return down(k + 1)

        return down(0)

    (found,) = capture(program, bind(program, (1,), {})).breaks
    assert "down() is called more than 40 levels deep" in found.cause
    assert found.location is not None


def test_a_capture_that_is_too_long_is_a_break(monkeypatch):
    monkeypatch.setattr(graph, "MAX_OPS", 100)

    @JittedFunction
    def endless(s):
        for _ in range(300):
            s.gen("x", max_tokens=1)

    (found,) = capture(endless, bind(endless, (), {})).breaks
    assert "longer than 100 operations" in found.cause
    assert "bound its loops" in found.remedy


def test_a_program_in_a_host_call_that_nobody_saw_is_refused():
    programs = {"leaf": leaf}

    @tool
    def sneaky(a):
        return programs["leaf"](a)

    @JittedFunction
    def program(s, a: str):
        s += a
        return f"{sneaky(a)}"

    bound = bind(program, ("x",), {})
    captured = capture(program, bound)
    with pytest.raises(CaptureError, match=r"sneaky\(\) calls the program leaf\(\)") as caught:
        interpret(captured.module, inputs_of(captured, bound), ToyEngine(), hosts=captured.hosts)
    assert "decorate sneaky with @lmc.jit" in str(caught.value)


@JittedFunction
def broken(s, a: str):
    s += a
    effect("once", a)
    x = s.gen("x", max_tokens=3)
    str({"a", "b"})  # in an order that Python draws
    effect("after", x)
    return s.gen("y", max_tokens=3)


def test_a_continuation_counts_only_what_it_ran_and_reports_its_text():
    bound = bind(broken, ("q",), {})
    captured = capture(broken, bound)
    live = interpret(captured.module, inputs_of(captured, bound), ToyEngine(), hosts=captured.hosts).live
    assert live is not None
    heard = []
    session = EagerSession(ToyEngine(), on_text=lambda *event: heard.append(event))
    outcome = go_on(captured, bound, live, session)
    assert list(session.profile) == ["broken/y"]
    assert {event[:3] for event in heard} == {("broken/y", "y", 0)}
    assert "".join(event[3] for event in heard) == outcome.value


def test_an_eager_run_reports_samples_and_choices():
    @JittedFunction
    def program(s):
        s += "x"
        s.gen("many", n=2, max_tokens=3, temperature=1.0)
        s.select("c", ["p", "q"])

    heard = []
    session = EagerSession(ToyEngine(), on_text=lambda *event: heard.append(event))
    outcome = run_eager(program, bind(program, (), {}), session)
    for sample in (0, 1):
        text = "".join(event[3] for event in heard if event[:3] == ("program/many", "many", sample))
        assert text == outcome.variables["many"][sample]
    assert heard[-1][:4] == ("program/c", "c", 0, outcome.variables["c"])
    assert {event[4].transcript() for event in heard} == {"x"}


def test_run_seed_and_instance_reach_the_draws():
    @JittedFunction
    def program(s):
        s += "x"
        return s.gen("g", max_tokens=12, temperature=1.0)

    def text(**options):
        return run_eager(program, bind(program, (), {}), EagerSession(ToyEngine(), **options)).value

    assert text() == text() == text(run_seed=0, instance=0)
    assert len({text(), text(run_seed=1), text(instance=1)}) == 3
    captured = capture(program, bind(program, (), {}))
    assert interpret(captured.module, {}, ToyEngine(), run_seed=1).value == text(run_seed=1)


def test_programs_called_from_a_plain_function_run_in_an_eager_run():
    def helper(a):
        return leaf(a) + leaf(a)

    @JittedFunction
    def program(s, a: str):
        s += helper(a)
        return s.gen("g", max_tokens=2)

    assert not check(program, ("q",)).breaks
    session = EagerSession(ToyEngine())
    run_eager(program, bind(program, ("q",), {}), session)
    assert list(session.profile) == ["program/leaf/x", "program/leaf#1/x", "program/g"]


@pytest.mark.parametrize("error", [VerifyError("a rule is broken", remedy="mend it"), AssertionError("no way in")])
def test_a_program_whose_capture_fails_runs_as_plain_python(error, monkeypatch):
    def fails(_module):
        raise error

    monkeypatch.setattr("lmc.frontend.capture.verify", fails)
    bound = bind(chain, ("topic", 2), {})
    with pytest.warns(RuntimeWarning, match=r"no valid graph of 'chain' \(.*it runs as plain Python") as seen:
        captured = capture(chain, bound)
    assert chain.location is not None
    assert (seen[0].filename, seen[0].lineno) == (chain.location.file, chain.location.line)
    assert "report" in captured.breaks[0].remedy
    outcome = interpret(captured.module, inputs_of(captured, bound), ToyEngine(), hosts=captured.hosts)
    assert outcome.live is not None
    continued = go_on(captured, bound, outcome.live, EagerSession(ToyEngine()))
    assert continued.value == run_eager(chain, bound, EagerSession(ToyEngine())).value
