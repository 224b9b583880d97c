"""Schemas of the supported subset, and values that are near to what they ask for."""

from typing import Any

from hypothesis import strategies as st

NAMES = ["a", "b", "xa", 'é"', ""]
PATTERNS = [
    "^[ab]*$", "a", "^x", "b$", "^(?!a)[a-c]+$", "^(?=.*a).{2,}$", r"^\S+\s?\S*$", r"\d", r"^\W$", "^[^a]*$", "a|é",
]  # fmt: skip
FORMATS = ["date", "time", "date-time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6", "uri", "json-pointer"]

numbers = st.one_of(
    st.integers(-12, 130), st.sampled_from([0.5, -0.5, 0.1, 1.5, 2.0, 99.99, -7.25, 1e-7, 1e22, 3.0000001, 10**17])
)
strings = st.one_of(st.sampled_from([*NAMES, "aa", "ab", "ba", "abc", "x1", " a", "\n", "5", "😀", "\\"]), st.text("ab\n\"é", max_size=4))
scalars = st.one_of(st.none(), st.booleans(), numbers, strings)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=6,
)
counts = st.integers(0, 4)


def _keywords(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


def _with(fixed: dict[str, Any], more: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return more.map(lambda found: {**fixed, **found})


strings_schema = _with(
    {"type": "string"},
    st.one_of(
        _keywords(minLength=counts, maxLength=counts),
        _keywords(minLength=counts, maxLength=counts, pattern=st.sampled_from(PATTERNS)),
        _keywords(format=st.sampled_from(FORMATS)),
        _keywords(format=st.sampled_from(FORMATS), maxLength=st.integers(8, 40), pattern=st.sampled_from(["1", "a"])),
    ),
)
_bounds = _keywords(minimum=numbers, maximum=numbers, exclusiveMinimum=numbers, exclusiveMaximum=numbers)
numbers_schema = st.one_of(
    _with({"type": "number"}, _bounds),
    _with({"type": "integer"}, _bounds),
    _with({"type": "integer"}, _keywords(minimum=numbers, maximum=numbers, multipleOf=st.integers(1, 13))),
    _with({"type": "number"}, _keywords(minimum=numbers, maximum=numbers, multipleOf=st.sampled_from([0.5, 0.25, 1.5, 3]))),
)
listed = st.one_of(
    st.lists(values, min_size=1, max_size=4).map(lambda found: {"enum": found}), values.map(lambda found: {"const": found})
)
scalar_schemas = st.one_of(
    strings_schema,
    numbers_schema,
    listed,
    st.sampled_from(["null", "boolean", "integer", "string", "number", ["integer", "null"], ["string", "boolean"]]).map(
        lambda name: {"type": name}
    ),
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some_names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    arrays = st.one_of(
        _with({"type": "array"}, st.fixed_dictionaries({"items": inner}, optional={"minItems": counts, "maxItems": counts})),
        st.fixed_dictionaries(
            {"prefixItems": st.lists(inner, min_size=1, max_size=3)},
            optional={"items": st.one_of(inner, st.just(False)), "minItems": counts, "maxItems": counts},
        ),
        st.fixed_dictionaries(
            {"items": listed}, optional={"uniqueItems": st.booleans(), "minItems": counts, "maxItems": counts}
        ),
        st.fixed_dictionaries(
            {"items": scalar_schemas, "contains": scalar_schemas},
            optional={"minContains": counts, "maxContains": counts, "minItems": counts},
        ),
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)},
        optional={
            "required": some_names,
            "additionalProperties": st.one_of(st.just(False), inner),
            "patternProperties": st.dictionaries(st.sampled_from(["^x", "a", "b$"]), inner, max_size=2),
            "propertyNames": st.one_of(
                st.just({"maxLength": 1}), st.just({"pattern": "^[a-x]*$"}), some_names.map(lambda names: {"enum": names})
            ),
            "minProperties": counts,
            "maxProperties": counts,
            "dependentRequired": st.dictionaries(st.sampled_from(NAMES), some_names, max_size=1),
            "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), some_names.map(lambda names: {"required": names}), max_size=1),
            "unevaluatedProperties": st.booleans(),
        },
    )
    return st.one_of(arrays, objects)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=3)
    conditions = st.one_of(
        listed, scalar_schemas, st.sampled_from(NAMES).map(lambda name: {"required": [name]}),
        st.tuples(st.sampled_from(NAMES), scalar_schemas).map(lambda pair: {"properties": {pair[0]: pair[1]}}),
    )
    return st.one_of(
        st.builds(lambda found: {"anyOf": found}, some),
        st.builds(lambda found: {"oneOf": found}, some),
        st.builds(lambda found: {"allOf": found}, some),
        st.builds(lambda base, found: {**base, "anyOf": found}, inner, some),
        st.builds(lambda base, found: {**base, "oneOf": found}, inner, some),
        st.builds(lambda base, found: {**base, "not": found}, inner, st.one_of(conditions, inner)),
        st.builds(lambda base, test, then, other: {**base, "if": test, "then": then, "else": other}, inner, conditions, inner, inner),
    )


schemas = st.recursive(
    scalar_schemas, lambda inner: st.one_of(_containers(inner), _containers(inner), _combined(inner)), max_leaves=6
)
