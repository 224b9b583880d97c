"""The hints of a report as SARIF 2.1.0 (OASIS, 2020): one result for each, on its line."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from lmc.cost.hints import CODES
from lmc.report.cost.model import CostHint, CostPlace, CostReport, ProgramCost

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
"""The root of the repository: files are named relative to it."""


def sarif(report: CostReport, folder: str = "", outside: Collection[str] = ()) -> str:
    """Return the hints of all programs as a SARIF log.

    Files are relative to the root of the repository; ``folder`` is the path there of the folder that the report's
    files are relative to, such as ``services/judge``. A hint without a line there, or in a file of ``outside``, is at
    the beginning of its program: GitHub refuses a log in which a result has no place.
    """
    rules = sorted(CODES)
    results = [_result(program, hint, rules, folder, outside) for program in report.programs for hint in program.hints]
    driver = {
        "name": "lmc cost",
        "semanticVersion": report.lmc,
        "rules": [_rule(code) for code in rules],
    }
    # Without a URI: the folder differs between machines, and the reader knows it (SARIF 2.1.0, 3.14.14).
    bases = {_ROOT: {"description": {"text": "The root of the repository."}}}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": bases,
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, ensure_ascii=True) + "\n"


def _rule(code: str) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": {"text": CODES[code]},
        "help": {"text": f"docs/cost-hints.md, section {code}"},
        "defaultConfiguration": {"level": "warning"},
    }


def _result(
    program: ProgramCost, hint: CostHint, rules: list[str], folder: str, outside: Collection[str]
) -> dict[str, Any]:
    place, where = hint.place, f"{program.program} on {program.model}"
    if place is None or place.file in outside:
        where += "" if place is None else f", at {place}"
        place = CostPlace(file=program.program.rpartition(":")[0], line=1)
    artifact = {"uri": quote(posixpath.normpath(posixpath.join(folder, place.file))), "uriBaseId": _ROOT}
    return {
        "ruleId": hint.code,
        "ruleIndex": rules.index(hint.code),
        "level": "warning",
        # Braces and links have a meaning in messages of SARIF.
        "message": {"text": _plain(f"{hint.message} ({where})")},
        # Not the line: a result stays the same one when lines are added above it.
        "partialFingerprints": {"lmcCostHint/v1": f"{hint.code}:{program.program}:{program.model}:{hint.op or ''}"},
        "locations": [
            {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": max(1, place.line)}}}
        ],
    }


def _plain(text: str) -> str:
    """Return a text of a message that is shown as it is (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    braces = text.replace("{", "{{").replace("}", "}}")
    return braces.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
