"""What a state takes and refuses, with the user's line, the cause and the remedy; ids of everything."""

import pydantic
import pytest

from lmc.frontend.capture import capture
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.language.messages import assistant, gen, select, system, user
from lmc.frontend.language.state import UnknownVariableError
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.schemas.schemas import UnknownSchemaError
from lmc.ir.dialects.core_ops import GenOp, SampleOp, SelectOp
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import CaptureError, InputError


def eagerly(function, *args):
    program = JittedFunction(function)
    return run_eager(program, bind(program, args, {}), EagerSession(ToyEngine()))


def captured_ops(function, *args):
    program = JittedFunction(function)
    return capture(program, bind(program, args, {})).module.main.body.ops


REFUSALS = [
    (lambda s: s.gen("x", max_tokens=0), "max_tokens is 0", "at least 1"),
    (lambda s: s.gen("x", max_tokens=True), "max_tokens is True", "whole number"),
    (lambda s: s.gen("x", max_tokens=3, min_tokens=4), "min_tokens is 4, more than", "raise max_tokens"),
    (lambda s: s.gen("x", min_tokens=-1), "min_tokens is -1", "at least 0"),
    (lambda s: s.gen("x", stop=["a", ""]), "stop is", "none of them empty"),
    (lambda s: s.gen("x", stop=3), "stop is 3", "a text or a list of texts"),
    (lambda s: s.gen("x", stop_token_ids=["a"]), "stop_token_ids is", "a list of token ids"),
    (lambda s: s.gen("x", temperature=-0.1), "temperature is -0.1", "not below 0"),
    (lambda s: s.gen("x", temperature="warm"), "temperature is 'warm'", "give a number"),
    (lambda s: s.gen("x", top_p=0), "top_p is 0", "above 0, at most 1"),
    (lambda s: s.gen("x", top_k=-1), "top_k is -1", "at least 0"),
    (lambda s: s.gen("x", min_p=2.0), "min_p is 2.0", "between 0 and 1"),
    (lambda s: s.gen("x", frequency_penalty=2.1), "frequency_penalty is 2.1", "between -2 and 2"),
    (lambda s: s.gen("x", presence_penalty="a"), "presence_penalty is 'a'", "between -2 and 2"),
    (lambda s: s.gen("x", repetition_penalty=0), "repetition_penalty is 0", "between 0.01 and 100"),
    (lambda s: s.gen("x", logit_bias=[3]), "logit_bias is [3]", "a dict of token ids"),
    (lambda s: s.gen("x", logit_bias={"a": 1.0}), "logit_bias names token id 'a'", "a dict of token ids"),
    (lambda s: s.gen("x", logit_bias={-1: 1.0}), "logit_bias names token id -1", "a dict of token ids"),
    (lambda s: s.gen("x", logit_bias={3: 101}), "the logit_bias of token 3 is 101", "between -100 and 100"),
    (lambda s: s.gen("x", seed="s"), "seed is 's'", "whole number"),
    (lambda s: s.gen("x", logprobs=101), "logprobs is 101", "between 0 and 100"),
    (lambda s: s.gen("x", n=0), "n is 0", "at least 1"),
    (lambda s: s.gen("x", max_token=3), "gen has no option 'max_token'", "did you mean 'max_tokens'?"),
    (lambda s: s.gen("x", qqqq=3), "gen has no option 'qqqq'", "known: 'max_tokens'"),
    (lambda s: s.gen("x", regex=""), "regex is ''", "the pattern"),
    (lambda s: s.gen("x", choices=[]), "choices is []", "a list of texts"),
    (lambda s: s.gen("x", choices=["a", ""]), "choices is ['a', '']", "none of them empty"),
    (lambda s: s.gen("x", schema=3), "schema is 3 (an int): it is no class", "another type that pydantic knows"),
    (lambda s: s.gen("x", schema='{"type":"object"}'), "schema is '{", "as a dict: json.loads(text)"),
    (lambda s: s.gen("x", schema=UnknownSchemaError), "Unable to generate pydantic-core schema", "a pydantic class"),
    (lambda s: s.gen("x", schema=pydantic.FutureDate), "what is in the future", "Field(gt=...)"),
    (lambda s: s.gen("x", schema={"a": {1}}), "it is no JSON: Object of type set", "JSON schema"),
    (lambda s: s.gen("x", schema={"a": float("nan")}), "it is no JSON: Out of range", "JSON schema"),
    (lambda s: s.gen("x", dtype="int"), "dtype is 'int'", "int, float, bool or str"),
    (lambda s: s.gen("x", dtype=list), "dtype is <class 'list'>", "int, float, bool or str"),
    (lambda s: s.gen("x", grammar=" "), "grammar is ' '", "in the syntax of Lark"),
    (lambda s: s.gen("x", regex="a", dtype=int), "gen has both regex and dtype", "at most one"),
    (lambda s: s.gen("x", grammar="a", schema={}), "gen has both grammar and schema", "at most one"),
    (lambda s: s.gen("x", schema={}, whitespace="some"), "whitespace is 'some'", "'compact', 'flexible'"),
    (lambda s: s.gen("x", regex="a", whitespace="flexible"), "gen has whitespace, but no schema", "leave it out"),
    (lambda s: s.gen("x", whitespace="compact"), "gen has whitespace, but no schema", "leave it out"),
    (lambda s: s.gen("x", schema={}, parse="no"), "parse is 'no'", "True, or False"),
    (lambda s: s.gen("x", regex="a", parse=False), "gen has parse=False, but neither schema nor dtype", "leave it out"),
    (lambda s: s.gen("x", parse=False), "gen has parse=False, but neither schema nor dtype", "leave it out"),
    (lambda s: s.gen("x", regex="a", jump_forward="fast"), "jump_forward is 'fast'", "'exact', 'canonical', 'off'"),
    (lambda s: s.gen("x", jump_forward="exact"), "gen has jump_forward, but no constraint", "leave it out"),
    (lambda s: s.append(gen("x", jump_forward="off")), "gen has jump_forward, but no constraint", "leave it out"),
    (lambda s: s.gen(3), "the name 3", "not empty"),
    (lambda s: s.gen(""), "the name ''", "not empty"),
    (lambda s: s.select("x", []), "select has no choices", "none of them empty"),
    (lambda s: s.select("x", ["a", ""]), "an empty choice can't be scored", "none of them empty"),
    (lambda s: s.select("x", "ab"), "choices is 'ab'", "a list of texts"),
    (lambda s: s.select("x", [1]), "a choice is no text", "a list of texts"),
    (lambda s: s.select("x", ["a"], method="best"), "unknown select method 'best'", "known: 'token_length_normalized'"),
    (lambda s: s.select("x", ["a"], "greedy_tokens"), "unknown select method", "did you mean 'greedy_token'?"),
    (lambda s: s.fork(-1), "fork(-1)", "at least 0"),
    (lambda s: s.fork("2"), "fork('2')", "whole number"),
    (lambda s: s.fork(2)[1.5], "branches[1.5]", "by number"),
    (lambda s: s.fork(2).__setitem__(0, s), "a branch can't be replaced", "branches[i] +="),
    (lambda s: s.append(3), "the program appends an int", "str(value)"),
    (lambda s: s.append(None), "the program appends a NoneType", "append by themselves"),
    (lambda s: s.append(user(2.5)), "a user message holds a float", "str(value)"),
    (lambda s: s.append(user(system("x"))), "a user message holds another message", "one after the other"),
    (lambda s: s.append(user("a" + system("x"))), "a user message holds another message", "one after the other"),
    (lambda s: s["y"], "the state has no variable 'y'", "none is there yet"),
    (lambda s: s.meta("y"), "the state has no variable 'y'", "none is there yet"),
    (lambda s: (s.gen("x", max_tokens=1), s.meta("x")), "'x' has no meta data", "logprobs"),
    (lambda s: (s.gen("score", max_tokens=1), s["scores"]), "no variable 'scores'", "did you mean 'score'?"),
    (lambda s: (s.append("text"), s.append(user("x"))), "a user message can't follow bare text", "use no roles at all"),
    (
        lambda s: (s.gen("x", max_tokens=1), s.system().__enter__()),
        "a system message can't follow bare text",
        "no roles",
    ),
]


