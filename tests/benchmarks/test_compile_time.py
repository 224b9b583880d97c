import os
from pathlib import Path

import pytest

from benchmarks import compile_time, results
from benchmarks.compile_time import LIMIT_RATIO, SHAPES, Times, measure
from lmc.ir.engine.target import Target
from tests.work import calls_of

pytestmark = pytest.mark.slow("compiles programs of thousands of ops")

ROOM = 3  # times are short, and machines are shared
FULL = os.environ.get("LMC_TEST_FULL") == "1"


@pytest.mark.parametrize("shape", SHAPES)
def test_compiling_stays_within_its_limits(shape: str):
    """Work grows with the program and not with its square, in calls; with full counts in seconds, too."""
    small, large, target = 100, 400, Target("toy")
    fewer, more = (
        calls_of(lambda count=count: measure(SHAPES[shape], count, target, repeats=1)) for count in (small, large)
    )
    assert more / fewer < LIMIT_RATIO / 10 * (large / small)
    if FULL:
        quick = measure(SHAPES[shape], 1_000, target, repeats=3)
        slow = measure(SHAPES[shape], 10_000, target, repeats=2)
        assert slow.total / quick.total < LIMIT_RATIO * ROOM


def test_rows_give_the_ratio_once_for_each_shape():
    lines = compile_time.rows({"chain": [Times(0.1, 0.2, 0.1), Times(1.0, 2.0, 1.0)]})
    assert lines == [
        ["chain", "1,000", "0.100", "0.200", "0.100", "0.400", ""],
        ["chain", "10,000", "1.000", "2.000", "1.000", "4.000", "10.0"],
    ]


def test_a_section_is_written_once_and_leaves_the_others_alone(tmp_path: Path):
    path = tmp_path / "RESULTS.md"
    table = results.table(["a", "b"], [["1", "2"]])
    results.write_section("one", "python one.py", table, path)
    results.write_section("two", "python two.py", table, path)
    first = path.read_text()
    results.write_section("one", "python one.py", table, path)
    assert path.read_text() == first
    results.write_section("one", "python one.py", table.replace("1", "3"), path)
    text = path.read_text()
    assert "| 3 | 2 |" in text
    assert "| 1 | 2 |" in text
    assert text.index("## one") < text.index("    python one.py") < text.index("## two") < text.index("python two.py")
