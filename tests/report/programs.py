"""The views of the examples, made as the commands make them."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lmc import driver
from lmc.backend.schedule.schedule import Schedule
from lmc.driver.commands.view import CompiledView, Room
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY

ROWS = {"tree_of_thought": 2}
"""Rows that one plan runs, where that is not all."""
NAMES = {"generative_agents": "live", "map_reduce": "report"}
"""The program of a file that has several."""
TOY: dict[str, Any] = {"target": "toy"}


@dataclass(frozen=True)
class Case:
    """An example, and a file with its rows."""

    program: str
    rows: Path

    @classmethod
    def of(cls, name: str, folder: Path) -> "Case":
        rows = folder / f"{name}.jsonl"
        given = EXAMPLES[name].rows[: ROWS.get(name)]
        rows.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
        program = f"examples/{name}.py"
        return cls(f"{program}:{NAMES[name]}" if name in NAMES else program, rows)

    def view(
        self,
        options: dict[str, Any] = TOY,
        *,
        kv_tokens: int = driver.schedule.HOLDS_ALL,
        batch: int = 256,
        redact: bool = False,
    ) -> CompiledView:
        room = Room(kv_tokens, batch)
        return driver.view.run(self.program, options, [], data=str(self.rows), room=room, redact=redact)

    def schedule(self, kv_tokens: int = driver.schedule.HOLDS_ALL, batch: int = 256) -> Schedule:
        return driver.schedule.run(self.program, str(self.rows), TOY, Room(kv_tokens, batch), [])


@cache
def compiled_view(name: str) -> CompiledView:
    """Return the view of an example, without rows."""
    case = f"{REPOSITORY}/examples/{name}.py"
    program = f"{case}:{NAMES[name]}" if name in NAMES else case
    return driver.view.run(program, TOY, [], room=Room(driver.schedule.HOLDS_ALL, 256))
