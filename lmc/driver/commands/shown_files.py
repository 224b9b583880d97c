"""Names of files in reports: the same on every machine, and found in the repository of the project."""

from __future__ import annotations

import os
from pathlib import Path

from lmc.driver.targets.defaults import project_folder
from lmc.report.text import visible

_INSTALLED = ("site-packages", "dist-packages")
"""Folders of packages: an environment may be a folder of the project, and on other machines it is elsewhere."""


def shown_file(file: str) -> str:
    """Return the path from the project's folder, with ``..`` up to the root of its repository.

    A file of an installed package has its path in there, and any other one its name alone.
    """
    path, project = Path(os.path.abspath(file)), project_folder()  # noqa: PTH100 - a link keeps its own name
    for place, part in reversed(list(enumerate(path.parts))):
        if part in _INSTALLED:
            return visible(Path(*path.parts[place + 1 :]).as_posix())
    is_inside = path.is_relative_to(_repository(project))
    return visible(Path(os.path.relpath(path, project)).as_posix() if is_inside else path.name)


def folder_in_repository() -> str:
    """Return the path of the project from the root of its git repository; empty where there is none."""
    project = project_folder()
    path = project.relative_to(_repository(project)).as_posix()
    return "" if path == "." else path


def is_in_project(shown: str) -> bool:
    """Return True if there is such a file from the project's folder."""
    return (project_folder() / shown).is_file()


def _repository(project: Path) -> Path:
    """Return the root of the git repository of a project; its own folder where there is none."""
    return next((each for each in (project, *project.parents) if (each / ".git").exists()), project)
