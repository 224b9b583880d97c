import pytest

from benchmarks.agents import HEAD, MODES, Run, Workload, measure, rows_of
from benchmarks.workloads import make_small_model

SMALL = Workload(workflows=2, agents=3, instances=3, running=2, fixed=40, task=4, answer=3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Run]]:
    """Ends with an error where not all modes gave the same texts."""
    return measure("small", SMALL, make_small_model(tmp_path_factory.mktemp("agents")), repeats=1)


def test_a_batch_finds_what_comes_again(runs: list[list[Run]]):
    [[ours], [one_by_one], *_] = runs
    assert [len(texts) for texts in ours.texts] == [3, 3]
    assert all(len(answer.split()) == 3 for texts in ours.texts for answers in texts for answer in answers)
    # One by one, two agents of six have room: each comes again when all others have been there.
    assert one_by_one.statistics.cached_tokens == 0
    # In a batch each agent of a workflow answers all three instances before the next one does.
    # Prefixes that are computed ahead of their calls are requests of their own.
    ahead = ours.statistics.requests - one_by_one.statistics.requests
    more = ours.statistics.prompt_tokens - one_by_one.statistics.prompt_tokens
    assert one_by_one.statistics.requests == 2 * 3 * 3
    assert 0 <= more <= ahead * (SMALL.fixed + SMALL.task)
    assert bool(more) == bool(ahead)
    assert ours.statistics.prefilled_tokens < one_by_one.statistics.prefilled_tokens
    assert ours.statistics.cached_tokens >= 2 * 3 * (3 - 1) * SMALL.fixed


def test_a_table_has_a_line_for_each_mode(runs: list[list[Run]]):
    lines = rows_of("small", runs)
    assert [line[:3] for line in lines] == [["small", mode.policy, mode.arrival] for mode in MODES]
    assert all(len(line) == len(HEAD) for line in lines)
    assert lines[0][-1] == "1.00"
