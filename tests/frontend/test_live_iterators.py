"""What changes while a program iterates over it: the graph and its continuation do what plain Python does."""

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import LmcError
from tests.frontend.container_strategies import CONTAINERS_HEADER, container_programs
from tests.frontend.harness import EFFECTS, at_the_end, check
from tests.frontend.strategies import arguments, load

ASKED = "s.gen(dtype=bool, temperature=1.0)"
COMPILED_HEADER = CONTAINERS_HEADER.replace(
    "from lmc.frontend.program.function import JittedFunction as jit", "from lmc import jit"
)
TEXTS = ("hello", "x y", "a", "b", "12", "q", "no", "why")
FULL = settings.default.max_examples > 100  # type: ignore[union-attr]
FEW = TEXTS if FULL else TEXTS[:1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


def is_equal(folder, body: str) -> None:
    """Check that graph, continuation and plain Python agree on the program with this body, for several arguments."""
    source = "@jit\ndef program(s, a: str):\n    s += a\n" + textwrap.indent(body, "    ")
    program = load(CONTAINERS_HEADER + source, folder).program
    for text in FEW:
        captured = check(program, (text,))
        for other in FEW:
            if other != text and captured.matches(bind(program, (other,), {})):
                check(program, (other,), captured=captured)


def test_a_worklist_that_grows_under_a_condition_is_worked_through(folder):
    @JittedFunction
    def program(s, q: str):
        todo = [q]
        for t in todo:
            s += t
            if s.select("more", ["yes", "no"]) == "yes" and len(todo) < 4:
                todo.append(t + "!")
        return todo, s.text()

    for text in TEXTS:
        assert not check(program, (text,)).breaks


def test_a_worklist_by_index_is_captured_whole_and_worked_through(folder):
    @JittedFunction
    def program(s, q: str):
        todo, index = [q], 0
        while index < len(todo):
            s += todo[index]
            if s.gen(dtype=bool, temperature=1.0) and len(todo) < 4:
                todo.append(todo[index] + "!")
            index += 1
        return todo, s.text()

    for text in TEXTS:
        assert not check(program, (text,)).breaks


def test_a_copy_of_the_list_is_gone_over_in_the_graph(folder):
    @JittedFunction
    def program(s, q: str):
        todo = [q, "x"]
        for t in list(todo):
            s += t
            if s.gen(dtype=bool, temperature=1.0):
                todo.append(t + "!")
        return todo, s.text()

    for text in TEXTS:
        assert not check(program, (text,)).breaks


@pytest.mark.parametrize(
    "change",
    [
        "xs.append(x + '!')",
        "xs.pop()",
        "xs.pop(0)",
        "xs.insert(0, 'new')",
        "xs.remove(x)",
        "xs.clear()",
        "xs.sort()",
        "xs.reverse()",
        "xs[:] = ['u', 'v', 'w', 'z']",
        "xs[1:] = []",
        "del xs[0]",
        "xs += ['y']",
        "xs.extend(['y', 'z'])",
        "xs[len(xs):] = ['y']",
    ],
)
def test_every_change_in_an_arm_is_seen_by_the_loop(folder, change):
    is_equal(
        folder,
        f"""\
xs = ["z", a, "k"]
rounds = []
for x in xs:
    rounds.append(x)
    if {ASKED} and len(xs) < 5 and x in xs:
        {change}
return xs, rounds
""",
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("for x in xs:\n    s += x\n    ask_and_push(s, xs, x)", id="in a helper"),
        pytest.param(
            "for x in xs:\n    k = 0\n    while k < 2 and s.gen(dtype=bool, temperature=1.0):\n"
            "        k += 1\n        push(xs, x + '!')",
            id="in an inner while",
        ),
        pytest.param(
            "for x in xs:\n    for letter in s.gen('g', max_tokens=2, temperature=1.0)[:2]:\n        push(xs, letter)",
            id="in an inner loop over a generation",
        ),
        pytest.param(
            "for x in xs:\n    for y in xs:\n        if s.gen(dtype=bool, temperature=1.0): push(xs, y)",
            id="in a loop over the same list",
        ),
        pytest.param(
            "ys = xs\nbox = {'k': ys}\nfor x in xs:\n    if s.gen(dtype=bool, temperature=1.0): push(box['k'], x)",
            id="under another name",
        ),
        pytest.param(
            "for x in xs:\n    if s.gen(dtype=bool, temperature=1.0): push(xs, x)\n    if len(xs) > 4: break\n"
            "else:\n    s += 'all'",
            id="in a loop that breaks",
        ),
        pytest.param(
            "if s.gen(dtype=bool, temperature=1.0):\n    for x in xs:\n"
            "        if s.gen(dtype=bool, temperature=1.0): push(xs, x)",
            id="in a loop in an arm",
        ),
    ],
)
def test_a_change_is_seen_wherever_it_is_made(folder, body):
    is_equal(folder, f"xs = [a, 'b']\n{body}\nreturn xs, s.text()\n")


