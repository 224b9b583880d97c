"""What a notebook shows of programs, results and compiled programs."""

from html.parser import HTMLParser

import lmc

HOSTILE = "<script>alert('a')</script><img src=x onerror=y>&amp;"


class Tags(HTMLParser):
    """Collects tags and text; `unclosed` are tags without an end."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.unclosed: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    assert tags.unclosed == []
    assert tags.tags <= {"div", "small", "pre", "table", "tr", "th", "td", "details", "summary"}
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
