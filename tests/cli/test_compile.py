import json
from pathlib import Path

import pytest

from lmc.backend.json.plan_json import load_plan
from lmc.ir.text.parser import parse

TOY = ("--model", "toy")


def test_the_summary_is_the_default(lmc, program: str):
    said = lmc("compile", f"{program}:judge", *TOY)
    assert said.code == 0
    assert said.out.startswith("program:     judge(essay: !text")
    assert "target:      toy, -O2" in said.out
    assert said.err == ""


def test_ir_and_plan_can_be_read_back(lmc, program: str):
    ir = lmc("compile", f"{program}:quiet", "--emit", "ir", *TOY)
    assert parse(ir.out).name == "quiet"
    assert 'loc("cli_program.py":' in ir.out
    plan = lmc("compile", f"{program}:quiet", "--emit", "plan", *TOY)
    assert load_plan(plan.out).name == "quiet"


def test_levels(lmc, program: str):
    texts = [lmc("compile", f"{program}:judge", "essay=x", "--emit", "ir", f"-O{level}", *TOY).out for level in "012"]
    assert "lm.prefill" not in texts[0] + texts[1]
    assert "lm.prefill" in texts[2]
    assert lmc("compile", f"{program}:judge", "essay=x", "--emit", "ir", *TOY).out == texts[2]


def test_arguments_specialise(lmc, program: str, tmp_path: Path):
    without = lmc("compile", f"{program}:judge", "--breaks", *TOY)
    assert "model calls: 2 in 2 waves" in without.out
    assert "regions:     1 condition, 1 loop;" in without.out
    given = lmc("compile", f"{program}:judge", "essay=x", 'dims=["a", "b"]', "--breaks", *TOY)
    assert "regions:     1 loop;" in given.out  # the list may have any length
    assert given.out.endswith("no breaks: captured to the end\n")
    (tmp_path / "rows.jsonl").write_text('{"essay": "x", "dims": ["a", "b", "c"]}\n{"essay": "bad"}\n')
    of_file = lmc("compile", f"{program}:judge", "--input", "rows.jsonl", *TOY)
    assert "model calls: 2 in 2 waves" in of_file.out
    assert "regions:     1 loop;" in of_file.out
    assert of_file.err.startswith("compiled for row 0 of rows.jsonl only; ")
    of_row = lmc("compile", f"{program}:judge", "--input", "rows.jsonl", "--row", "1", *TOY)
    assert "model calls: 0 in 0 waves" in of_row.out  # it raises, whatever the model says


def test_breaks_say_where_why_and_what_to_do(lmc, program: str):
    said = lmc("compile", f"{program}:breaks", "--breaks", *TOY)
    assert "captured:    up to cli_program.py:" in said.out
    assert "remedy: " in said.out


def test_output_goes_to_a_file_and_the_rest_beside_it(lmc, program: str, tmp_path: Path):
    said = lmc("compile", f"{program}:judge", "essay=x", "--emit", "ir", "-o", "x.lmir", "--remarks", "--breaks", *TOY)
    assert (said.code, said.out) == (0, "")
    assert parse((tmp_path / "x.lmir").read_text()).name == "judge"
    assert "hoist-prefixes" in said.err
    assert "no breaks" in said.err


def test_remarks_stand_under_the_summary(lmc, program: str):
    said = lmc("compile", f"{program}:judge", "essay=x", "--remarks", *TOY)
    assert "cli_program.py:" in said.out
    assert "hoist-prefixes: " in said.out
    assert lmc("compile", f"{program}:quiet", "-O0", "--remarks", *TOY).out.endswith("no remarks\n")


def test_sections_are_ordered_where_asked_for(lmc, tmp_path: Path):
    file = tmp_path / "with_sections.py"
    file.write_text(
        "import lmc\n\n@lmc.jit\ndef f(s, x: str):\n"
        "    s += lmc.user(lmc.section(x) + lmc.section('Be brief. ', movable=True))\n    return s.gen('a')\n"
    )
    written = lmc("compile", str(file), "--emit", "ir", *TOY).out
    assert 'user [%x, "Be brief. "]' in written
    ordered = lmc("compile", str(file), "--emit", "ir", "--order-sections", "--remarks", *TOY)
    assert ordered.out.index('"Be brief. "') < ordered.out.index("[%x]")
    assert "with_sections.py:5: order-sections: movable sections come first" in ordered.err
    unoptimized = lmc("compile", str(file), "--emit", "ir", "--order-sections", "-O0", *TOY).out
    assert 'user ["Be brief. ", %x]' in unoptimized


