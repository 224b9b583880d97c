"""Random programs that take lists out of an argument by keys of the run: what the caller sees is as in plain Python."""

from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from tests.frontend.harness import check
from tests.frontend.strategies import load

FULL = settings.default.max_examples > 100  # type: ignore[union-attr]
HEADER = """
from lmc.frontend.program.function import JittedFunction as jit


def missing_of(groups):
    return {name: set(items) for name, items in groups.items()}


def joined(items, end="."):
    return "-".join(items) + end


@jit
"""
KEYS = ("s.select('k', ['a', 'b'])", "s.gen('g', max_tokens=1)", "'a'", "(s['k'] if 'k' in s else 'b')")
LISTS = ("groups[{key}]", "groups.get({key}, ['none'])", "rows[len({text}) % 2]", "groups['a']", "rows[0]")
READS = (
    "joined({x})",
    "str({x} == {y})",
    "str(len({x}))",
    "str([q + '!' for q in {x}])",
    "str(sorted({x})[:1])",
    "str({text} in {x})",
    "str(sorted(missing_of(groups)))",
    "(list({x}) or ['-'])[0]",
    "str(set({x}).issubset({y}))",
)
CHANGES = (
    "{x}.append({text})",
    "{x} += [{text}]",
    "{x}[:] = []",
    "{x}.sort()",
    "own.extend({x})",
    "own.append(str({x}))",
)


@st.composite
def sources(draw: Any) -> str:
    """Source of ``program(s, groups, rows)``."""
    lists, texts, lines = ["own"], ["'t'"], ["own = []", "s += 'x'"]
    for number in range(draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(["list", "list", "read", "read", "if", "change", "is"]))
        form = draw(st.sampled_from({"list": LISTS, "read": READS, "if": READS, "change": CHANGES, "is": READS}[kind]))
        values = {"key": draw(st.sampled_from(KEYS)), "text": draw(st.sampled_from(texts))}
        values |= {name: draw(st.sampled_from(lists[-2:])) for name in "xy"}
        made = form.format(**values)
        if kind == "list":
            lines.append(f"x{number} = {made}")
            lists.append(f"x{number}")
        elif kind == "read":
            lines.append(f"t{number} = {made}")
            texts.append(f"t{number}")
        elif kind == "if":
            x, y = values["x"], values["y"]
            lines += [f"if s.gen('i', max_tokens=1, temperature=1.0) > 'h': {y} = {x}", f"s += {made}"]
        elif kind == "change":
            lines.append(draw(st.sampled_from(["", "", "if 'e' in s.text(): "])) + made)
        else:
            lines.append(f"s += str({values['x']} is {values['y']})")
    lines.append(f"return [{', '.join(texts)}], {draw(st.sampled_from(['own', 'list(own)', lists[-1]]))}")
    return "\n".join(
        ["def program(s, groups: dict[str, list[str]], rows: list[list[str]]):", *("    " + x for x in lines)]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("programs")


def test_lists_of_an_argument_stay_those_of_the_caller(folder: Any):
    words = st.lists(st.sampled_from(["e", "q", "ab"]), max_size=3)

    @settings(max_examples=1_500 if FULL else 60, deadline=None)
    @given(source=sources(), first=words, second=words)
    def run(source: str, first: list[str], second: list[str]):
        note(source)
        program = load(HEADER + source, folder).program
        left: list[Any] = []

        def make() -> tuple[Any, ...]:
            left[:] = [{"a": list(first), "b": list(second)}, [list(second), list(first)]]
            return tuple(left)

        found = capture(program, bind(program, make(), {}))
        check(program, make, captured=found, watch=lambda: left)

    run()
