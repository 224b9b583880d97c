"""Operators on containers and on objects whose special methods log each call, at every level."""

from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given, note

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from tests.driver.levels import LEVELS, run_at
from tests.frontend.harness import run_plain
from tests.frontend.operator_strategies import OPERATORS_HEADER, operator_arguments, operator_programs
from tests.frontend.strategies import load

WRITES = frozenset({"give", "change", "plain", "contained"})
"""First values of effects of functions that may write; those of special methods count as reads."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@given(made=operator_programs(), args=operator_arguments())
def test_random_operators_agree_at_every_level(folder, made, args):
    source, given_name = made
    note(source)
    module = load(OPERATORS_HEADER + source, folder)

    def fresh():
        module.restore()
        return (*args, module.LIVE[given_name])

    captured = capture(module.program, bind(module.program, fresh(), {}))
    plain = run_plain(module.program, fresh(), {})
    for level in LEVELS:
        found = run_at(level, captured, fresh(), {})
        assert found.end == plain.end, level
        if plain.end[0] == "gave":
            assert _in_order(found.effects) == _in_order(plain.effects), level
        else:  # reads that stand behind what raised may have begun
            assert _writes(found.effects) == _writes(plain.effects), level
            assert Counter(plain.effects) <= Counter(found.effects), level


def _in_order(effects):
    """``effects``, where reads between two writes may trade places."""
    found = []
    for writes, group in groupby(effects, lambda one: one[0] in WRITES):
        values = list(group)
        found += values if writes else sorted(values, key=repr)
    return found


def _writes(effects):
    return [one for one in effects if one[0] in WRITES]
