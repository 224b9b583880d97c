"""Constraints as servers take them: vLLM and ``lmc serve`` in ``structured_outputs``, SGLang in fields of its own."""

from __future__ import annotations

import re
from typing import Any

from lmc.grammar.constraint import Constraint
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.errors import EngineError
from lmc.runtime.remote.failures import AttemptError

_NAMES = {"regex": "regex", "choices": "choice", "schema": "json", "grammar": "grammar"}
_MARKS = re.compile(r"[\\.^$*+?{}\[\]|()]")
"""Characters that mean something in a pattern."""


def structured_outputs(constraint: Constraint, capabilities: Capabilities) -> dict[str, Any]:
    """Return the parameter of a constraint: outputs are checked against it again. Raises ``AttemptError``."""
    source = constraint.source
    if source is None or source.kind not in _NAMES:
        error = EngineError("the definition of a constraint is not known", remedy="run the program through lmc.jit")
        raise AttemptError(error, again=False)
    value = source.data if source.kind in ("choices", "schema") else source.text
    if capabilities.dialect == "sglang":
        return _of_sglang(source.kind, value)
    form = {_NAMES[source.kind]: value}
    if source.kind == "schema":
        form["disable_any_whitespace"] = source.whitespace == "compact"
    return {"structured_outputs": form}


def _of_sglang(kind: str, value: Any) -> dict[str, Any]:
    if kind == "grammar":
        error = EngineError(
            "SGLang takes no grammar in Lark's language", remedy="write a regex or a schema, or use another server"
        )
        raise AttemptError(error, again=False)
    if kind == "schema":
        schema = value if isinstance(value, dict) else {} if value else {"not": {}}
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "output", "schema": schema, "strict": True},
            }
        }
    return {"regex": value if kind == "regex" else "|".join(f"({_MARKS.sub(_escaped, each)})" for each in value)}


def _escaped(mark: re.Match[str]) -> str:
    return f"\\{mark[0]}"