@pytest.mark.parametrize(("act", "cause", "remedy"), REFUSALS)
def test_refusals_name_line_cause_and_remedy(act, cause, remedy):
    def program(s):
        act(s)

    with pytest.raises(CaptureError) as caught:
        eagerly(program)
    assert cause in caught.value.cause
    assert remedy in (caught.value.remedy or "")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert caught.value.location.line == act.__code__.co_firstlineno


def test_a_refusal_in_a_capture_is_a_break_at_its_line():
    def program(s, a: str):
        s += a
        s.gen("x", max_tokens=0)

    built = JittedFunction(program)
    (found,) = capture(built, bind(built, ("a",), {})).breaks
    assert "max_tokens is 0" in found.cause
    assert found.location is not None
    assert found.location.line == program.__code__.co_firstlineno + 2


def test_symbolic_numbers_are_named_by_their_type():
    def program(s, n: int):
        s += n

    built = JittedFunction(program)
    assert "the program appends an int" in capture(built, bind(built, (3,), {})).breaks[0].cause


def test_unknown_variables_are_key_errors_too():
    def program(s):
        try:
            s["x"]
        except KeyError as error:
            return isinstance(error, UnknownVariableError)

    assert eagerly(program).value is True


def test_a_state_is_not_iterable():
    def program(s):
        for _ in s:
            pass

    with pytest.raises(TypeError, match="not iterable"):
        eagerly(program)


