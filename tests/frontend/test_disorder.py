"""What differs from one process to the next never gets into a graph."""

# Programs as users write them.
# ruff: noqa: C416, PLC0208, RUF015, SIM300, UP031, UP032

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from lmc.ir.module import print_module
from tests.frontend.harness import check

WORDS = {"alpha", "beta", "gamma", "delta"}
FROZEN = frozenset(WORDS)
NESTED = {"k": [WORDS]}
NUMBERS = {3, 1, 2}
MIXED = {1, "a", 2.5}
LAST = "z"  # a set of constants alone is made with the code: one made anew may have another order


@tool(effect="pure")
def count(words) -> int:
    return len(words)


def loops(s, a):
    for word in {"x", "y", LAST}:
        s += word


def joins(s, a):
    s += ",".join(WORDS)


def formats(s, a):
    s += f"{FROZEN}"


def formats_nested(s, a):
    s += f"{NESTED}"


def texts(s, a):
    s += str({word for word in ["x", "y", "z"]})


def represents(s, a):
    s += repr([WORDS])


def percents(s, a):
    s += "%s" % (WORDS,)


def fills_in(s, a):
    s += "{}".format(WORDS)


def unpacks(s, a):
    first, *_ = {"x", "y", LAST}
    s += first


def spreads(s, a):
    return [*WORDS]


def lists(s, a):
    return list(WORDS)[0], tuple(FROZEN)


def pops(s, a):
    s += set(WORDS).pop()


def takes_the_next(s, a):
    s += next(iter(WORDS))


def extends(s, a):
    words = [a]
    words.extend(WORDS)
    return words[1]


def adds(s, a):
    words = [a]
    words += WORDS
    return words[1]


def puts_in_a_slice(s, a):
    words = [a]
    words[1:] = WORDS
    return words[1]


def makes_keys(s, a):
    return dict.fromkeys(WORDS)


def enumerates(s, a):
    return [f"{index}{word}" for index, word in enumerate(WORDS)]


def sorts_by_key(s, a):
    return sorted(WORDS, key=len)


def has_greatest_by_key(s, a):
    return max(WORDS, key=len)


def joins_views(s, a):
    return f"{ {'a': 1, 'b': 2}.keys() | {'c': 1}.keys() }"


def hands_over(s, a):
    return count({"x", "y", "z"})


def looks_up_mixed(s, a):
    return [part for part in MIXED if part == 1]


def hashes(s, a):
    return hash("abc") % 2


def shows_an_address(s, a):
    return len(f"{count.function}") > 3 and len(repr(check)) > 3


ORDER = "the order of a set differs"
STOPPED = {
    **dict.fromkeys((loops, joins, formats, formats_nested, texts, represents, percents, fills_in, unpacks), ORDER),
    **dict.fromkeys((spreads, lists, pops, takes_the_next, extends, adds, puts_in_a_slice, makes_keys), ORDER),
    **dict.fromkeys((enumerates, sorts_by_key, has_greatest_by_key, joins_views, hands_over, looks_up_mixed), ORDER),
    shows_an_address: "holds its address",
}


@pytest.mark.parametrize("function", STOPPED)
def test_a_capture_ends_where_the_order_counts(function):
    (found,) = check(JittedFunction(function), ("alpha",)).breaks
    assert STOPPED[function] in found.cause
    assert found.location is not None
    assert found.location.file == __file__
    assert found.remedy


def order_does_not_count(s, a):
    assert a in WORDS
    s += f"{sorted(WORDS)} {len(WORDS)} {min(WORDS)} {max(FROZEN)} {any(WORDS)} {all({'', 'x'})}"
    s += f"{WORDS | {'q'} == WORDS} {WORDS >= {'beta'}} {'alpha' in set(WORDS)} {sorted({'b', 'c'} - {'c'})}"
    s += f"{[number for number in NUMBERS]} {sum(NUMBERS)} {hash((1, 2.5))} {[x for x in {'one'}]}"
    kept = [WORDS]
    kept.append({"x", "y"})
    s += s.gen("g", max_tokens=2)
    return s["g"] in WORDS, s["g"] in MIXED, len(kept), kept.count(WORDS)


def test_what_does_not_depend_on_the_order_is_captured():
    assert check(JittedFunction(order_does_not_count), ("alpha",)).breaks == ()


def test_a_hash_is_that_of_the_process_that_runs():
    assert check(JittedFunction(hashes), ("alpha",)).breaks == ()


def modules() -> str:
    """The modules of every program here."""
    texts_of: list[str] = []
    for function in (*STOPPED, hashes, order_does_not_count):
        program = JittedFunction(function)
        captured = capture(program, bind(program, ("alpha",), {}))
        texts_of += [print_module(captured.module), *map(str, captured.breaks)]
    return "\n".join(texts_of)


def test_modules_are_the_same_in_every_process():
    root = Path(__file__).resolve().parents[2]
    found: list[Any] = []
    for seed in ("1", "2"):
        command = [sys.executable, "-c", "from tests.frontend import test_disorder; print(test_disorder.modules())"]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
        found.append(done.stdout)
    assert found[0] == found[1]
    assert "module @order_does_not_count" in found[0] or "order_does_not_count" in found[0]
