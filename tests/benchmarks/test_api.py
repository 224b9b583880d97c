"""All sides of a benchmark ask for the same, and their answers are equal: it ends where they are not."""

import pytest

from benchmarks import api
from tests.runtime.remote.simulator import KEY


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(api.KEY_NAME, KEY)
    monkeypatch.setattr(api, "SECONDS", 0.02)
    monkeypatch.setattr(api, "LONG", 0.05)
    monkeypatch.setattr(api, "CALLS", 20)
    monkeypatch.setattr(api, "IN_FLIGHT", 5)


@pytest.mark.parametrize("case", [api.branches_case, api.cpu_case])
def test_a_table_has_a_line_for_each_side(case):
    text, _ = case(1)
    assert "| SDK, asyncio |" in text
    assert "| lmc |" in text


def test_a_limit_is_used_and_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(api, "LIMIT", 10)
    monkeypatch.setattr(api, "MINUTE", 1.0)
    monkeypatch.setattr(api, "LIMITED", 25)
    text, _ = api.limit_case(1)
    assert text.count("| lmc |") == 1
