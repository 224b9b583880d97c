"""Classes that pydantic knows as JSON Schemas whose every value pydantic accepts. See README.md."""

from lmc.grammar.classes.generator import schema_of_class
from lmc.grammar.classes.scalars import UnsupportedTypeError

__all__ = ["UnsupportedTypeError", "schema_of_class"]
