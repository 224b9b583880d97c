"""Reports of ``lmc cost`` held against a baseline and against the limits of ``[tool.lmc.budget]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lmc.driver.commands.shown_files import folder_in_repository, is_in_project
from lmc.driver.errors import UsageError
from lmc.driver.targets.defaults import budget_table, project_folder
from lmc.ir.errors import InputError
from lmc.report.cost.baseline import CostBaseline, baseline_of, baseline_text, read_baseline
from lmc.report.cost.comparison import ComparedReport, compare
from lmc.report.cost.junit import junit
from lmc.report.cost.limits import CheckedLimit, CostLimits, check_limits
from lmc.report.cost.markdown import markdown
from lmc.report.cost.model import CostReport, to_json
from lmc.report.cost.sarif import sarif
from lmc.report.cost.table import table as text_table

BASELINE_FILE = "lmc-cost.json"
"""The baseline of a project, beside its ``pyproject.toml``."""


@dataclass(frozen=True, slots=True)
class CheckedReport:
    """A report, beside the baseline where one is given, and its limits.

    ``folder`` is the path of the project in its repository; empty: it is the root. ``outside`` are files of hints that
    are not in there.
    """

    report: CostReport
    compared: ComparedReport | None
    limits: tuple[CheckedLimit, ...]
    folder: str = ""
    outside: frozenset[str] = frozenset()

    @property
    def failed_limits(self) -> list[str]:
        """The limits that are not kept, a line each."""
        return [f"{each.name} ({each.scope}): {each.message}" for each in self.limits if each.fails]


FORMATS: Mapping[str, Callable[[CheckedReport], str]] = {
    "table": lambda checked: text_table(checked.report, checked.compared),
    "json": lambda checked: to_json(checked.report),
    "markdown": lambda checked: markdown(checked.report, checked.compared, checked.limits),
    "junit": lambda checked: junit(checked.limits),
    "sarif": lambda checked: sarif(checked.report, checked.folder, checked.outside),
}
"""The formats of a report by name."""


def baseline_path(named: str | None) -> str:
    """Return the file of a baseline: the one that is named, else that of the project."""
    return str(project_folder() / BASELINE_FILE) if named is None else named


def load_baseline(path: str) -> CostBaseline:
    """Return the baseline of a file. Raises ``UsageError`` if there is none, ``InputError`` if it is not valid."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # PowerShell writes a mark
    except OSError as error:
        raise UsageError(
            f"the baseline {path} can't be read: {error.strerror}", remedy="write it with lmc cost --update-baseline"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8", remedy="write it with lmc cost --update-baseline") from error
    return read_baseline(text, path)


def checked(
    report: CostReport,
    baseline: CostBaseline | None,
    own: Mapping[tuple[str, str], CostLimits],
    *,
    is_complete: bool,
    compares: bool = True,
) -> CheckedReport:
    """Return a report with its limits. ``own`` are those of single programs, ``is_complete``: it has all programs.

    Not ``compares``: the report becomes the baseline, so there are no limits on increases.

    Raises ``InputError`` for a baseline of other rows.
    """
    compared = None if baseline is None else compare(report, baseline, is_complete=is_complete)
    file, table = budget_table()
    total = CostLimits.of(table, f"{file}: [tool.lmc.budget]")
    if not compares:
        total = replace(total, max_increase_percent=None)
        own = {key: replace(limits, max_increase_percent=None) for key, limits in own.items()}
    files = {hint.place.file for program in report.programs for hint in program.hints if hint.place is not None}
    outside = frozenset(each for each in files if not is_in_project(each))
    return CheckedReport(report, compared, check_limits(report, compared, total, own), folder_in_repository(), outside)


def updated_baseline(report: CostReport, path: str, *, is_complete: bool) -> str:
    """Return the text of the baseline with a report's programs: of them alone if it has all programs of the project.

    Raises ``InputError`` where others have to be kept and the file is not valid.
    """
    new = baseline_of(report)
    if is_complete or not Path(path).exists():
        return baseline_text(new)
    programs = {name: dict(models) for name, models in load_baseline(path).programs.items()}
    for name, models in new.programs.items():
        programs[name] = {**programs.get(name, {}), **models}
    return baseline_text(CostBaseline(programs=programs))