@pytest.mark.parametrize(
    "items",
    [
        "zip(xs, ['1', '2', '3', '4'])",
        "zip(xs, xs)",
        "enumerate(xs)",
        "enumerate(reversed(xs))",
        "zip(reversed(xs), xs)",
        "enumerate(iter(xs))",
        "enumerate(x for x in xs)",
        "enumerate(map(str.upper, xs))",
        "enumerate(filter(None, xs))",
        "enumerate(itertools.islice(xs, 3))",
        "itertools.pairwise(xs)",
        "zip(xs, itertools.count())",
    ],
)
@pytest.mark.parametrize("change", ["push(xs, 'y')", "drop(xs)", "front(xs, 'y')"])
def test_every_iterable_over_a_list_sees_its_changes(folder, items, change):
    is_equal(
        folder,
        f"""\
xs, rounds = [a, "b", "c"], []
for pair in {items}:
    rounds.append(pair)
    if s.gen(dtype=bool, temperature=1.0):
        {change}
return xs, rounds
""",
    )


@pytest.mark.parametrize(
    "made", ["iter(xs)", "reversed(xs)", "(x for x in xs)", "map(str.upper, xs)", "filter(None, xs)"]
)
@pytest.mark.parametrize(
    "body",
    [
        "if s.gen(dtype=bool, temperature=1.0):\n    {change}\nreturn [next(it, 'end') for _ in range(4)], xs",
        "first = next(it, 'end')\nif s.gen(dtype=bool, temperature=1.0):\n    {change}\nreturn first, list(it), xs",
        "if s.gen(dtype=bool, temperature=1.0):\n    first = next(it, 'end')\n    {change}\nelse:\n    first = 'none'\n"
        "return first, list(it), xs",
        "while s.gen(dtype=bool, temperature=1.0) and len(xs) < 5:\n    {change}\nreturn '-'.join(it), xs",
    ],
)
@pytest.mark.parametrize("change", ["xs.append('y')", "xs[:] = ['u', 'v', 'w', 'z', 'q']"])
def test_an_iterator_sees_what_changes_across_a_condition(folder, made, body, change):
    is_equal(folder, f"xs = [a, 'b']\nit = {made}\n" + body.format(change=change) + "\n")


@pytest.mark.parametrize(
    "made",
    [
        "[(ask_and_push(s, xs, x), x) for x in xs]",
        "[x for x in xs if ask_and_push(s, xs, x)]",
        "list((ask_and_push(s, xs, x), x) for x in xs)",
        "sorted(ask_and_push(s, xs, x) for x in xs)",
        "sum(ask_and_push(s, xs, x) for x in xs)",
        "{x: ask_and_push(s, xs, x) for x in xs}",
        "any(ask_and_push(s, xs, x) > 3 for x in xs)",
        "'-'.join(str(ask_and_push(s, xs, x)) for x in xs)",
        "all(ask_and_push(s, xs, x) < 4 for x in xs)",
        "list(map(lambda x: ask_and_push(s, xs, x), xs))",
        "[(x, y) for x in xs for y in xs if ask_and_push(s, xs, y)]",
        "max(xs, key=lambda x: ask_and_push(s, xs, x))",
        "min((x for x in xs), key=lambda x: ask_and_push(s, xs, x))",
        "sorted(xs, key=lambda x: ask_and_push(s, xs, x))",
    ],
)
def test_a_comprehension_sees_what_its_parts_change(folder, made):
    is_equal(folder, f"xs = [a, 'b']\nmade = {made}\nreturn made, xs, s.text()\n")


