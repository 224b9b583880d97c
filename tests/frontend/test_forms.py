"""Control flow that is spelt out: the same plain, captured and continued, and captured or refused."""

# Programs as users write them.
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

import pytest

import lmc
from lmc.frontend.capture import capture
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.ir.dialects.region_ops import CondOp, LoopOp, MapOp, RaceOp
from lmc.ir.engine.toy import ToyEngine
from tests.frontend.harness import at_the_end, check, effect, run_captured, run_plain

INPUTS = ("hello", "x", "abc", "what is this", "t", "u", "")


@lmc.tool(effect="reads")
def search(text: str) -> list[str]:
    return [f"{text}{index}" for index in range(len(text) % 4)]


@lmc.jit
def judged(s, text: str):
    s += text
    x = s.gen("v", max_tokens=3, temperature=1.0)
    if "e" in x:
        return f"good {x}"
    return s.gen("w", max_tokens=2, temperature=1.0)


def look(branch, word):
    branch += word
    effect("look", word)
    return branch.gen("l", max_tokens=2, temperature=1.0), judged(word)


@lmc.jit
def over_generated(s, q: str):
    s += q
    words = s.gen("x", max_tokens=6).split("e")
    found = lmc.map(lambda w: judged(w), words)
    both = lmc.map(lambda w, f: w + f, ["a", "b"], found)
    s += "|".join(found)
    found.append(s.gen("y", max_tokens=2))
    return found, both, len(found)


@lmc.jit
def on_branches(s, q: str):
    s += q
    s += "|"
    found = lmc.map(look, search(q), on=s)
    again = lmc.map(look, ["a", "b"], on=s)
    for a, b in found:
        s += a + b
    effect("end")
    return found, again, s.gen(max_tokens=2)


@lmc.jit
def over_an_argument(s, words: list[str]):
    kinds = lmc.map(lambda word: lmc.cond(word, lambda: judged(word), lambda: "empty"), words)
    s += ", ".join(kinds)
    return s.gen(max_tokens=3), kinds


@lmc.jit
def nested(s, q: str):
    s += q
    lines = s.gen("x", max_tokens=8).split("e")
    return lmc.map(lambda line: lmc.map(lambda letter: judged(letter + q), list(line)), lines)


@lmc.jit
def races(s, q: str):
    s += q
    words = s.gen("x", max_tokens=6).split("e")
    first = lmc.race(lambda w: judged(w), words, good=lambda x: "good" in x, default="none")
    s += first
    second = lmc.race(lambda b, w: (b.gen(max_tokens=2), w)[0], ["p", "q"], good=lambda x: len(x) > 1, on=s)
    return first, second


@lmc.jit
def rounds(s, q: str):
    s += q

    def body(n, text, texts):
        s.user(text)
        return n + 1, s.gen("t", max_tokens=3), [*texts, text]

    n, text, texts = lmc.while_loop(lambda n, text, texts: "e" not in text and n < 5, body, 0, "start", [])
    end = lmc.cond("e" in text, lambda: s.gen("p", max_tokens=2), lambda: n)
    return n, text, texts, end, lmc.while_loop(lambda k: k < 3, lambda k: (k + 1,), 0)


def drop(found):
    effect("drop", found.pop() if found else None)
    return "dropped"


@lmc.jit
def over_a_list_that_is_changed(s, q: str):
    s += q
    found = search(q)
    words = lmc.map(lambda w: w + drop(found), found)
    more = search(q)
    again = lmc.map(lambda w: w + "!", more)
    drop(more)
    return words, again, s.gen(max_tokens=2)


PROGRAMS = [
    (over_generated, MapOp),
    (on_branches, MapOp),
    (nested, MapOp),
    (races, RaceOp),
    (rounds, LoopOp),
    (over_a_list_that_is_changed, MapOp),
]


@pytest.mark.parametrize("text", INPUTS)
@pytest.mark.parametrize(("program", "kind"), PROGRAMS, ids=[program.name for program, _ in PROGRAMS])
def test_plain_and_captured_agree(program, kind, text):
    if program is races:
        captured = capture(program, bind(program, (text,), {}))
        graph, plain = run_captured(captured, (text,), {}), run_plain(program, (text,), {})
        assert (graph.end, graph.effects) == (plain.end, plain.effects)
    else:
        captured = check(program, (text,))
    assert not captured.breaks
    assert any(isinstance(op, kind) for op in captured.module.main.body.ops)


@pytest.mark.parametrize("program", [p for p, _ in PROGRAMS if p is not races], ids=lambda program: program.name)
def test_continuations_find_what_elements_and_rounds_did(program):
    for text in INPUTS:
        assert check(program, (text,), stop_before=at_the_end).breaks


def test_one_graph_for_lists_of_any_length():
    captured = check(over_an_argument, (["a", "", "text"],))
    assert not captured.guards
    for words in ([], ["one"], ["x", "y", "", "z", "e"]):
        check(over_an_argument, (words,), captured=captured)
    (op,) = (op for op in captured.module.main.body.ops if isinstance(op, MapOp))
    assert any(isinstance(inner, CondOp) for inner in op.body.ops)


