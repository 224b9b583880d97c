"""JSON Schema: which texts are JSON of a value that meets a schema, as nodes over bytes. See README.md."""

from lmc.grammar.schema.compiling import any_node, to_node
from lmc.grammar.schema.documents.documents import Misspelt, SchemaRemark, remark_of
from lmc.grammar.schema.errors import RecursiveSchemaError

__all__ = ["Misspelt", "RecursiveSchemaError", "SchemaRemark", "any_node", "remark_of", "to_node"]
