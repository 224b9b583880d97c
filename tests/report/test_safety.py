"""Any text in a program is shown, and nothing of it acts or is lost from view: in JSON, Mermaid, DOT and the tree."""

import ast
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lmc import driver
from lmc.driver.viewing.view import CompiledView, Room
from lmc.ir.module import print_module
from lmc.report.forms.dot import quoted
from lmc.report.forms.mermaid import escaped
from lmc.report.forms.tree import tree
from lmc.report.redact import Redaction, redacted_source
from lmc.report.text import one_line, shortened, visible
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.report.programs import TOY, Case

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202eevil\u2066 isolate\u2069",
    "NUL\0 BEL\a ESC\x1b[31m",
    "half \ud83d a pair",
    "\u2028line\u2029paragraph\u0085",
    ']]> --> %% end\nsubgraph x\n  click n0 href "javascript:alert(1)"',
    '`code` __bold__ #quot; #35; &lt; &#60; \\N \\"',
    "1. a list",
    "x" * 1_000_000,
]
LINE = re.compile(r'  +(?:end|subgraph n\d+\["[^"<>`\[\]{}]*"\]|n\d+[\[({/]+"[^"<>`\[\]{}]*"[\])}/]+)')
EDGE = re.compile(r"  n\d+ (?:==>|-->|-\.->) n\d+")
STYLE = re.compile(r"  class(?:Def [a-z]+ [a-z#:,\d-]+| [n\d,]+ [a-z]+)")
STRING = r'"(?:[^"\\\n]|\\.)*"'
DOT_LINE = re.compile(
    rf" *(?:digraph {STRING} {{|node \[[^\]]*\];|edge \[[^\]]*\];|subgraph cluster_n\d+ {{|label={STRING};"
    rf"|n\d+ \[(?:[a-z]+=(?:{STRING}|[\w.]+)(?:, )?)+\];|n\d+ -> n\d+(?: \[[a-z]+=\w+\])?;|}})"
)


def program_of(texts: list[str]) -> str:
    """A module whose every text is hostile: prompts, choices, names, stops, constraints, files, causes."""
    quote = [json.dumps(text) for text in texts]
    lines = [f"    s += {literal}" for literal in quote]
    return "\n".join(["import lmc", "", "", "@lmc.jit", "def f(s):", *lines, '    return s.gen("a", max_tokens=2)', ""])


def module_of(text: str) -> str:
    """A module that holds a text wherever a text or a name can be."""
    from lmc.ir.printer import print_string

    literal = print_string(text)
    record = print_string('{"cells":[],"frames":[{}]}')
    file, call = print_string(text[:200]), print_string("g" + text[:200])
    return f"""module @{file} {{
  constraint @{call} = choices {print_string(json.dumps([text[:200] or "x"]))}
  host @{file} = {literal} sha256 "" reads
  func @{file}(%{file}: !text) {{
    %c = lm.context : !ctx loc({file}:1)
    %u = lm.extend %c, user [{literal}, %{file}] : !ctx loc({file}:2)
    %t = host.call @{file} (%{file}) {{declared = "reads", id = {file}}} : !text loc({file}:3)
    %g, %v = lm.gen %u {{id = {call}, name = {file}, stop = [{literal}]}} : !ctx, !text loc({file}:4)
    lm.break (%v) {{cause = {literal}, record = {record}, remedy = {literal}}} loc({file}:5)
  }}
}}
"""


def check_forms(view: CompiledView) -> None:
    """Every form of the view is well-formed, and holds only what prints."""
    text = driver.view.FORMATS["json"](view)
    assert text.isascii()
    assert not set("<>&") & set(text)
    data = json.loads(text)
    assert CompiledView.model_validate(data) == view

    def strings(value: object) -> None:
        if isinstance(value, str):
            assert value == visible(value, "\n\t")
        elif isinstance(value, dict):
            for name, each in value.items():
                strings(name)
                strings(each)
        elif isinstance(value, list):
            for each in value:
                strings(each)

    strings(data)
    chart = driver.view.FORMATS["mermaid"](view)
    assert len(chart) <= 50_000
    head, *lines = chart.splitlines()
    assert head == "flowchart TD"
    assert [line for line in lines if not any(kind.fullmatch(line) for kind in (LINE, EDGE, STYLE))] == []
    graph = driver.view.FORMATS["dot"](view)
    assert [line for line in graph.splitlines() if not DOT_LINE.fullmatch(line)] == []
    for shown in (chart, graph, tree(view)):
        assert shown == visible(shown, "\n")
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=graph, text=True, check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_in_a_module(text: str, tmp_path: Path) -> None:
    file = tmp_path / "m.lmir"
    file.write_text(module_of(text), encoding="utf-8", errors="surrogatepass")
    view = driver.view.run(str(file), {}, [], room=Room(driver.schedule.HOLDS_ALL, 256))
    check_forms(view)
    check_forms(driver.view.run(str(file), {}, [], room=Room(driver.schedule.HOLDS_ALL, 256), redact=True))
    check_forms(driver.view.compare(str(file), str(file)))
    assert len(driver.view.FORMATS["mermaid"](view)) < 20_000
    assert all(len(node.label) <= 64 and len(node.text) < 3_000 for node in view.stages[0].added)


