"""The modules of SGLang that decide what is evicted and who is next, without those they import for other things.

SGLang needs a GPU and dozens of packages to be imported as a whole. `REAL` is what runs here as it was published; every
other module of it is a stand-in whose names are classes that do nothing: memory on a device, kernels, metrics, events,
transfers to other machines. Only radix cache, eviction strategies and schedule policy are called by the check.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

REAL = {
    "sglang.srt.environ",
    "sglang.srt.managers.schedule_policy",
    "sglang.srt.mem_cache.base_prefix_cache",
    "sglang.srt.mem_cache.cache_init_params",
    "sglang.srt.mem_cache.common",
    "sglang.srt.mem_cache.evict_policy",
    "sglang.srt.mem_cache.radix_cache",
    "sglang.srt.mem_cache.unified_cache.component_type",
    "sglang.srt.mem_cache.utils",
}
PACKAGES = {"sglang", "sglang.srt", "sglang.srt.managers", "sglang.srt.mem_cache", "sglang.srt.mem_cache.unified_cache"}


def _no(*_: object) -> bool:
    return False


ANSWERS = {"get_bool_env_var": _no, "is_hip": _no, "is_gfx95_supported": _no}


class Unused:
    """Takes any arguments; every method of it does nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


class _StandIn(ModuleType):
    """A module in which every name is a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return ANSWERS.get(name) or type(name, (Unused,), {})


class _Empty(Loader):
    """Makes stand-ins, and packages without what their `__init__` does."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None if spec.name in PACKAGES else _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:  # noqa: ARG002
        return None


class _Finder(MetaPathFinder):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "sglang":
            return None
        if fullname in REAL:
            return PathFinder.find_spec(fullname, path, target)
        spec = ModuleSpec(fullname, _Empty(), is_package=True)
        if fullname in PACKAGES:
            spec.submodule_search_locations = [str(self._folder.joinpath(*fullname.split(".")[1:]))]
        return spec


def load() -> tuple[ModuleType, ModuleType]:
    """SGLang's modules of the radix cache and of the schedule policy.

    Raises:
        ModuleNotFoundError: SGLang is not installed for this interpreter.
    """
    found = PathFinder.find_spec("sglang")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("sglang is not installed", name="sglang")
    sys.meta_path.insert(0, _Finder(Path(found.submodule_search_locations[0])))
    cache = importlib.import_module("sglang.srt.mem_cache.radix_cache")
    policy = importlib.import_module("sglang.srt.managers.schedule_policy")
    return cache, policy
