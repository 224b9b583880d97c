"""Loops that only a run ends: the graph does what plain Python does, however many rounds there are."""

import importlib
import pkgutil

import pytest

from lmc.frontend.arguments import bind
from lmc.frontend.function import JittedFunction
from lmc.ir.core import walk
from lmc.ir.region_ops import LoopOp, MapOp
from tests.frontend.corpus import loops
from tests.frontend.corpus.conditions.cases import INPUTS
from tests.frontend.corpus.host_functions import find
from tests.frontend.corpus.loops.cases import LOOPS
from tests.frontend.harness import check, effect, stop_at_the_end

for found in pkgutil.iter_modules(loops.__path__):
    importlib.import_module(f"{loops.__name__}.{found.name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("name", LOOPS)
def test_any_number_of_rounds_is_that_of_plain_python(name):
    case = LOOPS[name]
    inputs = [*case.inputs(), *INPUTS[:2]]
    first = check(case.program, inputs[0])
    for one in inputs[1:]:
        if first.matches(bind(case.program, one, {})):
            check(case.program, one, captured=first)
        else:
            check(case.program, one)
    causes = [found.cause for found in first.breaks]
    if case.stops is None:
        assert causes == []
        assert any(isinstance(op, LoopOp | MapOp) for op in walk([first.module.main.body]))
    else:
        assert causes
        assert all(case.stops in cause for cause in causes)


@pytest.mark.parametrize("name", [name for name, case in LOOPS.items() if case.stops is None])
def test_a_continuation_goes_the_same_rounds(name, monkeypatch):
    case = LOOPS[name]
    stop_at_the_end(monkeypatch)
    for one in case.inputs():
        assert check(case.program, one).breaks


def drop(items):
    return items.pop()


def gone_over_and_changed(s, a: str):
    s += a
    items = find(s.gen("x", max_tokens=3))
    out = ""
    for item in items:
        out += item
        s += s.gen("y", max_tokens=1)
    kept = list(items)
    effect(drop(items))
    return out, kept, items


def test_a_continuation_does_not_go_over_a_list_that_was_changed_since(monkeypatch):
    assert not check(JittedFunction(gone_over_and_changed), ("a",)).breaks
    stop_at_the_end(monkeypatch)
    (found,) = check(JittedFunction(gone_over_and_changed), ("a",)).breaks
    assert "drop() may change data that the program has read" in found.cause


def test_the_corpus_is_large_and_mostly_captured_whole():
    assert len(LOOPS) >= 120
    assert sum(case.stops is None for case in LOOPS.values()) >= 100


def key_of(text):
    for key in ("e", "h", "o"):
        if key in text:
            return key
    return None


@pytest.mark.parametrize("text", ["hello", "oh", "o", "a"])
def test_a_continuation_counts_the_rounds_that_a_break_left_out(text):
    @JittedFunction
    def program(s, a: str):
        found = s.gen("x", max_tokens=2) + a
        for key in ("e", "h", "o"):
            if key in found:
                break
            effect("not", key)
        effect("first", key, key_of(a))
        s.gen("y", max_tokens=2)
        number = hash(found) * 0
        effect("then", key, number)
        return s.gen("z", max_tokens=2)

    captured = check(program, (text,))
    assert "hash" in captured.breaks[0].cause


@pytest.mark.parametrize("text", ["hello", "a"])
def test_a_continuation_counts_the_rounds_of_a_loop_that_a_capture_ends_in(text):
    @JittedFunction
    def program(s, a: str):
        found = s.gen("x", max_tokens=2) + a
        for key in ("e", "h", "o"):
            if key in found:
                break
            effect("not", key)
            if key == "h":
                effect(hash(key) * 0)
        effect("first", key)
        return s.gen("y", max_tokens=2)

    captured = check(program, (text,))
    assert "hash" in captured.breaks[0].cause
