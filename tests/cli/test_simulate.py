import datetime
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmc.cache.simulation.report import CostModel
from lmc.driver.commands.simulate import POLICIES
from lmc.driver.targets.calibrations import Calibration, keep_calibration
from lmc.ir.engine.target import Target

TRACE = """{"id": "a", "tokens": [1, 2, 3], "output": 1000}
{"id": "b", "tokens": [1, 2, 4], "output": 0, "after": ["a"]}
"""
UNCALIBRATED = "seconds are not calibrated: they are those of an 8B model on one A100"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text(TRACE)
    return "t.jsonl"


def test_a_table(lmc, trace: str):
    said = lmc("simulate", trace, "--kv-tokens", "2000")
    assert (said.code, said.err) == (0, f"{UNCALIBRATED}\n")
    rows = dict(line.rsplit(maxsplit=1) for line in said.out.splitlines())
    assert list(rows) == [
        "policy",
        "kv tokens",
        "batch",
        "requests",
        "prompt tokens",
        "hit tokens",
        "hit rate",
        "evicted tokens",
        "preemptions",
        "steps",
        "depth",
        "predicted seconds",
        "calibrated",
        "generated tokens",
    ]
    assert (rows["policy"], rows["kv tokens"], rows["steps"], rows["depth"]) == (POLICIES[0], "2,000", "1,001", "2")
    assert (rows["hit tokens"], rows["hit rate"]) == ("2", "33.3%")
    assert rows["predicted seconds"] == "8.113"  # 1,001 steps of 8 ms, 1,003 rows of 0.1 ms, half a million keys


def test_seconds_of_a_calibrated_model(lmc, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LMC_CALIBRATIONS", str(tmp_path / "calibrations.json"))
    command = ("simulate", trace, "--kv-tokens", "2000", "--model", "builtin", "--json")
    said = lmc(*command)
    assert said.err == f"{UNCALIBRATED}; lmc calibrate --model builtin measures this machine\n"
    assert not json.loads(said.out)["calibrated"]
    cost = CostModel(step=1.0, row=0.5, attended=0.0)
    keep_calibration(Target("builtin"), Calibration(datetime.date(2026, 1, 2), "a machine", cost, 0.1))
    said = lmc(*command)
    assert said.err == ""
    data = json.loads(said.out)
    assert (data["calibrated"], data["predicted_seconds"]) == (True, 1001 + 1003 * 0.5)


@pytest.mark.parametrize("policy", POLICIES)
def test_json(lmc, trace: str, policy: str):
    said = lmc("simulate", trace, "--kv-tokens", "1002", "--policy", policy, "--batch", "3", "--json")
    assert (said.code, said.err) == (0, f"{UNCALIBRATED}\n")
    data = json.loads(said.out)
    assert (data["policy"], data["kv_tokens"], data["batch"], data["requests"]) == (policy, 1002, 3, 2)
    assert (data["prompt_tokens"], data["hit_tokens"], data["hit_rate"]) == (6, 2, 1 / 3)
    assert (data["evicted_tokens"], data["preemptions"], data["generated_tokens"]) == (1, 0, 1000)


def test_prompts_are_computed_in_chunks(lmc, trace: str):
    data = json.loads(lmc("simulate", trace, "--kv-tokens", "1010", "--prefill-tokens", "1", "--json").out)
    assert data["steps"] == 1003


def test_standard_input():
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "simulate", "-", "--kv-tokens", "2000", "--json"]
    done = subprocess.run(command, input=TRACE, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, f"{UNCALIBRATED}\n")
    assert json.loads(done.stdout)["steps"] == 1001


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("t.jsonl",), 2, "--kv-tokens"),
        (("t.jsonl", "--kv-tokens", "0"), 2, "--kv-tokens"),
        (("t.jsonl", "--kv-tokens", "9", "--batch", "0"), 2, "--batch"),
        (("t.jsonl", "--kv-tokens", "9", "--prefill-tokens", "0"), 2, "--prefill-tokens"),
        (("t.jsonl", "--kv-tokens", "9", "--policy", "best"), 2, "there is no policy 'best'"),
        (("nowhere.jsonl", "--kv-tokens", "9"), 2, "nowhere.jsonl can't be read"),
        (("t.jsonl", "--kv-tokens", "9"), 1, "t.jsonl:1: error: request 'a' needs 1,002 pages"),
    ],
)
def test_what_can_not_be_done_is_said(lmc, trace: str, arguments: tuple[str, ...], code: int, said: str):
    found = lmc("simulate", *arguments)
    assert (found.code, found.out) == (code, "")
    assert said in found.err
