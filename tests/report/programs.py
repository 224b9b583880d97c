"""The views of the examples, made as the commands make them."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lmc import driver
from lmc.backend.schedule.schedule import Schedule
from lmc.driver.viewing.view import CompiledView, Room
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

    def measured_view(self, options: dict[str, Any], folder: Path) -> CompiledView:
        """The view with a run of its rows beside the plan."""
        timeline = str(folder / "timeline.json")
        runner = driver.runner_for(driver.load_program(self.program), options)
        rows = [json.loads(line) for line in self.rows.read_text(encoding="utf-8").splitlines()]
        header = driver.timeline_header(runner.program, [self.program], runner.target(), str(self.rows))
        with driver.TimelineFile(timeline, header) as file:
            dict(runner.run_rows([[(number, ((), row)) for number, row in enumerate(rows)]], None, file))
        room = Room(driver.schedule.HOLDS_ALL, 256)
        return driver.view.run(self.program, options, [], data=str(self.rows), timeline=timeline, room=room)

    def schedule(self, kv_tokens: int = driver.schedule.HOLDS_ALL, batch: int = 256) -> Schedule:
        return driver.schedule.run(self.program, str(self.rows), TOY, Room(kv_tokens, batch), [])


@cache
def compiled_view(name: str) -> CompiledView:
    """Return the view of an example, without rows."""
    case = f"{REPOSITORY}/examples/{name}.py"
    program = f"{case}:{NAMES[name]}" if name in NAMES else case
    return driver.view.run(program, TOY, [], room=Room(driver.schedule.HOLDS_ALL, 256))
