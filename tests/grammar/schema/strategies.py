"""Schemas of the supported subset, and values that are near to what they ask for."""

from typing import Any

from hypothesis import strategies as st

Schemas = st.SearchStrategy[Any]

NAMES = ["", "a", "b", "xa", 'é"']
PATTERNS = [
    "^[ab]*$",
    "a",
    "^x",
    "b$",
    "^(?!a)[a-c]+$",
    "^(?=.*a).{2,}$",
    r"^\S+\s?\S*$",
    r"\d",
    r"^\W$",
    "^[^a]*$",
    "a|é",
]
FORMATS = ["date", "time", "date-time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6", "uri", "json-pointer"]

numbers = st.one_of(
    st.integers(-12, 130), st.sampled_from([0.5, -0.5, 0.1, 1.5, 2.0, 99.99, -7.25, 1e-7, 1e22, 3.0000001, 10**17])
)
strings = st.one_of(
    st.sampled_from([*NAMES, "aa", "ab", "ba", "abc", "x1", " a", "\n", "5", "😀", "\\"]),
    st.text('ab\n"é', max_size=4),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, strings)
counts = st.integers(0, 4)


def _containers_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    return st.one_of(st.lists(inner, max_size=4), objects.map(lambda found: dict(sorted(found.items()))))


values = st.recursive(scalars, _containers_of, max_leaves=6)
# Those whose JSON is spelled as the outputs are: whole numbers without a fraction, no exponent.
plain_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), strings, st.sampled_from([0, 1, -1, 5, 17, 120, 0.5, -0.5, 1.5, 99.99, 10**17])
    ),
    _containers_of,
    max_leaves=6,
)


def _schema(fixed: dict[str, Any] | None = None, **optional: st.SearchStrategy[Any]) -> Schemas:
    parts = {
        name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in (fixed or {}).items()
    }
    return st.fixed_dictionaries(parts, optional=optional)


_STRING, _NUMBER, _INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
_plain_strings = st.one_of(
    _schema(_STRING, minLength=counts, maxLength=counts),
    _schema(_STRING, minLength=counts, maxLength=counts, pattern=st.sampled_from([*PATTERNS[:6], *PATTERNS[-2:]])),
)
string_schemas = st.one_of(
    _plain_strings,
    _schema(_STRING, minLength=counts, maxLength=counts, pattern=st.sampled_from(PATTERNS)),
    _schema(_STRING, format=st.sampled_from(FORMATS)),
    _schema(
        _STRING, format=st.sampled_from(FORMATS), maxLength=st.integers(8, 40), pattern=st.sampled_from(["1", "a"])
    ),
)
_bounds = dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), numbers)
_plain_numbers = st.one_of(
    _schema(_NUMBER, **_bounds),
    _schema(_INTEGER, **_bounds),
    _schema(_INTEGER, minimum=numbers, maximum=numbers, multipleOf=st.integers(1, 13)),
)
number_schemas = st.one_of(
    _plain_numbers,
    _schema(_NUMBER, minimum=numbers, maximum=numbers, multipleOf=st.sampled_from([0.5, 0.25, 1.5, 3, 0.01, 2.5, 0.3])),
)
_types = st.sampled_from(
    ["null", "boolean", "integer", "string", "number", ["integer", "null"], ["string", "boolean"]]
).map(lambda name: {"type": name})


def _listed(of: st.SearchStrategy[Any]) -> Schemas:
    return st.one_of(_schema({"enum": st.lists(of, min_size=1, max_size=4)}), _schema({"const": of}))


listed = _listed(values)
scalar_schemas = st.one_of(string_schemas, number_schemas, listed, _types)
_some_names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)


def _arrays(inner: Schemas) -> Schemas:
    some = st.lists(inner, min_size=1, max_size=3)
    rest = st.one_of(inner, st.just(False))
    return st.one_of(
        _schema({"type": "array", "items": inner}, minItems=counts, maxItems=counts),
        _schema({"type": "array", "prefixItems": some, "items": rest}, minItems=counts, maxItems=counts),
    )


def _all_arrays(inner: Schemas) -> Schemas:
    return st.one_of(
        _arrays(inner),
        _schema({"prefixItems": st.lists(inner, min_size=1, max_size=3)}, minItems=counts, maxItems=counts),
        _schema({"items": listed}, uniqueItems=st.booleans(), minItems=counts, maxItems=counts),
        _schema(
            {"items": scalar_schemas, "contains": scalar_schemas},
            minContains=counts,
            maxContains=counts,
            minItems=counts,
        ),
    )


def _objects(inner: Schemas) -> Schemas:
    return _schema(
        {"type": "object", "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)},
        required=_some_names,
        additionalProperties=st.one_of(st.just(False), inner),
        patternProperties=st.dictionaries(st.sampled_from(["^x", "a", "b$"]), inner, max_size=2),
        propertyNames=st.one_of(
            st.just({"maxLength": 1}), st.just({"pattern": "^[a-x]*$"}), _some_names.map(lambda names: {"enum": names})
        ),
        minProperties=counts,
        maxProperties=counts,
        dependentRequired=st.dictionaries(st.sampled_from(NAMES), _some_names, max_size=1),
        dependentSchemas=st.dictionaries(st.sampled_from(NAMES), _schema({"required": _some_names}), max_size=1),
        unevaluatedProperties=st.booleans(),
    )


def _closed_objects(inner: Schemas) -> Schemas:
    """All names are declared, in the order that values have them in."""
    return _schema(
        {
            "type": "object",
            "properties": st.tuples(*[inner] * len(NAMES)).map(lambda found: dict(zip(NAMES, found, strict=True))),
            "additionalProperties": False,
        },
        required=_some_names,
        minProperties=counts,
        maxProperties=counts,
        dependentRequired=st.dictionaries(st.sampled_from(NAMES), _some_names, max_size=1),
        propertyNames=_schema({"maxLength": counts}),
    )


def _combined(inner: Schemas) -> Schemas:
    some = st.lists(inner, min_size=1, max_size=3)
    conditions = st.one_of(
        listed,
        scalar_schemas,
        st.sampled_from(NAMES).map(lambda name: {"required": [name]}),
        st.tuples(st.sampled_from(NAMES), scalar_schemas).map(lambda pair: {"properties": {pair[0]: pair[1]}}),
    )

    def beside(**more: st.SearchStrategy[Any]) -> Schemas:
        return st.builds(lambda base, found: {**base, **found}, inner, st.fixed_dictionaries(more))

    return st.one_of(
        _schema({"anyOf": some}),
        _schema({"oneOf": some}),
        _schema({"allOf": some}, unevaluatedProperties=st.just(False)),
        beside(anyOf=some),
        beside(oneOf=some),
        beside(**{"not": st.one_of(conditions, inner)}),
        beside(**{"if": conditions, "then": inner, "else": inner}),
    )


def _everything(inner: Schemas) -> Schemas:
    return st.one_of(_all_arrays(inner), _objects(inner), _combined(inner))


schemas = st.recursive(scalar_schemas, _everything, max_leaves=6)


def _exact(inner: Schemas) -> Schemas:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(_arrays(inner), _closed_objects(inner), _schema({"anyOf": some}), _schema({"allOf": some}))


# Of these, outputs are all JSON values that are valid, as `plain_values` are spelled.
exact_schemas = st.recursive(
    st.one_of(_plain_strings, _plain_numbers, _listed(plain_values), _types), _exact, max_leaves=6
)
