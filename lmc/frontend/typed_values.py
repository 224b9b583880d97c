"""Values of constrained generations in a capture: their types, their fields, and what a class makes of them."""

from __future__ import annotations

from typing import Any

from lmc.frontend.id_values import holes_of
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.sampling import GenerationOptions
from lmc.frontend.schemas import Part, schema_of
from lmc.frontend.values import ValueRecorder
from lmc.ir.core import Effect
from lmc.ir.types import FLOAT, JsonType, ListType, Type, json_of, list_of


class TypedRecorder(ValueRecorder):
    """The part of ``Recorder`` that knows what JSON stands for."""

    def value_type(self, options: GenerationOptions) -> Type:
        """The type of what an engine gives: that of JSON under the name of its class."""
        spec = options.constraint
        if spec is None or spec.schema is None or not isinstance(spec.type, JsonType):
            return options.type
        return json_of(self.json_types.name(spec.schema))

    def converted(self, value: Proxy, op_id: str, origin: str, options: GenerationOptions) -> Proxy:
        """What the class of a schema makes of ``value``, where that may run code of the user's."""
        schema = None if options.constraint is None else options.constraint.schema
        if schema is None or not schema.runs_code:
            return value
        if holes_of(op_id):
            raise self.stop(
                f"{schema.name} is made of a generation whose number depends on a condition",
                "give each way's generations names of their own",
            )
        before = self.last_host
        self.note_write(f"{schema.name}()", "read it before, or leave its validators out")
        host, called = self.hosts.function(self.json_types.conversion(schema), Effect.WRITES)
        kind = json_of(self.json_types.name(schema))
        made = self._host_op(
            host,
            called,
            ir=(self.value_of(value), op_id),
            effect=Effect.WRITES,
            result_type=list_of(kind) if isinstance(symbol(value).type, ListType) else kind,
            origin=origin,
            path=op_id,
        )
        self.last_host = before  # the value does not answer the operation that generates
        return made

    def held(self, owner: Proxy, name: str) -> Proxy | None:
        """The field ``name`` of a value that only the graph holds; None where its class is known to have none."""
        found = symbol(owner)
        schema = self.json_types.schema(found.type.schema) if isinstance(found.type, JsonType) else None
        part = None if schema is None else schema.attributes.get(name)
        if part is None:
            return None
        default = () if part.required else (part.default,)
        value = self.pure("field", (owner, name, part.key, *default), gives=self._part_type(part))
        # A whole number is one in JSON, whatever its class makes of it.
        return self.pure("float", (value,)) if part.type == FLOAT else value

    def item(self, owner: Proxy, key: Any) -> Proxy:
        """``owner[key]``, of the type that the schema of ``owner`` says."""
        kind = symbol(owner).type
        schema = self.json_types.schema(kind.schema) if isinstance(kind, JsonType) else None
        part = schema.items.get(key) if schema is not None and type(key) is str else None
        return self.pure("getitem", (owner, key), gives=None if part is None else self._part_type(part))

    def _part_type(self, part: Part) -> Type:
        return part.type if part.kind is None else json_of(self.json_types.name(schema_of(part.kind)))
