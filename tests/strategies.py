"""Hypothesis strategies shared by all tests: texts, names, literals, types and symbols.

``tests/module_strategies.py`` has any module that verifies, ``tests/program_strategies.py`` modules that run, with
their inputs.
"""

from __future__ import annotations

from hypothesis import strategies as st

from lmc.ir.core import WHITESPACE, Attribute
from lmc.ir.errors import Location
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, Type, json_of, list_of

# Whatever can be in a Python string, lone surrogates and control characters included.
any_text = st.text(st.characters(exclude_categories=()), max_size=12)
# What tends to break printers, parsers and tokenizers.
tricky_text = st.sampled_from(
    [
        "",
        '"',
        "\\",
        "\n",
        "\x00",
        "\ud83d\ude00",
        "\U0001f600",
        "\udfff\ud800",
        "\u2028",
        "// not a comment",
        "%0",
        "@c0",
        "loc",
        "{}",
        "<|im_end|>",
        "\ufdd0",
        "\ufdd1",
        "é",
        "e\u0301",
        "日本語",
    ]
)
texts = st.one_of(st.sampled_from(["yes", "no", "The essay:\n", " "]), tricky_text, any_text)
names = st.one_of(st.from_regex(r"[a-z][a-z0-9_]{0,6}(\.[a-z0-9]{1,3})?", fullmatch=True), tricky_text, any_text)

literals: st.SearchStrategy[Attribute] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(min_value=-(2**4000), max_value=2**4000),
        st.floats(),
        texts,
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)

value_types: st.SearchStrategy[Type] = st.recursive(
    st.one_of(st.sampled_from([TEXT, INT, FLOAT, BOOL, NONE, ANY]), names.map(json_of)),
    lambda inner: inner.map(list_of),
    max_leaves=3,
)
locations = st.one_of(st.none(), st.builds(Location, texts, st.integers(min_value=0, max_value=10**6)))
generated_types: st.SearchStrategy[Type] = st.one_of(st.sampled_from([TEXT, INT, FLOAT, BOOL]), names.map(json_of))
constraints = st.one_of(
    st.tuples(st.just("regex"), texts),
    st.tuples(st.just("grammar"), texts),
    st.tuples(st.just("dtype"), st.sampled_from(["str", "int", "float", "bool"])),
    st.tuples(st.just("choices"), st.just('["a","b"]')),
    st.tuples(st.just("schema"), st.just('{"type":"object"}'), st.sampled_from(WHITESPACE)),
)
digests = st.one_of(st.none(), texts.filter(bool))
