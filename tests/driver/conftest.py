from collections.abc import Iterator

import pytest

from lmc.driver.targets.service import service
from lmc.ir.engine.target import Target
from tests.driver import programs
from tests.runtime.engines import LateEngine


@pytest.fixture(autouse=True)
def no_side_effects() -> None:
    programs.SIDE_EFFECTS.clear()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateEngine]:
    """The engine of the target toy, for one test: it answers late, from threads."""
    engine = LateEngine()
    monkeypatch.setitem(service().engines._engines, Target("toy"), engine)
    yield engine
    assert engine.pinned == ()
