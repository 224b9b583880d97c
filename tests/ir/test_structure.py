from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.builtins import structure
from lmc.ir.errors import InputError


class Leaf:
    """Stands for what is known at run time only."""

    def __init__(self, index: int) -> None:
        self.index = index


def nesting(value: Any) -> Any:
    """``value`` as ``structure`` describes it."""
    if isinstance(value, Leaf):
        return {"leaf": value.index}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [nesting(part) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[nesting(key), nesting(part)] for key, part in value.items()]}
    return {"literal": value}


def fill(value: Any, leaves: list[str]) -> Any:
    """What building should give."""
    if isinstance(value, Leaf):
        return leaves[value.index]
    if isinstance(value, list | tuple):
        return type(value)(fill(part, leaves) for part in value)
    if isinstance(value, dict):
        return {key: fill(part, leaves) for key, part in value.items()}
    return value


literals = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3))
results = st.recursive(
    st.one_of(literals, st.integers(0, 3).map(Leaf)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=2), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)
LEAVES = ["a", "b", "c", "d"]


@given(results)
def test_a_result_is_built_as_it_was_written(value: Any):
    text = structure.canonical(nesting(value))
    built = structure.build(text, LEAVES)
    assert repr(built) == repr(fill(value, LEAVES))
    assert 0 <= structure.leaf_count(text) <= 4
    assert text == json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def test_leaves_are_counted_by_their_highest_index():
    assert structure.leaf_count('{"list":[{"leaf":2},{"leaf":0}]}') == 3
    assert structure.leaf_count('{"literal":1}') == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "1",
        "[]",
        "{}",
        '{"leaf":0,"literal":1}',
        '{"set":[]}',
        '{"list":1}',
        '{"tuple":{}}',
        '{"dict":[[1]]}',
        '{"dict":[1]}',
        '{"dict":[[{"list":[]},{"literal":1}]]}',
        '{"leaf":"a"}',
        '{"leaf":-1}',
        '{"list":[' * 200 + "]}" * 200,
        "[" * 100_000,
    ],
)
def test_what_is_no_structure_is_refused(text: str):
    with pytest.raises(InputError):
        structure.leaf_count(text)


@given(st.text(st.sampled_from('{}[]":,leafitrdc01 '), max_size=30))
def test_any_text(text: str):
    try:
        assert structure.leaf_count(text) >= 0
    except InputError:
        return
