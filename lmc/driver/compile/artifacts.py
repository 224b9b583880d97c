"""Text forms of a compiled program."""

from __future__ import annotations

import dataclasses
from typing import Any

from lmc.backend.json.plan_json import dump_plan
from lmc.backend.plan import Plan
from lmc.driver.compile.compiled import Compiled
from lmc.driver.compile.constraints import constrained, describe
from lmc.driver.run.start import Arguments
from lmc.driver.saved.plan_arguments import arguments_of, conditions_of, frozen_arguments
from lmc.driver.saved.plan_classes import classes_of
from lmc.ir.module import Module, print_module


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
