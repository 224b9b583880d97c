"""A browser with a page in it. ``make browser`` installs what these tests need; without it they are skipped."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from lmc.report.model import CompiledView
from lmc.report.page import page
from tests.report.browser.bundle import TOOLS

try:
    from playwright.sync_api import Browser, Dialog, Page, sync_playwright
except ImportError:
    sync_playwright = None

CHROMIUM = shutil.which("chromium")
READY = 60_000
"""Milliseconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and skip what cannot run here, with the remedy."""
    here = Path(__file__).parent
    missing = [
        *(["Chromium"] if CHROMIUM is None else []),
        *(["Playwright's Python client"] if sync_playwright is None else []),
        *([] if (TOOLS / "typescript").is_dir() else ["npm's packages"]),
    ]
    reason = f"{' and '.join(missing)} not installed: make browser installs what the tests in a browser need"
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow("a browser loads a page"))
            if missing:
                item.add_marker(pytest.mark.skip(reason=reason))


@dataclass
class Shown:
    """A page in the browser, with all that it said and requested."""

    page: "Page"
    said: list[str] = field(default_factory=list[str])
    requested: list[str] = field(default_factory=list[str])

    @classmethod
    def on(cls, browser: "Browser", scheme: Literal["light", "dark"], script: str = "") -> "Shown":
        """Return a new page with the probes, and ``script``, of which everything is noted."""
        page = browser.new_page(viewport={"width": 1500, "height": 900}, color_scheme=scheme)
        here = cls(page)
        page.on("console", lambda message: here.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: here.said.append(f"error: {error}"))
        page.on("dialog", here.dismiss)
        page.on("request", lambda request: here.requested.append(request.url))
        page.add_init_script(path=Path(__file__).with_name("probes.js"))
        if script:
            page.add_init_script(script)
        return here

    def dismiss(self, dialog: "Dialog") -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """One browser for the tests of a file: ``asyncio.run`` fails in this thread while it is open."""
    assert sync_playwright is not None
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def show(browser: "Browser", tmp_path: Path) -> "Iterator[Callable[..., Page]]":
    """Open a view from ``file://``. At the end: no message on the console, no error, no dialog, no request."""
    shown: list[Shown] = []

    def open_page(view: CompiledView, scheme: Literal["light", "dark"] = "light", script: str = "") -> "Page":
        file = tmp_path / f"page{len(shown)}.html"
        file.write_text(page(view), encoding="utf-8")
        here = Shown.on(browser, scheme, script)
        shown.append(here)
        opened = here.page
        opened.goto(file.as_uri())
        opened.wait_for_selector("body[data-ready]", timeout=READY)
        assert [url for url in here.requested if not url.startswith("blob:")] == [file.as_uri()]
        return opened

    yield open_page
    for each in shown:
        assert each.said == []
        assert [url for url in each.requested if not url.startswith(("blob:", "file:"))] == []
        assert len([url for url in each.requested if url.startswith("file:")]) == 1
        each.page.close()
