"""The parts of the runners that run without their engines."""

import io
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from benchmarks import engine, engine_cuda, results, runners, workloads
from benchmarks.peers import protocol
from benchmarks.peers.gguf_model import gguf_name, permuted
from benchmarks.peers.prefixes import Prefixes
from benchmarks.peers.run_llama_cpp import Source, continued, sources
from benchmarks.peers.run_vllm import _continuously
from benchmarks.peers.shapes import Call
from tests import processes
from tests.project.layers import REPOSITORY

SCRIPTS = (
    *("constrained_generation.py", "engine.py", "engine_cuda.py", "engine_overhead.py", "kernels.py"),
    *("memory_pressure.py", "workloads.py"),
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_say_how_they_are_used(script: str):
    done = processes.run([f"benchmarks/{script}", "--help"], REPOSITORY, (REPOSITORY,))
    assert done.code == 0, done.err
    assert f"python benchmarks/{script}" in done.out


def test_peers_are_found_by_their_variables(monkeypatch):
    monkeypatch.delenv("LMC_BENCH_LLAMA_CPP", raising=False)
    monkeypatch.setenv("LMC_BENCH_VLLM", "/somewhere/bin/python")
    found = runners.peers()
    assert found["vllm"].interpreter == "/somewhere/bin/python"
    assert "llama_cpp" not in found
    monkeypatch.setenv("LMC_BENCH_LLAMA_CPP", "/elsewhere/bin/python")
    assert all(peer.runner.is_file() for peer in runners.peers().values())
    assert runners.peers()["llama_cpp"].runner.name == "run_llama_cpp.py"


RUNNER = """
import json, os, sys
for line in sys.stdin:
    job = json.loads(line)
    if job.get("fail"):
        sys.exit("no room for " + job["fail"])
    print("loading", flush=True)
    print(json.dumps({"process": os.getpid(), "seen": job["number"]}), flush=True)
"""


@pytest.fixture
def two_peers(monkeypatch, tmp_path):
    (tmp_path / "runner.py").write_text(RUNNER, encoding="utf-8")
    made = {
        name: runners.Peer(sys.executable, tmp_path / "runner.py", stays=name == "stays") for name in ("goes", "stays")
    }
    monkeypatch.setattr(runners, "peers", lambda: made)


def test_who_stays_answers_job_after_job_in_one_process(two_peers):
    with runners.Runners() as running:
        goes = [running.run("goes", {"number": number}) for number in range(2)]
        stays = [running.run("stays", {"number": number}) for number in range(3)]
    assert [answer["seen"] for answer in goes + stays] == [0, 1, 0, 1, 2]
    assert len({answer["process"] for answer in goes}) == 2
    assert len({answer["process"] for answer in stays}) == 1


def test_all_stay_where_they_take_turns(two_peers):
    with runners.Runners(all_stay=True) as running:
        assert len({running.run("goes", {"number": number})["process"] for number in range(2)}) == 1


def test_a_runner_that_fails_ends_the_script_with_what_it_said(two_peers):
    with runners.Runners() as running, pytest.raises(SystemExit, match=r"stays failed:\nno room for it"):
        running.run("stays", {"number": 1, "fail": "it"})


def test_the_roofline_counts_each_prefix_once():
    prefixes = Prefixes()
    assert prefixes.add([1, 2, 3])[0] == 3
    new, places = prefixes.add([1, 2, 4])
    assert new == 1
    assert places[:2] == prefixes.add([1, 2])[1]
    assert prefixes.add([2])[0] == 1


def served(monkeypatch, capsys, job: dict, load) -> dict:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(job)))
    protocol.serve(load)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_first_batch_warms_up(monkeypatch, capsys):
    job = {"new_tokens": 2, "batches": [[[1]], [[3], [4]]]}
    answer = served(monkeypatch, capsys, job, lambda _: lambda prompts, new: [prompt * new for prompt in prompts])
    assert answer["tokens"] == [[[3, 3], [4, 4]]]
    assert len(answer["seconds"]) == 1


def test_a_workload_answers_what_was_done(monkeypatch, capsys):
    texts: dict[str, list[int]] = {}
    batches = workloads.batches_of("react", 3, 1)
    works = [workloads.work_of("react", rows, texts) for rows in batches]
    job = {"workload": "react", "texts": texts, "batches": batches}
    answer = served(monkeypatch, capsys, job, lambda _: lambda prompts, new: [[0] * new for _ in prompts])
    assert answer["prompt_tokens"] == [works[1].prompt_tokens]
    assert answer["new_tokens"] == [works[1].new_tokens]


