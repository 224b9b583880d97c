"""A file that is followed: the file changes while it is compiled, or its compilation does not end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmc.driver.commands.schedule import HOLDS_ALL
from lmc.driver.viewing import watch
from lmc.driver.viewing.recompile import ViewJob
from lmc.driver.viewing.watch import State, Watched

SECONDS = 120
PROGRAM = """
import lmc

@lmc.jit(target="toy")
def ask(s):
    s += "{}"
    return s.gen("answer", max_tokens=3)
"""


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A file whose import takes an hour."""
    file = tmp_path / "ask.py"
    file.write_text("import time\ntime.sleep(3600)\n")
    found = Watched(ViewJob(str(file), {}, [], None, None, HOLDS_ALL, 256))
    yield found
    found.close()
    assert found.state(None, 0) is None


def done(watched: Watched, known: State | None) -> State:
    """Return the next state that is the end of a compilation."""
    while True:
        known = watched.state(None if known is None else known.number, SECONDS)
        assert known is not None
        if not known.is_working:
            return known


def test_an_outdated_compilation_is_ended(watched: Watched, tmp_path: Path) -> None:
    watched.start()
    before = watched.state(0, SECONDS)
    (tmp_path / "ask.py").write_text(PROGRAM.format("xyzzy"))
    state = done(watched, before)
    assert state.problem is None
    assert state.view is not None
    assert "xyzzy" in state.view
    (tmp_path / "ask.py").write_text(PROGRAM.format("plugh"))
    after = done(watched, state)
    assert "plugh" in (after.view or "")
    assert after.view_id != state.view_id
    (tmp_path / "ask.py").write_text(PROGRAM.format("xyzzy"))
    assert done(watched, after).view_id == state.view_id


def test_a_compilation_has_a_time_limit(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "COMPILE_SECONDS", 0)
    watched.start()
    state = done(watched, None)
    assert "takes more than 0 s" in json.loads(state.problem or "{}")["message"]
    monkeypatch.setattr(watch, "COMPILE_SECONDS", SECONDS)
    (tmp_path / "ask.py").write_text(PROGRAM.format("xyzzy"))
    assert "xyzzy" in (done(watched, state).view or "")
