"""Constraints as vLLM's server, and ``lmc serve``, take them."""

from __future__ import annotations

from typing import Any

from lmc.grammar.constraint import Constraint
from lmc.ir.errors import EngineError
from lmc.runtime.remote.failures import AttemptError

_NAMES = {"regex": "regex", "choices": "choice", "schema": "json", "grammar": "grammar"}


def structured_outputs(constraint: Constraint) -> dict[str, Any]:
    """Return the parameter of a constraint: outputs are checked against it again. Raises ``AttemptError``."""
    source = constraint.source
    if source is None or source.kind not in _NAMES:
        error = EngineError("the definition of a constraint is not known", remedy="run the program through lmc.jit")
        raise AttemptError(error, again=False)
    value = source.data if source.kind in ("choices", "schema") else source.text
    form = {_NAMES[source.kind]: value}
    if source.kind == "schema":
        form["disable_any_whitespace"] = source.whitespace == "compact"
    return {"structured_outputs": form}
