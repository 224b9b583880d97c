"""The page as a file: its policy, its size, its data. What it does in a browser is in ``browser/``."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lmc import driver
from lmc.driver.compile.view_data import shown_file
from lmc.driver.viewing.view import CompiledView, Room
from lmc.report.model import to_json
from lmc.report.page import LIVE, SAVED, SCRIPTS, STATIC, page, title_of
from tests.project.layers import REPOSITORY
from tests.report.programs import compiled_view
from tests.report.test_safety import HOSTILE, module_of

MAX_BYTES = 1_000_000


class Reader(HTMLParser):
    """Collects the elements of a page: their attributes and their text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.is_open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.is_open = True

    def handle_endtag(self, tag: str) -> None:
        self.is_open = False

    def handle_data(self, data: str) -> None:
        if self.is_open:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data


def elements(text: str) -> list[tuple[str, dict[str, str | None], str]]:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader.found


def check_page(view: CompiledView) -> None:
    """The page holds its own elements and scripts alone, each allowed by its hash, and the data of the view."""
    text = page(view)
    found = elements(text)
    own = [(tag, sorted(attributes)) for tag, attributes, _ in elements(page(compiled_view("judge")))]
    assert [(tag, sorted(attributes)) for tag, attributes, _ in found] == own
    policy = next(a["content"] for tag, a, _ in found if tag == "meta" and "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    scripts = [(attributes, inner) for tag, attributes, inner in found if tag == "script"]
    styles = [inner for tag, _, inner in found if tag == "style"]
    data = next(inner for attributes, inner in scripts if attributes.get("id") == "data")
    code = [inner for attributes, inner in scripts if "type" not in attributes]
    hashes = re.findall(r"'sha256-([^']+)'", policy)
    expected = [base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode() for inner in [*code, *styles]]
    assert hashes == expected
    assert CompiledView.model_validate(json.loads(data)) == view
    for _, attributes, _ in found:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "style", "action")]
    assert len(text.encode()) - len(to_json(view)) < MAX_BYTES
    assert page(view) == text


@pytest.mark.parametrize("name", ["judge", "react", "tree_of_thought"])
def test_examples(name: str) -> None:
    check_page(compiled_view(name))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts(text: str, tmp_path: Path) -> None:
    file = tmp_path / "m.lmir"
    file.write_text(module_of(text), encoding="utf-8", errors="surrogatepass")
    view = driver.view.run(str(file), {}, [], room=Room(driver.schedule.HOLDS_ALL, 256))
    check_page(view)


def test_a_name_is_the_title(tmp_path: Path) -> None:
    view = compiled_view("judge")
    name = "</title><script>x</script>é"
    text = page(view.model_copy(update={"program": view.program.model_copy(update={"name": name})}))
    assert "<title>&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;&#233;</title>" in text


def test_the_title_of_a_comparison_names_both_modules(tmp_path: Path) -> None:
    files = [tmp_path / "old.lmir", tmp_path / "new.lmir"]
    for file, name in zip(files, ("one", "two"), strict=True):
        body = "%0 = lm.context : !ctx\n    lm.return %0"
        file.write_text(f"module @{name} {{\n  func @{name}() {{\n    {body}\n  }}\n}}\n")
    old, new = (shown_file(str(file)) for file in files)
    assert title_of(driver.view.compare(str(files[0]), str(files[1]))) == f"one ({old}) → two ({new})"
    assert title_of(driver.view.compare(str(files[0]), str(files[0]))) == f"one: {old} → {old}"
    assert title_of(compiled_view("judge")) == "judge"


def test_the_page_names_no_other_place() -> None:
    """No file of the page's own refers to the network, or reads a text as HTML or code."""
    own = {path.name: path.read_text("utf-8") for path in STATIC.iterdir() if path.name != "vendor.js"}
    assert {f"{name}.js" for name in (*SCRIPTS, *SAVED, *LIVE)} | {
        "page.html",
        "page.css",
        "view.d.ts",
        "vendor.d.ts",
    } == set(own)
    for name, text in own.items():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\((?!#)|@import|fetch\(|XMLHttpRequest", text), (
            name
        )
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )
    vendor = (STATIC / "vendor.js").read_text("ascii")
    assert vendor.startswith("/*! cytoscape 3.34.4\n")
    assert "/*! @dagrejs/dagre 3.1.3\n" in vendor
    assert "</script" not in vendor.lower()
    assert REPOSITORY.name not in vendor[:100]
