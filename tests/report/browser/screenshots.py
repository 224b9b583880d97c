"""Pictures of the page for the documentation: ``python -m tests.report.browser.screenshots [EXAMPLE …]`` writes them.

They are WebP, which Chromium itself encodes. Look at each one before it is committed. docs/gallery.md shows them.
"""

import ast
import base64
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lmc.report.page import page
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.report.programs import Case

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = REPOSITORY / "docs" / "screenshots"
GALLERY = REPOSITORY / "docs" / "gallery.md"
SCHEMES = ("light", "dark")
TABS = {"judge": ("heat", "timeline")}
"""Examples whose other tabs are shown, too."""
MEASURED = ("judge",)
"""Examples of which a run is shown beside the plan."""
RUN = "A run below its plan, on one axis ([timelines](viz.md#timelines)):"
WIDTH, HEIGHT = 1400, 860
QUALITY = 80
OPTIONS = {"target": "builtin"}


def names(example: str) -> list[str]:
    """Return the files of an example: its graph, light and dark, its other tabs, light; a run, light and dark."""
    tabs = [f"{example}-{tab}.webp" for tab in TABS.get(example, ())]
    runs = [f"{example}-run-{scheme}.webp" for scheme in SCHEMES if example in MEASURED]
    return [*(f"{example}-{scheme}.webp" for scheme in SCHEMES), *tabs, *runs]


def gallery() -> str:
    """Return the page that shows the graph of each example."""
    lines = ["# Gallery", "", "The [page](viz.md) of each example, light and dark. A click enlarges a picture."]
    for example in sorted(EXAMPLES):
        code = (REPOSITORY / "examples" / f"{example}.py").read_text(encoding="utf-8")
        title = (ast.get_docstring(ast.parse(code)) or "").partition("\n")[0]
        lines += ["", f"## {example}.py", "", title, "", *both(example)]
        if example in MEASURED:
            lines += ["", RUN, "", *both(f"{example}-run")]
    return "\n".join(lines) + "\n"


def both(name: str) -> list[str]:
    """Return a table of a light and a dark picture."""
    files = [f"screenshots/{name}-{scheme}.webp" for scheme in SCHEMES]
    pictures = [f"[![{scheme}]({file})]({file})" for scheme, file in zip(SCHEMES, files, strict=True)]
    return [f"| {' | '.join(SCHEMES)} |", "|---|---|", f"| {' | '.join(pictures)} |"]


def take(browser: "Browser", example: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the pictures of an example by their names. The current folder is the repository."""
    case = Case.of(example, folder)
    views = {example: case.view(OPTIONS)}
    if example in MEASURED:
        views[f"{example}-run"] = case.measured_view(OPTIONS, folder)
    for name, view in views.items():
        file = folder / f"{name}.html"
        file.write_text(page(view), encoding="utf-8")
        for scheme in SCHEMES:
            shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            shown.goto(file.as_uri())
            shown.wait_for_selector("body[data-ready]")
            if view.timeline is not None:
                shown.click("#tab-timeline")
            yield f"{name}-{scheme}.webp", picture(shown)
            if scheme == "light" and view.timeline is None:
                for tab in TABS.get(example, ()):
                    shown.click(f"#tab-{tab}")
                    yield f"{example}-{tab}.webp", picture(shown)
            shown.close()


def picture(shown: "Page") -> bytes:
    """Return what the window shows as WebP."""
    shown.mouse.move(0, 0)
    session = shown.context.new_cdp_session(shown)
    data = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "optimizeForSpeed": False})
    return base64.b64decode(data["data"])


def main(examples: list[str]) -> None:
    """Write the pictures of these examples."""
    from playwright.sync_api import sync_playwright

    os.chdir(REPOSITORY)
    FOLDER.mkdir(exist_ok=True)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for example in examples:
            for name, data in take(browser, example, Path(folder)):
                (FOLDER / name).write_bytes(data)
    GALLERY.write_text(gallery(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or sorted(EXAMPLES))
