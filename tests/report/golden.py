"""The golden files of views: ``python -m tests.report.golden`` writes them and the JSON Schemas of the formats.

The data of a program are kept with line breaks, which the JSON itself does not have.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lmc import driver
from lmc.report.cost.baseline import baseline_schema_text
from lmc.report.cost.model import schema_text as cost_schema_text
from lmc.report.forms.tree import tree
from lmc.report.model import CompiledView, MeasuredCost, schema_text
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.report.programs import TOY, Case
from tests.report.typescript import declarations

FILES = REPOSITORY / "tests" / "report" / "golden_files"
SCHEMA = REPOSITORY / "docs" / "lmc-view.schema.json"
COST_SCHEMA = REPOSITORY / "docs" / "lmc-cost.schema.json"
BASELINE_SCHEMA = REPOSITORY / "docs" / "lmc-cost-baseline.schema.json"
TYPES = REPOSITORY / "lmc" / "report" / "static" / "view.d.ts"
BROKEN = "tests/report/broken.py"
WITH_DATA = ("judge", "broken")


def texts(name: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the golden files of a program, and what they should hold. The current folder is the repository."""
    if name == "broken":
        view = driver.view.run(BROKEN, TOY, [], room=driver.view.Room(driver.schedule.HOLDS_ALL))
    else:
        view = Case.of(name, folder).view()
    if name in WITH_DATA:
        data = json.loads(driver.view.FORMATS["json"](view))
        yield FILES / f"{name}.json", json.dumps(data, indent=1) + "\n"
        yield FILES / f"{name}.notebook.html", notebook(BROKEN if name == "broken" else f"examples/{name}.py") + "\n"
    yield FILES / f"{name}.mmd", driver.view.FORMATS["mermaid"](view)
    yield FILES / f"{name}.dot", driver.view.FORMATS["dot"](view)
    yield FILES / f"{name}.tree", tree(view)
    if name == "judge":
        view = with_measurements(view)
        yield FILES / f"{name}.measured.mmd", driver.view.FORMATS["mermaid"](view)
        yield FILES / f"{name}.measured.dot", driver.view.FORMATS["dot"](view)


def with_measurements(view: CompiledView) -> CompiledView:
    """Return a view with measurements of its calls, as of a timeline: a run has other times each time."""
    calls = [
        call.model_copy(
            update={
                "measured": MeasuredCost(requests=2, prompt=1000 + at, cached=at, output=7, seconds=1, p50_seconds=0.5)
            }
        )
        for at, call in enumerate(view.calls)
    ]
    return view.model_copy(update={"calls": tuple(calls)})


def notebook(program: str) -> str:
    """Return a compiled program as a notebook shows it."""
    return driver.runner_for(driver.load_program(program), TOY).compile(None)._repr_html_()


def main() -> None:
    """Write all files."""
    os.chdir(REPOSITORY)
    with tempfile.TemporaryDirectory() as folder:
        for name in (*EXAMPLES, "broken"):
            for path, text in texts(name, Path(folder)):
                path.write_text(text, encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    COST_SCHEMA.write_text(cost_schema_text(), encoding="utf-8")
    BASELINE_SCHEMA.write_text(baseline_schema_text(), encoding="utf-8")
    TYPES.write_text(declarations(), encoding="utf-8")


if __name__ == "__main__":
    main()