def test_json(lmc, program: str):
    found = json.loads(lmc("compile", f"{program}:breaks", "--json", *TOY).out)
    assert found["program"] == "breaks"
    assert found["breaks"][0]["location"].startswith("cli_program.py:")


@pytest.mark.parametrize(
    ("arguments", "code", "cause", "remedy"),
    [
        ([], 2, "has several programs: judge, slow, quiet, breaks, word, typed, costs", "cli_program.py:judge"),
        ([":jugde"], 2, "has no program 'jugde'", "did you mean 'judge'"),
        ([":judge", "strict=true"], 2, "judge needs essay", "essay=…"),
        ([":judge", "essay=x", "strict=perhaps"], 2, "strict=perhaps: ", "give bool, as JSON"),
        ([":judge", "--json", "--emit", "ir"], 2, "--json is for the summary", "leave out --json"),
        ([":judge", "--input", "none.jsonl"], 2, "none.jsonl can't be read", "JSON Lines"),
        ([":judge", "--input", "one.jsonl", "--row", "1"], 2, "one.jsonl has no row 1: it holds 1", "from 0"),
        ([":judge", "essay=x", "--row", "1"], 2, "--row goes with --input", "--input DATA.jsonl"),
        ([":judge", "-o", "cli_program.py"], 2, "cli_program.py is the program, which would be gone", "another file"),
        ([":judge", "-o", "none/x"], 2, "none/x can't be written", "folder you may write to"),
        ([":judge", "--model", "none"], 1, "there is no model folder", "config.json"),
        ([":judge", "--model", "toy:3"], 1, "there is no model folder", "config.json"),
        ([":word"], 1, "the constraint of 'word/a' is refused: a group without its closing parenthesis", "close it"),
    ],
)
def test_what_goes_wrong(lmc, program: str, tmp_path: Path, arguments: list[str], code: int, cause: str, remedy: str):
    name = arguments.pop(0) if arguments and arguments[0].startswith(":") else ""
    (tmp_path / "one.jsonl").write_text('{"essay": "x"}\n')
    target = () if "--model" in arguments else TOY
    said = lmc("compile", program + name, *arguments, *target)
    assert (said.code, said.out) == (code, "")
    assert f"error: {cause}" in said.err or cause in said.err
    assert remedy in said.err.replace("\n", " ")
    assert "Traceback" not in said.err


def test_what_generations_may_say(lmc, program: str):
    said = lmc("compile", f"{program}:typed", "--emit", "grammar", *TOY)
    assert (said.code, said.err) == (0, "")
    found = json.loads(said.out)
    assert [entry["kind"] for entry in found["constraints"]] == ["schema", "dtype", "choices"]
    assert found["constraints"][0]["definition"]["required"] == ["score", "sure"]
    assert found["constraints"][0]["generations"] == ["typed/verdict"]
    assert found["constraints"][2]["facts"]["only"] == "p"
    assert lmc("compile", f"{program}:typed", "--emit", "grammar", *TOY).out == said.out
    none = json.loads(lmc("compile", f"{program}:quiet", "--emit", "grammar", "-O0", *TOY).out)
    assert none == {"program": "quiet", "target": "toy", "constraints": []}
    remarks = lmc("compile", f"{program}:typed", "--remarks", *TOY).out
    assert "compile-constraints: the constraint of 'typed/verdict' (schema) has " in remarks
    assert "'typed/word' can say nothing but 'p': it asks no model (saves 1 token, 1 call)" in remarks


def test_a_row_that_is_no_good(lmc, program: str, tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text("{}\n")
    said = lmc("compile", f"{program}:judge", "--input", "rows.jsonl", *TOY)
    assert said.code == 1
    assert said.err.startswith("rows.jsonl:1: error: the row lacks essay")


def test_a_program_that_can_not_be_imported(lmc, program: str, tmp_path: Path):
    (tmp_path / "wrong.py").write_text("import lmc\n\nx = undefined_name\n")
    said = lmc("compile", "wrong.py")
    assert said.code == 1
    assert "wrong.py:3: error: wrong.py can't be imported: NameError" in said.err
    assert "x = undefined_name" in said.err
    assert "lmc/driver" not in said.err


def test_what_a_program_prints_stays_out_of_the_artifact(lmc, program: str, tmp_path: Path):
    assert program
    (tmp_path / "printing.py").write_text('import lmc\nprint("at import")\n@lmc.jit\ndef main(s):\n    s += "x"\n')
    said = lmc("compile", "printing.py", "--emit", "plan", "--model", "toy")
    assert json.loads(said.out)["format"] == "lmc.plan"
    assert "at import" in said.err