def test_hostile_texts_in_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("hostile.py").write_text(program_of(HOSTILE), encoding="utf-8")
    view = driver.view.run("hostile.py", {"target": "toy"}, [], room=Room(driver.schedule.HOLDS_ALL, 256))
    check_forms(view)
    assert view.sources[0].file == "hostile.py"
    assert max(map(len, view.sources[0].lines)) < 2_100


@pytest.mark.parametrize("text", HOSTILE[:-1], ids=range(len(HOSTILE) - 1))
def test_texts_stay_readable(text: str) -> None:
    assert visible(text).isprintable()
    assert visible("Größe 日本 😀 a\u00a0b") == "Größe 日本 😀 a\u00a0b"
    assert len(one_line(text * 20, 40)) <= 40
    assert shortened(text, 10_000) == visible(text, "\n\t")
    assert not set(escaped(visible(text))) & set('<>"`[]{}|\\')
    assert re.fullmatch(STRING, quoted(visible(text)))


SECRET = "Xyzzy"
SECRETS = f'''"""Module {SECRET}."""

import warnings

import lmc
import pydantic

warnings.warn("{SECRET} '{SECRET}' {SECRET}", stacklevel=1)

# a comment: {SECRET}


class Form(pydantic.BaseModel):
    """Form {SECRET}."""

    field: str = pydantic.Field(description="{SECRET}")


@lmc.tool
def look(what: str = "{SECRET}", *, mode: str = "", **more: str) -> str:
    """Look {SECRET}."""
    return what


@lmc.jit
def f(s, row: str, keys: dict[str, str], tone: str = "{SECRET} default", **more: str):
    s += lmc.system("""{SECRET} in
three lines {SECRET}
of it""")
    s += lmc.user(f"{SECRET} {{row}} {SECRET}")
    s += tone + f"{{keys}} {{more}}"
    if s.select("which", ["{SECRET}", "no"]) == "{SECRET}":
        s += look("{SECRET}", mode="", **{{"{SECRET}": "{SECRET}"}})
    s.gen("form", schema=Form, max_tokens=80)
    s.gen("word {SECRET}", regex="{SECRET}+", max_tokens=8)
    s.gen("{SECRET}", stop="{SECRET}", max_tokens=8)
    s.select("{SECRET}", ["{SECRET}"])
    s += s["{SECRET}"]
    for view in s.fork(2):
        view.gen("3{SECRET}", max_tokens=8)
        s += view["3{SECRET}"]
    eval("'{SECRET}'")
    return "{SECRET}"
'''


