"""The table of first tokens: whose they are, and what is said of the bound."""

import sys

import pytest

from benchmarks import latency
from benchmarks.latency import Behind


def test_the_table_has_each_population_beside_the_bound(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["latency.py", "--workload", "mmlu"])
    latency.main()
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| mmlu")]
    assert [line[1] for line in lines[:3]] == [*latency.POLICIES]
    for line in lines[:3]:
        middles, lates = zip(*(map(float, cell.split(" · ")) for cell in line[2:5]), strict=True)
        assert all(middle <= late for middle, late in zip(middles, lates, strict=True))
        assert min(middles[:2]) <= middles[2] <= max(middles[:2])
        assert min(lates[:2]) <= lates[2] <= max(lates[:2])
    bound, *behind = (float(cell.strip(" |")) for cell in lines[3][1:])
    assert behind[0] <= bound
    assert behind[3] <= bound


def test_the_text_names_the_workloads_whose_whole_stream_misses_the_bound():
    def behind(name: str, late: float) -> Behind:
        return Behind(name, 2.0, {"others": 0.0, "the batch's own": late, "all": late}, 0.0)

    kept = latency.told([], [behind("rag", 1.0)], 8)
    assert "the bound is kept with all requests of the stream too.\n" in kept
    missed = latency.told([], [behind("rag", 1.0), behind("agents", 3.0)], 8)
    assert "the bound is kept with all requests of the stream too, but for agents.\n" in missed


def test_others_that_come_too_late_end_the_program(monkeypatch):
    monkeypatch.setattr(latency, "stated", lambda requests, batch: -1000.0)
    with pytest.raises(SystemExit, match=r"mmlu: others come -\d+\.\d+ s later, and may come -1000\.00 s later"):
        latency.measured("mmlu", 8)
