"""The page in a browser, on the examples and on generated modules."""

import itertools
import json
import os
from collections.abc import Callable
from itertools import combinations
from math import dist
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lmc import driver
from lmc.driver.viewing.view import CompiledView, Room
from lmc.report.model import PlannedCost
from lmc.report.replay import state_at
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.report.browser.bundle import TOOLS
from tests.report.golden import BROKEN
from tests.report.programs import TOY, Case
from tests.report.test_forms import large
from tests.report.test_safety import HOSTILE, module_of, program_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

Show = Callable[..., "Page"]
ROOM = Room(driver.schedule.HOLDS_ALL, 256)
BUILTIN: dict[str, Any] = {"target": "builtin"}
UNFOLD = "probe.unfold()"
FULL = os.environ.get("LMC_TEST_FULL") == "1"
SHOWN = sorted(EXAMPLES) if FULL else ["judge", "react", "self_refine"]
AXE = itertools.product(("light", "dark"), ("judge", "react", "broken"))


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def view_of(name: str, folder: Path) -> CompiledView:
    if name == "broken":
        return driver.view.run(BROKEN, TOY, [], room=ROOM)
    return Case.of(name, folder).view()


def measured_view(folder: Path) -> CompiledView:
    """A view of judge with a run of its rows."""
    return Case.of("judge", folder).measured_view(BUILTIN, folder)


def module_view(text: str, folder: Path) -> CompiledView:
    file = folder / "m.lmir"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    return driver.view.run(str(file), {}, [], room=ROOM)


def tabs_of(page: "Page") -> list[str]:
    return page.eval_on_selector_all("[role=tab]:not([hidden])", "(tabs) => tabs.map((tab) => tab.dataset.tab)")


def axe(page: "Page") -> list[str]:
    """Return the rules of axe-core that the page breaks, with the first element of each."""
    page.evaluate((TOOLS / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0]['failureSummary']}" for each in found]


@pytest.mark.parametrize("name", [*SHOWN, "broken"])
def test_examples(name: str, show: Show, tmp_path: Path) -> None:
    """Every tab has its content, and the slider changes exactly the ops that the data list."""
    view = view_of(name, tmp_path)
    page = show(view)
    expected = {"graph", "list", "calls", "ir", "passes"} | ({"heat", "timeline"} if view.plan else set())
    assert set(tabs_of(page)) - {"constraints"} == expected
    assert ("constraints" in tabs_of(page)) == bool(view.constraints)
    for tab in tabs_of(page):
        page.click(f"#tab-{tab}")
        panel = page.locator(f"#panel-{tab}")
        assert panel.is_visible()
        if tab not in ("graph", "timeline"):
            page.wait_for_function("(tab) => document.getElementById(`panel-${tab}`).innerText.trim()", arg=tab)
    page.click("#tab-ir")
    page.evaluate("document.activeElement.blur()")
    page.evaluate(UNFOLD)
    for number in reversed(range(len(view.stages))):
        stage = view.stages[number]
        state = state_at(view, number)
        shown = page.evaluate("probe.ops()")
        assert shown == sorted([*state.nodes, *stage.removed])
        drawn = page.evaluate("probe.marked()")
        want = {"added": [node.key for node in stage.added], "changed": [node.key for node in stage.changed]}
        want["removed"] = list(stage.removed)
        assert drawn == {mark: sorted(keys) if number else [] for mark, keys in want.items()}
        counts = page.locator("#stage-changes").inner_text()
        assert all(f"{len(keys)} {mark}" in counts for mark, keys in want.items() if keys and number)
        remarks = page.locator("#stage-remarks li").all_inner_texts()
        messages = [remark.message for remark in view.remarks if remark.stage == number]
        assert len(remarks) == len(messages)
        assert all(message in remark for message, remark in zip(messages, remarks, strict=True))
        page.wait_for_function(
            "(count) => document.querySelectorAll('#ir-lines .line:not(.removed)').length === count",
            arg=len(state.text),
        )
        lines = page.eval_on_selector_all(
            "#ir-lines .line:not(.removed) code", "(all) => all.map((one) => one.textContent)"
        )
        assert [line.strip() for line in lines] == [line.strip() for line in state.text]
        page.keyboard.press("ArrowLeft")
    assert page.locator("#slider").input_value() == "0"


@pytest.mark.parametrize("name", SHOWN if FULL else SHOWN[1:2])
def test_edges_run_beside_nodes(name: str, show: Show, tmp_path: Path) -> None:
    """In the final module, and the first model call is in view."""
    page = show(view_of(name, tmp_path))
    found = page.evaluate("probe.crossings()")
    assert found["all"] > 2
    assert found["across"] == 0
    call = page.evaluate(
        "app.graph.cy.nodes('.call').filter((node) => !node.hasClass('open'))[0].renderedBoundingBox()"
    )
    size = page.evaluate("({width: app.graph.cy.width(), height: app.graph.cy.height()})")
    assert page.evaluate("app.graph.cy.zoom()") >= 0.8  # so words are ten pixels high
    assert call["x1"] >= 0
    assert call["y1"] >= 0
    assert call["x2"] <= size["width"]
    assert call["y2"] <= size["height"]


@pytest.mark.parametrize("is_measured", [True, False])
def test_zoomed_in_everything_is_in_reach(is_measured: bool, show: Show, tmp_path: Path) -> None:
    """At 200 %, a window of 1280 × 800 has 640 × 400 pixels of CSS: nothing is cut off, covered or out of reach."""
    view = measured_view(tmp_path) if is_measured else view_of("broken", tmp_path)
    for width, height in [(640, 400), (1500, 900)] if FULL or is_measured else [(640, 400)]:
        page = show(view)
        page.set_viewport_size({"width": width, "height": height})
        for tab in tabs_of(page):
            page.click(f"#tab-{tab}")
            panel = page.locator(f"#panel-{tab}")
            panel.scroll_into_view_if_needed()
            assert panel.is_visible()
            assert page.evaluate("probe.overlapping()") == [], tab
            assert page.evaluate("probe.unreachable()") == [], tab
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.click("#tab-graph")
        box = page.locator("#graph").bounding_box()
        assert box is not None
        assert box["height"] >= min(0.55 * height, 190)
        page.focus("#graph")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("app.session.selected.size") > 0


