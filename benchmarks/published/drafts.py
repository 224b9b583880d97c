"""The draft of a schema, and whether the schema is a whole by itself, by libraries that are not lmc's."""

from collections.abc import Iterator
from typing import Any

import jsonschema
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

_NEWEST_FIRST: tuple[Any, ...] = (
    jsonschema.Draft202012Validator,
    jsonschema.Draft201909Validator,
    jsonschema.Draft7Validator,
    jsonschema.Draft6Validator,
    jsonschema.Draft4Validator,
)
_NO_FORMATS = jsonschema.FormatChecker(
    formats=()
)  # patterns of meta-schemas are of ECMA-262, and Python's `re` differs
_Undeclared = extend(jsonschema.Draft202012Validator, version=None)


def validator_of(schema: Any) -> Any:
    """The validator of the draft that ``$schema`` names, else of the newest one by which the schema is valid.

    None where it is not valid.
    """
    named: Any = validator_for(schema, default=_Undeclared)
    for kind in _NEWEST_FIRST if named is _Undeclared else (named,):
        if kind(kind.META_SCHEMA, format_checker=_NO_FORMATS).is_valid(schema):
            return kind
    return None


def unfit(schema: Any) -> str | None:
    """The reason why a schema is left out of the sample; None where it is a valid schema by itself."""
    kind = validator_of(schema)
    if kind is None:
        return "not valid by the meta-schema of its draft"
    return None if next(_unresolved(schema, kind), None) is None else "refers to other documents"


def _unresolved(schema: Any, kind: Any) -> Iterator[str]:
    """References that lead out of a schema, or nowhere."""
    specification = specification_with(kind.META_SCHEMA.get("$schema"))
    document = specification.create_resource(schema)
    base = document.id() or ""
    registry: Any = Registry().with_resource(base, document)
    stack: list[tuple[Any, Any]] = [(registry.resolver(base), document)]
    while stack:
        resolver, current = stack.pop()
        contents = current.contents
        reference = contents.get("$ref") if isinstance(contents, dict) else None
        if isinstance(reference, str):
            try:
                resolver.lookup(reference)
            except (Unresolvable, ValueError, TypeError):
                yield reference
        stack += [(resolver.in_subresource(each), each) for each in current.subresources()]