@pytest.mark.parametrize(
    "body",
    [
        "for key in d:\n    if {asked}:\n        d[key] = d[key] + '!'",
        "del d['p']\nfor key in d:\n    if {asked}:\n        d[key] = d[key] + '!'",
        "del d['p']\nfor key, value in d.items():\n    if {asked}:\n        d['r'] = value + '!'",
        "del d['p']\nfor value in d.values():\n    if {asked}:\n        d['r'] = value + '!'",
        "del d['p']\nfor key in reversed(d):\n    if {asked}:\n        d['q'] = key",
        "del d['p']\nit = iter(d)\nnext(it)\nif {asked}:\n    d['r'] = a\nseen.extend(it)",
        "for key in list(d):\n    if {asked}:\n        d.pop(key)",
        "for key in d:\n    if {asked}:\n        return d.pop(key), key\n    s += key",
        "try:\n    for key in d:\n        if {asked}:\n            d['new'] = key\nexcept RuntimeError as error:\n"
        "    seen.append(str(error))",
        "for key in d:\n    seen.append(key)\n    d['q'] = d.pop('q')\n    if len(seen) > 5: break",
        "try:\n    for key in d:\n        d['new'] = key\nexcept RuntimeError as error:\n    seen.append(str(error))",
        "it = iter(d.items())\nd['new'] = a\ntry:\n    next(it)\nexcept RuntimeError as error:\n"
        "    seen.append(str(error))",
    ],
)
def test_a_dict_is_gone_over_as_python_does(folder, body):
    start = "d, seen = {'p': a, 'q': 'b', 'r': 'c', 't': 'd'}, []\n"
    is_equal(folder, start + body.format(asked=ASKED) + "\nreturn list(d.items()), seen\n")


@pytest.mark.parametrize(
    "body",
    [
        "return max(xs, key=lambda x: len(push(xs, x))), xs",
        "return min(xs, key=lambda x: drop(xs)), xs",
        "return max((s.gen('g', max_tokens=2) for x in xs), key=lambda x: s.gen('k', max_tokens=1)), s.text()",
        "return max((s.gen('g', max_tokens=2) for x in ys), key=lambda x: s.gen('k', max_tokens=1)), s.text()",
        "return max(ys, key=lambda x: len(push(ys, x))), ys",
        "return sorted((s.gen('g', max_tokens=2) for x in ys), key=lambda x: s.gen('k', max_tokens=1)), s.text()",
        "return sorted(ys, key=lambda x: len(push(ys, x))), ys",
        "ys.sort(key=lambda x: len(ys))\nreturn ys",
        "ys.sort(key=lambda x: -len(x))\nreturn ys",
    ],
)
def test_keys_are_made_in_the_order_of_python(folder, body):
    start = f"xs, ys = [a, 'b', 'ccc'], ['u', 'zz']\nif {ASKED}:\n    ys.append(a)\n"
    is_equal(folder, start + body + "\n")


@pytest.mark.parametrize("change", ["xs.append('y')", "xs.pop()", "xs.clear()"])
def test_an_enumerate_that_is_older_than_a_change_sees_it(folder, change):
    is_equal(
        folder,
        f"""\
xs, seen = [a, "b"], []
if {ASKED}:
    xs.append("c")
pairs = enumerate(xs)
both = zip(xs, xs)
{change}
for index, x in pairs:
    seen.append(f"{{index}} {{x}}")
for x, y in both:
    seen.append(x + y)
return seen
""",
    )


@pytest.mark.parametrize("made", ["enumerate(xs)", "zip(xs, xs)", "reversed(xs)"])
def test_an_iterator_that_a_helper_or_an_arm_makes_sees_changes(folder, made):
    is_equal(
        folder,
        f"""\
xs, ys = [a, "b"], ["u"]

def items(xs):
    return {made}

pairs = items(xs)
if a:
    more = items(ys)
xs[0] = "z"
ys[0] = "w"
return list(pairs), list(more), xs
""",
    )