@lmc.jit
def shares_its_state(s, q: str):
    s += q
    return lmc.map(lambda w: s.gen(max_tokens=1) + w, s.gen("x", max_tokens=4).split("e"))


@lmc.jit
def shares_a_list(s, q: str):
    s += q
    found = []
    lmc.map(lambda w: found.append(w), s.gen("x", max_tokens=4).split("e"))
    return found


@lmc.jit
def writes_in_a_race(s, q: str):
    s += q
    return lmc.race(lambda w: effect(w) or w, s.gen("x", max_tokens=4).split("e"), good=lambda w: w)


@lmc.jit
def no_lists(s, q: str):
    s += q
    return lmc.race(lambda: s.gen(max_tokens=1), good=lambda w: w)


@lmc.jit
def objects(s, q: str):
    return lmc.race(lambda w: q, [s, s.copy()], good=lambda w: w)


@lmc.jit
def takes_in_some_order(s, q: str):
    s += q
    return lmc.cond("e" in s.gen(max_tokens=2), lambda: list({"a", "b"}), lambda: 0)


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        (shares_its_state, "lmc.map can't be captured: an element changes a state or an object"),
        (writes_in_a_race, "lmc.race can't be captured: an element of a race calls a function that may write"),
        (no_lists, "lmc.race can't be captured: there is no list to go over"),
        (objects, "lmc.race can't be captured: a list whose elements run at the same time holds states"),
        (takes_in_some_order, "lmc.cond can't be captured: the order of a set"),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_what_a_form_can_not_hold_is_refused_at_its_line(program, cause):
    with pytest.raises(lmc.CaptureError) as raised:
        capture(program, bind(program, ("hello",), {}))
    assert raised.value.cause.startswith(cause)
    assert raised.value.remedy
    assert raised.value.location is not None
    assert raised.value.location.file == __file__


def test_a_list_that_every_element_grows_is_captured():
    assert not check(shares_a_list, ("hello",)).breaks


@lmc.jit
def wrong_state(s, q: str):
    return lmc.while_loop(lambda a, b: a < 2, lambda a, b: (a + 1,), 0, q)


@lmc.jit
def empty_race(s, q: str):
    return lmc.race(lambda w: w, [], good=lambda w: w)


@lmc.jit
def misspelt_option(s, q: str):
    return lmc.race(lambda w: w, [q], god=lambda w: w)


@lmc.jit
def option_of_another_form(s, q: str):
    return lmc.map(lambda w: w, [q], good=lambda w: w)


@lmc.jit
def no_test(s, q: str):
    return lmc.race(lambda w: w, [q])


@lmc.jit
def no_state(s, q):
    return lmc.map(lambda branch, w: w, [q], on=q)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (wrong_state, "it should give a tuple of 2 values"),
        (empty_race, "no elements"),
        (misspelt_option, "race() got an unexpected keyword argument 'god'"),
        (option_of_another_form, "map() got an unexpected keyword argument 'good'"),
        (no_test, "race() missing 1 required keyword-only argument: 'good'"),
        (no_state, "lmc.map(…, on=…) is given something else than a state"),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_misuse_raises_the_same_in_every_way(program, said):
    captured = check(program, ("a",))
    end = run_captured(captured, ("a",), {}).end
    assert end[0] == "raised"
    assert said in str(end)


def test_outside_of_a_program_forms_are_plain_python():
    assert lmc.map(lambda a, b: a + b, [1, 2], [3, 4, 5]) == [4, 6]
    assert lmc.race(lambda a: a * 2, [1, 2, 3], good=lambda a: a > 3) == 4
    assert lmc.race(lambda a: a * 2, [1, 2], good=lambda a: a > 9, default="none") == "none"
    assert lmc.while_loop(lambda n, text: n < 3, lambda n, text: (n + 1, text + "a"), 0, "") == (3, "aaa")
    assert lmc.cond([], lambda: 1, lambda: 2) == 2
    with pytest.raises(lmc.InputError, match="no elements"):
        lmc.race(lambda a: a, [], good=bool)
    with pytest.raises(TypeError, match="tuple of 1"):
        lmc.while_loop(lambda n: n < 1, lambda n: n + 1, 0)


@pytest.mark.parametrize("form", [lmc.map, lambda f, xs: lmc.race(f, xs, good=bool)], ids=["map", "race"])
def test_after_an_element_that_raised_ids_are_the_program_s_own(form):
    """Not those of the element, however long the exception is held."""

    def refuse(word):
        judged(word)
        raise ValueError(word)

    @lmc.jit
    def handling(s, words: list):
        try:
            form(refuse, words)
        except ValueError as error:
            kept = error
            judged("in the handler")
        judged("after it")
        return str(kept)

    session = EagerSession(ToyEngine())
    run_eager(handling, bind(handling, (["a"],), {}), session)
    programs = [op_id.rpartition("/")[0] for op_id in session.profile]
    assert list(dict.fromkeys(programs))[1:] == ["handling/judged", "handling/judged#1"]