def test_there_is_no_branch_past_the_end():
    with pytest.raises(IndexError, match="the fork has 2 branches, none at 2"):
        eagerly(lambda s: s.fork(2)[2])


def test_branches_are_a_sequence():
    def program(s):
        branches = s.fork(3)
        for index in range(3):
            branches[index] += str(index)
        return len(branches), [branch.text() for branch in branches[1:]], branches[-1].text(), repr(branches)

    assert eagerly(program).value == (3, ["1", "2"], "2", "<3 branches>")


def test_all_spellings_of_a_message_are_the_same():
    def calls(s):
        s += system("a")
        s += user("b")
        s += assistant("c" + gen("x", max_tokens=3))

    def methods(s):
        s.system("a")
        s.user("b")
        with s.assistant():
            s += "c"
            s.gen("x", max_tokens=3)

    assert eagerly(calls).text == eagerly(methods).text


def test_appended_objects_do_what_the_methods_do():
    def objects(s):
        s += "q " + gen("x", max_tokens=3) + " " + select("y", ["a", "b"], method="greedy_token")

    def methods(s):
        s += "q "
        s.gen("x", max_tokens=3)
        s += " "
        s.select("y", ["a", "b"], method="greedy_token")

    assert eagerly(objects).variables == eagerly(methods).variables
    assert eagerly(objects).text == eagerly(methods).text


def test_options_reach_the_op():
    def program(s):
        s += "x"
        s.gen(
            "a", max_tokens=7, min_tokens=2, stop="\n", stop_token_ids=[3], temperature=1, top_p=0.5, top_k=4,
            min_p=0.1, seed=9, logprobs=True, frequency_penalty=1, presence_penalty=-0.5, repetition_penalty=1.5,
            logit_bias={7: 2, 3: -100.0},
        )  # fmt: skip
        s.gen("b", n=3, stop=("x", "y"))
        s.select("c", ("p", "q"))

    (gen_op,) = [op for op in captured_ops(program) if type(op) is GenOp]
    assert (gen_op.max_tokens, gen_op.min_tokens, gen_op.stop, gen_op.stop_token_ids) == (7, 2, ("\n",), (3,))
    assert (gen_op.temperature, gen_op.top_p, gen_op.top_k, gen_op.min_p, gen_op.seed) == (1.0, 0.5, 4, 0.1, 9)
    assert (gen_op.frequency_penalty, gen_op.presence_penalty, gen_op.repetition_penalty) == (1.0, -0.5, 1.5)
    assert (gen_op.logprobs, gen_op.logit_bias) == (0, ((3, -100.0), (7, 2.0)))
    (sample_op,) = [op for op in captured_ops(program) if type(op) is SampleOp]
    assert (sample_op.n, sample_op.stop, sample_op.max_tokens) == (3, ("x", "y"), 256)
    (select_op,) = [op for op in captured_ops(program) if type(op) is SelectOp]
    assert select_op.choices == ("p", "q")


