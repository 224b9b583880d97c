import pytest

from lmc.runtime.events import branch_of


@pytest.mark.parametrize(
    ("op_id", "branch"),
    [
        ("judge/verdict", "judge"),
        ("judge/verdict#1", "judge"),
        ("judge/fork/2/j", "judge/fork/2"),
        ("judge/fork#1/0/sub/grade/score", "judge/fork#1/0/sub/grade"),
        ("judge/a%2Fb", "judge"),
    ],
)
def test_branch_of(op_id: str, branch: str):
    assert branch_of(op_id) == branch
