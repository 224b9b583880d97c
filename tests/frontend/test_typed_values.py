"""What a capture records of typed values: pure ops where nothing of the user's runs, else calls in order."""

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.dialects.core_ops import HostCallOp, PyCallOp
from lmc.ir.printer import print_op
from tests.frontend.corpus.typed import OBJECT, Checked, Verdict


def captured(function):
    program = JittedFunction(function)
    found = capture(program, bind(program, (), {}))
    assert found.breaks == ()
    return found


def calls(found, kind):
    return [print_op(op) for op in found.module.main.body.ops if isinstance(op, kind)]


def test_fields_are_pure_ops_of_the_types_that_the_class_promises():
    def program(s):
        s += "x"
        v = s.gen("v", schema=Verdict)
        return v.score, v.ratio, v.why, v.inner.word, v.tags, v.maybe

    found = captured(program)
    assert calls(found, HostCallOp) == []
    assert calls(found, PyCallOp) == [
        '%3 = py.call field (%v, "score", "score") : !int',
        '%4 = py.call field (%v, "ratio", "ratio") : !float',
        "%5 = py.call float (%4) : !float",
        '%6 = py.call field (%v, "why", "why", "x") : !text',
        '%7 = py.call field (%v, "inner", "inner") : !json<Inner>',
        '%8 = py.call field (%7, "word", "word") : !text',
        '%9 = py.call field (%v, "tags", "tags") : !list<!text>',
        '%10 = py.call field (%v, "maybe", "maybe", none) : !any',
    ]
    assert set(found.readers) == {"Verdict", "Inner"}


def test_items_have_the_types_that_the_schema_says():
    def program(s):
        s += "x"
        d = s.gen("d", schema={**OBJECT, "properties": {**OBJECT["properties"], "free": {"type": "string"}}})
        return d["name"], d["sure"], d["count"], d["free"]

    found = captured(program)
    assert [line.partition(" : ")[2] for line in calls(found, PyCallOp)] == ["!text", "!bool", "!any", "!text"]
    assert found.readers == {}


def test_a_class_that_runs_code_is_a_call_of_its_own():
    def program(s):
        s += "x"
        v = s.gen("v", schema=Checked)
        many = s.gen("many", schema=Checked, n=2)
        return v.n, many[0]

    found = captured(program)
    first, second, *reads = calls(found, HostCallOp)
    assert first == '%3 = host.call @Checked (%v, "program/v") {id = "program/@Checked"} : !any'
    assert second.startswith('%4 = host.call @Checked (%many, "program/many") {id = "program/@Checked#1"}')
    assert any("@get_attribute" in read for read in reads), "its attributes are read in order with everything else"
    assert found.readers == {}
    (host,) = [entry for entry in found.module.hosts if entry.name == "Checked"]
    assert (host.target, host.effect.value) == ("tests.frontend.corpus.typed:Checked", "writes")
