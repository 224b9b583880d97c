"""The check beside SGLang, as far as it goes without SGLang: its own side, and the loading of a few modules of many."""

import random
import sys
from pathlib import Path

import pytest

from benchmarks import public_policies
from benchmarks.public import modules
from benchmarks.public.serving import Ours

RADIX_CACHE = """
from sglang.srt.mem_cache.events import Recorder
from sglang.srt.utils import is_hip
import sglang.kernels.ops
recorder = Recorder(enabled=is_hip())
done = recorder.record_all_cleared()
class RadixCache(sglang.kernels.ops.Anything): pass
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch):
    """A package of that name, most of which can't be imported."""
    for name, text in {
        "srt/mem_cache/radix_cache.py": RADIX_CACHE,
        "srt/managers/schedule_policy.py": "from sglang.srt.mem_cache.radix_cache import RadixCache as Cache",
        "__init__.py": "raise ImportError('needs a GPU')",
        "srt/mem_cache/events.py": "raise ImportError('needs a GPU')",
    }.items():
        path = tmp_path / "sglang" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    finders = sys.meta_path.copy()
    yield
    sys.meta_path[:] = finders
    for name in [name for name in sys.modules if name.partition(".")[0] == "sglang"]:
        del sys.modules[name]


@pytest.mark.usefixtures("installed")
def test_what_decides_is_loaded_and_the_rest_stands_in():
    cache, policy = modules.load()
    assert policy.Cache is cache.RadixCache
    assert cache.done is None
    with pytest.raises(AttributeError):
        _ = cache.recorder.__len__


def test_without_it_the_message_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(public_policies, "ENVIRONMENT", tmp_path)
    with pytest.raises(SystemExit, match=r"lacks sglang; run python benchmarks/public_policies.py --setup"):
        public_policies.load()


def test_a_cache_agrees_with_itself_and_not_with_a_larger_one():
    def followed(pages: int) -> list[str]:  # its last two: hits of both
        agreement = public_policies.Agreement()
        for seed in range(3):
            agreement.follow(random.Random(seed), Ours(160), Ours(pages), same_number=False)
        return agreement.row("sequences")

    same, larger = followed(160), followed(200)
    assert same[1:5] == ["3 of 3", "240 of 240", "240 of 240", "240 of 240"]
    assert same[5] == same[6] == larger[5] != larger[6]
    assert larger[1] == "0 of 3"


def test_a_queue_is_ordered_by_what_is_cached():
    ours = Ours(100)
    ours.end(ours.start([1, 2, 3, 4], 4))
    prompts = [[7, 7], [1, 2, 9], [1, 2, 3, 4], [1, 2, 8]]
    assert public_policies.our_order(ours, prompts, many=False) == [2, 1, 3, 0]
    assert public_policies.our_order(ours, prompts * 40, many=True) == list(range(32))