def test_time_of_the_processor_is_that_of_all_processes(tmp_path):
    tick = os.sysconf("SC_CLK_TCK")
    stats = {os.getpid(): (1, 5), 2: (os.getpid(), 7), 3: (2, 20), 4: (1, 100)}  # its parent and what it used
    for process, (parent, ticks) in stats.items():
        (tmp_path / str(process)).mkdir()
        fields = ["S", str(parent), *["0"] * 9, str(ticks), "1"]
        (tmp_path / str(process) / "stat").write_text(f"{process} (a (name) b) {' '.join(fields)} 0", encoding="utf-8")
    assert protocol.cpu_seconds(tmp_path) == (5 + 7 + 20 + 3) / tick
    assert 0 < protocol.cpu_seconds(tmp_path / "nowhere") <= time.process_time()


def test_every_prefix_is_computed_once():
    stem, branch = list(range(100)), list(range(200, 250))
    prompts = [[*stem, *branch, 1], [7] * 60, [*stem, *branch, 2], [*stem, 9], [*stem, *branch, 3]]
    found = sources(prompts)
    assert found[3] == Source()  # sorted first
    assert found[0] == Source(3, 100, 1)
    assert found[2] == Source(0, 150, 2)
    assert found[4] == Source(0, 150, 2)
    assert found[1] == Source()
    assert sources([stem, stem])[1] == Source(0, 99, 1)  # its last row is computed for the logits


def test_conversations_go_on_in_their_rooms():
    held = {0: [1, 2], 1: [1, 3], 2: [4]}
    assert continued([[1, 3, 5], [4, 6]], held) == [(1, 2), (2, 1)]
    assert continued([[1, 3, 5], [7]], held) == []
    assert continued([[1, 2, 5], [1, 2, 6]], held) == []


def test_rows_of_q_are_rotated_in_pairs():
    weight = np.arange(8).reshape(8, 1)
    assert permuted(weight, heads=2).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_tensors_have_the_names_of_llama_cpp():
    assert gguf_name("model.embed_tokens.weight") == "token_embd.weight"
    assert gguf_name("model.norm.weight") == "output_norm.weight"
    assert gguf_name("model.layers.12.self_attn.k_proj.weight") == "blk.12.attn_k.weight"


class OneByOne:
    """Finishes the youngest request at every step."""

    class Output:
        def __init__(self, name: str, prompt: list[int], count: int) -> None:
            self.request_id = name
            self.finished = True
            self.num_cached_tokens = 3
            self.outputs = [self]
            self.token_ids = prompt[-1:] * count

    def __init__(self) -> None:
        self.waiting: list[OneByOne.Output] = []
        self.order: list[int] = []

    def add_request(self, name: str, prompt: dict, count: int) -> None:
        self.waiting.append(self.Output(name, prompt["prompt_token_ids"], count))

    def step(self) -> list["OneByOne.Output"]:
        self.order.append(self.waiting[-1].token_ids[0])
        return [self.waiting.pop()]


def test_programs_go_on_without_waiting_for_each_other(monkeypatch):
    monkeypatch.setattr("benchmarks.peers.run_vllm._sampling", lambda count: count)
    ended: list[int] = []

    def program(start: int):
        first, second = yield [Call([start], 2), Call([start + 1], 1)]
        assert (first, second) == ([start, start], [start + 1])
        yield [Call([start + 2], 1)]
        ended.append(start)

    fake = OneByOne()
    assert _continuously(fake)([program(10), program(20)]) == 3 * len(fake.order)
    assert fake.order == [21, 20, 22, 11, 10, 12]
    assert ended == [20, 10]


def test_no_cuda_is_said_and_is_no_success(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["engine_cuda.py"])
    assert engine_cuda.main() == 2
    assert "no CUDA device" in capsys.readouterr().out


def test_what_differs_is_told_and_the_rest_goes_on(monkeypatch):
    def compare(architecture: str, device: str, folder: Path) -> list[str]:
        if architecture == "llama":
            raise AssertionError("token 3")
        return [architecture, "24", "0", "1"]

    monkeypatch.setattr(engine_cuda, "compare", compare)
    lines, wrong = engine_cuda.equality(("llama", "phi3"), "cpu", engine_cuda.Clock(60))
    assert wrong == ["llama: AssertionError: token 3"]
    assert lines == [["llama", "FAILED", "", ""], ["phi3", "24", "0", "1"]]


