import io
import json
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.published import collecting, judging
from benchmarks.published.drafts import unfit
from benchmarks.published.judging import Verdict, judge
from benchmarks.real_schemas import cause_of, report

PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}


def _packed(cache: Path, files: dict[str, Any]) -> None:
    """A package of npm, and a wheel of the same files."""
    npm, wheel = cache / "npm-a-b-1.0", cache / "pypi-c-2.0"
    npm.mkdir(parents=True)
    wheel.mkdir()
    with tarfile.open(npm / "b.tgz", "w:gz") as tar, zipfile.ZipFile(wheel / "c.whl", "w") as zipped:
        for name, value in files.items():
            data = json.dumps(value).encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            zipped.writestr(name, data)


def test_schemas_are_found_in_packages_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    listed = tmp_path / "packages.txt"
    listed.write_text("# a comment\nnpm @a/b 1.0\npypi c 2.0\n")
    monkeypatch.setattr(collecting, "PACKAGES", listed)
    _packed(
        tmp_path,
        {
            "x/one.json": PERSON,
            "x/two.json": {"tools": [{"inputSchema": DRAFT_4}, {"inputSchema": PERSON}]},
            "x/other.json": {"$ref": "a.json", **DRAFT_4, "properties": {"a": {"$ref": "b.json"}}, "type": "object"},
            "x/wrong.json": {**DRAFT_4, "type": "gauge"},
            "x/data.json": {"name": "x", "$schema": "https://a.example/schema.json"},
            "x/tests/one.json": {**PERSON, "title": "of a test"},
            "x/readme.md": DRAFT_4,
        },
    )
    samples, left_out = collecting.collect(tmp_path)
    assert {(sample.package, sample.place) for sample in samples} == {
        ("npm:@a/b", "x/one.json#"),
        ("npm:@a/b", "x/two.json#/tools/0/inputSchema"),
    }
    assert set(left_out) == {"refers to other documents", "not valid by the meta-schema of its draft"}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (PERSON, None),
        ({"items": [PERSON], "additionalItems": False}, None),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, None),
        ({"$id": "http://a.example/a", "$ref": "http://a.example/a#/$defs/b", "$defs": {"b": {}}}, None),
        ({"type": "string", "pattern": r"^\p{L}$"}, None),
        ({"required": True}, "not valid by the meta-schema of its draft"),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}}, "refers to other documents"),
    ],
)
def test_what_is_left_out_of_the_sample(schema: Any, reason: str | None):
    assert unfit(schema) == reason


def test_a_schema_is_judged():
    verdict = judge(PERSON)
    assert (verdict.cause, verdict.peer_cause, verdict.late, verdict.wrong) == (None, None, None, [])
    assert verdict.judged > 10
    assert 0 < verdict.seconds < 10
    refused = judge({"type": "string", "pattern": "a(?<!b)c"})
    assert refused.cause is not None
    assert refused.judged == 0


def test_a_false_accept_is_found(monkeypatch: pytest.MonkeyPatch):
    compiled = judging._compiled
    monkeypatch.setattr(judging, "_compiled", lambda schema: compiled({**schema, "required": []}))
    assert judge(PERSON).wrong


def test_the_report_counts_causes():
    verdicts = [
        Verdict(seconds=0.002),
        Verdict(cause="schema, #/a: 'x' is bad: because 3"),
        Verdict(cause="'y' is bad"),
    ]
    sample = collecting.Sample("npm:a", "x.json#", PERSON)
    text = report([sample] * 3, verdicts, Counter({"refers to other documents": 2}))
    assert "| lmc | 2 | 66.7% | 2.00 | 2.0 | 0 |" in text
    assert "| 2 | 1 | is bad |" in text
    assert "2 (refers to other documents)" in text
    assert cause_of("regex parse error:\n   ^(a") == "regex parse error"
