import json

from lmc.backend.json.plan_json import load_plan
from lmc.driver.compile.compile import compile_program
from lmc.driver.compile.compiled import summary, summary_text
from lmc.driver.saved.artifacts import module_text, plan_text
from lmc.driver.targets.registry import load_tokenizer
from lmc.ir.engine.target import Target
from lmc.ir.text.parser import parse
from lmc.passes.pipelines import PipelineOptions
from tests.driver import programs
from tests.equality import structurally_equal

TOY = Target("toy")
TOKENIZER = load_tokenizer(TOY)
JUDGE = compile_program(programs.judge, None, TOY, PipelineOptions("O2"), TOKENIZER)
BREAKS = compile_program(programs.breaks, None, TOY, PipelineOptions("O0"), TOKENIZER)


def test_ir_and_plan_load_as_what_they_were():
    assert structurally_equal(parse(module_text(JUDGE.module)), JUDGE.module)
    assert structurally_equal(load_plan(plan_text(JUDGE.plan)).module, JUDGE.plan.module)


def test_the_summary_counts():
    found = summary(JUDGE)
    assert json.loads(json.dumps(found)) == found
    assert (found["program"], found["target"], found["level"]) == ("judge", "toy", "O2")
    assert found["parameters"] == {"essay": "!text"}
    assert found["ops"]["captured"] == len(JUDGE.captured.module.main.body.ops)
    assert (found["model_calls"], found["waves"]) == (4, 3)
    assert found["prefixes"]["batch"] == 1
    assert found["saved"]["tokens"] == sum(remark.saved_tokens for remark in JUDGE.remarks if remark.kind == "applied")
    assert len(found["remarks"]) == len(JUDGE.remarks) > 0
    assert found["breaks"] == []


def test_the_summary_for_people():
    said = summary_text(JUDGE)
    assert "program:     judge(essay: !text)\n" in said
    assert "target:      toy, -O2\n" in said
    assert "model calls: 4 in 3 waves\n" in said
    assert said.endswith("captured:    to the end\n")
    assert "calls back" not in said


def test_breaks_and_host_functions_are_told():
    found = summary(BREAKS)
    assert found["host_functions"]["note"] == "writes"
    [entry] = found["breaks"]
    assert entry["location"].startswith(f"{programs.__file__}:")
    assert entry["cause"]
    assert entry["remedy"]
    said = summary_text(BREAKS)
    assert "calls back:  note (writes)" in said
    assert "saved:       nothing\n" in said
    assert f"captured:    up to {entry['location']}, the rest runs as plain Python" in said