def test_titles_of_groups_stand_before_edges(show: Show, tmp_path: Path) -> None:
    """They are opaque, in the band above what the group holds, and a click on one is a click on its group."""
    page = show(view_of("map_reduce", tmp_path))
    page.evaluate(UNFOLD)
    titles: list[dict[str, Any]] = page.evaluate("""() => {
      const { cy } = app.graph;
      const others = cy.elements().filter((one) => !one.hasClass("title"));
      const highest = Math.max(...others.map((one) => one.numericStyle("z-index")));
      return cy.nodes(".title").map((title) => ({
        isAbove: title.numericStyle("z-index") > highest, opacity: title.numericStyle("background-opacity"),
        label: title.data("label"), width: title.data("width"), part: title.data("part"),
        words: app.graph.labels.width(title.data("label"), title.data("font"), true),
        group: cy.getElementById(`p:${title.data("part")}`).data("label"), at: title.renderedPosition(),
      }));
    }""")
    assert len(titles) == page.evaluate("app.graph.cy.nodes('.open').length") > 3
    for title in titles:
        assert (title["isAbove"], title["opacity"], title["group"]) == (True, 1, "")
        assert title["label"].startswith("▾ ")
        assert title["width"] >= title["words"]
    boxes = {(box["part"], box["isOpen"]): box for box in page.evaluate("probe.boxes()")}
    for part in (title["part"] for title in titles):
        assert holds(boxes[part, True], boxes[part, False])
    box = page.locator("#graph").bounding_box()
    assert box is not None
    first = next(each for each in titles if 0 < each["at"]["x"] < box["width"] and 0 < each["at"]["y"] < box["height"])
    page.mouse.dblclick(box["x"] + first["at"]["x"], box["y"] + first["at"]["y"])
    page.wait_for_function("(part) => !app.session.open.has(part)", arg=first["part"])


@pytest.mark.parametrize(("scheme", "name"), list(AXE) if FULL else [("light", "broken"), ("dark", "judge")])
def test_nothing_stands_in_the_way_of_anyone(name: str, scheme: str, show: Show, tmp_path: Path) -> None:
    """axe-core finds nothing, in any tab, with and without a selection, wide and at 200 % zoom."""
    page = show(view_of(name, tmp_path), scheme)
    for tab in tabs_of(page):
        page.click(f"#tab-{tab}")
        assert axe(page) == []
    page.click("#tab-list")
    page.click("#outline .item.call")
    assert axe(page) == []
    page.set_viewport_size({"width": 750, "height": 450})
    assert axe(page) == []
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 750


def test_an_op_selects_its_line_and_a_line_its_ops(show: Show, tmp_path: Path) -> None:
    view = view_of("judge", tmp_path)
    page = show(view)
    page.evaluate(UNFOLD)
    for call in view.calls:
        node = state_at(view, -1).nodes[call.key]
        at = page.evaluate("(key) => probe.bring(key)", call.key)
        page.mouse.click(at["x"], at["y"])
        assert node.place is not None
        selected = page.eval_on_selector_all(
            ".line.selected[data-line]", "(all) => all.map((one) => Number(one.dataset.line))"
        )
        assert selected == [node.place.line]
        assert page.locator("#selection h3").inner_text() == node.label
        assert page.evaluate("[...app.session.selected]") == [call.key]
    for line in {node.place.line for node in state_at(view, -1).nodes.values() if node.place}:
        page.click(f"#source-lines [data-line='{line}'] button.number")
        want = [node.key for node in state_at(view, -1).nodes.values() if node.place and node.place.line == line]
        assert page.evaluate("[...app.session.selected]") == want
        drawn = page.evaluate("app.graph.cy.nodes('.selected').map((node) => node.data('part'))")
        assert sorted(drawn) == sorted(want)


TWO_CALLS = """import lmc


@lmc.jit
def f(s):
    s += "Größe 😀" + s.gen("a", max_tokens=2) + s.gen("b", max_tokens=2)
"""