def test_options_may_follow_from_the_arguments():
    def program(s, n: int, marks: list[str]):
        s.gen("a", max_tokens=n, stop=marks)

    (op,) = [op for op in captured_ops(program, 5, ["\n", "."]) if type(op) is GenOp]
    assert (op.max_tokens, op.stop) == (5, ("\n", "."))


def test_constraints_are_carried_once():
    import pydantic

    class Answer(pydantic.BaseModel):
        score: int

    def program(s):
        s += "x"
        s.gen("a", regex="[a-z]+")
        s.gen("b", regex="[a-z]+")
        s.gen("c", schema=Answer)
        s.gen("d", schema={"title": "T", "type": "object"})
        s.gen("e", dtype=int)
        s.gen("f", choices=["p", "q"])
        s.gen("g", n=2, dtype=float)
        s.gen("h", schema={"type": "object"})
        s.gen("i", schema=Answer, whitespace="flexible", jump_forward="canonical")
        s.gen("j", grammar='start: "x"')
        s.gen("k", dtype=str, jump_forward="off")
        s += gen("l", choices=["p", "q", "p"])

    built = JittedFunction(program)
    module = capture(built, bind(built, (), {})).module
    assert [(found.kind, found.text) for found in module.constraints][:1] == [("regex", "[a-z]+")]
    assert [found.kind for found in module.constraints] == [
        "regex",
        "schema",
        "schema",
        "dtype",
        "choices",
        "dtype",
        "schema",
        "schema",
        "grammar",
    ]
    assert module.constraints[4].text == '["p","q"]'
    assert [found.whitespace for found in module.constraints][-2:] == ["flexible", "compact"]
    (flexible,) = [op for op in module.main.body.ops if type(op) is GenOp and op.id == "program/i"]
    assert (flexible.jump_forward, flexible.constraint) == ("canonical", "c7")
    types = [str(op.results[-1].type) for op in module.main.body.ops if type(op) in (GenOp, SampleOp)]
    kinds = ["text", "text", "json<Answer>", "json<T>", "int", "text", "list<!float>", "json<schema>", "json<Answer>"]
    assert types == [f"!{kind}" for kind in (*kinds, "text", "text", "text")]
    with pytest.raises(InputError, match="this run was given nothing that compiles it"):
        eagerly(program)


def test_ids_are_those_of_the_design():
    def inner(s):
        s.gen("i", max_tokens=1)
        s.gen(max_tokens=1)

    sub = JittedFunction(inner)

    def judge(s):
        s += "x"
        s.gen("v", max_tokens=1)
        s.gen("v", max_tokens=1)
        s.gen(max_tokens=1)
        s.gen(max_tokens=1)
        s.select(None, ["a"])
        first = s.fork(2)
        first[1].gen("j", max_tokens=1)
        second = first[0].fork(1)
        second[0].gen("j", max_tokens=1)
        s.fork(1)[0].gen("j", max_tokens=1)
        s.copy().gen("k", max_tokens=1)
        sub()
        sub()
        sub.on_state(s)
        s.gen("a/b", max_tokens=1)
        s.gen("2*$a", max_tokens=1)

    ids = [
        "judge/v", "judge/v#1", "judge/gen", "judge/gen#1", "judge/select", "judge/fork/1/j", "judge/fork/0/fork/0/j",
        "judge/fork#1/0/j", "judge/copy/k", "judge/inner/i", "judge/inner/gen", "judge/inner#1/i", "judge/inner#1/gen",
        "judge/inner#2/i", "judge/inner#2/gen", "judge/a%2Fb", "judge/2%2A%24a",
    ]  # fmt: skip
    found = [op.id for op in captured_ops(judge) if isinstance(op, GenOp | SelectOp)]
    assert found == ids
    built = JittedFunction(judge)
    session = EagerSession(ToyEngine())
    run_eager(built, bind(built, (), {}), session)
    assert list(session.profile) == ids
