"""The page of ``lmc viz``: seconds and bytes of the command, first paint and layout in Chromium. A part of ``view.py``.

A program is a chain of texts and generations, a condition around every tenth: 4.5 ops of the final module for each
generation. The command is a process of its own. In the browser: the time from the start of the navigation to the first
paint, and to the end of the first layout; a search for the last generation; the longest pause of the tab while groups
are opened. Medians.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results import table

SIZES = (10, 100, 500, 1_000, 5_000, 10_000)
PROBES = Path(__file__).parents[1] / "tests" / "report" / "browser" / "probes.js"
HEAD = (
    "ops",
    "`lmc viz`, s",
    "page, kB",
    "of it data, kB",
    "first paint, s",
    "laid out, s",
    "search, s",
    "longest pause, s",
)
LIMITS = "Limits: the page without data 1,000 kB; 500 ops laid out in 2 s; 5,000 ops usable in 10 s.\n"


def calls_of(ops: int) -> int:
    """Return the generations of a program of about so many ops."""
    return round(ops / 4.5)


def program(ops: int) -> str:
    """Return the source of a program of so many ops."""
    lines = ["import lmc", "", "", "@lmc.jit", "def chain(s, question: str):"]
    for number in range(calls_of(ops)):
        indent = "    "
        if number % 10 == 9:
            lines.append(f"    if 'a' in s['a{number - 1}']:")
            indent += "    "
        lines += [f"{indent}s += 'part {number}'", f"{indent}s.gen('a{number}', max_tokens=8)"]
    return "\n".join([*lines, ""])


def write_page(source: Path, page: Path) -> float:
    """Run ``lmc viz``. Gives its seconds."""
    start = time.perf_counter()
    command = [str(Path(sys.executable).with_name("lmc")), "viz", str(source), "--model", "toy", "-o", str(page)]
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def in_browser(pages: dict[int, Path], repeats: int) -> dict[int, list[str]]:
    """Return the figures of the pages in Chromium; dashes where it is not installed."""
    chromium = shutil.which("chromium")
    none = {size: ["–"] * 4 for size in pages}
    if chromium is None:
        return none
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return none
    found: dict[int, list[str]] = {}
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for size, file in pages.items():
            runs: list[tuple[float, ...]] = []
            for _ in range(repeats):
                page = browser.new_page(viewport={"width": 1500, "height": 900})
                page.add_init_script(path=PROBES)
                page.goto(file.as_uri())
                page.wait_for_selector("body[data-ready]", timeout=120_000)
                ready = page.evaluate("performance.now()")
                paint = page.evaluate("performance.getEntriesByName('first-paint')[0].startTime")
                start = time.perf_counter()
                page.keyboard.press("/")
                page.keyboard.type(f"a{calls_of(size) - 1}")
                page.keyboard.press("Enter")
                page.wait_for_function("() => app.graph.cy.nodes('.selected').length > 0")
                search = time.perf_counter() - start
                pause = page.evaluate("probe.longestPause()")
                runs.append((paint / 1000, ready / 1000, search, pause / 1000))
                page.close()
            found[size] = [f"{statistics.median(values):.2f}" for values in zip(*runs, strict=True)]
        browser.close()
    return found


def rows(sizes: tuple[int, ...], repeats: int) -> Iterator[list[str]]:
    """The rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        pages: dict[int, Path] = {}
        seconds: dict[int, float] = {}
        for size in sizes:
            source = Path(folder) / f"program{size}.py"
            source.write_text(program(size), encoding="utf-8")
            pages[size] = Path(folder) / f"page{size}.html"
            seconds[size] = statistics.median(write_page(source, pages[size]) for _ in range(repeats))
        shown = in_browser(pages, repeats)
        for size, page in pages.items():
            text = page.read_text(encoding="utf-8")
            data = text.partition('type="application/json"')[2].partition("</script>")[0]
            kilobytes = [f"{len(part) / 1000:,.0f}" for part in (text, data)]
            yield [f"{size:,}", f"{seconds[size]:.2f}", *kilobytes, *shown[size]]


def page_table(repeats: int) -> str:
    """The table of the page."""
    return table(HEAD, list(rows(SIZES, repeats))) + "\n" + LIMITS
