from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.tokens.tokens import common_length


@given(st.text("abc\u00e9", max_size=30), st.text("abc\u00e9", max_size=30))
def test_common_length(left: str, right: str):
    expected = next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )
    assert common_length(left, right) == expected
    assert common_length(tuple(left), tuple(right)) == expected
