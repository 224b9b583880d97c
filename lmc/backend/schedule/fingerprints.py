"""Digests that identify the plan and the inputs of a schedule."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.backend.plan import Plan
from lmc.ir.module import print_module

_LOCATION = re.compile(r' +loc\("(?:[^"\\]|\\.)*":\d+\)$', re.MULTILINE)
_ENCODER = json.JSONEncoder(sort_keys=True, default=repr)


@dataclass(frozen=True, slots=True)
class Origin:
    """SHA-256 of a plan and of the inputs of a batch, in hexadecimal digits."""

    plan: str
    inputs: str


def inputs_digest(inputs: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of the values of each instance by parameter name, in their order. Time is that of their bytes."""
    digest = hashlib.sha256()
    for values in inputs:
        digest.update(_ENCODER.encode(values).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def plan_digest(plan: Plan) -> str:
    """SHA-256 of the plan's program, without source locations and conditions."""
    names = json.dumps([parameter.name for parameter in plan.parameters])
    text = _LOCATION.sub("", print_module(plan.module))
    return hashlib.sha256(f"{names}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
