"""JSON Schema: which texts are JSON of a value that meets a schema, as nodes over bytes. See README.md."""

from lmc.grammar.schema.compiling import is_recursive, to_node
from lmc.grammar.schema.errors import RecursiveSchemaError

__all__ = ["RecursiveSchemaError", "is_recursive", "to_node"]
