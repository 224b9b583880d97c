"""The types of the format for the type check of the page: an interface for each definition of the JSON Schema."""

from typing import Any

from lmc.report.model import CompiledView

HEAD = "// Written by `python -m tests.report.golden` from the models of lmc/report/model.py.\n"


def declarations() -> str:
    """Return the namespace ``lmc`` with an interface for each model."""
    schema = CompiledView.model_json_schema()
    definitions = {**schema["$defs"], "CompiledView": schema}
    found = [_interface(name, each) for name, each in sorted(definitions.items())]
    return HEAD + "declare namespace lmc {\n" + "\n".join(found) + "}\n"


def _interface(name: str, definition: dict[str, Any]) -> str:
    required = definition.get("required", [])
    fields = [
        f"    {field}{'' if field in required else '?'}: {_type(kind)};\n"
        for field, kind in definition["properties"].items()
    ]
    return f"  interface {name} {{\n{''.join(fields)}  }}\n"


def _type(kind: dict[str, Any]) -> str:
    if "$ref" in kind:
        return kind["$ref"].rpartition("/")[2]
    if "enum" in kind:
        return " | ".join(f'"{value}"' for value in kind["enum"])
    if "const" in kind:
        value = kind["const"]
        return f'"{value}"' if isinstance(value, str) else str(value)
    if "anyOf" in kind:
        return " | ".join(dict.fromkeys(map(_type, kind["anyOf"])))
    match kind.get("type"):
        case "array":
            inner = _type(kind["items"])
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case "object":
            return f"Record<string, {_type(kind['additionalProperties'])}>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as name:
            return name
        case other:
            raise AssertionError(f"no type is known for {other}")
