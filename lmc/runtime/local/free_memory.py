"""Available memory: of the device, the machine, and the control group (container, job)."""

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

_RECLAIMABLE = ("inactive_file", "active_file", "slab_reclaimable")  # of memory.stat: freed before anything fails
_V1_UNLIMITED = 2**60  # cgroup v1 writes a number beyond any memory where there is no limit


def free_memory(device: torch.device) -> int:
    """Bytes that can be allocated without pushing anything else out. Weights that are loaded count as used."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return max(0, min([machine_memory(), *control_group_memory()]))


def return_free_memory() -> None:
    """Give memory that was freed back to the system where the C library keeps it (glibc); nothing elsewhere."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def machine_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return Linux's available memory; elsewhere half of the machine's memory not used by this process."""
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    # Darwin gives bytes where others give KiB.
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") - used) // 2


def control_group_memory(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """Yield the available memory of each limited control group around this process, version 2 and version 1."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _left(root, path, "memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            yield from _left(root / "memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")


def _left(mount: Path, path: str, limit_name: str, usage_name: str, prefix: str) -> Iterator[int]:
    """Limit less usage of a group and of those above it; seen from inside a container its path may not exist."""
    group = mount / path.lstrip("/")
    for folder in (group, *(each for each in group.parents if each == mount or mount in each.parents)):
        try:
            limit = int((folder / limit_name).read_text(encoding="ascii"))
            usage = int((folder / usage_name).read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such group, or "max"
            continue
        if limit < _V1_UNLIMITED:
            yield limit - usage + _reclaimable(folder, prefix)


def _reclaimable(folder: Path, prefix: str) -> int:
    """Cached file contents that count as usage."""
    try:
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    entries = dict(line.split(maxsplit=1) for line in lines)
    return sum(int(entries.get(prefix + name, 0)) for name in _RECLAIMABLE)
