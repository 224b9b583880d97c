import json
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from lmc.grammar.constraint import RegularConstraint
from lmc.ir.errors import ConstraintError

PROGRAM = """
import lmc


@lmc.jit
def typed(s, topic: str):
    s += topic
    s.gen("year", regex="[12][0-9]{3}")
    s.gen("mood", choices=["calm", "wild"])
    s.gen("again", regex="[12][0-9]{3}")


@lmc.jit
def wrong(s):
    s.gen("ok", regex="a+")
    s.gen("bad", regex="(?=a)b")


@lmc.jit
def free(s):
    s.gen("any")
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "grammar_program.py").write_text(PROGRAM)
    return "grammar_program.py"


def _rows(text: str) -> dict[str, str]:
    return {line[:17].strip(): line[17:] for line in text.splitlines()}


def test_the_parts_of_a_schema_that_restrict_nothing_are_named(lmc):
    schema = '{"type": "string", "order": 1, "format": "isbn", "maxLenght": 3}'
    said = lmc("grammar", "--schema", schema, "--tokenizer", "toy")
    assert said.code == 0
    remark = _rows(said.out)["remark"]
    assert "did you mean maxLength?" in remark
    assert remark.endswith("unknown keywords: order; unknown formats: isbn")
    (data,) = json.loads(lmc("grammar", "--schema", schema, "--tokenizer", "toy", "--json").out)
    assert data["remark"] == remark
    (data,) = json.loads(lmc("grammar", "--schema", "true", "--tokenizer", "toy", "--json").out)
    assert data["remark"] is None


def test_a_pattern_is_explained(lmc):
    said = lmc("grammar", "--regex", "[12][0-9]{3}-x", "--tokenizer", "toy")
    assert said.code == 0
    assert said.err == ""
    rows = _rows(said.out)
    assert list(rows) == [
        "constraint",
        "digest",
        "states",
        "token classes",
        "masks",
        "table",
        "compiled in",
        "index built in",
        "shortest output",
        "longest output",
        "example",
        "forced",
    ]
    assert rows["constraint"] == "regex, regular"
    assert rows["states"] == "7"
    assert rows["longest output"] == "6 tokens"
    assert re.fullmatch(r"'[12]\d{3}-x'", rows["example"])
    assert rows["forced"].endswith("% of its tokens")
    assert rows["compiled in"].endswith(" ms")


@pytest.mark.parametrize(
    ("arguments", "kind", "example"),
    [
        (("--choices", "calm,wild"), "choices, regular", "'calm'|'wild'"),
        (("--choices", '["a,b", "c"]'), "choices, regular", "'a,b'|'c'"),
        (("--schema", '{"type": "object", "properties": {"a": {"$ref": "#"}}}'), "schema, context-free", r"'\{.*\}'"),
        (
            ("--schema", '{"enum": [[1, 2]]}', "--whitespace", "flexible"),
            "schema, regular",
            r"'[\\rn ]*\[[\\rn ]*1 ?,[\\rn ]*2[\\rn ]*\][\\rn ]*'",
        ),
        (("--grammar", 'start: "(" start ")" | "x"'), "grammar, context-free", r"'\(*x\)*'"),
    ],
)
def test_every_kind_of_constraint_can_be_given(lmc, arguments, kind, example):
    said = lmc("grammar", *arguments)
    assert said.code == 0, said.err
    assert _rows(said.out)["constraint"] == kind
    assert re.fullmatch(example, _rows(said.out)["example"])


def test_one_possible_output_is_told(lmc):
    assert _rows(lmc("grammar", "--regex", "a[b]c").out)["only output"] == "'abc'"


def test_what_has_no_index_says_why(lmc, monkeypatch):
    said = lmc("grammar", "--grammar", 'start: "(" start ")" | "x"')
    rows = _rows(said.out)
    assert rows["index built in"].startswith("values nest without bound")
    assert rows["shortest output"] == "not known"
    assert rows["longest output"] == "no bound is known"
    assert "states" not in rows
    too_large = ConstraintError("it is too large", remedy="make it smaller")
    monkeypatch.setattr(RegularConstraint, "build", Mock(side_effect=too_large))
    large = _rows(lmc("grammar", "--regex", "a+").out)
    assert large["index built in"] == "it is too large: masks are made as they are reached"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.json", '{"type": "integer"}', "schema"),
        ("b.json", '["yes", "no"]', "choices"),
        ("c.txt", "a+b\n", "regex"),
        ("d.lark", 'start: "a" start "b" | "c"\n', "grammar"),
    ],
)
def test_a_file_is_what_its_name_says(lmc, tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    said = lmc("grammar", str(tmp_path / name), "--json", "--tokenizer", "toy")
    assert said.code == 0, said.err
    (found,) = json.loads(said.out)
    assert found["kind"] == kind
    assert found["name"].endswith(name)
    assert found["definition"] == (
        json.loads(text) if name.endswith("json") else text.rstrip("\n") + "\n" * (kind == "grammar")
    )
    assert set(found["facts"]) >= {
        "states",
        "token_classes",
        "table_bytes",
        "shortest_tokens",
        "example",
        "build_seconds",
    }
    schema = lmc("grammar", f"--{kind}", str(tmp_path / name)) if kind in ("schema", "grammar") else None
    assert schema is None or schema.code == 0


def test_the_constraints_of_a_program_are_each_explained_once(lmc, programs):
    said = lmc("grammar", f"{programs}:typed", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert [(each["name"], each["kind"]) for each in found] == [("typed/year", "regex"), ("typed/mood", "choices")]
    text = lmc("grammar", f"{programs}:typed").out
    assert re.search(r"^typed/year  \(grammar_program.py:\d+\)$", text, re.MULTILINE)
    assert text.count("constraint ") == 2


def test_a_refused_constraint_of_a_program_is_told_with_its_line(lmc, programs):
    said = lmc("grammar", f"{programs}:wrong")
    assert said.code == 1
    assert "constraint       regex, regular" in said.out
    assert re.search(r"grammar_program.py:\d+: error: ", said.err)
    as_json = lmc("grammar", f"{programs}:wrong", "--json")
    assert as_json.code == 1
    refused = json.loads(as_json.out)[1]["refused"]
    assert refused["location"].startswith("grammar_program.py:")
    assert refused["cause"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--regex", "ab(c"),
            "error: a group without its closing parenthesis: `(c` at character 2 of the pattern `ab(c`\n",
        ),
        (("--regex", "ab(c"), "\nab(c\n  ^\n"),
        (("--regex", r"[^\s\S]"), "error: nothing meets the constraint (regex)"),
        (("--grammar", 'start: "a" start\nx: "b'), '\nx: "b\n   ^\n'),
        (("--grammar", 'start: "a" start'), "error: nothing meets the constraint (grammar)"),
        (("--schema", '{"type": "strin"}'), "error: schema, #/type: type has to be one of null, boolean"),
    ],
)
def test_why_a_constraint_is_refused(lmc, arguments, told):
    said = lmc("grammar", *arguments)
    assert said.code == 1
    assert said.out == ""
    assert told in said.err
    assert "remedy: " in said.err
    (found,) = json.loads(lmc("grammar", *arguments, "--json").out)
    assert found["refused"]["cause"]
    assert "facts" not in found


def test_the_place_in_a_long_line_is_shown(lmc):
    said = lmc("grammar", "--regex", "x" * 500 + "(" + "y" * 500)
    line, caret = said.err.splitlines()[-2:]
    assert len(line) == 100
    assert line[caret.index("^")] == "("


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Usage"),
        (("--regex", "a", "--choices", "b"), "give one constraint"),
        (("nothing.json",), "nothing.json can't be read: No such file or directory"),
        (("file.yaml",), "what is in a file goes by the end of its name"),
        (("--schema", "nothing.json"), "nothing.json can't be read"),
        (("--choices", '["a"'), "--choices is no JSON list"),
        (("--regex", "a", "--whitespace", "flexible"), "--whitespace is for schemas, and this is a regex"),
        (("--grammar", "start: /a/", "--whitespace", "flexible"), "--whitespace is for schemas, and this is a grammar"),
    ],
)
def test_what_cannot_be_obeyed_is_a_usage_error(lmc, arguments, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = lmc("grammar", *arguments)
    assert said.code == 2 or (not arguments and said.code in (0, 2))
    assert told in said.err + said.out


def test_files_that_hold_nothing_of_use_are_usage_errors(lmc, tmp_path, programs):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "bytes.lark").write_bytes(b"start: \xff")
    assert "bad.json is no JSON" in lmc("grammar", str(tmp_path / "bad.json")).err
    assert "bytes.lark is not UTF-8" in lmc("grammar", str(tmp_path / "bytes.lark")).err
    free = lmc("grammar", f"{programs}:free")
    assert (free.code, "no generation of grammar_program.py:free has a constraint" in free.err) == (2, True)
    flexible = lmc("grammar", f"{programs}:free", "--whitespace", "flexible")
    assert (flexible.code, "this is a program" in flexible.err) == (2, True)


def test_a_tokenizer_that_is_not_there_is_an_error(lmc):
    said = lmc("grammar", "--regex", "a", "--tokenizer", "/nowhere")
    assert said.code == 1
    assert "there is no model folder /nowhere" in said.err


def test_torch_is_never_loaded():
    code = (
        "import sys; sys.argv = ['lmc', 'grammar', '--grammar', 'start: \"a\" start | \"b\"']\n"
        "from lmc.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules, 'llguidance' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "False True", done.stderr
