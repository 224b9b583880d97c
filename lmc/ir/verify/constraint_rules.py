"""The rules of a constraint symbol: what the verifier asks of each kind."""

from __future__ import annotations

import json
from typing import Any

from lmc.ir.core import CONSTRAINT_KINDS, WHITESPACE, Constraint
from lmc.ir.errors import VerifyError

DTYPES = ("str", "int", "float", "bool")


def verify_constraint(constraint: Constraint) -> None:
    """Raise ``VerifyError`` where a rule is broken. Whether it can be compiled is the pass's question."""
    where = f"constraint @{constraint.name}"
    if constraint.kind not in CONSTRAINT_KINDS:
        raise VerifyError(
            f"{where} is of unknown kind {constraint.kind!r}", remedy=f"use one of {', '.join(CONSTRAINT_KINDS)}"
        )
    if constraint.whitespace not in WHITESPACE:
        raise VerifyError(
            f"{where}: unknown whitespace {constraint.whitespace!r}", remedy=f"use one of {', '.join(WHITESPACE)}"
        )
    if constraint.whitespace != WHITESPACE[0] and constraint.kind != "schema":
        raise VerifyError(f"{where}: only a schema has whitespace", remedy="leave it out")
    if constraint.digest == "":
        raise VerifyError(f"{where} has an empty digest", remedy="leave it out: compile-constraints gives it")
    if constraint.kind == "dtype" and constraint.text not in DTYPES:
        raise VerifyError(f"{where}: unknown type {constraint.text!r}", remedy=f"use one of {', '.join(DTYPES)}")
    if constraint.kind in ("choices", "schema"):
        _verify_json(where, constraint)


def _verify_json(where: str, constraint: Constraint) -> None:
    try:
        loaded: Any = json.loads(constraint.text)
    except (ValueError, RecursionError) as error:
        raise VerifyError(f"{where} is not JSON: {error}", remedy="write canonical JSON") from None
    if constraint.kind == "schema" and not isinstance(loaded, dict):
        raise VerifyError(f"{where} is no JSON schema", remedy="a schema is a JSON object")
    if constraint.kind == "choices" and not (
        loaded and isinstance(loaded, list) and all(isinstance(text, str) for text in loaded)
    ):
        raise VerifyError(f"{where} is no list of choices", remedy="write a JSON list of strings")