def test_calls_of_one_line_are_marked_at_their_columns(
    show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("two_calls.py").write_text(TWO_CALLS, encoding="utf-8")
    view = driver.view.run("two_calls.py", TOY, [], room=ROOM)
    page = show(view)
    marks = (
        "[...document.querySelectorAll('#source-lines mark')].map((one) => [one.previousSibling.data, one.textContent])"
    )
    line = TWO_CALLS.splitlines()[5]
    for call, text in zip(view.calls, ('s.gen("a"', 's.gen("b"'), strict=True):
        page.evaluate("(key) => app.session.select([key])", call.key)
        assert page.evaluate(marks) == [[line.partition(text)[0], "s.gen"]]
    page.click("#source-lines [data-line='6'] button.number")
    assert {call.key for call in view.calls} < set(page.evaluate("[...app.session.selected]"))
    assert [text for _, text in page.evaluate(marks)] == ["s", "s.gen", "s.gen"]
    page.evaluate("app.session.select([])")
    assert page.evaluate(marks) == []
    assert page.locator("#source-lines [data-line='6'] code").inner_text() == line


def test_breaks_stand_at_their_lines(show: Show, tmp_path: Path) -> None:
    view = view_of("broken", tmp_path)
    page = show(view)
    [entry] = view.breaks
    assert entry.place is not None
    note = page.locator(f".source-line:has([data-line='{entry.place.line}']) .note.break").inner_text()
    assert entry.cause in note
    assert entry.remedy in note
    places = [page.locator(each).first.bounding_box() for each in ("#source-scroll", ".note.break")]
    pane, box = places
    assert pane is not None
    assert box is not None
    assert box["x"] + box["width"] <= pane["x"] + pane["width"]


def test_long_lines_and_names_are_in_view(show: Show, tmp_path: Path) -> None:
    """All of the code in its pane, beside a narrow gutter, and the line in the selection."""
    view = view_of("judge", tmp_path)
    page = show(view)
    outside = "(box) => box.scrollWidth - box.clientWidth"
    page.evaluate("(key) => app.session.select([key])", view.calls[0].key)
    assert page.eval_on_selector("#source-scroll", outside) == 0
    assert page.eval_on_selector("#side", outside) == 0
    pane, code = [page.locator(each).first.bounding_box() for each in ("#source-scroll", "#source-lines code")]
    assert pane is not None
    assert code is not None
    assert code["width"] > 0.6 * pane["width"]
    cut = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"
    assert page.eval_on_selector_all("#source-lines .cost", cut) == []


def test_the_search_finds(show: Show, tmp_path: Path) -> None:
    view = view_of("judge", tmp_path)
    page = show(view)
    page.keyboard.press("/")
    page.keyboard.type("JUDGEMENT")
    nodes = state_at(view, -1).nodes.values()
    want = [
        node.key
        for node in nodes
        if any("judgement" in text.lower() for text in (node.label, node.id or "", node.op, node.text))
    ]
    assert page.locator("#search-count").inner_text() == f"{len(want)} found"
    found: list[str] = []
    for number, _ in enumerate(want):
        page.keyboard.press("Enter")
        assert page.locator("#search-count").inner_text() == f"{number + 1} of {len(want)}"
        found += page.evaluate("[...app.session.selected]")
        page.wait_for_function(
            "() => app.graph.cy.nodes('.selected').some((node) => app.session.selected.has(node.data('part')))"
        )
    assert found == want
    page.fill("#search", "no such op")
    assert page.locator("#search-count").inner_text() == "0 found"


def test_the_keyboard_reaches_everything(show: Show, tmp_path: Path) -> None:
    view = view_of("judge", tmp_path)
    page = show(view)
    for tab in tabs_of(page):
        page.click(f"#tab-{tab}")
        page.evaluate("probe.watchFocus()")
        for _ in range(page.evaluate("probe.controls().length") + 3):
            page.keyboard.press("Tab")
        missed = page.evaluate("probe.missed()")
        assert missed == []
    page.click("#tab-graph")
    page.focus("#graph")
    fan = page.evaluate("() => [...app.graph.visible.values()].find((each) => each.part.kind === 'fan').id")
    for _ in range(40):
        page.keyboard.press("ArrowDown")
        if page.evaluate("app.graph.current()") == fan:
            break
    assert page.evaluate("app.graph.current()") == fan
    before = page.evaluate("app.graph.visible.size")
    page.keyboard.press("Enter")
    page.wait_for_function("(before) => app.graph.visible.size > before", arg=before)
    page.keyboard.press("Enter")
    page.wait_for_function("(before) => app.graph.visible.size === before", arg=before)
    zoom = page.evaluate("app.graph.cy.zoom()")
    page.keyboard.press("+")
    assert page.evaluate("app.graph.cy.zoom()") > zoom
    page.keyboard.press("0")
    page.focus("#tab-graph")
    for tab in tabs_of(page)[1:]:
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.dataset.tab") == tab
        assert page.locator(f"#panel-{tab}").is_visible()
    page.focus("#source-lines button[tabindex='0']")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("app.session.selected.size") > 0
    page.focus("#tab-list")
    page.focus("#outline .item")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#outline [aria-selected=true]").count() == 1
    page.focus("#tab-heat")
    page.focus("#heat")
    page.keyboard.press("ArrowRight")
    assert "tokens" in page.locator("#heat-detail").inner_text()
    page.focus("#tab-timeline")
    page.focus("#timeline canvas")
    page.keyboard.press("ArrowDown")
    assert view.plan is not None
    first = view.plan.requests[0]
    assert f"row {first.row}, depth {first.depth}" in page.locator("#timeline-detail").inner_text()
    assert page.evaluate("[...app.session.selected]") == [first.key]


def test_figures_are_those_of_the_data(show: Show, tmp_path: Path) -> None:
    """Of the data, which equal those of the commands (``test_figures.py``)."""
    view = view_of("judge", tmp_path)
    page = show(view)
    plan = view.plan
    assert plan is not None
    rows = dict(
        page.eval_on_selector_all(
            "#selection dl div", "(all) => all.map((row) => [...row.children].map((one) => one.textContent))"
        )
    )
    times = page.eval_on_selector_all("data", "(all) => all.map((one) => [one.value, one.textContent])")
    assert rows["prompt tokens"] == f"{plan.total.prompt:,}"
    assert rows["found in the cache"] == f"{plan.total.cached:,}"
    assert rows["steps"] == f"{plan.steps:,}"
    assert rows["hit rate"] == f"{100 * plan.hit_rate:.1f} %"
    assert page.locator("#selection dd span").first.get_attribute("title") == str(plan.hit_rate)
    assert {float(value) for value, _ in times} == {plan.predicted_seconds}
    assert {text for _, text in times} == {rows["predicted time"]} == {time_text(plan.predicted_seconds)}
    page.click("#tab-calls")
    page.click("#panel-calls th button:has-text('cached')")
    page.click("#panel-calls button:has-text('Copy as TSV')")
    page.evaluate("probe.addPaste()")
    page.keyboard.press("Control+v")
    head, *lines = [line.split("\t") for line in page.input_value("#paste").splitlines()]
    found = [dict(zip(head, line, strict=True)) for line in lines]
    calls = {call.id: call for call in view.calls}
    assert sorted(each["call"] for each in found) == sorted(calls)
    for each in found:
        call = calls[each["call"]]
        assert call.planned is not None
        want = [call.wave, call.planned.requests, call.planned.prompt, call.planned.cached, call.planned.output]
        assert [int(each[name]) for name in ("wave", "requests", "tokens in", "cached", "tokens out")] == want
    assert [int(each["cached"]) for each in found] == sorted((int(each["cached"]) for each in found), reverse=True)
    for cost in view.lines:
        said = page.locator(f"#source-lines [data-line='{cost.place.line}'] .cost").get_attribute("title") or ""
        assert cost.planned is not None
        assert f"{cost.planned.prompt:,} prompt tokens" in said
    page.click("#tab-heat")
    labels = page.eval_on_selector_all(
        "#heat [role=treeitem]", "(all) => all.map((one) => one.getAttribute('aria-label'))"
    )
    assert len(labels) == len(plan.prompts)
    for label, node in zip(labels, plan.prompts, strict=True):
        assert f"{node.computed:,} computed, {node.cached:,} found in the cache" in label


def time_text(value: float) -> str:
    """A time in three significant digits, of less than 1,000 seconds."""
    amount, unit = (value, "s") if value >= 0.9995 or value == 0 else (value * 1000, "ms")
    return f"{float(f'{amount:.3g}'):g} {unit}"


def test_times_have_three_digits_and_a_unit(show: Show, tmp_path: Path) -> None:
    page = show(view_of("judge", tmp_path))
    values = [0, 1.25e-7, 0.000123456, 0.0123456, 0.9994, 0.9996, 1, 1.23456, 12.3456, 999]
    assert page.evaluate("(values) => values.map(seconds)", values) == list(map(time_text, values))
    assert page.evaluate("seconds(1234.5)") == "1,230 s"


REMARKED = """import lmc


@lmc.jit
def f(s):
    s += s.gen("a", regex="[ab]{2}") + s.gen("b") + s.gen("c", regex="[ab]{3}")
    for number in range(2):
        s += s.select(f"d{number}", ["yes", "no"][number:])
"""


def test_calls_have_their_own_remarks(show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several calls of one line, and one call that several rounds of a known loop make."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("remarked.py").write_text(REMARKED, encoding="utf-8")
    view = driver.view.run("remarked.py", TOY, [], room=ROOM)
    page = show(view)
    page.click("#tab-calls")
    found = {
        call.id: [
            remark.message
            for remark in view.remarks
            if (remark.op is None or remark.op == call.id) and remark.place == state_at(view, -1).nodes[call.key].place
        ]
        for call in view.calls
    }
    assert len(found) == 4
    shown = page.evaluate("() => Object.fromEntries(app.tables[0].rows.map((row) => [row.id, probe.remarks(row.key)]))")
    assert shown == found
    assert any("'f/a'" in each for each in found["f/a"])
    assert not any("'f/c'" in each for each in found["f/a"])
    for call in view.calls:
        page.evaluate("(key) => app.session.select([key])", call.key)
        texts = page.locator("#selection ul:has(.applied, .missed) li").all_inner_texts()
        assert len(texts) == len(found[call.id])
        assert all(message in text for message, text in zip(found[call.id], texts, strict=True))


def test_remarks_are_in_view(show: Show, tmp_path: Path) -> None:
    """Of tables that are wider than their panel."""
    page = show(measured_view(tmp_path))
    for width, tab in itertools.product((1500, 750), ("calls", "passes")):
        page.set_viewport_size({"width": width, "height": 900})
        page.click(f"#tab-{tab}")
        scroll = f"#table-{tab} .scroll"
        for left in (0, 10_000):
            page.eval_on_selector(scroll, "(box, left) => { box.scrollLeft = left; }", left)
            box = page.locator(scroll).bounding_box()
            assert box is not None
            remarks = page.locator(f"{scroll} tr.below div")
            assert remarks.count() > 0
            for each in remarks.all():
                place = each.bounding_box()
                assert place is not None
                assert place["x"] >= box["x"]
                assert place["x"] + place["width"] <= box["x"] + box["width"]
        assert page.eval_on_selector(scroll, "(box) => box.scrollLeft > 0") == (tab == "calls" or width == 750)
        first, box = page.locator(f"{scroll} tbody td").first.bounding_box(), page.locator(scroll).bounding_box()
        assert first is not None
        assert box is not None
        assert first["x"] == pytest.approx(box["x"], abs=2)


def test_dollars_are_shown_where_the_data_have_them(show: Show, tmp_path: Path) -> None:
    """No command computes them yet."""
    view = view_of("judge", tmp_path)
    modes = "[...document.querySelectorAll('#colour option')].map((one) => one.value)"
    heads = "[...document.querySelectorAll('#panel-calls th')].map((one) => one.textContent)"
    page = show(view)
    assert "dollars" not in page.evaluate(modes)
    page.click("#tab-calls")
    assert "tokens in" in page.evaluate(heads)
    assert "dollars" not in page.evaluate(heads)
    assert view.plan is not None
    calls = [
        call.model_copy(update={"planned": priced(call.planned, number / 8)}) for number, call in enumerate(view.calls)
    ]
    lines = [line.model_copy(update={"planned": priced(line.planned, 0.25)}) for line in view.lines]
    plan = view.plan.model_copy(update={"total": priced(view.plan.total, 21 / 8)})
    page = show(view.model_copy(update={"calls": tuple(calls), "lines": tuple(lines), "plan": plan}))
    assert "$2.625" in page.locator("#selection").inner_text()
    page.select_option("#colour", "dollars")
    assert "$0.75" in page.locator("#legend").inner_text()
    page.click("#tab-calls")
    assert "dollars" in page.evaluate(heads)
    place = lines[0].place.line
    title = page.locator(f"#source-lines [data-line='{place}'] .cost").get_attribute("title") or ""
    assert title.endswith("$0.25")


def priced(cost: PlannedCost | None, dollars: float) -> PlannedCost:
    assert cost is not None
    return cost.model_copy(update={"dollars": dollars})


def test_a_drag_over_the_timeline_selects(show: Show, tmp_path: Path) -> None:
    view = view_of("judge", tmp_path)
    page = show(view)
    page.click("#tab-timeline")
    box = page.locator("#timeline canvas").bounding_box()
    assert box is not None
    assert view.plan is not None
    page.mouse.move(box["x"] + box["width"] - 60, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 40, steps=4)
    page.mouse.up()
    start, end = page.evaluate("[app.timeline.brushed.from, app.timeline.brushed.to]")
    assert 0.8 < start / view.plan.predicted_seconds < end / view.plan.predicted_seconds <= 1
    fields = [float(page.input_value(each)) for each in ("#time-from", "#time-to")]
    assert fields == pytest.approx([start, end], abs=1e-6)
    want = {request.key for request in view.plan.requests if request.started <= end and request.ended >= start}
    assert set(page.evaluate("[...app.session.selected]")) == want
    page.fill("#time-from", "0")
    page.fill("#time-to", "0")
    page.click("#time-select")
    first = {request.key for request in view.plan.requests if request.started <= 0}
    assert set(page.evaluate("[...app.session.selected]")) == first


def test_the_timeline_zooms(show: Show, tmp_path: Path) -> None:
    """By keys, buttons and wheel; a click finds the request below it, and a drag its times."""
    page = show(measured_view(tmp_path))
    page.set_viewport_size({"width": 1500, "height": 450})  # so the lanes are too low for words
    page.click("#tab-timeline")
    page.focus("#timeline canvas")
    shown = "[app.timeline.shown.from, app.timeline.shown.to]"
    lane = page.evaluate("app.timeline.lane")
    whole = page.evaluate(shown)
    assert whole == [0, page.evaluate("app.timeline.end")]
    for _ in range(6):
        page.keyboard.press("+")
    start, end = page.evaluate(shown)
    assert end - start == pytest.approx(whole[1] / 1.5**6)
    assert (start + end) / 2 == pytest.approx(whole[1] / 2)
    assert page.evaluate("app.timeline.lane") == pytest.approx(18)
    assert lane < 18
    stage = page.input_value("#slider")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.click("#time-later")
    page.click("#time-earlier")
    assert page.evaluate(shown) == pytest.approx([start, end])
    assert page.input_value("#slider") == stage
    box = page.locator("#timeline canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + 300, box["y"] + 80
    page.mouse.move(x, y)
    under = "([x, y]) => [app.timeline.timeAt({clientX: x, clientY: y}), app.timeline.at({clientX: x, clientY: y})]"
    before = page.evaluate(under, [x, y])
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function("(length) => app.timeline.shown.to - app.timeline.shown.from < length", arg=end - start)
    assert page.evaluate(under, [x, y]) == [pytest.approx(before[0]), before[1]]
    start, end = page.evaluate(shown)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 120)
    page.keyboard.up("Shift")
    page.wait_for_function("(start) => app.timeline.shown.from > start", arg=start)
    scrolled = page.evaluate("document.getElementById('timeline').scrollTop")
    page.mouse.wheel(0, 120)
    page.wait_for_function("(top) => document.getElementById('timeline').scrollTop > top", arg=scrolled)
    count = page.evaluate("app.timeline.entries.length")
    for index in range(0, count, count // 12):
        place = page.evaluate("(index) => probe.requestAt(index)", index)
        page.mouse.click(place["x"], place["y"])
        assert page.evaluate("app.timeline.chosen") == index
    start, end = page.evaluate(shown)
    page.mouse.move(box["x"] + 200, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, y, steps=3)
    page.mouse.up()
    brushed = page.evaluate("[app.timeline.brushed.from, app.timeline.brushed.to]")
    scale = (end - start) / (box["width"] - 80)
    assert brushed == pytest.approx([start + 130 * scale, start + 330 * scale], rel=1e-3)
    page.click("#time-all")
    assert page.evaluate(shown) == whole
    assert page.evaluate("app.timeline.lane") == lane


SIGHTS = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Matrices of linear red, green and blue as seen without one kind of cones (Machado, Oliveira and Fernandes, 2009)."""


def linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    """As WCAG defines it."""
    dark, light = sorted(
        sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear(c), strict=True)) for c in (one, other)
    )
    return (light + 0.05) / (dark + 0.05)


def seen(colour: str, sight: tuple[tuple[float, ...], ...]) -> list[float]:
    """A colour as one sees it, in the space OKLab: distances there are as one judges them."""

    def times(rows: tuple[tuple[float, ...], ...], values: list[float]) -> list[float]:
        return [sum(a * b for a, b in zip(row, values, strict=True)) for row in rows]

    light = [min(max(part, 0.0), 1.0) for part in times(sight, linear(colour))]
    cones = times(
        (
            (0.41222147, 0.53633254, 0.05144599),
            (0.21190350, 0.68069955, 0.10739696),
            (0.08830246, 0.28171884, 0.62997870),
        ),
        light,
    )
    return times(
        (
            (0.21045426, 0.79361779, -0.00407205),
            (1.97799850, -2.42859221, 0.45059371),
            (0.02590404, 0.78277177, -0.80867577),
        ),
        [part ** (1 / 3) for part in cones],
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_the_timeline_differ(scheme: str, show: Show, tmp_path: Path) -> None:
    """For every kind of sight; each stands out from the page, and words from their bars."""
    page = show(view_of("judge", tmp_path), scheme)
    names = ["queue", "prefill", "decode", "tool", "failed", "back", "on-decode", "on-tool"]
    colours = dict(
        zip(names, page.evaluate("(names) => names.map((name) => app.colours.variable(name))", names), strict=True)
    )
    phases = names[:5]
    for name in phases:
        assert contrast(colours[name], colours["back"]) >= 3, name
    for name in ("decode", "tool"):
        assert contrast(colours[name], colours[f"on-{name}"]) >= 4.5, name
    for sight in SIGHTS.values():
        places = {name: seen(colours[name], sight) for name in phases}
        for one, other in combinations(phases, 2):
            assert dist(places[one], places[other]) > (0.1 if "queue" in (one, other) else 0.15), (one, other)


def test_a_run_beside_its_plan(show: Show, tmp_path: Path) -> None:
    """The figures of the run are those of the data, in the timeline, the tree of prompts and the overview."""
    view = measured_view(tmp_path)
    page = show(view)
    run, plan = view.timeline, view.plan
    assert run is not None
    assert plan is not None
    overview = page.locator("#selection").inner_text()
    for figure in (run.request_count, run.prompt, run.cached, run.output):
        assert f"{figure:,}" in overview
    page.click("#tab-timeline")
    said = "follows the plan." if run.divergence is None else f"leaves the plan at {time_text(run.divergence.seconds)}"
    assert f"The run {said}" in page.locator("#timeline-detail").inner_text()
    texts = page.evaluate("app.timeline.entries.map((entry) => entry.text)")
    assert len(texts) == len(plan.requests) + len(run.requests) + len(run.tools)
    for each in run.requests:
        assert any(
            text.startswith(f"measured: {each.id}") and f"{each.prompt:,} prompt token" in text for text in texts
        )
    page.focus("#timeline canvas")
    page.keyboard.press("End")
    assert page.locator("#timeline-detail").inner_text() == texts[-1]
    page.click("#tab-heat")
    page.select_option("#heat-of", "measured")
    labels = page.locator("#heat [role=treeitem]").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    for label, node in zip(labels, plan.prompts, strict=True):
        found = node.measured
        if found is not None:  # prompts of the run may be shorter
            assert f"measured: {found.computed:,} computed, {found.cached:,} found in the cache" in label
    assert page.evaluate("app.heat.isMeasured")
    page.locator("#heat [role=treeitem]").last.dispatch_event("pointerover", {})
    assert page.eval_on_selector("#heat-detail", "(box) => box.scrollHeight - box.clientHeight") <= 0
    heat, scroll = page.locator("#heat svg").bounding_box(), page.locator("#heat-scroll").bounding_box()
    assert heat is not None
    assert scroll is not None
    assert 0.85 * scroll["height"] < heat["height"] <= scroll["height"]


def test_a_run_without_its_program(show: Show, tmp_path: Path) -> None:
    """Its requests, calls and steps are on the page, and all tabs work; also before the run has begun."""
    measured_view(tmp_path)
    view = driver.view.run(str(tmp_path / "timeline.json"), {}, [], room=ROOM)
    run = view.timeline
    assert run is not None
    page = show(view)
    assert sorted(page.evaluate("probe.ops()")) == sorted(node.key for node in view.stages[0].added)
    overview = page.locator("#selection").inner_text()
    for figure in (run.request_count, run.prompt, run.cached, run.output, run.steps.steps if run.steps else 0):
        assert f"{figure:,}" in overview
    assert tabs_of(page) == ["graph", "list", "calls", "timeline"]
    for tab in tabs_of(page):
        page.click(f"#tab-{tab}")
        assert page.locator(f"#panel-{tab}").is_visible()
    assert axe(page) == []
    page.click("#tab-timeline")
    assert len(page.evaluate("app.timeline.entries")) == len(run.requests) + len(run.tools)
    page = show(driver.view.of_awaited("run.json", None))
    assert page.locator("#notices").inner_text() == "waiting for run.json: lmc run --timeline run.json writes it"
    for tab in tabs_of(page):
        page.click(f"#tab-{tab}")
    assert axe(page) == []


def test_rows_of_low_lanes_have_their_names(show: Show, tmp_path: Path) -> None:
    """The name of all rows takes the place of none, and no lane lies below it."""
    view = measured_view(tmp_path)
    page = show(view)
    page.set_viewport_size({"width": 1500, "height": 380})
    page.click("#tab-timeline")
    page.wait_for_function("() => app.timeline.lane < 12")
    first, stop = page.evaluate("[app.timeline.common.first, app.timeline.common.stop]")
    assert stop == first + 1
    assert page.evaluate("([a, b]) => app.timeline.top(b) - app.timeline.top(a)", [first, stop]) == pytest.approx(12)
    named = page.evaluate("app.timeline.named().map(([, name]) => name)")
    assert "all rows" in named
    assert named[named.index("all rows") + 1].startswith("row ")
    count = page.evaluate("app.timeline.entries.length")
    for index in range(0, count, 3):
        place = page.evaluate("(index) => probe.requestAt(index)", index)
        at = page.evaluate("({x, y}) => app.timeline.lanes[app.timeline.at({clientX: x, clientY: y})]", place)
        assert at == page.evaluate("(index) => app.timeline.lanes[index]", index)
    page = show(view.model_copy(update={"plan": None}))
    page.click("#tab-timeline")
    assert "not compared" in page.locator("#timeline-detail").inner_text()


def test_a_schedule_has_the_tabs_of_its_data(show: Show, tmp_path: Path) -> None:
    """It holds no text of a module and no pass, and the page offers neither."""
    file = tmp_path / "judge.schedule"
    file.write_text("".join(driver.schedule.schedule_lines(Case.of("judge", tmp_path).schedule())))
    page = show(driver.view.run(str(file), {}, [], room=ROOM))
    assert tabs_of(page) == ["graph", "list", "calls", "heat", "timeline"]
    detail = page.evaluate("() => { app.tabs.show('heat'); app.heat.describe(0); return app.heat.detail.textContent; }")
    assert " × 1" not in detail


def test_generated_evicted_and_recomputed_tokens_are_marked(show: Show, tmp_path: Path) -> None:
    seen: set[str] = set()
    case = Case.of("debate", tmp_path)
    most = max(request.cached_length for request in case.schedule().requests())
    for view in (view_of("self_refine", tmp_path), case.view(kv_tokens=most, batch=2)):
        page = show(view)
        page.click("#tab-heat")
        assert view.plan is not None
        legend = page.locator("#heat-legend").inner_text()
        for name, mark, words in (
            ("generated", "answer", "generated text"),
            ("evicted", "evicted", "evicted"),
            ("recomputed", "recomputed", "computed again"),
        ):
            want = [index for index, node in enumerate(view.plan.prompts) if getattr(node, name)]
            seen |= {name} if want else set()
            marked = page.eval_on_selector_all(
                f"#heat .{mark}", "(all) => all.map((one) => Number(one.parentNode.dataset.index))"
            )
            assert marked == want
            assert (words in legend) == bool(want)
        labels = page.locator("#heat [role=treeitem]").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
        for node, label in zip(view.plan.prompts, labels, strict=True):
            assert (f", {node.evicted:,} evicted" in label) == bool(node.evicted)
    assert seen == {"generated", "evicted", "recomputed"}


def chain(count: int, folder: Path) -> CompiledView:
    """A view of a program with so many ops, each of which waits for the one before it; half of them are calls."""
    lines = ["import lmc", "", "@lmc.jit", "def chain(s, question: str):", "    s += lmc.system('x')"]
    for number in range(count // 2):
        lines += [f"    s += lmc.user(f'part {number} {{question}}')", f"    s.gen('a{number}', max_tokens=4)"]
    file = folder / "chain.py"
    file.write_text("\n".join([*lines, ""]))
    return driver.view.run(str(file), TOY, [], room=ROOM)


def nested(depth: int, folder: Path) -> CompiledView:
    """A view of a program with conditions and loops in each other, and a call at each level."""
    lines = ["import lmc", "", "@lmc.jit", "def nested(s, xs: list[str]):", "    a0 = s.gen('a0', max_tokens=4)"]
    for level in range(depth):
        head = f"for x{level} in xs:" if level % 2 else f"if a{level} == 'x':"
        indent = "    " * (level + 1)
        lines += [f"{indent}{head}", f"{indent}    a{level + 1} = s.gen('a{level + 1}', max_tokens=4)"]
    file = folder / "nested.py"
    file.write_text("\n".join([*lines, ""]))
    return driver.view.run(str(file), TOY, [], room=ROOM)


GENERATED = {"wide": lambda count, folder: module_view(large(count), folder), "chain": chain, "nested": nested}
ALL_SIZES = [*itertools.product(("wide", "chain"), (10, 300, 500, 5_000))]
SIZES = [("nested", 12), *(ALL_SIZES if FULL else [("wide", 500), ("chain", 10)])]


@pytest.mark.parametrize(("shape", "count"), SIZES)
def test_sizes(shape: str, count: int, show: Show, tmp_path: Path) -> None:
    """The first view has calls that can be read; searched, moved; every tab opens. ``benchmarks/view.py`` has times."""
    view = GENERATED[shape](count, tmp_path)
    page = show(view)
    assert page.evaluate("probe.readable()") >= 2
    assert page.evaluate("app.graph.visible.size") <= 300
    # What holds calls says so, and nothing is a shared prefix before a pass makes one.
    hidden = page.evaluate("probe.callsInFolded()")
    assert all("call" in text or "gen" in text for text in hidden)
    page.focus("#slider")
    page.keyboard.press("Home")
    page.evaluate("app.graph.settled()")
    assert page.evaluate("app.graph.cy.nodes('.prefix').length") == 0
    page.keyboard.press("End")
    last = view.calls[-1]
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    page.keyboard.type(last.id.rpartition("/")[2])
    page.keyboard.press("Enter")
    page.wait_for_function("() => app.graph.cy.nodes('.selected').length > 0")
    page.evaluate("() => { app.graph.cy.panBy({x: 10, y: 10}); }")
    [key] = page.evaluate("[...app.session.selected]")
    assert key == last.key
    page.evaluate(UNFOLD)
    drawn = page.evaluate("app.graph.cy.nodes('.call').length")
    nodes = page.evaluate("app.graph.visible.size")
    # All of them, or 1,500 nodes: without a last group of up to 150 that has no room, with one that the search opened.
    assert drawn == len(view.calls) or (1_350 <= nodes <= 1_650 and drawn >= 300)
    for tab in tabs_of(page):
        page.click(f"#tab-{tab}")


def test_empty_regions_are_folded_at_first(show: Show, tmp_path: Path) -> None:
    """They make a graph of nested regions wider, and hold nothing to see; *Unfold all* opens them."""
    page = show(nested(12, tmp_path))
    arms = "[...app.graph.visible.values()].filter(({part}) => part.kind === 'arm' && part.children.length === 1)"
    assert page.evaluate(f"{arms}.map(({{isOpen}}) => isOpen)") == [False, False]
    assert page.evaluate("(app.graph.fit(), app.graph.cy.zoom())") > 0.55
    page.evaluate(UNFOLD)
    assert page.evaluate(f"{arms}.length") > 6
    assert page.evaluate(f"{arms}.every(({{isOpen}}) => isOpen)")


def test_no_group_is_called_one_op(show: Show, tmp_path: Path) -> None:
    """Of a fan-out whose other ops a pass removed, the last one has its name."""
    page = show(view_of("tree_of_thought", tmp_path))
    words = page.evaluate("app.graph.cy.nodes().map((node) => node.data('label'))")
    assert not [label for label in words if label.endswith("▸ 1 op")]


def test_the_drawing_goes_in_slices(show: Show, tmp_path: Path) -> None:
    """Unchanged elements are not drawn again, and the graph shows the last position of the slider in the end."""
    view = chain(200, tmp_path)
    page = show(view)
    page.evaluate(UNFOLD)
    page.evaluate("(key) => app.session.select([key])", view.calls[-1].key)
    whole = page.evaluate("probe.picture()")
    last = len(view.stages) - 1
    assert page.evaluate("probe.slide", [last - 1, last])["all"] <= 20  # of the first piece of the one before
    for stage in (0, *range(1, last, 3), last):
        found = page.evaluate("probe.slide", [last if stage == 0 else 0, stage])
        assert found["first"] <= 40
        assert found["picture"] == page.evaluate("probe.redraw()"), view.stages[stage].name
    assert whole == page.evaluate("probe.picture()")
    assert sum("selected" in each for each in whole.values()) == 1
    changed = {node.key for stage in view.stages[1:] for node in (*stage.added, *stage.changed)}
    assert len(changed) > 40


def test_a_long_table_goes_in_slices(show: Show, tmp_path: Path) -> None:
    """Sorted, copied, by keyboard and in print it has all rows; each is laid out alone, below the same headings."""
    view = chain(600, tmp_path)
    page = show(view)
    page.evaluate("probe.hurry(true)")
    page.evaluate("document.getElementById('tab-calls').click()")
    rows = "#panel-calls tbody tr:not(.below)"
    first = page.evaluate(
        "() => { app.tables[0].sort(app.tables[0].columns[0]); return app.tables[0].body.rows.length; }"
    )
    assert 100 <= first < 300
    page.wait_for_function("(rows) => document.querySelectorAll(rows).length === 300", arg=rows)
    page.evaluate("probe.hurry(false)")
    names = page.eval_on_selector_all(rows, "(all) => all.map((row) => row.cells[0].textContent)")
    assert names == sorted(call.id for call in view.calls)
    page.click("#panel-calls th button:has-text('prompt tokens')")
    page.wait_for_function("(rows) => document.querySelectorAll(rows).length === 300", arg=rows)
    assert page.evaluate("probe.crooked('calls')") == []
    page.click("#panel-calls button:has-text('Copy as TSV')")
    page.evaluate("probe.addPaste()")
    page.keyboard.press("Control+v")
    tokens = [line.split("\t")[2] for line in page.input_value("#paste").splitlines()]
    prompts = sorted((call.prompt.known for call in view.calls), reverse=True)
    assert tokens == ["prompt tokens", *map(str, prompts)]
    page.evaluate("document.getElementById('paste').remove()")
    page.focus(f"{rows} >> nth=0 >> button >> nth=0")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.locator(f"{rows} >> nth=299 >> button >> nth=0").focus()
    page.keyboard.press("Enter")
    last = page.evaluate("document.activeElement.closest('tr')?.dataset.op")
    assert page.evaluate("[...app.session.selected]") == [last]
    skipped = (
        "(all) => all.filter((row) => !row.cells[0].firstChild.checkVisibility({contentVisibilityAuto: true})).length"
    )
    assert page.eval_on_selector_all(rows, skipped) > 200
    page.emulate_media(media="print")
    page.wait_for_function(f"(rows) => ({skipped})([...document.querySelectorAll(rows)]) === 0", arg=rows)
    assert page.locator("#panel-calls th button >> text=prompt tokens").is_visible()


def test_a_long_chain(show: Show, tmp_path: Path) -> None:
    """The library that lays groups out goes too deep for it."""
    page = show(chain(1_800, tmp_path))
    page.evaluate(UNFOLD)
    assert page.evaluate("app.graph.cy.nodes().length") > 1_000
    count = 900
    given = {
        "boxes": [{"id": f"n{n}", "width": 50, "height": 20} for n in range(count)],
        "edges": [[f"n{n}", f"n{n + 1}"] for n in range(count - 1)],
    }
    assert page.evaluate("probe.layOut", given) == {"overlaps": [], "across": [], "routes": count - 1}


def piece(seed: int, count: int, back: int, edges: int) -> dict[str, Any]:
    """A group: each box waits for one of those ``back`` before it, and there are ``edges`` more of any length."""
    random = Random(seed)
    boxes = [{"id": f"n{n}", "width": random.randint(40, 240), "height": random.randint(20, 80)} for n in range(count)]
    pairs = {(random.randint(max(0, n - back), n - 1), n) for n in range(1, count) if random.random() < 0.97}
    pairs |= {tuple(sorted(random.sample(range(count), 2))) for _ in range(edges)}
    return {"boxes": boxes, "edges": [[f"n{source}", f"n{target}"] for source, target in sorted(pairs)]}


SEEDS = 60 if os.environ.get("LMC_TEST_FULL") == "1" else 12


def test_groups_are_laid_out(show: Show, tmp_path: Path) -> None:
    """No box overlaps another or the border, and no edge runs across one; also where edges stand beside the rest."""
    page = show(view_of("judge", tmp_path))
    for seed in range(SEEDS):
        given = piece(seed, 3 + seed * 11 % 120, 1 + seed * 7 % 30, seed * 13 % 200)
        assert page.evaluate("probe.layOut", given) == {"overlaps": [], "across": [], "routes": len(given["edges"])}


def test_long_edges_take_no_time(show: Show, tmp_path: Path) -> None:
    """It was half a minute, as dagre has a node for each row that an edge passes."""
    page = show(view_of("judge", tmp_path))
    given = piece(1, 500, 1, 500)
    given["edges"] += [[f"n{number}", f"n{number + 1}"] for number in range(499)]
    page.evaluate("(piece) => { probe.start = performance.now(); layOut(vendor.dagre, piece); }", given)
    assert page.evaluate("performance.now() - probe.start") < 10_000


@pytest.mark.parametrize("number", range(0, len(HOSTILE), 1 if FULL else 3))
def test_hostile_texts(number: int, show: Show, tmp_path: Path) -> None:
    """The page runs none of them, and makes no element of them (``show`` holds the console against silence).

    ``test_a_hostile_program`` has all of them.
    """
    text = HOSTILE[number]
    view = module_view(module_of(text), tmp_path)
    page = show(view)
    page.evaluate(UNFOLD)
    for tab in tabs_of(page):
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(50)
    for key in state_at(view, -1).nodes:
        page.evaluate("(key) => app.session.select([key], {reveal: true})", key)
        assert page.locator("#selection h3").inner_text() != ""
    assert page.evaluate("document.scripts.length") == 3
    assert page.locator("img, iframe, object, embed, link, base, a").count() == 0
    assert not page.evaluate("probe.hasHandlers()")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1500


def test_a_hostile_program(show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("hostile_page.py").write_text(program_of(HOSTILE), encoding="utf-8")
    page = show(driver.view.run("hostile_page.py", TOY, [], room=ROOM))
    page.evaluate(UNFOLD)
    assert "alert(1)" in page.locator("#source-lines").inner_text()
    assert page.evaluate("document.scripts.length") == 3


def test_redacted_data(show: Show, tmp_path: Path) -> None:
    page = show(Case.of("judge", tmp_path).view(redact=True))
    assert "texts are replaced by their lengths" in page.locator("#notices").inner_text()
    assert "You grade" not in page.content()


def test_a_comparison(show: Show, tmp_path: Path) -> None:
    files = [tmp_path / "old.lmir", tmp_path / "new.lmir"]
    for file, count in zip(files, (10, 12), strict=True):
        file.write_text(large(count))
    view = driver.view.compare(str(files[0]), str(files[1]))
    page = show(view)
    old, new = view.old, view.program
    assert old is not None
    assert f"{old.program.ops} → {new.ops} ops" in page.locator("#summary").inner_text()
    assert f"{old.program.ops} → {new.ops}" in page.locator("#selection").inner_text()
    page.evaluate(UNFOLD)
    assert page.evaluate("probe.marked()")["added"] == sorted(node.key for node in view.stages[1].added)
    assert "saved" not in page.locator("#selection").inner_text()
    names = [stage.name for stage in view.stages]
    assert page.locator("h1").inner_text() == page.title() == f"{new.name}: {names[0]} → {names[1]}"
    assert names[0].endswith("old.lmir")
    page.click("#tab-ir")
    page.wait_for_selector("#ir-lines .line.added")


COMPARED = """module @f {{
  func @f(%t: !text) {{
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["{text}", %t] : !ctx
{calls}    lm.return %1
  }}
}}
"""


def test_figures_of_both_modules(show: Show, tmp_path: Path) -> None:
    """Calls that change, go and come have the figures of the module that they are in."""
    call = '    %c{0}, %a{0} = lm.gen %1 {{id = "f/{0}", max_tokens = {1}}} : !ctx, !text\n'
    files = [tmp_path / "old.lmir", tmp_path / "new.lmir"]
    files[0].write_text(COMPARED.format(text="Some more text: ", calls=call.format("x", 8) + call.format("gone", 5)))
    files[1].write_text(COMPARED.format(text="Text: ", calls=call.format("x", 9) + call.format("new", 3)))
    view = driver.view.compare(str(files[0]), str(files[1]))
    assert view.old is not None
    page = show(view)
    page.click("#tab-calls")
    table = "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    heads = page.locator("#table-calls th").all_inner_texts()
    rows = {
        row[0]: dict(zip(heads, row, strict=True)) for row in page.eval_on_selector_all("#table-calls tbody tr", table)
    }
    for before, calls in (("", view.calls), (", first", view.old.calls)):
        known = {call.id: call for call in calls}
        for name, row in rows.items():
            found = known.get(name)
            assert row[f"prompt tokens{before}"] == ("" if found is None else str(found.prompt.known))
            assert row[f"output, at most{before}"] == ("" if found is None else str(found.output))
    assert sorted(rows) == ["f/gone", "f/new", "f/x"]
    page.click("#table-calls button.link >> text=f/x")
    shown = page.locator("#selection").inner_text()
    assert "8 tokens → 9 tokens" in shown
    page.click("#tab-calls")
    page.click("#table-calls button.link >> text=f/gone")
    assert "5 tokens" in page.locator("#selection").inner_text()
    assert axe(page) == []


def test_without_workers_it_lays_out_in_pieces(show: Show, tmp_path: Path) -> None:
    view = view_of("judge", tmp_path)
    with_worker = show(view).evaluate("[...app.graph.spots]")
    page = show(view, script="window.Worker = class { constructor() { throw new Error('none'); } };")
    assert page.evaluate("app.graph.layout.worker.worker") is None
    assert page.evaluate("[...app.graph.spots]") == with_worker


def apart(one: dict[str, Any], other: dict[str, Any]) -> bool:
    across = one["right"] <= other["left"] or other["right"] <= one["left"]
    return across or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]


def holds(one: dict[str, Any], other: dict[str, Any]) -> bool:
    across = one["left"] <= other["left"] and one["right"] >= other["right"]
    return one["isOpen"] and across and one["top"] <= other["top"] and one["bottom"] >= other["bottom"]


def test_nothing_overlaps(show: Show, tmp_path: Path) -> None:
    for name in ("judge", "react", "generative_agents") if FULL else ("judge", "react"):
        page = show(view_of(name, tmp_path))
        page.evaluate(UNFOLD)
        boxes = page.evaluate("probe.boxes()")
        for index, one in enumerate(boxes):
            for other in boxes[:index]:
                assert apart(one, other) or holds(one, other) or holds(other, one), (one, other)
        sizes = page.evaluate("() => app.graph.cy.nodes().map((node) => [node.hasClass('call'), node.data('font')])")
        assert (
            min(font for is_call, font in sizes if is_call) > max(font for is_call, font in sizes if not is_call)
            or name == "react"
        )


GRAPHS_TO_PRINT: dict[str, Callable[[Path], CompiledView]] = {
    "judge": lambda folder: view_of("judge", folder),
    "tall": lambda folder: chain(60, folder),
}


@pytest.mark.parametrize(
    ("width", "name"),
    list(itertools.product((718, 1500), GRAPHS_TO_PRINT)) if FULL else [(718, "tall"), (1500, "judge")],
)
def test_print_shows_all(width: int, name: str, show: Show, tmp_path: Path) -> None:
    """All lines, none over what follows, and all of the graph, no larger than the paper, and not distorted."""
    page = show(GRAPHS_TO_PRINT[name](tmp_path))
    page.set_viewport_size({"width": width, "height": 900})
    page.click("#tab-calls")
    page.emulate_media(media="print")
    cut = page.evaluate("probe.cut()")
    assert cut == 0
    assert not page.locator("#tabs").is_visible()
    last, slider = page.locator(".source-line").last.bounding_box(), page.locator("#slider-box").bounding_box()
    assert last is not None
    assert slider is not None
    assert last["y"] + last["height"] <= slider["y"]
    page.emulate_media(media="screen")
    page.click("#tab-graph")
    page.emulate_media(media="print")
    page.wait_for_selector("#graph-print canvas")
    drawn, size = page.evaluate(
        "[app.graph.cy.elements().boundingBox(), (({width, height}) => ({width, height}))"
        "(document.querySelector('#graph-print canvas'))]"
    )
    assert size["width"] / size["height"] == pytest.approx(drawn["w"] / drawn["h"], rel=0.01)
    place = page.locator("#graph-print canvas").bounding_box()
    assert place is not None
    assert 0 <= place["x"] < place["x"] + place["width"] <= width
    assert place["height"] <= 900
    assert place["width"] / place["height"] == pytest.approx(drawn["w"] / drawn["h"], rel=0.01)


def test_mermaid_reads_the_charts(browser: Any, tmp_path: Path) -> None:
    page = browser.new_page()
    page.add_script_tag(path=TOOLS / "mermaid" / "dist" / "mermaid.min.js")
    charts = [driver.view.FORMATS["mermaid"](view_of(name, tmp_path)) for name in (*SHOWN, "broken")]
    charts += [driver.view.FORMATS["mermaid"](module_view(module_of(text), tmp_path)) for text in HOSTILE]
    charts.append(driver.view.FORMATS["mermaid"](module_view(large(500), tmp_path)))
    for chart in charts:
        assert page.evaluate("async (chart) => (await mermaid.parse(chart)).diagramType", chart) == "flowchart-v2"
    page.close()


def test_the_data_are_in_the_page(show: Show, tmp_path: Path) -> None:
    view = view_of("judge", tmp_path)
    assert json.loads(show(view).evaluate("document.getElementById('data').textContent")) == json.loads(
        driver.view.FORMATS["json"](view)
    )
