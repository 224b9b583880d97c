"""``lmc run`` finds the order of a file over all of its rows."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from lmc.driver import Options, close_engine
from lmc.driver.batch import windows
from lmc.runtime.executor import Executor

PROGRAM = """import lmc


@lmc.jit
def ask(s, document: str, question: str):
    s += f"{document}\\n{question}"
    return s.gen("answer", max_tokens=1)
"""
DOCUMENTS = 8
ROWS = 64


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows of a few documents, ``sorted.jsonl`` and ``mixed.jsonl``; the pool holds fewer than a window."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(windows, "WINDOW", 16)
    monkeypatch.setattr(windows, "START_BELOW", 8)
    (tmp_path / "ask_in_order.py").write_text(PROGRAM)
    rng = random.Random(0)
    documents = ["".join(rng.choices("abcdef ", k=80)) for _ in range(DOCUMENTS)]
    rows = sorted((document, f"question {number}") for document in documents for number in range(ROWS // DOCUMENTS))
    for name in ("sorted.jsonl", "mixed.jsonl"):
        lines = (json.dumps({"document": document, "question": question}) for document, question in rows)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        rng.shuffle(rows)
    return tmp_path


def ran(lmc, data: str) -> list[dict[str, Any]]:
    """The output rows by number."""
    said = lmc("run", "ask_in_order.py", "--input", data, "--kv-tokens", "300", "--json")
    assert said.code == 0, said.err
    close_engine(Options(kv_tokens=300))
    return sorted(map(json.loads, said.out.splitlines()), key=lambda row: row["index"])


def cached(rows: list[dict[str, Any]]) -> int:
    return sum(row["usage"]["cached_tokens"] for row in rows)


def test_a_file_finds_as_much_in_the_cache_in_any_order(lmc, monkeypatch: pytest.MonkeyPatch):
    mixed = ran(lmc, "mixed.jsonl")
    in_order = ran(lmc, "sorted.jsonl")
    with Path("mixed.jsonl").open() as rows:
        monkeypatch.setattr("sys.stdin", rows)
        read_on_the_way = ran(lmc, "-")
    assert [row["value"] for row in mixed] == [row["value"] for row in read_on_the_way]
    assert cached(mixed) == cached(in_order) > 1.1 * cached(read_on_the_way)


@pytest.mark.parametrize("name", ["ask_in_order.py", "plan.json", "ask.lmir"])
def test_programs_and_saved_plans_start_all_rows_in_one_order(lmc, monkeypatch: pytest.MonkeyPatch, name: str):
    toy = ("--model", "toy")
    for kind, file in (("plan", "plan.json"), ("ir", "ask.lmir")):
        assert lmc("compile", "ask_in_order.py", "--emit", kind, "-o", file, *toy).code == 0
    started: list[list[Any]] = []
    run_batch = Executor.run_batch

    async def run(self: Executor, instances: Any, order: Any, *rest: Any, **options: Any) -> None:
        started.append([instances[index].inputs for index in order])
        await run_batch(self, instances, order, *rest, **options)

    monkeypatch.setattr(Executor, "run_batch", run)
    assert lmc("run", name, "--input", "mixed.jsonl", *toy).code == 0
    assert started == [[json.loads(line) for line in Path("sorted.jsonl").read_text().splitlines()]]
