"""Plain functions that a program hands its state: they are parts of it, in every way of running it."""

from typing import Any

import lmc
from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.dialects.core_ops import GenOp
from tests.frontend.harness import check, effect

TONE = "friendly"


def ask(s, question, *, tokens=4):
    s += lmc.user(f"{question} ({TONE})")
    s.gen("answer", max_tokens=tokens)
    return s["answer"]


def fork_and_ask(s, questions):
    branches = s.fork(len(questions))
    for branch, question in zip(branches, questions, strict=True):
        ask(branch, question)
    return branches


def gather(branches, kept=[]):  # noqa: B006 - what a default holds is asked for
    return [*kept, *(branch["answer"] for branch in branches)]


def keep(s, kept=[]):  # noqa: B006
    kept.append(s["answer"])
    return list(kept)


def texts_of(states):
    effect("texts_of", len(states))
    return [state.text() for state in states]


def countdown(s, number):
    s += f"{number} "
    if number > 0:
        countdown(s, number - 1)


def answers_one_by_one(s, questions):
    for question in questions:
        yield ask(s, question)


def jitted(program):
    return JittedFunction(program)


def test_a_helper_is_captured_where_it_is_called():
    @jitted
    def program(s, question: str):
        return ask(s, question, tokens=6) + ask(s, "Really?")

    assert not check(program, ("Why?",)).breaks


def test_helpers_call_helpers_and_give_handles():
    @jitted
    def program(s, a: str, b: str):
        s += lmc.system("Be brief.")
        branches = fork_and_ask(s, [a, b])
        for branch in reversed([branches[0], branches[1]]):
            ask(branch, "And?")
        return gather(branches)

    captured = check(program, ("Why?", "How?"))
    assert not captured.breaks
    assert len({op.id for op in captured.module.main.body.ops if isinstance(op, GenOp)}) == 4


def test_a_helper_of_several_states_runs_its_effects_once():
    @jitted
    def program(s, a: str):
        s += a
        other = s.copy()
        other += "!"
        return texts_of([s, other])

    assert not check(program, ("x",)).breaks


def test_recursion_of_a_helper():
    @jitted
    def program(s):
        countdown(s, 3)
        return s.text()

    captured = check(program)
    assert not captured.breaks


def test_a_global_that_a_helper_reads_is_guarded(monkeypatch):
    @jitted
    def program(s, question: str):
        return ask(s, question)

    bound = bind(program, ("Why?",), {})
    captured = capture(program, bound)
    assert captured.matches(bound)
    monkeypatch.setitem(globals(), "TONE", "cold")
    assert not captured.matches(bound)


def test_another_helper_of_that_name_is_guarded(monkeypatch):
    @jitted
    def program(s, question: str):
        return ask(s, question)

    bound = bind(program, ("Why?",), {})
    captured = capture(program, bound)
    monkeypatch.setitem(globals(), "ask", fork_and_ask)
    assert not captured.matches(bound)


def test_other_defaults_are_guarded(monkeypatch):
    @jitted
    def program(s, question: str):
        return ask(s, question)

    bound = bind(program, ("Why?",), {})
    captured = capture(program, bound)
    monkeypatch.setattr(ask, "__kwdefaults__", {"tokens": 2})
    assert not captured.matches(bound)


def test_what_a_default_holds_changes_in_the_run():
    @jitted
    def program(s):
        s += "x"
        s.gen("answer", max_tokens=2)
        return len(keep(s)) > 0

    captured = capture(program, bind(program, (), {}))
    assert keep.__defaults__ == ([],)
    assert not check(program, captured=captured).breaks
    assert keep.__defaults__
    keep.__defaults__[0].clear()


def test_a_generator_with_a_state_is_captured():
    @jitted
    def program(s, question: str):
        return list(answers_one_by_one(s, [question, "And?"]))

    assert not check(program, ("Why?",)).breaks


def test_a_break_inside_a_helper_goes_on_from_there():
    def decides(s, question):
        effect("asked", question)
        answer = ask(s, question)
        if "e" in answer:
            effect("e", answer)
        return answer

    @jitted
    def program(s, question: str):
        first = decides(s, question)
        return first + ask(s, "And?")

    check(program, ("Why?",))


def test_a_wrong_call_of_a_helper_raises_in_pythons_words():
    @jitted
    def program(s):
        s += "x"
        ask_wrongly: Any = ask
        return ask_wrongly(s)

    check(program)  # the same TypeError in every way of running


def test_a_lambda_that_takes_a_state_runs_as_plain_python():
    @jitted
    def program(s):
        add(s)
        return s.text()

    check(program)


add = lambda s: s.append("x")  # noqa: E731


def test_defaults_that_are_replaced_are_those_of_the_next_run():
    def tagged(text, tag="old"):
        return f"{text} {tag}"

    @jitted
    def program(s):
        return tagged(s.gen("x", max_tokens=2))

    before = check(program)
    tagged.__defaults__ = ("new",)
    assert not before.matches(bind(program, (), {}))
    check(program)
