"""Compiled programs as text, and modules read from ``.lmir`` files."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from lmc.backend.json.plan_json import dump_plan
from lmc.backend.plan import Plan
from lmc.driver.compile.compiled import Compiled
from lmc.driver.errors import UsageError
from lmc.driver.run.start import Arguments
from lmc.driver.saved.plan_arguments import arguments_of, conditions_of, frozen_arguments
from lmc.driver.saved.plan_classes import classes_of
from lmc.driver.targets.constraints import constrained, describe
from lmc.ir.errors import InputError
from lmc.ir.module import Module, print_module
from lmc.ir.text.parser import MAX_BYTES, parse_verified


def module_text(module: Module) -> str:
    """``.lmir`` text."""
    return print_module(module)


def saved_plan(compiled: Compiled, arguments: Arguments | None) -> Plan:
    """The plan with the arguments and classes of its program, as compiled for ``arguments``. Raises ``InputError``."""
    captured = compiled.captured
    return dataclasses.replace(
        compiled.plan,
        arguments=arguments_of(captured, arguments),
        conditions=conditions_of(captured),
        classes=classes_of(compiled.plan, captured),
    )


def plan_text(plan: Plan) -> str:
    """Versioned JSON."""
    return dump_plan(plan)


def grammar(compiled: Compiled) -> dict[str, Any]:
    """Return the constraints of the generations with their facts, as JSON data."""
    users: dict[str, list[str]] = {}
    for op in constrained(compiled.module):
        users.setdefault(op.constraint or "", []).append(op.id)
    symbols = [entry for entry in compiled.module.constraints if entry.name in users]
    found = [describe(compiled.cache, entry, compiled.tokenizer, users[entry.name]) for entry in symbols]
    return {"program": compiled.module.name, "target": compiled.target.spec, "constraints": found}


def frozen_lines(plan: Plan) -> list[str]:
    """Return the arguments that the plan is specialised to, as ``strict = true``."""
    return list(frozen_arguments(plan.arguments or ()))


def read_module(path: str) -> Module:
    """The verified module in a file, or on standard input where ``path`` is ``-``.

    Raises ``UsageError`` where there is no such file, ``ParseError`` and ``VerifyError`` where it holds no module.
    """
    if path == "-":
        return parse_verified(_decode(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>"), "<stdin>")
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        remedy = "name an .lmir file, or - for standard input; lmc compile --emit ir writes one"
        raise UsageError(f"{path} can't be read: {error.strerror}", remedy=remedy) from error
    return parse_verified(_decode(data, path), path)


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"byte {error.start} (line {line})"
        raise InputError(f"{name} is not UTF-8 text: {place}", remedy="save it as UTF-8") from error
