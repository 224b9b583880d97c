"""Which engines a process keeps: replaced model folders, settings no longer used, closing."""

import os
import shutil
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import lmc
from lmc import builtin_model
from lmc.driver.targets import engine_cache
from lmc.driver.targets.engine_cache import MAX_IDLE, EngineCache
from lmc.driver.targets.engines import adopt_engine
from lmc.driver.targets.service import service
from lmc.ir.engine.protocol import Request, SamplingParams
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import EngineError
from tests.driver import programs

MADE: list["Model"] = []


class Model(ToyEngine):
    """An engine of a folder."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.weights = (Path(target.path or "") / "model.safetensors").read_bytes()
        MADE.append(self)

    @property
    def is_closed(self) -> bool:
        return self._closed


@contextmanager
def toys_for_models() -> Generator[None]:
    """In the block, folders are served by toys."""
    MADE.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_cache, "make_engine", lambda target: Model(target) if target.path else ToyEngine())
        patch.setattr(engine_cache, "load_tokenizer", lambda _: toy_tokenizer())
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A model folder, which a toy serves."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("old")
    with toys_for_models():
        yield tmp_path


def replace_weights(folder: Path, text: str = "new") -> None:
    """As tools do that save a model: another file takes the place of the old one."""
    (folder / "next").write_text(text)
    (folder / "next").rename(folder / "model.safetensors")


def test_an_engine_serves_all_uses_of_a_folder_that_stays_as_it_is(folder: Path):
    cache = EngineCache()
    first = cache.engine(Target("local", str(folder)))
    (folder / "notes.txt").write_text("no part of the model")
    (folder / "metrics.json").write_text("{}")
    assert cache.engine(Target("local", str(folder))) is first
    cache.close()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"])
def test_a_folder_that_changed_has_a_new_engine_and_tokenizer(folder: Path, name: str):
    cache, target = EngineCache(), Target("local", str(folder))
    old, words = cache.engine(target), cache.tokenizer(target)
    (folder / name).write_text("new")
    new = cache.engine(target)
    assert new is not old
    assert isinstance(old, Model)
    assert old.is_closed
    assert cache.engine(target) is new
    assert words == cache.tokenizer(target)
    cache.close()


def test_the_same_size_and_a_time_that_was_set_back_hide_no_other_file(folder: Path):
    cache, target = EngineCache(), Target("local", str(folder))
    old = cache.engine(target)
    state = (folder / "model.safetensors").stat()
    replace_weights(folder)
    os.utime(folder / "model.safetensors", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert cache.engine(target) is not old
    cache.close()


def test_a_run_under_way_finishes_on_the_engine_that_it_began_on(folder: Path):
    cache, target = EngineCache(), Target("local", str(folder))
    with cache.use(target) as old:
        replace_weights(folder)
        with cache.use(target) as new:
            assert isinstance(old, Model)
            assert isinstance(new, Model)
            assert (old.weights, new.weights) == (b"old", b"new")
            assert not old.is_closed
        assert cache.running(target) is new
    assert old.is_closed
    assert not new.is_closed
    cache.close()
    assert new.is_closed


def test_a_folder_that_is_gone_is_still_served(folder: Path):
    cache, target = EngineCache(), Target("local", str(folder))
    engine = cache.engine(target)
    shutil.rmtree(folder)
    assert cache.engine(target) is engine
    cache.close()


def test_engines_of_settings_that_are_not_used_any_more_are_closed(folder: Path):
    cache = EngineCache()
    cache.engine(Target("toy"))
    kept = cache.adopt(ToyEngine())
    for tokens in range(1, 3 * MAX_IDLE):
        cache.engine(Target("local", str(folder), kv_tokens=tokens))
        assert sum(not model.is_closed for model in MADE) <= MAX_IDLE
    assert [model.target.kv_tokens for model in MADE if not model.is_closed] == [*range(2 * MAX_IDLE, 3 * MAX_IDLE)]
    assert cache.running(Target("toy")) is not None
    assert cache.running(kept) is not None
    cache.close()


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=40))
def test_what_is_in_use_is_open_and_what_is_idle_is_bounded(steps: list[tuple[int, bool]]):
    folder = str(builtin_model.path())
    cache, used = EngineCache(), list[Any]()
    with toys_for_models():
        for number, ends in steps:
            if ends and used:
                cache.release(used.pop(number % len(used)))
            else:
                used.append(cache.acquire(Target("local", folder, kv_tokens=number + 1)))
            assert not any(engine.is_closed for engine in used)
            assert sum(not model.is_closed and model not in used for model in MADE) <= MAX_IDLE
        cache.close()
    assert all(model.is_closed for model in MADE)


def test_many_threads_share_the_bound(folder: Path):
    cache = EngineCache()

    def use(number: int) -> bool:
        with cache.use(Target("local", str(folder), kv_tokens=number % 9 + 1)) as engine:
            return isinstance(engine, Model) and not engine.is_closed

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(200)))
    assert sum(not model.is_closed for model in MADE) <= MAX_IDLE
    cache.close()


def test_closing_ends_all_engines_and_a_later_call_starts_new_ones():
    given = ToyEngine()
    bound = programs.judge.on(adopt_engine(given))
    before = programs.judge.on("toy")("x")
    assert bound("x") == before
    toy = service().engines.running(Target("toy"))
    lmc.close()
    lmc.close()
    assert service().engines.all() == []
    assert isinstance(toy, ToyEngine)
    with pytest.raises(EngineError, match="closed"):
        toy.submit(Request((1,), SamplingParams(max_tokens=1))).future.result()
    assert programs.judge.on("toy")("x") == before


def test_a_block_closes_the_engines_that_were_started_in_it_and_no_others():
    lmc.close()
    programs.judge.on("toy")("x")
    outer = service().engines.running(Target("toy"))
    with lmc.engines():
        programs.judge.on("toy", deterministic=True)("x")
        programs.judge.on("toy")("x")
        assert len(service().engines.all()) == 2
    assert service().engines.all() == [outer]


def test_a_block_that_raises_closes_its_engines():
    lmc.close()
    with pytest.raises(ValueError, match="thirteen"), lmc.engines():
        programs.breaks.on("toy")("x", limit=13)
    assert service().engines.all() == []


def test_closing_before_anything_ran_starts_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lmc.driver.targets.engines.service_in_use", lambda: None)
    before = threading.active_count()
    lmc.close()
    with lmc.engines():
        pass
    assert threading.active_count() == before


@lmc.jit
def continues(s: lmc.State, text: str) -> str:
    s += text
    return s.gen("a", max_tokens=12)


def test_weights_that_are_replaced_are_those_that_answer(tmp_path: Path):
    model = tmp_path / "model"
    shutil.copytree(builtin_model.path(), model, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    program = continues.on(f"local:{model}", kv_tokens=600)
    with lmc.engines():
        before = program("The capital of")
        old: Any = service().engines.running(Target("local", str(model), kv_tokens=600))
        weights = load_file(model / "model.safetensors")
        save_file({name: weight.flip(0).contiguous() for name, weight in weights.items()}, model / "next.safetensors")
        (model / "next.safetensors").rename(model / "model.safetensors")
        after = program("The capital of")
        assert after != before
        assert not old._worker.is_alive
    assert service().engines.running(Target("local", str(model), kv_tokens=600)) is None


@pytest.mark.parametrize("loads", ["load_tokenizer", "make_engine", "model_folder"])
def test_a_slow_load_stops_no_program_on_an_engine_that_is_loaded(
    loads: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    slow = tmp_path_factory.mktemp("slow")
    shutil.copytree(folder, slow, dirs_exist_ok=True)
    load = getattr(engine_cache, loads)
    is_loading, may_go_on = threading.Event(), threading.Event()

    def wait_for_the_slow_one(target: Target) -> Any:
        if target.path == str(slow.resolve()):
            is_loading.set()
            assert may_go_on.wait(30)
        return load(target)

    monkeypatch.setattr(engine_cache, loads, wait_for_the_slow_one)
    program = programs.judge
    before = program.on(f"local:{folder}")("x")
    with ThreadPoolExecutor(2) as pool:
        loading = pool.submit(program.on(f"local:{slow}"), "x")
        same = pool.submit(program.on(f"local:{slow}"), "x")
        try:
            assert is_loading.wait(30)
            assert program.on(f"local:{folder}")("x") == before
            assert not loading.done()
        finally:
            may_go_on.set()
        assert loading.result(30) == same.result(30) == before
    assert len([made for made in MADE if made.target.path == str(slow.resolve())]) == 1
