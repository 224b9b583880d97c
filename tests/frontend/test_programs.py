"""Every program of the corpus, in every way: what it gives, what it does to the world, what it asks of the engine."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.frontend.corpus import cases
from tests.frontend.corpus.cases import CASES
from tests.frontend.harness import check

for _file in sorted(Path(cases.__file__).parent.glob("*.py")):
    import_module(f"tests.frontend.corpus.{_file.stem}")  # which puts its programs into CASES


@pytest.mark.parametrize("name", CASES)
def test_eager_and_captured_agree(name, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)  # for the case of a module that is not loaded
    case = CASES[name]
    captured = check(case.program, case.args, watch=case.watch)
    if case.stops is None:
        assert captured.breaks == ()
    else:
        assert captured.breaks
        for found in captured.breaks:
            assert case.stops in found.cause
            assert found.location is not None
            assert found.remedy
