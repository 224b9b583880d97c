from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.token_masks import allowed_ids, allows, mask_without

ids = st.sets(st.integers(0, 99))


def mask_of(tokens: set[int]) -> np.ndarray:
    mask = np.zeros(4, np.uint32)
    for token in tokens:
        mask[token // 32] |= np.uint32(1 << token % 32)
    return mask


@given(ids, st.sets(st.integers(0, 200)))
def test_masks_are_sets(tokens: set[int], others: set[int]):
    mask = mask_of(tokens)
    assert allowed_ids(mask) == sorted(tokens)
    assert {token for token in range(300) if allows(mask, token)} == tokens
    rest = allowed_ids(mask_without(mask, others))
    assert rest == sorted(tokens - others or tokens)
    assert allowed_ids(mask) == sorted(tokens)
