"""Engines that run, by what was asked for."""

import json

import pytest

from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.engines import adopt_engine, close_engine, engine_info, flush_cache
from lmc.driver.targets.service import service
from lmc.ir.engine.protocol import CacheFlushing
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import InputError
from tests.driver import programs

WISH = Options("toy", deterministic=True)
TARGET = Target("toy", deterministic=True)


class Flushing(ToyEngine):
    flushes = 0

    def flush_cache(self) -> None:
        self.flushes += 1


def test_what_an_engine_is_and_did():
    close_engine(WISH)
    info = json.loads(json.dumps(engine_info(WISH)))
    assert (info["target"]["kind"], info["target"]["deterministic"]) == ("toy", True)
    assert info["context_length"] > 0
    assert info["statistics"]["requests"] == 0
    assert service().engines.running(TARGET) is not None


def test_closing_and_starting_again():
    engine_info(WISH)
    first = service().engines.running(TARGET)
    close_engine(WISH)
    assert service().engines.running(TARGET) is None
    close_engine(WISH)  # there is none any more
    engine_info(WISH)
    assert service().engines.running(TARGET) not in (None, first)


def test_flushing_is_for_engines_that_keep_something(monkeypatch: pytest.MonkeyPatch):
    close_engine(WISH)
    assert flush_cache(WISH) is False, "no engine was started for it"
    assert service().engines.running(TARGET) is None
    engine = Flushing()
    assert isinstance(engine, CacheFlushing)
    monkeypatch.setitem(service().engines._engines, TARGET, engine)
    assert flush_cache(WISH) is True
    assert engine.flushes == 1


def test_what_is_no_target():
    with pytest.raises(InputError, match="unknown target 'toys'"):
        flush_cache(Options("toys"))


def test_an_engine_that_was_made_before_is_a_target():
    engine, other = ToyEngine(), ToyEngine()
    spec = adopt_engine(engine)
    assert spec.startswith("engine:")
    assert adopt_engine(engine) == spec != adopt_engine(other)
    target = resolve_target(Options(spec))
    assert service().engines.engine(target) is engine
    assert service().engines.tokenizer(target) is engine.tokenizer
    runner = Runner(programs.judge, Options(spec))
    before = engine.statistics.requests
    assert runner.run((("x",), {})).value == Runner(programs.judge, Options("toy")).run((("x",), {})).value
    assert engine.statistics.requests > before
    assert other.statistics.requests == 0
    close_engine(Options(spec))
    with pytest.raises(InputError, match=r"there is no engine 'toy-[0-9]+' in this process") as caught:
        runner.run((("x",), {}))
    assert "give the engine itself" in (caught.value.remedy or "")


def test_an_engine_is_set_up_already():
    with pytest.raises(InputError, match="the engine is set up already") as caught:
        resolve_target(Options(adopt_engine(ToyEngine()), dtype="bfloat16"))
    assert "leave out dtype" in (caught.value.remedy or "")