def test_nothing_begins_when_time_is_over(monkeypatch):
    lines, wrong = engine_cuda.equality(("llama",), "cpu", engine_cuda.Clock(-1))
    assert lines == [["llama", "left out: no time", "", ""]]
    assert not wrong
    assert len(engine_cuda.speeds(engine.CASES, "cpu", 1, engine_cuda.Clock(-1))) == 2 * len(engine.CASES)


def test_a_pair_of_engines_is_one_line():
    case = engine.Case(2, 0, 4, 10)
    found = {
        "lmc": {"seconds": [0.1], "tokens": [[[1], [2]]]},
        "transformers": {"seconds": [0.4], "tokens": [[[1], [3]]]},
    }
    assert engine_cuda.rates(case, found) == ["200", "50", "4.00", "50%"]


def test_rows_are_kept_under_what_was_measured_and_its_code(monkeypatch, tmp_path):
    runner = tmp_path / "runner.py"
    made = {"one": runners.Peer("", runner), "other": runners.Peer("", runner)}
    monkeypatch.setattr(runners, "peers", lambda: made)
    keys: set[str] = set()
    for text, number in (("a", "1.0"), ("b", "1.0"), ("b", "1.1")):
        runner.write_text(text, encoding="utf-8")
        monkeypatch.setattr(runners, "_versions", dict.fromkeys(made, (("engine", number),)).__getitem__)
        runners._sources.cache_clear()
        keys |= {runners.row_key(name, dtype, 3) for name in made for dtype in ("float32", "bfloat16")}
        assert runners.row_key("one", "float32", 3) in keys
    runners._sources.cache_clear()
    assert len(keys) == 12


@pytest.fixture
def asked(monkeypatch):
    """Peers of this interpreter, by the packages that they are asked for."""
    made: dict[str, runners.Peer] = {"lmc": runners.peers()["lmc"]}
    monkeypatch.setattr(runners, "peers", lambda: made)
    runners._versions.cache_clear()
    yield made
    runners._versions.cache_clear()


def test_versions_are_those_of_each_interpreter(asked, tmp_path):
    asked["pytest"] = runners.Peer(sys.executable, tmp_path, ("no-such-package", "pytest", "torch"))
    ours = [f"{name} {version(name)}" for name in ("lmc-compiler", "torch", "transformers")]
    assert runners.versions(()) == ", ".join(ours)
    assert runners.versions(("pytest", "lmc")) == ", ".join([*ours, f"pytest {pytest.__version__}"])


@pytest.mark.parametrize(
    ("interpreter", "cause"),
    [
        (sys.executable, "has no gone or lost; README.md says"),
        ("/nowhere/python", "can't be asked for versions: .*No such file"),
        ("/bin/false", "can't be asked for versions: "),
    ],
)
def test_a_peer_whose_version_is_not_to_be_had_ends_the_script(asked, tmp_path, interpreter: str, cause: str):
    asked["peer"] = runners.Peer(interpreter, tmp_path, ("gone", "lost"))
    with pytest.raises(SystemExit, match=f"peer: {interpreter} {cause}"):
        runners.versions(["peer"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flags\t\t: fpu sse2 avx2 avx512f avx512_bf16\n", " with AVX2, AVX512F, AVX512_BF16, no AMX_BF16"),
        ("flags : sse2 avx2\n", " with AVX2, no AVX512F, no AVX512_BF16, no AMX_BF16"),
        ("Features\t: fp asimd bf16\n", " with BF16, no SVE, no SME"),
        ("flags : other\n", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_processor_is_told_by_what_it_can_do(tmp_path, text: str | None, said: str):
    if text is not None:
        (tmp_path / "cpuinfo").write_text(f"processor : 0\n{text}", encoding="utf-8")
    assert results.processor(tmp_path / "cpuinfo") == f"{os.cpu_count()} cores{said}"


@pytest.mark.parametrize("script", [engine, workloads])
def test_sections_name_versions_and_processor(script, monkeypatch, tmp_path):
    answer = {"seconds": [1.0], "tokens": [], "instances": 1, "work": [{"calls": 1, "prompt": 2, "new": 3}]}
    written: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(script, "measure", lambda *_: answer)
    monkeypatch.setattr(script, "write_section", lambda name, command, text: written.append(text))
    monkeypatch.setattr(sys, "argv", ["script.py", "--write", "--dtype", "float32", "--peer", "lmc", "--repeats", "1"])
    script.main()
    about = written[0].splitlines()[0]
    assert f"; {runners.versions(())}; median of 1" in about
    assert f", {results.processor()}; " in about