@pytest.mark.parametrize("function", ["any", "all"])
def test_nothing_is_asked_behind_the_item_that_decides(folder, function):
    source = f"""
def asked(s, x):
    if "e" in s.gen("g", max_tokens=2, temperature=1.0):
        effect(x)
        return "y"
    return s.gen("h", max_tokens=1, temperature=1.0)


@jit
def program(s, a: str):
    s += a
    return {function}("y" in asked(s, x) for x in [a, "p", "q"]), s.text()
"""
    program = load(CONTAINERS_HEADER + source, folder).program
    for number in range(12):
        check(program, (f"text {number}",))


def test_lists_of_several_arms_become_one():
    @JittedFunction
    def program(s, a: str):
        for _ in ["p", "q"]:
            if s.gen(dtype=bool, temperature=1.0):
                found = [q for q in ["u", a] if s.gen(dtype=bool, temperature=1.0)]
                s += str(len(found))
        return s.text()

    for text in TEXTS:
        assert not check(program, (text,)).breaks


def test_a_generation_for_each_of_a_list_that_nobody_changes_is_in_the_graph():
    @JittedFunction
    def program(s, a: str):
        xs, found = [a, "b"], []
        if s.gen(dtype=bool, temperature=1.0):
            xs.append("c")
        for index, x in enumerate(xs):
            s += f"{index} {x}"
            if s.gen(dtype=bool, temperature=1.0):
                found.append(s.gen("g", max_tokens=2))
        for key, value in {"p": a, "q": "b"}.items():
            s += key + value + s.gen("g", max_tokens=1)
        return found, xs, [x + "." for x in reversed(found)], max(xs, key=len)

    for text in TEXTS:
        assert not check(program, (text,)).breaks


@settings(max_examples=2_400 if FULL else 25)
@given(source=container_programs(), args=arguments(), other=arguments(), ends=st.booleans())
def test_random_programs_agree_whatever_they_change_while_they_look_at_it(folder, source, args, other, ends):
    note(source)
    program = load(CONTAINERS_HEADER + "@jit\n" + source, folder).program
    captured = check(program, lambda: (*args[:3], list(args[3])), stop_before=at_the_end if ends else None)
    note(str(captured.breaks))
    for given_too in (other, ("e" + other[0], *args[1:]), ("t", *args[1:])):
        if captured.matches(bind(program, (*given_too[:3], list(given_too[3])), {})):
            check(program, lambda given_too=given_too: (*given_too[:3], list(given_too[3])), captured=captured)


@settings(max_examples=500 if FULL else 10)
@given(source=container_programs(), args=arguments())
def test_random_programs_give_the_same_at_O2(folder, source, args):
    note(source)
    program = load(COMPILED_HEADER + "@jit\n" + source, folder).program.on("toy", level="O2")
    runs = [ended(lambda run=run: run(*args[:3], list(args[3]))) for run in (program.run, program.eager)]
    assert runs[0] == runs[1]


@JittedFunction
def changes_a_set_of_an_argument(s, a: str, words: list[str]):
    s += a
    seen = set(words)
    seen.add(s.gen("x", max_tokens=2))
    return sorted(seen)


def test_a_continuation_sees_what_a_method_did_to_a_set():
    args = ("t", ["b", "c"])
    assert not check(changes_a_set_of_an_argument, args).breaks
    assert check(changes_a_set_of_an_argument, args, stop_before=at_the_end).breaks


def ended(run: Callable[[], Any]) -> tuple[Any, ...]:
    """What ``run`` gave or raised, and the effects, those of different tools in any order."""
    EFFECTS.clear()
    try:
        result = run()
    except LmcError as error:
        return type(error), error.cause, sorted(map(repr, EFFECTS))
    except Exception as error:
        return type(error), str(error), sorted(map(repr, EFFECTS))
    return repr(result.value), result.variables, result.text, sorted(map(repr, EFFECTS))
