"""The page of ``lmc view`` in a browser: it follows its file, and keeps what is looked at."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.cli.viewing import START, viewing
from tests.project.layers import REPOSITORY
from tests.report.browser.conftest import READY, Shown
from tests.report.browser.test_page import FULL, axe

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]
JUDGE = (REPOSITORY / "examples" / "judge.py").read_text()
ROWS = (REPOSITORY / "examples" / "data" / "essays.jsonl").read_text()


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    (tmp_path / "essays.jsonl").write_text(ROWS)
    file = tmp_path / "judge.py"
    file.write_text(JUDGE)
    return file


@pytest.fixture
def opened(browser: "Browser") -> "Iterator[Open]":
    """Open an address. At the end: no message on the console, no error, no dialog, no request to another place."""
    shown: list[Shown] = []

    def open_page(url: str, scheme: Literal["light", "dark"] = "light") -> "Page":
        here = Shown.on(browser, scheme)
        shown.append(here)
        here.page.goto(url)
        return here.page

    yield open_page
    for each in shown:
        origin = each.page.url.split("/", 3)[:3]
        assert each.said == []
        assert [url for url in each.requested if not url.startswith("blob:") and url.split("/", 3)[:3] != origin] == []
        each.page.close()


def wait_for_change(page: "Page", change: Callable[[], Any]) -> None:
    """Change a file, and wait until the page shows and has laid out what comes of it."""
    before = page.evaluate("[live.shown, app.graph.box.dataset.laidOut]")
    change()
    page.wait_for_function(
        "([id, laidOut]) => live.shown !== id && app.graph.box.dataset.laidOut !== laidOut",
        arg=before,
        timeout=READY,
    )


LOOKED = """() => {
  const { session, graph, tabs } = app;
  const name = (key) => session.nodeOf(key).id ?? session.nodeOf(key).label;
  return {
    stage: session.data.view.stages[session.stage].name, slider: document.getElementById("slider").value,
    selected: [...session.selected].map(name).sort(), tab: tabs.shown, zoom: graph.cy.zoom(),
    open: [...session.open].filter(Boolean).map((id) => session.parts.byId.get(id))
      .map((part) => `${part.kind} ${name(part.key)}`).sort(),
    search: document.getElementById("search").value, colour: graph.colours.mode.name,
    lines: [...document.querySelectorAll(".line.selected code")].map((one) => one.textContent),
  };
}"""
PLACE = """(id) => {
  const node = app.graph.cy.nodes().filter((each) => app.session.nodeOf(each.data("op"))?.id === id);
  return node.renderedPosition();
}"""


def test_it_keeps_what_is_looked_at(judge: Path, opened: Open) -> None:
    with viewing(judge.parent, "judge.py", "--input", "essays.jsonl") as server:
        page = opened(server.url)
        page.wait_for_selector("body[data-ready]", timeout=READY)
        assert page.locator("#live-state").inner_text() == "Up to date."
        page.evaluate("probe.unfold()")
        verdict = page.evaluate("[...app.session.data.calls.values()].at(-1).id")
        page.evaluate("() => app.session.select([...app.session.data.calls.keys()].slice(-1), {reveal: true})")
        page.select_option("#colour", "wave")
        page.fill("#search", "judge")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        page.evaluate(
            "() => { app.graph.goToSelection(); app.graph.cy.zoom(0.9); app.graph.cy.panBy({x: 31, y: -17}); }"
        )
        looked, place = page.evaluate(LOOKED), page.evaluate(PLACE, verdict)
        assert looked["selected"] == [verdict]
        assert "fan" in " ".join(looked["open"])
        # An op before all others: every key is another one.
        wait_for_change(page, insert_first(judge))
        assert "Be kind." in page.locator("#source-lines").inner_text()
        after = page.evaluate(LOOKED)
        assert after == looked
        moved = page.evaluate(PLACE, verdict)
        assert (moved["x"], moved["y"]) == pytest.approx((place["x"], place["y"]), abs=1)
        page.click("#tab-heat")
        page.wait_for_selector("#heat [role=treeitem]")
        (judge.parent / "essays.jsonl").write_text("".join(ROWS.splitlines(keepends=True)[:2]))
        page.wait_for_function("() => app.session.data.view.plan.row_count === 2", timeout=READY)
        assert page.evaluate("app.tabs.shown") == "heat"
        parts = page.evaluate("app.session.data.view.plan.prompts.length")
        page.wait_for_function(
            "(count) => document.querySelectorAll('#heat [role=treeitem]').length === count", arg=parts
        )
        page.click("#tab-calls")
        assert page.locator("#table-calls tbody tr[data-op]").count() == page.evaluate("app.session.data.calls.size")


def test_a_removed_op_leaves_its_place_selected(judge: Path, opened: Open) -> None:
    """The ops of the nearest line of the same function, and not those of a function that is nearer."""
    last = '    verdict = s.select("verdict", ["accept", "revise", "reject"])\n'
    helper = "\n\ndef kind(s):\n    s += lmc.system('Be kind.')\n\n\n@lmc.jit\n"
    program = JUDGE.replace("\n\n@lmc.jit\n", helper)
    program = program.replace("    s += lmc.user(f", "    kind(s)\n    s += lmc.user(f", 1).replace(
        '"verdict": verdict, ', ""
    )
    judge.write_text(program)
    selected = "[...app.session.selected].map((key) => app.session.nodeOf(key).place.line).sort()"
    line_of = {text: number for number, text in enumerate(program.splitlines(), 1)}
    with viewing(judge.parent, "judge.py") as server:
        page = opened(server.url)
        page.wait_for_selector("body[data-ready]", timeout=READY)
        page.click(f"#source-lines [data-line='{line_of[last.rstrip()]}'] button.number")
        assert set(page.evaluate(selected)) == {line_of[last.rstrip()]}
        wait_for_change(page, lambda: judge.write_text("# A line above.\n" + program.replace(last, "")))
        assert "verdict" not in page.locator("#outline").inner_text()
        assert set(page.evaluate(selected)) == {line_of[last.rstrip()]}  # that of the return, as one is above now
        # All of kind is gone but its head; judge begins right below.
        system = "    s += lmc.system('Be kind.')\n"
        page.click(f"#source-lines [data-line='{line_of[system.rstrip()] + 1}'] button.number")
        wait_for_change(page, lambda: judge.write_text(judge.read_text().replace(system, "    pass\n")))
        assert set(page.evaluate(selected)) == {line_of["@lmc.jit"] + 1}


def test_tables_stay_sorted_and_the_focus_stays(judge: Path, opened: Open) -> None:
    focused = """() => {
      const { activeElement: element } = document;
      const op = element.closest("[data-op]")?.dataset.op ?? app.session.parts.byId.get(element.dataset.part)?.key;
      const { id, label } = app.session.nodeOf(op) ?? {};
      return [element.tagName, element.className, id ?? label ?? element.textContent];
    }"""
    column = """() => {
      const at = [...document.querySelectorAll("#table-calls th")].findIndex((head) => head.textContent === "wave");
      return [...document.querySelectorAll("#table-calls tbody tr[data-op]")].map((row) => row.cells[at].textContent);
    }"""
    with viewing(judge.parent, "judge.py") as server:
        page = opened(server.url)
        page.wait_for_selector("body[data-ready]", timeout=READY)
        page.click("#tab-calls")
        page.click("#table-calls th button:has-text('wave')")
        page.click("#table-calls th button:has-text('wave')")
        assert page.evaluate(column) == ["0", *["1"] * 5, "2"]
        page.click("#table-calls th button:has-text('wave')")
        places = {
            "#table-calls th:nth-child(3) button": "calls", "#table-calls tr:nth-child(3) button.link": "calls",
            "#selection button[data-op] >> nth=1": "calls", "#outline .item.call >> nth=-1": "list",
            "#source-lines [data-line='28'] button.number": "graph", "#graph": "graph",
        }  # fmt: skip
        for place, tab in places.items():
            page.click(f"#tab-{tab}")
            page.evaluate("() => app.session.select([...app.session.data.calls.keys()].slice(-1), {reveal: true})")
            if tab == "graph":
                page.evaluate("() => document.querySelector(\"#source-lines [data-line='28'] button\").tabIndex = 0")
            page.focus(place)
            before = page.evaluate(focused)
            if before[2].isdecimal():
                before[2] = str(int(before[2]) + 1)
            wait_for_change(page, insert_first(judge))
            assert page.evaluate(focused) == before, place
            assert page.evaluate("document.activeElement.tabIndex") == 0, place
            wait_for_change(page, lambda: judge.write_text(JUDGE))
        page.click("#tab-calls")
        assert page.evaluate(column) == ["2", *["1"] * 5, "0"]
        assert page.locator("#table-calls th[aria-sort='descending']").inner_text() == "wave"


def test_a_timeline_of_the_program_before_an_edit(judge: Path, opened: Open) -> None:
    """It stays, with the graph that it belongs to; the page says so, and no longer once the edit is undone."""
    run = ("run", "judge.py", "--input", "essays.jsonl", "--timeline", "t.json", "-o", "out.jsonl")
    subprocess.run([sys.executable, "-c", START, *run], cwd=judge.parent, check=True, capture_output=True, timeout=120)
    with viewing(judge.parent, "judge.py", "t.json") as server:
        page = opened(server.url)
        page.wait_for_selector("body[data-ready]", timeout=READY)
        shown = page.evaluate("live.shown")
        page.click("#tab-timeline")
        insert_first(judge)()
        page.wait_for_selector("#problem.notice", timeout=READY)
        text = page.locator("#problem").inner_text()
        assert "The timeline belongs to the program before the edit" in text
        assert "the source of judge has changed since t.json was recorded" in text
        assert page.locator("#timeline canvas").is_visible()
        assert axe(page) == []
        page.focus("#timeline canvas")
        page.keyboard.press("End")
        assert page.locator("#timeline-detail").inner_text().startswith("measured: ")
        assert page.evaluate("live.shown") == shown
        judge.write_text("1 / 0\n")
        page.wait_for_selector("#problem:not(.notice):not([hidden])", timeout=READY)
        assert "ZeroDivisionError" in page.locator("#problem").inner_text()
        judge.write_text(JUDGE)
        page.wait_for_selector("#problem", state="hidden", timeout=READY)
        assert page.evaluate("[live.shown, app.tabs.shown]") == [shown, "timeline"]


def test_a_run_begins_while_it_is_awaited(judge: Path, opened: Open) -> None:
    """The page waits for the timeline, follows it while it is written, and keeps what is looked at."""
    run = ("run", "judge.py", "--input", "essays.jsonl", "--timeline", "whole.json", "-o", "out.jsonl")
    subprocess.run([sys.executable, "-c", START, *run], cwd=judge.parent, check=True, capture_output=True, timeout=120)
    lines = (judge.parent / "whole.json").read_text().splitlines(keepends=True)
    count = "app.session.data.view.timeline?.request_count ?? 0"
    with viewing(judge.parent, "judge.py", "t.json") as server:
        page = opened(server.url)
        page.wait_for_selector("body[data-ready]", timeout=READY)
        notice = "waiting for t.json: lmc run --timeline t.json writes it"
        assert page.locator("#notices").inner_text() == notice
        assert not page.locator("#problem").is_visible()
        assert not page.locator("#tab-timeline").is_visible()
        page.click("#tab-calls")
        with (judge.parent / "t.json").open("w") as file:
            last = 0
            for begin in range(0, len(lines), len(lines) // 2 + 1):
                file.writelines(lines[begin : begin + len(lines) // 2 + 1])
                file.flush()
                page.wait_for_function(f"(last) => ({count}) > last", arg=last, timeout=READY)
                last = page.evaluate(count)
                assert notice not in page.locator("#notices").inner_text()
        page.wait_for_function("() => app.session.data.view.timeline.complete", timeout=READY)
        assert page.evaluate("app.tabs.shown") == "calls"
        page.click("#tab-timeline")
        assert page.locator("#timeline canvas").is_visible()
        assert len(page.evaluate("app.timeline.entries.filter((one) => one.text.startsWith('measured'))")) >= last


def insert_first(file: Path) -> Callable[[], None]:
    """Return a change that adds an op before all others of the program."""

    def change() -> None:
        before, mark, behind = file.read_text().partition("    s += ")
        assert mark
        file.write_text(f"{before}    s += lmc.system('Be kind.')\n{mark}{behind}")

    return change


@pytest.mark.parametrize("scheme", ["light", "dark"] if FULL else ["dark"])
def test_an_error_stands_before_the_last_good_graph(
    scheme: Literal["light", "dark"], judge: Path, opened: Open
) -> None:
    judge.write_text("import lmc\n\n1 / 0\n")
    with viewing(judge.parent, "judge.py") as server:
        page = opened(server.url, scheme)
        page.wait_for_selector("#problem:not([hidden])", timeout=READY)
        assert (
            "judge.py:3: error: judge.py can't be imported: ZeroDivisionError" in page.locator("#problem").inner_text()
        )
        assert not page.locator("#graph").is_visible()
        assert axe(page) == []
        judge.write_text(JUDGE)
        page.wait_for_selector("body[data-ready]", timeout=READY)
        assert not page.locator("#problem").is_visible()
        shown = page.evaluate("probe.ops()")
        judge.write_text(JUDGE.replace("import lmc", "import lmcc"))
        page.wait_for_selector("#problem:not([hidden])", timeout=READY)
        assert "No module named 'lmcc'" in page.locator("#problem").inner_text()
        assert page.locator("#graph").is_visible()
        assert page.evaluate("probe.ops()") == shown
        assert axe(page) == []
        page.keyboard.press("Tab")
        page.focus("#problem button")
        page.keyboard.press("Enter")
        assert page.locator("#problem button").inner_text() == "Show the error"
        page.click("#tab-list")
        page.wait_for_selector("#outline .item")
        assert axe(page) == []
        page.click("#problem button")
        judge.unlink()
        page.wait_for_function(
            "() => document.getElementById('problem').innerText.includes('judge.py is gone')", timeout=READY
        )
        judge.write_text(JUDGE)
        page.wait_for_selector("#problem", state="hidden", timeout=READY)
        assert page.evaluate("app.tabs.shown") == "list"


def test_a_hostile_error_and_name(tmp_path: Path, opened: Open) -> None:
    """An error's text is text, and so is the name of a file."""
    name = "<img src=x onerror=alert(1)>.py"
    (tmp_path / name).write_text("raise ValueError('</script><script>alert(2)</script>\\u202e\\0\\ud800')\n")
    (tmp_path / "other.py").write_text("")
    with viewing(tmp_path, name, "other.py") as server:
        page = opened(server.url)
        assert axe(page) == []
        page.click("a >> nth=0")
        page.wait_for_selector("#problem:not([hidden])", timeout=READY)
        assert "<script>alert(2)</script>" in page.locator("#problem").inner_text()
        assert page.locator("img").count() == 0
        assert page.evaluate("document.scripts.length") == 3
        page.click("header a")
        page.wait_for_selector("#files")


