from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.index import store
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.indexing import build_index
from lmc.grammar.index.store import check_index
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from tests.grammar.test_index import NATIVE, device_step
from tests.grammar.token_cases import byte_tokens


def sample() -> TokenIndex:
    automaton = Automaton.of_strings([b"abc", b"abd", b"xy"])
    return build_index(automaton, Vocabulary([*byte_tokens([b"ab"]), b"<end>"], (), 257))


def checked(index: TokenIndex, native: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not native:
            patch.setattr(store, "library", lambda: None)
        check_index(index, (257,))


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("name", [*TokenIndex.__dataclass_fields__])
@given(data=st.data())
def test_whatever_passes_the_check_can_be_asked_anything(name: str, native: bool, data: st.DataObject) -> None:
    index = sample()
    array = getattr(index, name).astype(np.int64)
    at = data.draw(st.integers(0, len(array) - 1))
    array[at] = data.draw(
        st.sampled_from([-2, -1, 0, 1, 2, 5, 255, 256, 257, 300, 70_000]) | st.just(int(array[at]) + 1)
    )
    changed = replace(index, **{name: array[: data.draw(st.sampled_from([len(array), len(array) - 1]))]})
    try:
        checked(changed, native)
    except ValueError:
        return
    for state in range(len(changed)):
        assert 0 <= state + int(changed.forced_delta[state]) < len(changed)
        assert len(changed.words(changed.mask_of(state))) == 9
        changed.forced_bytes(state)
        for token in range(len(changed.class_of_token)):
            assert -1 <= changed.step(state, token) < len(changed)
    tables = changed.device_tables()
    for state in range(len(changed)):
        for token in range(0, len(changed.class_of_token), 7):
            device_step(tables, state, token)


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_of_state": np.zeros(0, np.uint8)}, "no state"),
        ({"row_of_state": np.full(7, 99, np.uint8)}, "a row that is not there"),
        ({"shape_of_row": np.full(5, 99, np.uint8)}, "a shape that is not there"),
        ({"shape_of_row": np.zeros(1, np.uint8), "row_of_state": np.zeros(7, np.uint8)}, "rows"),
        ({"mask_of_shape": np.arange(99).astype(np.uint8)}, "shapes"),
        ({"mask_of_shape": np.full(5, 9, np.uint8)}, "a mask that is not there"),
        ({"mask_of_shape": np.full(5, 4, np.uint8)}, "a mask that no shape has"),
        ({"blocks": np.zeros((2, 2), np.uint8)}, "arrays of integers"),
        ({"blocks": np.zeros(2, np.float32)}, "arrays of integers"),
        ({"blocks": np.full(5, 99, np.uint8)}, "a block that is not there"),
        ({"bits_of_block": np.ones(5, np.int64)}, "arrays of integers"),
        ({"bits_of_block": np.zeros(5, np.uint32)}, "a block without classes"),
        ({"bits_of_block": np.full(5, 1, np.uint32)}, "tokens that are never allowed"),
        ({"column_of_block": np.zeros(1, np.uint8)}, "columns"),
        ({"column_of_block": np.full(5, 200, np.uint8)}, "a class that is not there"),
        ({"block_starts": np.array([0, 0, 0, 0, 0, 5])}, "blocks that are not"),
        ({"places": np.zeros(99, np.uint8)}, "places"),
        ({"places": np.full(8, 99, np.uint8)}, "a place that is not there"),
        ({"places": np.full(8, -1, np.int8)}, "a place that is not there"),
        ({"deltas": np.zeros(0, np.int8)}, "bounds"),
        ({"target_starts": np.array([0, 3, 2, 5, 7, 8])}, "bounds that fall"),
        ({"deltas": np.zeros(8, np.int8)}, "targets that are not ascending"),
        ({"class_of_token": np.full(258, 9_999, np.uint16)}, "a class that is not there"),
        ({"class_of_token": np.zeros(258, np.uint16)}, "other EOS tokens"),
    ],
)
def test_what_is_wrong_with_an_index_is_said(changes: dict[str, np.ndarray], message: str, native: bool) -> None:
    with pytest.raises(ValueError, match=f"not a token index: ({message})"):
        checked(replace(sample(), **changes), native)
