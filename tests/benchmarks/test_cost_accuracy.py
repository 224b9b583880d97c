"""Costs of the benchmark's programs lie in their ranges; a batch that fails is an error that names it."""

from collections.abc import Generator
from pathlib import Path

import pytest

import lmc
from benchmarks.cost_accuracy import (
    FITTING,
    ErrorsOfExample,
    FailedBatchError,
    distribution,
    example_rows,
    measure_tokens,
    program_rows,
)
from benchmarks.programs import PROGRAMS
from lmc.driver import Options
from lmc.ir.profile import Profile
from tests.examples.cases import Example
from tests.examples.measured import Measured, errors, estimated, outside, run_rows, sampling_error
from tests.runtime.remote.hosted_runs import hosted, target
from tests.runtime.remote.simulator import Simulator
from tests.runtime.server.servers import FULL, Served, served

QUICK = ("react",)
"""Programs that make test runs on the built-in model; make test-full runs all that fit it."""
ON_BUILTIN = (*FITTING, "agents") if FULL else QUICK
BUILTIN = Options("builtin", kv_tokens=8_000, deterministic=True)


@pytest.fixture(scope="module")
def server() -> Generator[Served]:
    """The built-in model over HTTP."""
    with served("--model", "builtin", "--deterministic", "--kv-tokens", "8000") as found:
        yield found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_lies_in_its_range_and_a_profile_of_other_rows_is_within_a_tenth(name: str) -> None:
    other, rows = program_rows(name, 2)
    found = measure_tokens("toy", name, Example(PROGRAMS[name], rows), Options("toy"), other)
    assert found is not None
    assert not found.outside
    assert all(abs(error) <= 0.1 for error in found.profiled.values()), found.profiled


@pytest.mark.parametrize("name", ON_BUILTIN)
def test_a_program_on_the_builtin_model_lies_in_its_range(name: str) -> None:
    _, rows = program_rows(name, 1)
    measured = run_rows(PROGRAMS[name], BUILTIN, rows)
    figures = estimated(PROGRAMS[name], BUILTIN, rows)
    assert measured.error is None
    assert not outside(figures, measured)
    assert abs(errors(figures, measured)["prompt"]) <= 0.1


@pytest.mark.parametrize("name", ON_BUILTIN)
def test_a_program_on_a_server_lies_in_its_range(
    name: str, server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"server:{server.url}"
    Path("pyproject.toml").write_text(f'[tool.lmc.prices."{url}"]\ninput = 1\noutput = 4\n')
    _, rows = program_rows(name, 1)
    options = Options(lmc.remote(url))
    measured = run_rows(PROGRAMS[name], options, rows)
    assert measured.error is None
    assert measured.dollars
    assert not outside(estimated(PROGRAMS[name], options, rows), measured)


def test_programs_without_roles_are_refused_by_providers_before_anything_is_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with hosted(), Simulator() as simulator:
        other, rows = program_rows("mmlu", 1)
        options = Options(target(simulator.url, "chat"))
        assert measure_tokens("chat", "mmlu", Example(PROGRAMS["mmlu"], rows), options, other) is None
        assert not simulator.arrivals
    assert "chat does not take mmlu: " in capsys.readouterr().out


def test_a_batch_that_fails_is_an_error_that_names_it() -> None:
    other, rows = program_rows("multi_turn_chat_short", 1)
    workload = Example(PROGRAMS["multi_turn_chat_short"], rows)
    with pytest.raises(FailedBatchError, match="multi_turn_chat_short on builtin failed"):
        measure_tokens("builtin", "multi_turn_chat_short", workload, BUILTIN, other)


def test_rows_of_a_profile_are_others() -> None:
    other, rows = example_rows("react", Options("toy"))
    assert len(other) == len(rows) > 10
    assert not any(row in other for row in rows)


def test_the_distribution_has_the_median_and_the_worst_error() -> None:
    errors_of = [
        ErrorsOfExample({"calls": -0.5, "prompt": 0.2}, {"calls": share, "prompt": 0.0}, {"calls": 0.1}, [])
        for share in (0.0, -0.1, 0.3)
    ]
    assert [errors_of[1].cell(figure) for figure in ("calls", "prompt", "cached")] == [
        "-50%, -10% ± 10%",
        "+20%, +0%",
        "",
    ]
    text = distribution({"toy": errors_of})
    assert "| toy | without | 50%, 50% | 20%, 20% |" in text
    assert "| toy | with a profile | 10%, 30% | 0%, 0% |" in text


def test_the_error_of_sampling_is_that_of_the_difference_of_two_means() -> None:
    profiled, measured = (
        Measured({}, [{"calls": value} for value in values], Profile("p"), None, [])
        for values in ((1, 2, 3, 2), (2, 4, 6, 4))
    )
    assert sampling_error("calls", profiled, measured) == pytest.approx(((2 / 3 + 8 / 3) / 4) ** 0.5 / 4)