def test_another_page_cannot_read_it(judge: Path, browser: "Browser", tmp_path: Path) -> None:
    """Neither by a request, nor in a frame, nor as a script."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "judge.py").write_text(JUDGE)
    with viewing(judge.parent, "judge.py") as server, viewing(other, "judge.py") as elsewhere:
        page = browser.new_page()
        page.goto("about:blank")
        read = """async (url) => {
          const tries = [
            fetch(url).then((answer) => answer.text()), fetch(`${url}events/0`).then((answer) => answer.text()),
            new Promise((done, fail) => {
              Object.assign(new EventSource(`${url}events/0`), { onmessage: done, onopen: done, onerror: fail });
            }),
            new Promise((done, fail) => {
              const script = document.createElement("script");
              document.head.append(Object.assign(script, { onload: done, onerror: fail, src: url }));
            }),
          ];
          return (await Promise.allSettled(tries)).map((each) => each.status);
        }"""
        assert page.evaluate(read, server.url) == ["rejected"] * 4
        page.set_content(f'<iframe src="{server.url}"></iframe>')
        frame = page.frames[1]
        frame.wait_for_load_state()
        assert "lmc" not in frame.content().replace("lmc view", "")
        page.close()
        page = browser.new_page()
        page.goto(elsewhere.url)
        assert page.evaluate(read, server.url)[:3] == ["rejected"] * 3  # nor the page of another lmc view
        page.close()


def test_a_page_in_the_background_does_not_listen(judge: Path, opened: Open) -> None:
    hide = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with viewing(judge.parent, "judge.py") as server:
        page = opened(server.url)
        page.wait_for_selector("body[data-ready]", timeout=READY)
        page.evaluate(hide, True)
        assert page.evaluate("live.source") is None
        wait_for_change(page, lambda: (insert_first(judge)(), page.evaluate(hide, False)))
        assert "Be kind." in page.locator("#source-lines").inner_text()


def test_a_page_shows_no_other_file(judge: Path, browser: "Browser") -> None:
    """After a restart on the same port: the same file goes on, another one is not taken for it."""
    (judge.parent / "other.py").write_text(JUDGE.replace("def judge", "def other"))
    here = Shown.on(browser, "light")
    page = here.page
    with viewing(judge.parent, "judge.py") as server:
        page.goto(server.url)
        page.wait_for_selector("body[data-ready]", timeout=READY)
    shown = page.evaluate("live.shown")
    with viewing(judge.parent, str(judge), port=server.port):
        judge.write_text(JUDGE.replace('"""', '"""Be kind. ', 1))
        page.wait_for_function("(id) => live.shown !== id", arg=shown, timeout=READY)
    shown = page.evaluate("live.shown")
    with viewing(judge.parent, "other.py", port=server.port):
        page.wait_for_function("() => live.isOther", timeout=READY)
        assert page.locator("#live-state").inner_text().startswith("Another file is at this address by now")
        assert page.evaluate("[live.shown, live.source, app.session.data.view.program.name]") == [shown, None, "judge"]
        assert page.title() == "judge.py"
        page.reload()
        page.wait_for_selector("body[data-ready]", timeout=READY)
        assert page.evaluate("app.session.data.view.program.name") == "other"
    page.close()
    assert [said for said in here.said if "net::ERR_" not in said] == []  # the browser says that no server is there
