"""HTML for notebooks: programs, results and compiled programs."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmc
from lmc.backend.lower import lower
from lmc.driver.compile.view_data import final_view
from lmc.driver.notebook import compiled_html, result_html
from lmc.driver.run.result import Result, result_row
from lmc.frontend.breaks import Break
from lmc.ir.engine.target import Target
from lmc.ir.module import Module, print_module
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.text.parser import parse_verified
from lmc.ir.usage import Usage
from lmc.passes.base import PassContext
from lmc.report.forms.svg import MAX_NODES, svg
from lmc.report.text import visible
from tests.report.test_forms import large
from tests.report.test_safety import HOSTILE as HOSTILE_TEXTS
from tests.report.test_safety import module_of

HOSTILE = "<script>alert('a')</script><img src=x onerror=y>&amp;"


TAGS = {
    "div",
    "small",
    "pre",
    "table",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "svg",
    "g",
    "title",
    "rect",
    "path",
    "text",
}
VALUES = re.compile(r"[\w #.,;:%-]*|http://www\.w3\.org/2000/svg")
"""Values of attributes: none has a text of a program, an address or a function."""


class Tags(HTMLParser):
    """Collects tags and text; `unclosed` are tags without an end."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.unclosed: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.unclosed.append(tag)
        for name, value in attrs:
            assert not name.startswith(("on", "href", "src", "id"))
            assert VALUES.fullmatch(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    assert tags.unclosed == []
    assert tags.tags <= TAGS
    assert len(html.encode()) < 200_000
    assert html == visible(html, "\n\t")
    return tags


@lmc.jit(target="toy", seed=3)
def echo(s: lmc.State, text: str) -> dict[str, str]:
    """Repeat <b>what</b> is given."""
    s += lmc.user(text)
    s.gen("answer", max_tokens=4)
    return {"given": text}


@lmc.jit(target="toy")
def fails(s: lmc.State, text: str) -> str:
    s += lmc.user(text)
    if s.select("sure", ["yes", "no"]) in ("yes", "no"):
        raise ValueError(text)
    return text


def test_a_result_shows_value_variables_conversation_and_usage():
    shown = parsed(echo.run(HOSTILE)._repr_html_()).text
    assert HOSTILE in shown
    assert "answer" in shown
    assert "2 messages" in shown
    assert "1 call," in shown


def test_a_failed_result_shows_its_error():
    [result] = fails.batch([{"text": HOSTILE}])
    shown = parsed(result._repr_html_()).text
    assert f"ValueError: {HOSTILE}" in shown


def test_a_long_text_is_cut():
    shown = parsed(echo.run("x" * 1_000_000)._repr_html_()).text
    assert len(shown) < 100_000
    assert "1,000,0" in shown


def test_a_program_shows_signature_documentation_and_options():
    shown = parsed(echo._repr_html_()).text
    assert "echo(text: str)" in shown
    assert "Repeat <b>what</b> is given." in shown
    assert "test_notebook.py" in shown
    assert "toy" in shown
    assert "seed3" in shown


def test_a_compiled_program_shows_summary_remarks_breaks_and_ir():
    @lmc.jit(target="toy")
    def breaks(s: lmc.State, text: str) -> int:
        s += lmc.user(text)
        s.gen("answer")
        return eval("0")

    shown = parsed(breaks.compile("a")._repr_html_())
    assert "1 break" in shown.text
    assert "module @breaks" in shown.text
    assert "model calls" in shown.text
    assert "details" in shown.tags


def html_of(module: Module, text: str = "") -> str:
    """The HTML of a compiled module; ``text`` is put wherever a message can be."""
    view = final_view(module, lower(module, Target("toy")), PassContext(), target="toy", level="O2")
    return compiled_html(text, [Break(None, text, text)] * 3, [text] * 3, print_module(module), view)


def test_a_compiled_program_shows_its_graph_and_the_costs_of_its_calls():
    compiled = echo.compile("a")
    html = compiled._repr_html_()
    shown = parsed(html)
    assert {"svg", "rect", "path"} <= shown.tags
    [call] = compiled.view.calls
    assert f"<td>{call.prompt.known:,}</td>" in html
    assert "echo/answer" in shown.text
    assert "test_notebook.py:" in shown.text
    assert compiled._repr_html_() == html


def test_a_program_shows_the_variant_that_was_used_last():
    @lmc.jit(target="toy")
    def f(s: lmc.State, text: str) -> str:
        s += lmc.user(text)
        return s.gen("answer", max_tokens=2)

    assert "svg" not in parsed(f._repr_html_()).tags  # nothing is compiled for it
    f.compile("a")
    assert "f/answer" in parsed(f._repr_html_()).text
    assert "f/answer" in parsed(f.on(seed=3)._repr_html_()).text
    assert "f/answer" not in parsed(f.on(level="O0")._repr_html_()).text
    assert "f/answer" not in parsed(f.on("builtin")._repr_html_()).text
    unknown = f.on()
    unknown.compile()
    assert "svg" in parsed(unknown._repr_html_()).tags


def test_a_result_shows_the_cost_of_each_op():
    result = echo.run("hello")
    html = result._repr_html_()
    [(name, entry)] = result.profile.ops.items()
    used = entry.usage
    figures = (used.calls, used.prompt_tokens, used.cached_tokens, used.generated_tokens)
    assert name in parsed(html).text
    assert "".join(f"<td>{figure:,}</td>" for figure in figures) in html


def test_an_object_whose_repr_raises_is_shown():
    class Broken:
        def __repr__(self) -> str:
            raise OSError("no")

    for value in (Broken(), [Broken()], {"a": Broken()}):
        result: Result = Result(value, {"b": value}, "", Profile("f"))
        assert parsed(result._repr_html_()).text.count("Broken: its repr raises OSError") == 2


CHARACTERS = st.characters(exclude_characters="*$")  # signs of the names of host functions
TEXTS = st.one_of(
    st.sampled_from(HOSTILE_TEXTS), st.text(CHARACTERS, max_size=40).map(lambda text: text + "<&\"'\0\u202e\ud800")
)


@given(text=TEXTS)
def test_hostile_texts_are_harmless_in_a_compiled_program(text: str):
    parsed(html_of(parse_verified(module_of(text), "m"), text))


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), times=st.sampled_from([1, 30, 3_000]))
def test_hostile_texts_are_harmless_in_a_result(texts: list[str], times: int):
    count = max(times // max(map(len, texts)), 1)
    values = {f"{number}{texts[0][:200]}": texts[number % len(texts)] for number in range(count)}
    ops = {name: OpProfile(Usage(1, 2, 3, 4), 0.5) for name in values}
    messages = [{"role": text, "content": text} for text in texts * count]
    row = result_row(0, Result(texts, values, "", Profile("f", ops)))
    html = result_html(row, messages, "", ops)
    assert parsed(html)
    assert html == result_html(row, messages, "", ops)
    parsed(result_html({**row, "error": texts[-1], "variables": {}}, [], texts[0] * count, {}))


@pytest.mark.parametrize("count", [1, 60, 1_000])
def test_large_programs_are_folded(count: int):
    module = parse_verified(large(count), "m")
    html = html_of(module, "x < y & z\n" * count)
    parsed(html)
    assert html.count("<rect") <= MAX_NODES
    assert ("more</small>" in html) == (count > 200)


def nested(depth: int) -> str:
    """A module of conditions in each other."""
    lines = ["module @f {", "  func @f(%b: !bool) {", "    %p = lm.context : !ctx"]
    for level in range(depth):
        lines.append(f'    cf.cond %b {{id = "f/@{level}"}} ^then() {{')
        lines.append(f'    %c{level}, %a{level} = lm.gen %p {{id = "f/a{level}"}} : !ctx, !text')
    lines += ["    cf.yield {}", "    } ^otherwise() {", "    cf.yield {}", "    }"] * depth
    return "\n".join([*lines, "    lm.return %p", "  }", "}", ""])


@pytest.mark.parametrize("depth", [2, 20, 60])
def test_groups_in_each_other(depth: int):
    html = html_of(parse_verified(nested(depth), "m"))
    parsed(html)
    assert "<rect" in html


def test_the_picture_of_a_graph_without_texts():
    extend = '%d = lm.extend %c, user [""] : !ctx'
    module = parse_verified(f"module @f {{\n  func @f(%c: !ctx) {{\n    {extend}\n    lm.return %d\n  }}\n}}\n", "m")
    view = final_view(module, lower(module, Target("toy")), PassContext(), target="toy", level="O2")
    assert svg(view).count("<rect") == 2
