"""The forms of a view: golden files, the schema, equal bytes, limits of size."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc import driver
from lmc.driver.viewing.view import CompiledView, Room
from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.text.parser import parse_verified
from lmc.report import view as view_module
from lmc.report.analysis.runs import MAX_NAMES, runs_of
from lmc.report.analysis.stages import hunks
from lmc.report.forms.graph import GraphNode, graph_of
from lmc.report.forms.mermaid import MAX_CHARACTERS, MAX_EDGES, MAX_NODES
from lmc.report.forms.tree import tree
from lmc.report.model import OpNode, schema_text, to_json
from lmc.report.replay import apply_hunks, state_at
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.report.golden import FILES, SCHEMA, TYPES, texts
from tests.report.programs import Case, compiled_view
from tests.report.test_safety import check_forms
from tests.report.typescript import declarations

MAX_OPS = 2_000
ROOM = Room(driver.schedule.HOLDS_ALL, 256)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


@pytest.mark.parametrize("name", [*sorted(EXAMPLES), "broken"])
def test_golden_files(name: str, tmp_path: Path) -> None:
    for path, text in texts(name, tmp_path):
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: python -m tests.report.golden writes it"


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz: apt-get install graphviz")
def test_graphviz_reads_the_graphs() -> None:
    files = sorted(FILES.glob("*.dot"))
    assert len(files) == len(EXAMPLES) + 2
    for file in files:
        run = subprocess.run(["dot", "-Tplain", file], capture_output=True, text=True, check=True)
        labels = file.read_text(encoding="utf-8").count("label=")
        assert run.stderr == ""
        assert 0 < run.stdout.count("\nnode ") <= labels


def test_the_schema_is_that_of_the_models() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), "python -m tests.report.golden writes it"
    assert TYPES.read_text(encoding="utf-8") == declarations(), "python -m tests.report.golden writes it"


def test_the_json_is_the_view(tmp_path: Path) -> None:
    view = Case.of("debate", tmp_path).view()
    text = to_json(view)
    assert CompiledView.model_validate_json(text) == view
    data = json.loads(text)
    assert (data["format"], data["version"]) == ("lmc-view", 1)
    with pytest.raises(ValueError, match="version"):
        CompiledView.model_validate({**data, "version": 2})


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    """In other processes, from other folders, with another order of hashes."""
    rows = Case.of("judge", tmp_path).rows
    found: list[bytes] = []
    for number, folder in enumerate((REPOSITORY, REPOSITORY / "examples")):
        program = "examples/judge.py" if not number else "judge.py"
        code = (
            "import sys; from lmc import driver; from lmc.driver.viewing.view import Room\n"
            f"view = driver.view.run({program!r}, {{'target': 'toy'}}, [], data={str(rows)!r}, room=Room(2**62, 256))\n"
            "sys.stdout.write(driver.view.FORMATS['json'](view))"
        )
        environment = {**os.environ, "PYTHONHASHSEED": str(number), "PYTHONPATH": str(REPOSITORY)}
        run = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, check=True)
        found.append(run.stdout.replace(b"examples/", b""))
    assert found[0] == found[1]
    assert str(REPOSITORY).encode() not in found[0]
    assert str(tmp_path).encode() not in found[0]


def test_no_absolute_path_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = str(REPOSITORY / "tests" / "report" / "broken.py")
    for redact in (False, True):
        view = driver.view.run(program, {"target": "toy"}, [], room=ROOM, redact=redact)
        assert [source.file for source in view.sources] == ["broken.py"]
        for form in (*driver.view.FORMATS.values(), tree):
            assert str(REPOSITORY) not in form(view)
        assert any('loc("broken.py":8)' in line for line in state_at(view, 0).text)
        assert any(remark.text.startswith("broken.py:8: ") for remark in view.remarks)


def large(count: int) -> str:
    """A module with so many calls, each on a line of its own, in conditions and beside each other."""
    lines = ["module @f {", "  func @f(%b: !bool) {", "    %p = lm.context : !ctx"]
    for number in range(count):
        call = f'%c{number}, %a{number} = lm.gen %p {{id = "f/a{number}"}} : !ctx, !text loc("p.py":{number + 1})'
        if number % 5:
            lines.append(f"    {call}")
        else:
            lines += [f'    cf.cond %b {{id = "f/@{number}"}} ^then() {{', f"      {call}"]
            lines += ["      cf.yield {}", "    } ^otherwise() {", "      cf.yield {}", "    }"]
    return "\n".join([*lines, "    lm.return %p", "  }", "}", ""])


@pytest.mark.parametrize("count", [10, 500, 2_000])
def test_graphs_keep_their_limits(count: int, tmp_path: Path) -> None:
    file = tmp_path / "f.lmir"
    file.write_text(large(count))
    view = driver.view.run(str(file), {}, [], room=ROOM)
    assert len(view.calls) == count
    assert view.notices == ()
    chart = driver.view.FORMATS["mermaid"](view)
    assert len(chart) <= MAX_CHARACTERS
    arrows = [line for line in chart.splitlines() if ">" in line and "-" in line.partition(">")[0][-2:] + "="]
    assert sum(" ==> " in line or " --> " in line or " -.-> " in line for line in arrows) <= MAX_EDGES
    for most in (1, 7, MAX_NODES, 2_000):
        graph = graph_of(view, most)
        assert len(graph.nodes) <= most
        keys = {node.key for node in graph.nodes}
        assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= keys
        assert {node.group for node in graph.nodes} - {None} == {node.key for node in graph.nodes if node.is_group}
        assert len([node for _, node in graph.nested() if node is not None]) == len(graph.nodes)
    check_forms(view)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_figures_of_a_graph_are_in_sum_those_of_the_calls(name: str) -> None:
    """Whatever is folded, each call counts once."""
    view = compiled_view(name)
    wanted = {
        "token": sum(call.prompt.known for call in view.calls),
        "text": sum(call.prompt.texts for call in view.calls),
    }
    for most in (MAX_OPS, 12, 3, 1):
        nodes = graph_of(view, most).nodes
        assert len(nodes) <= most or most == MAX_OPS
        found = {"token": 0, "text": 0}
        for number, noun in re.findall(r"([0-9,]+) (token|text)s?", " ".join(node.cost for node in nodes)):
            found[noun] += int(number.replace(",", ""))
        assert found == wanted
        waves = {wave for node in nodes for wave in map(int, re.findall(r"(?:waves? |to )([0-9]+)", node.cost))}
        numbers = [call.wave for call in view.calls]
        assert {limit(numbers) for limit in (min, max) if numbers} <= waves
        assert all(("(sum)" in node.cost) == (len(calls_of(node)) > 1) for node in nodes if "×" in node.label)


def calls_of(node: GraphNode) -> range:
    return range(int(node.label.rpartition("× ")[2])) if node.kind == "call" else range(0)


def test_a_very_large_module_is_folded_with_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert view_module.MAX_NODES == 20_000
    monkeypatch.setattr(view_module, "MAX_NODES", MAX_OPS)
    file = tmp_path / "f.lmir"
    file.write_text(large(1_300))
    view = driver.view.run(str(file), {}, [], room=ROOM)
    nodes = view.stages[-1].added
    assert view.program.ops > MAX_OPS
    assert len(nodes) <= MAX_OPS
    assert sum(node.ops for node in nodes) == view.program.ops == view.stages[-1].ops
    assert sum(call.ops for call in view.calls) == view.program.model_calls == 1_300
    assert [notice.partition(" is folded")[0] for notice in view.notices] == [f"a module of {view.program.ops:,} ops"]
    keys = {node.key for node in nodes}
    assert {each.key for node in nodes for each in node.inputs} | {call.key for call in view.calls} <= keys
    assert set(view.critical_path) <= keys
    check_forms(view)
    assert "is folded" in tree(view)
    module = parse_verified(file.read_text(), str(file))
    said = " ".join(node.id or node.text for node in nodes).split()
    assert {op.id for op in walk([module.main.body]) if isinstance(op, SamplingOp)} <= set(said)


def test_a_very_large_comparison_shows_the_second_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MAX_NODES", 40)
    files = [tmp_path / "old.lmir", tmp_path / "new.lmir"]
    for file, count in zip(files, (30, 90), strict=True):
        file.write_text(large(count))
    view = driver.view.compare(str(files[0]), str(files[1]))
    assert (len(view.stages), view.comparison, view.old) == (1, False, None)
    assert "the modules before the last pass are left out" in view.notices[0]
    check_forms(view)


def test_the_names_of_a_long_run_are_its_first_and_last_ones() -> None:
    nodes = [OpNode(key=f"n{n}", op="lm.gen", kind="call", label="", id=f"f/{'x' * 20}{n}") for n in range(100)]
    [run] = runs_of(nodes, 2).nodes
    assert len(run.text) <= MAX_NAMES
    names = run.text.split()
    assert (names[0], names[-1]) == (nodes[0].id, nodes[-1].id)
    assert len({*names} & {node.id for node in nodes}) > 5


def test_a_comparison_marks_what_changed(tmp_path: Path) -> None:
    old, new = tmp_path / "old.lmir", tmp_path / "new.lmir"
    text = large(10)
    old.write_text(text)
    lines = [line for line in text.splitlines() if '"f/a3"' not in line]
    at = next(number for number, line in enumerate(lines) if '"f/a7"' in line)
    lines[at] = lines[at].replace('{id = "f/a7"', '{id = "f/a7", max_tokens = 9')
    lines.insert(at, '    %n, %m = lm.gen %p {id = "f/new"} : !ctx, !text loc("p.py":99)')
    new.write_text("\n".join(lines) + "\n")
    view = driver.view.compare(str(old), str(new))
    assert view.comparison
    before, after = state_at(view, 0), state_at(view, 1)
    stage = view.stages[1]
    assert [node.id for node in stage.added] == ["f/new"]
    assert [node.id for node in stage.changed] == ["f/a7"]
    assert [before.nodes[key].id for key in stage.removed] == ["f/a3"]
    assert before.text == old.read_text().splitlines() or before.text != after.text
    marks = {node.label.partition(" · ")[0]: node.mark for node in graph_of(view, 200).nodes if node.mark}
    assert marks == {"gen new": "added", "gen a7": "changed", "gen a3": "removed"}
    for form in ("mermaid", "dot"):
        assert driver.view.FORMATS[form](view) == driver.view.FORMATS[form](view)
    assert "class" in driver.view.FORMATS["mermaid"](view)
    check_forms(view)
    same = driver.view.compare(str(old), str(old))
    assert (same.stages[1].added, same.stages[1].changed, same.stages[1].removed) == ((), (), ())


LINES = st.lists(st.sampled_from(["a", "b", "c", "}", "d", "e", "f"]), max_size=12)


@given(old=LINES, new=LINES)
def test_hunks_make_the_new_text(old: list[str], new: list[str]) -> None:
    found = hunks(old, new)
    assert apply_hunks(old, found) == new
    ends = [0, *(hunk.at + hunk.removed for hunk in found)]
    assert all(hunk.at >= end for hunk, end in zip(found, ends, strict=False))
    assert old != new or not found


def test_a_program_of_sglang_is_shown_up_to_its_break() -> None:
    view = compiled_view("sglang_tips")
    (entry,) = view.breaks
    assert [call.id for call in view.calls] == ["tips/good"]
    assert [node.key for node in state_at(view, -1).nodes.values() if node.kind == "break"] == [entry.key]


def test_a_break_is_a_node_with_its_remedy() -> None:
    view = driver.view.run("tests/report/broken.py", {"target": "toy"}, [], room=ROOM)
    [entry] = view.breaks
    node = state_at(view, -1).nodes[entry.key or ""]
    assert (node.kind, node.op) == ("break", "lm.break")
    assert node.place == entry.place
    assert entry.remedy
    assert entry.cause.split()[0] in node.label