@pytest.mark.filterwarnings(f"always:{SECRET}")
def test_redacted_views_hold_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("secrets_of.py").write_text(SECRETS, encoding="utf-8")
    keys = {SECRET: "a", f"{SECRET}.{SECRET}": "b", f"my {SECRET}": "c"}
    rows = [{"row": f"{SECRET} {n}", "keys": keys, f"{SECRET}_more": "x"} for n in range(4)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    room = Room(driver.schedule.HOLDS_ALL, 256)
    forms = [*driver.view.FORMATS.values(), tree]
    record("secrets_of.py", "rows.jsonl", "timeline.json")
    views = [
        driver.view.run("secrets_of.py", TOY, [], data="rows.jsonl", timeline="timeline.json", room=room, redact=redact)
        for redact in (False, True)
    ]
    assert views[0].timeline is not None
    assert any(SECRET in each.id for each in views[0].timeline.requests)
    assert all(SECRET in form(views[0]) for form in forms)
    assert [form.__name__ for form in forms if SECRET in form(views[1])] == []
    schedule = driver.schedule.run("secrets_of.py", "rows.jsonl", TOY, room, [])
    Path("s.schedule").write_text("".join(driver.schedule.schedule_lines(schedule)))
    for file in ("s.schedule", "timeline.json"):
        alone = [driver.view.run(file, {}, [], room=room, redact=redact) for redact in (False, True)]
        assert SECRET in forms[0](alone[0])
        assert [form.__name__ for form in forms if SECRET in form(alone[1])] == []
        assert len({node.id for node in alone[1].stages[0].added}) == len(alone[1].stages[0].added)
    # Everything else is as it was: the same ops, calls, figures and lines. Ids differ where they did.
    programs = [view.program.model_copy(update={"parameters": {}}) for view in views]
    parameters = [list(view.program.parameters.items()) for view in views]
    assert programs[0] == programs[1]
    assert [kind for _, kind in parameters[0]] == [kind for _, kind in parameters[1]]
    assert len({name.partition("‹")[0] for name, _ in parameters[1]}) == len(("row", "keys.", "tone", "more."))
    assert any('keywords = ["mode", "‹' in node.text for node in views[1].stages[0].added)
    for name in ("lines", "critical_path", "prefixes"):
        assert getattr(views[0], name) == getattr(views[1], name)
    calls = [[call.model_copy(update={"id": ""}) for call in view.calls] for view in views]
    assert calls[0] == calls[1]
    ids = {(one.id, other.id) for one, other in zip(views[0].calls, views[1].calls, strict=True)}
    assert len(ids) == len({one for one, _ in ids}) == len({other for _, other in ids})
    assert [len(source.lines) for source in views[0].sources] == [len(source.lines) for source in views[1].sources]
    assert [stage.order for stage in views[0].stages] == [stage.order for stage in views[1].stages]
    hidden = '    s += lmc.system("‹'
    assert any(line.startswith(hidden) for line in views[1].sources[0].lines)
    assert "‹" in views[1].breaks[0].cause or SECRET not in views[0].breaks[0].cause


def record(program: str, rows: str, timeline: str) -> None:
    """Record a run of a program on the toy engine."""
    runner = driver.runner_for(driver.load_program(program), TOY)
    given = [json.loads(line) for line in Path(rows).read_text().splitlines()]
    header = driver.timeline_header(runner.program, [program], runner.target(), rows)
    with driver.TimelineFile(timeline, header) as file:
        dict(runner.run_rows([[(number, ((), row)) for number, row in enumerate(given)]], None, file))


LMC_WORDS = {"flexible"}


def test_strings_of_programs_are_nowhere_in_redacted_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No word of a string is, but for names of Python in its file, and words of lmc: most views have them."""
    monkeypatch.chdir(REPOSITORY)
    shown: dict[str, set[str]] = {}
    secret: dict[str, set[str]] = {}
    for name in EXAMPLES:
        source = (REPOSITORY / "examples" / f"{name}.py").read_text("utf-8")
        texts = [one.value for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Constant)]
        names = words("\n".join(redacted_source(source.split("\n")))) | {name}
        secret[name] = words(" ".join(text for text in texts if isinstance(text, str))) - names
        shown[name] = words(driver.view.FORMATS["json"](Case.of(name, tmp_path).view(redact=True)))
    counts = Counter(word for each in shown.values() for word in each)
    common = {word for word, count in counts.items() if count > len(EXAMPLES) / 2} | LMC_WORDS
    assert {name: found for name in EXAMPLES if (found := secret[name] & shown[name] - common)} == {}


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]{5,}", text))


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("x = 'abc'", 'x = "‹3›"'),
        ('x = r"""ab\nc""" + b"\\x00"', 'x = "‹4›"\n + "‹1›"'),
        ("x = '\\n\\u0041'", 'x = "‹2›"'),
        ("x = '\\d'", 'x = "‹2›"'),
        ('x = f"ab{y}c{{"', 'x = f"‹2›{y}‹2›"'),
        ("x = f'{d[\"key\"]!r:>10}'", "x = f\"{d['‹3›']!r:‹3›}\""),
        ("x = 'a' 'bc'  # no", 'x = "‹1›" "‹2›"  #‹3›'),
    ],
)
def test_lengths_are_those_of_texts(code: str, shown: str) -> None:
    assert "\n".join(redacted_source(code.split("\n"))).rstrip() == shown


def test_redacted_sources_keep_their_lines() -> None:
    source = (REPOSITORY / "examples" / "judge.py").read_text("utf-8").split("\n")[:-1]
    found = redacted_source(source)
    assert len(found) == len(source)
    assert "essay" not in "".join(line for line in found if "lmc.user" in line).replace("{essay}", "")
    assert redacted_source(["x = (", "secret"]) == ["‹5›", "‹6›"]


def test_redaction_keeps_names_and_shows_lengths() -> None:
    from lmc.ir.text.parser import parse_verified

    module = parse_verified(module_of("can't tell"), "m")
    redaction = Redaction("f", [module])
    text = print_module(redaction.module(module))
    assert text.count("can't tell") == print_module(module).count("can't tell") - 7
    said = redaction.message("f() can't take 'it is secret', nor \"that's\", nor 'gcan\\'t tell': `x`")
    assert "secret" not in said
    assert "that's" not in said
